package web

import (
	"satchel/auth/store"
)

// Bounds of what is told of links that others made.
const (
	homeLinks = 3
	maxLinks  = 500 // on the page Account, where all are asked for
)

// MadeLink is a sign-in link that somebody else made for the visitor.
type MadeLink struct {
	store.LinkNotice
	Over bool // nobody used it, and nobody can
}

func (s *Site) MadeLinks(all []store.LinkNotice) []MadeLink {
	out := make([]MadeLink, len(all))
	for i, n := range all {
		out[i] = MadeLink{n, n.Used.IsZero() && !n.Expires.After(s.Now())}
	}
	return out
}

// RecentLinks are sign-in links that others made for the visitor, as the first page
// shows them.
type RecentLinks struct {
	Lines []MadeLink
	More  int
}

func (s *Site) RecentLinks(v *Visit) (RecentLinks, error) {
	all, more, err := s.Accounts.RecentLinks(v.R.Context(), v.User.ID, homeLinks)
	return RecentLinks{s.MadeLinks(all), more}, err
}
