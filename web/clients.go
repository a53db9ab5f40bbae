package web

import (
	"slices"

	"satchel/auth"
	"satchel/auth/store"
)

// myClient is a client, or a key, as its person is shown it.
type myClient struct {
	store.GrantInfo
	As    string // what calls with the key calls itself; empty: nothing is known
	Stdio bool   // "satchel stdio" made the key for a run
	Over  bool   // the run is over, and its key with it
}

func (s *Server) clientRow(g store.GrantInfo) myClient {
	r := myClient{GrantInfo: g, Stdio: isStdio(g)}
	if as := s.o.Called(g.ID); g.Kind == "key" && len(as) > 0 {
		r.As = shorten(as[0].Name, 60)
	}
	return r
}

// clientsOf returns a person's clients and keys that are good, the one that was used or
// made last first. Programs that are started for each use stand there between their
// runs, too: each run has a key of its own, which ends with it.
func (s *Server) clientsOf(v *visit) ([]myClient, error) {
	ctx := v.r.Context()
	grants, err := s.o.Accounts.Grants(ctx, v.user.ID)
	if err != nil {
		return nil, err
	}
	var out []myClient
	type of struct{ name, space string }
	runs := map[of]bool{}
	for _, g := range grants {
		if !s.inUse(g) {
			continue
		}
		out = append(out, s.clientRow(g))
		if isStdio(g) {
			runs[of{g.Name, string(g.Space)}] = true
		}
	}
	last, err := s.o.Accounts.LastKeys(ctx, v.user.ID, auth.StdioKey)
	if err != nil {
		return nil, err
	}
	for _, g := range last {
		if r := s.clientRow(g); !runs[of{g.Name, string(g.Space)}] && !s.inUse(g) {
			r.Over = true
			out = append(out, r)
		}
	}
	slices.SortStableFunc(out, func(a, b myClient) int { return latest(b.GrantInfo).Compare(latest(a.GrantInfo)) })
	return out, nil
}
