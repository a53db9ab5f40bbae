package web

import (
	"slices"

	"satchel/auth"
	"satchel/auth/store"
)

// Client is a client, or a key, as its person is shown it.
type Client struct {
	store.GrantInfo
	As    string // what calls with the key calls itself; empty: nothing is known
	Stdio bool   // "satchel stdio" made the key for a run
	Over  bool   // the run is over, and its key with it
}

func (s *Site) clientRow(g store.GrantInfo) Client {
	r := Client{GrantInfo: g, Stdio: IsStdio(g)}
	if as := s.Called(g.ID); g.Kind == "key" && len(as) > 0 {
		r.As = Shorten(as[0].Name, 60)
	}
	return r
}

// Clients returns a person's clients and keys that are good, the one that was used or
// made last first. Programs that are started for each use stand there between their
// runs, too: each run has a key of its own, which ends with it.
func (s *Site) Clients(v *Visit) ([]Client, error) {
	ctx := v.R.Context()
	grants, err := s.Accounts.Grants(ctx, v.User.ID)
	if err != nil {
		return nil, err
	}
	var out []Client
	type of struct{ name, space string }
	runs := map[of]bool{}
	for _, g := range grants {
		if !s.InUse(g) {
			continue
		}
		out = append(out, s.clientRow(g))
		if IsStdio(g) {
			runs[of{g.Name, string(g.Space)}] = true
		}
	}
	last, err := s.Accounts.LastKeys(ctx, v.User.ID, auth.StdioKey)
	if err != nil {
		return nil, err
	}
	for _, g := range last {
		if r := s.clientRow(g); !runs[of{g.Name, string(g.Space)}] && !s.InUse(g) {
			r.Over = true
			out = append(out, r)
		}
	}
	slices.SortStableFunc(out, func(a, b Client) int { return latest(b.GrantInfo).Compare(latest(a.GrantInfo)) })
	return out, nil
}
