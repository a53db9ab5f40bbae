package app

import (
	"context"
	"encoding/json"
	"time"

	"satchel/auth"
	"satchel/internal/space"
)

// lookEvery is how often a server looks for rights that another process took
// away: "within a second" is promised. What this process does itself is seen at
// once.
const lookEvery = 400 * time.Millisecond

// userEnded stops what runs for a person who was removed, be it that whoever
// removed them does not wait for it.
func (s *Server) userEnded(ctx context.Context, user space.UserID) {
	s.mcp.End(func(p auth.Principal) bool { return p.User == user })
	if s.bash == nil {
		return
	}
	if err := s.bash.pool.StopUser(context.WithoutCancel(ctx), user); err != nil {
		s.Log.Error("stop the sandboxes of a removed user", "user", user, "err", err)
	}
}

// memberEnded stops what runs in a space for who is no member of it any more, or
// may only read it.
func (s *Server) memberEnded(ctx context.Context, user space.UserID, id space.SpaceID) {
	s.mcp.End(func(p auth.Principal) bool { return p.User == user && p.Space == id })
	if s.bash == nil {
		return
	}
	if err := s.bash.pool.StopMember(context.WithoutCancel(ctx), user, id); err != nil {
		s.Log.Error("stop the sandbox of a removed member", "user", user, "space", id, "err", err)
	}
}

// recheck ends the calls and streams whose grant is good no more.
func (s *Server) recheck(ctx context.Context) {
	good := map[space.GrantID]bool{}
	asked := map[space.UserID]bool{}
	for _, p := range s.mcp.InProgress() {
		if asked[p.User] {
			continue
		}
		asked[p.User] = true
		grants, err := s.Accounts.Grants(ctx, p.User)
		if err != nil {
			s.Log.Error("look at the grants of what is in progress", "err", err)
			return
		}
		for _, g := range grants {
			good[g.ID] = g.Revoked.IsZero()
		}
	}
	s.mcp.End(func(p auth.Principal) bool { return asked[p.User] && !good[p.Grant] })
}

// watchRights follows the audit log, in which every process that shares the
// database says what it took away.
func (s *Server) watchRights(ctx context.Context) {
	seen, err := s.newestAct(ctx)
	if err != nil {
		s.Log.Error("read the audit log", "err", err)
	}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		newest, err := s.newestAct(ctx)
		if err != nil || newest == seen {
			continue // the database's own troubles are told by every request
		}
		s.actsSince(ctx, seen)
		seen = newest
	}
}

func (s *Server) newestAct(ctx context.Context) (int64, error) {
	rows, err := s.Accounts.Audit(ctx, 0, 1)
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	return rows[0].ID, nil
}

// actsSince ends what the acts after one took the right to.
func (s *Server) actsSince(ctx context.Context, seen int64) {
	const page = 200
	again := false
	for before := int64(0); ; {
		rows, err := s.Accounts.Audit(ctx, before, page)
		if err != nil {
			s.Log.Error("read the audit log", "err", err)
			return
		}
		for _, r := range rows {
			if r.ID <= seen {
				break
			}
			before = r.ID
			switch r.Action {
			case "user.remove", "user.suspend":
				s.userEnded(ctx, space.UserID(r.Subject))
			case "member.remove", "member.set":
				// What runs for an editor may write until it is stopped, and they may
				// be a reader now.
				var d struct {
					User space.UserID
					Role space.Role
				}
				if json.Unmarshal([]byte(r.Detail), &d) == nil && (r.Action == "member.remove" || d.Role == space.Reader) {
					s.memberEnded(ctx, d.User, space.SpaceID(r.Subject))
				}
			case "key.revoke", "grant.revoke", "client.delete", "code.reuse", "refresh.reuse":
				again = true
			}
		}
		if len(rows) < page || rows[len(rows)-1].ID <= seen {
			break
		}
	}
	if again {
		s.recheck(ctx)
	}
}
