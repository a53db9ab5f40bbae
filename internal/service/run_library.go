package service

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"strings"
	"sync"
	"time"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/sandbox"
)

// Bounds of the sandboxes that one grant has over the library. A program keeps a few of
// them between its calls, and none that it forgot. Its caller waits for a command, which
// therefore ends long before it would become a job.
const (
	maxSessions     = 8                // that a grant names
	sessionIdle     = 30 * time.Minute // for which one of them is kept without a call
	libraryWallTime = 2 * time.Minute  // of a command
)

// RunLibraryCommandInput is a command in /library. Session is the client's own name for
// the sandbox; without one, the grant has one more sandbox.
type RunLibraryCommandInput struct{ Session, Command string }

// RunLibraryCommand runs a command in a sandbox over the library alone, where it can
// change nothing. No two grants ever share one. Result.Cold reports that nothing of
// earlier commands is in it.
func (s *Service) RunLibraryCommand(ctx context.Context, a Actor, in RunLibraryCommandInput) (CommandResult, error) {
	if err := s.authorize(a, "RunLibraryCommand"); err != nil {
		return CommandResult{}, err
	}
	if why := s.NoCommands(); why != "" {
		return CommandResult{}, fault.New(fault.Unavailable, "%s", why)
	}
	id := librarySpace(a.user, a.grant, in.Session)
	for {
		oldest, err := s.sessions.begin(id, a, in.Session != "", time.Now())
		if err != nil {
			return CommandResult{}, err
		}
		if oldest == "" {
			break
		}
		if err := s.running.Pool.StopMember(ctx, a.user, oldest); err != nil {
			return CommandResult{}, fault.Wrap(err, fault.Canceled, "The call was cancelled before the command began.")
		}
	}
	defer func() { s.sessions.end(id, time.Now()) }()
	r := sandbox.Request{
		User: a.user, Space: id, Command: "cd /library; " + in.Command, ReadOnly: true, Tool: a.via,
		Attached: true, WallTime: libraryWallTime, Ephemeral: true,
	}
	if in.Session != "" {
		r.IdleStop = sessionIdle
	}
	return s.exec(ctx, r)
}

// A sandbox over the library alone is over an empty space, whose ID no space can have:
// those of spaces begin with "s_" (space.ParseSpaceID).
const libraryPrefix = "l_"

// IsLibraryOnly reports whether an ID stands for the empty space of a sandbox over the
// library alone.
func IsLibraryOnly(id space.SpaceID) bool { return strings.HasPrefix(string(id), libraryPrefix) }

// librarySpace is the empty space of a sandbox over the library alone. It reveals
// neither the grant nor the session.
func librarySpace(user space.UserID, grant space.GrantID, session string) space.SpaceID {
	sum := sha256.Sum256([]byte(strings.Join([]string{string(user), string(grant), session}, "\x00")))
	return space.SpaceID(libraryPrefix + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:20])))
}

// sessions counts the commands in each sandbox over the library.
type sessions struct {
	mu     sync.Mutex
	byID   map[space.SpaceID]*session
	pruned time.Time
}

type session struct {
	user  space.UserID
	grant space.GrantID
	named bool
	busy  int
	used  time.Time
}

// pruneEvery is how often begin looks for sessions whose time is over.
const pruneEvery = time.Minute

// begin counts a command in a session. If the grant has too many, it begins none and
// returns the one that was used longest ago, which the caller stops before it tries again.
func (s *sessions) begin(id space.SpaceID, a Actor, named bool, now time.Time) (oldest space.SpaceID, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prune(now)
	if x := s.byID[id]; x != nil {
		x.busy++
		return "", nil
	}
	n := 0
	for other, x := range s.byID {
		if x.grant != a.grant || x.user != a.user || !x.named {
			continue
		}
		n++
		if x.busy == 0 && (oldest == "" || x.used.Before(s.byID[oldest].used)) {
			oldest = other
		}
	}
	switch {
	case !named || n < maxSessions:
		s.byID[id] = &session{user: a.user, grant: a.grant, named: named, busy: 1}
		return "", nil
	case oldest == "":
		return "", fault.New(fault.Limited, "Commands run in %d sessions of this key, and no more may be at a time.", maxSessions)
	}
	delete(s.byID, oldest) // so that no command begins in it while it is stopped
	return oldest, nil
}

func (s *sessions) end(id space.SpaceID, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.byID[id]
	x.busy--
	x.used = now
}

// prune forgets the sessions whose sandboxes the pool has stopped by now.
func (s *sessions) prune(now time.Time) {
	if now.Sub(s.pruned) < pruneEvery {
		return
	}
	s.pruned = now
	for id, x := range s.byID {
		if x.busy == 0 && now.Sub(x.used) > sessionIdle+pruneEvery {
			delete(s.byID, id)
		}
	}
}
