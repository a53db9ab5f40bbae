package server

import (
	"context"
	"encoding/json"
	"time"

	"satchel/auth"
	"satchel/auth/store"
	"satchel/internal/space"
)

// lookEvery is how often a server checks for rights that another process revoked, so that such
// rights end within a second. Rights that this process revokes end at once.
const lookEvery = 400 * time.Millisecond

// userEnded stops everything that runs for a removed or suspended person.
func (s *Server) userEnded(ctx context.Context, user space.UserID) {
	s.mcp.End(func(p auth.Principal) bool { return p.User == user })
	s.live.End(user, "")
	s.Service.EndImports(user, "")
	if s.bash == nil {
		return
	}
	if err := s.bash.pool.StopUser(context.WithoutCancel(ctx), user); err != nil {
		s.Log.Error("stop the sandboxes of a removed user", "user", user, "err", err)
	}
}

// memberChanged stops everything that a member's new role does not allow. The role is empty
// for a former member.
func (s *Server) memberChanged(ctx context.Context, user space.UserID, id space.SpaceID, role space.Role) {
	switch role {
	case "":
		s.memberEnded(ctx, user, id)
	case space.Reader:
		s.writerEnded(ctx, user, id)
	}
}

// memberEnded stops what runs in a space for a former member.
func (s *Server) memberEnded(ctx context.Context, user space.UserID, id space.SpaceID) {
	s.mcp.End(func(p auth.Principal) bool { return p.User == user && p.Space == id })
	s.live.End(user, id)
	s.writerEnded(ctx, user, id)
}

// writerEnded stops everything that could write in a space for a member who became a
// reader.
func (s *Server) writerEnded(ctx context.Context, user space.UserID, id space.SpaceID) {
	s.mcp.End(func(p auth.Principal) bool { return p.User == user && p.Space == id && p.Can(space.ScopeWrite) })
	s.Service.EndImports(user, id)
	if s.bash == nil {
		return
	}
	if err := s.bash.pool.StopMember(context.WithoutCancel(ctx), user, id); err != nil {
		s.Log.Error("stop the sandbox of a member who can no longer write", "user", user, "space", id, "err", err)
	}
}

// recheck ends the calls and streams whose grant is no longer valid.
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
			s.Log.Error("check the grants of the requests in progress", "err", err)
			return
		}
		for _, g := range grants {
			good[g.ID] = g.Revoked.IsZero()
		}
	}
	s.mcp.End(func(p auth.Principal) bool { return asked[p.User] && !good[p.Grant] })
}

// These constants say how the audit log is followed. PostgreSQL assigns IDs before transactions
// commit, so a new entry can appear before an entry that was already read. Therefore the server
// reads the end of the log again for some time after each change.
const (
	readBack     = 1000 // entries
	readBackTime = 10 * time.Second
	recheckEvery = time.Minute
)

// watchRights follows the audit log, in which every process that shares the database
// records the rights that it revokes. A regular check of all calls and streams finds the
// rest, such as expired tokens.
func (s *Server) watchRights(ctx context.Context) {
	handled := map[int64]bool{}
	seen, err := s.acts(ctx, handled, nil)
	if err != nil {
		s.Log.Error("read the audit log", "err", err)
	}
	tick, again := time.NewTicker(lookEvery), time.NewTicker(recheckEvery)
	defer tick.Stop()
	defer again.Stop()
	var moved time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-again.C:
			s.recheck(ctx)
			continue
		case <-tick.C:
		}
		newest, err := s.newestAct(ctx)
		if err != nil {
			continue // every request reports problems of the database
		}
		if newest != seen {
			moved = time.Now()
		}
		if time.Since(moved) > readBackTime {
			continue
		}
		if at, err := s.acts(ctx, handled, s.actOn); err == nil {
			seen = at
		} else if ctx.Err() == nil {
			s.Log.Error("read the audit log", "err", err)
		}
	}
}

func (s *Server) newestAct(ctx context.Context) (int64, error) {
	rows, err := s.Accounts.Audit(ctx, 0, 1)
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	return rows[0].ID, nil
}

// acts reads the end of the log, calls act for each new entry, and returns the newest ID.
func (s *Server) acts(ctx context.Context, handled map[int64]bool, act func(context.Context, store.Entry) (revoked bool)) (newest int64, err error) {
	rows, err := s.Accounts.Audit(ctx, 0, readBack)
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	// There may be more new entries than one read returns.
	for page := rows; act != nil && len(page) == readBack && !handled[page[len(page)-1].ID]; {
		if page, err = s.Accounts.Audit(ctx, page[len(page)-1].ID, readBack); err != nil {
			return 0, err
		}
		rows = append(rows, page...)
	}
	revoked := false
	for _, r := range rows {
		if !handled[r.ID] && act != nil {
			revoked = act(ctx, r) || revoked
		}
		handled[r.ID] = true
	}
	if last := rows[min(len(rows), readBack)-1].ID; len(handled) > 2*readBack {
		for id := range handled {
			if id < last {
				delete(handled, id)
			}
		}
	}
	if revoked {
		s.recheck(ctx)
	}
	return rows[0].ID, nil
}

// actOn handles an entry of the audit log. It ends everything that depends on a right that was
// revoked. The result revoked reports that the entry revoked grants, so that recheck must run.
func (s *Server) actOn(ctx context.Context, r store.Entry) (revoked bool) {
	switch r.Action {
	case "user.remove", "user.suspend":
		s.userEnded(ctx, space.UserID(r.Subject))
		s.sources.Look(ctx)
	case "space.give":
		s.sources.Look(ctx)
		// GiveSpace has usually ended the remote already. EndGivenRemote may wait for the end
		// of a transfer.
		s.work.Go(func() {
			if err := s.Service.EndGivenRemote(s.ctx, r); err != nil {
				s.Log.Error("a transferred space keeps its remote until the next start", "space", r.Subject, "err", err)
			}
		})
	case "space.delete":
		s.deletions.begin(space.SpaceID(r.Subject))
	case "member.remove", "member.set":
		var d struct {
			User      space.UserID
			Role, Was space.Role
		}
		switch {
		case json.Unmarshal([]byte(r.Detail), &d) != nil:
		case r.Action == "member.remove":
			s.memberEnded(ctx, d.User, space.SpaceID(r.Subject))
		case d.Role == space.Reader && d.Was != space.Reader:
			// Commands that an editor started can write until they are stopped.
			s.writerEnded(ctx, d.User, space.SpaceID(r.Subject))
		}
	case "session.end":
		var d struct{ User space.UserID }
		if json.Unmarshal([]byte(r.Detail), &d) == nil {
			s.live.EndSession(d.User, r.Subject)
		}
	case "key.revoke", "grant.revoke", "client.delete", "code.reuse", "refresh.reuse":
		return true
	case "github.link", "github.unlink", "github.state", "space.remote.set", "space.remote.remove":
		s.remoteChanged(ctx, space.SpaceID(r.Subject))
	}
	return false
}
