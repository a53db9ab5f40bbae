package account

import (
	"slices"

	"satchel/auth"
	"satchel/internal/service"
	"satchel/web"
)

// client is a client or a key on a page of its owner.
type client struct {
	service.Grant
	As    string // the name of the program that uses the key; empty if unknown
	Stdio bool   // "satchel stdio" created the key for one run
	Over  bool   // the run and its key have ended
}

// isKey reports whether a person created the key, so that the page of keys lists it.
func (c client) isKey() bool { return c.Kind == "key" && !c.Stdio }

func (s *pages) clientRow(g service.Grant) client {
	r := client{Grant: g, Stdio: g.Stdio()}
	if as := s.Called(g.ID); g.Kind == "key" && len(as) > 0 {
		r.As = web.Shorten(as[0].Name, 60)
	}
	return r
}

// clientsOf returns a person's valid clients and keys, sorted by their last use or creation,
// newest first. A program with a new key for each run is also listed between its runs.
func (s *pages) clientsOf(v *web.Visit) ([]client, error) {
	ctx := v.R.Context()
	grants, err := s.Service.ListGrants(ctx, v.Actor(), service.ListGrantsInput{})
	if err != nil {
		return nil, err
	}
	var out []client
	type of struct{ name, space string }
	runs := map[of]bool{}
	for _, g := range grants {
		out = append(out, s.clientRow(g))
		if g.Stdio() {
			runs[of{g.Name, string(g.Space)}] = true
		}
	}
	last, err := s.Accounts.LastKeys(ctx, v.User.ID, auth.StdioKey)
	if err != nil {
		return nil, err
	}
	for _, g := range last {
		if r := s.clientRow(service.Grant{GrantInfo: g}); !runs[of{g.Name, string(g.Space)}] {
			r.Over = true
			out = append(out, r)
		}
	}
	slices.SortStableFunc(out, func(a, b client) int { return latest(b.Grant).Compare(latest(a.Grant)) })
	return out, nil
}
