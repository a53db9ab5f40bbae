package account

import (
	"slices"

	"satchel/auth/store"
	"satchel/web"
)

// Limits of lists of sign-in links that others made.
const (
	homeLinks = 1
	maxLinks  = 500 // limit of the account page if it shows all links
)

// madeLink is a sign-in link that somebody else created for the visitor.
type madeLink struct {
	store.LinkNotice
	Over bool // the link expired unused
}

func (s *pages) madeLinks(all []store.LinkNotice) []madeLink {
	out := make([]madeLink, len(all))
	for i, n := range all {
		out[i] = madeLink{n, n.Used.IsZero() && !n.Expires.After(s.Now())}
	}
	return out
}

// recentLinks holds the recent sign-in links that others created for the visitor.
type recentLinks struct {
	Lines []madeLink
	More  int
}

// ByOthers reports whether another person than the operator created one of the links.
func (l recentLinks) ByOthers() bool {
	return slices.ContainsFunc(l.Lines, func(m madeLink) bool { return m.ByName != "" })
}

func (s *pages) recentLinks(v *web.Visit) (recentLinks, error) {
	all, more, err := s.Accounts.RecentLinks(v.R.Context(), v.User.ID, homeLinks)
	return recentLinks{s.madeLinks(all), more}, err
}
