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

// Limits of the library sandboxes of a grant. Programs can keep a few sandboxes between calls.
// Sandboxes that no call uses for a while end. Commands end long before they would become jobs,
// because callers wait for them.
const (
	maxSessions     = 8                // named sandboxes of a grant
	sessionIdle     = 30 * time.Minute // how long a named sandbox is kept without a call
	libraryWallTime = 2 * time.Minute  // limit of a command
)

// DefaultSession is the name of the sandbox that runs the commands without a session. All such
// commands of a grant share this sandbox, and so do commands with the name as their session.
const DefaultSession = "default"

// RunLibraryCommandInput is a command in /library. Session is the client's name for the
// sandbox; empty means DefaultSession.
type RunLibraryCommandInput struct{ Session, Command string }

// RunLibraryCommand runs a command in a sandbox that contains only the library, read-only.
// Grants never share a sandbox. Result.Cold reports that the sandbox contains nothing of
// earlier commands.
func (s *Service) RunLibraryCommand(ctx context.Context, a Actor, in RunLibraryCommandInput) (CommandResult, error) {
	if err := s.authorize(a, "RunLibraryCommand"); err != nil {
		return CommandResult{}, err
	}
	if why := s.NoCommands(); why != "" {
		return CommandResult{}, fault.New(fault.Unavailable, "%s", why)
	}
	if in.Session == DefaultSession {
		in.Session = ""
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

// libraryPrefix begins the ID of the empty space of a library sandbox. The IDs of real spaces
// begin with "s_" (space.ParseSpaceID).
const libraryPrefix = "l_"

// IsLibraryOnly reports whether an ID belongs to the empty space of a library sandbox.
func IsLibraryOnly(id space.SpaceID) bool { return strings.HasPrefix(string(id), libraryPrefix) }

// librarySpace returns the ID of the empty space of a library sandbox. It reveals neither
// the grant nor the session.
func librarySpace(user space.UserID, grant space.GrantID, session string) space.SpaceID {
	sum := sha256.Sum256([]byte(strings.Join([]string{string(user), string(grant), session}, "\x00")))
	return space.SpaceID(libraryPrefix + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:20])))
}

// sessions counts the running commands of each library sandbox.
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

// pruneEvery is how often begin removes expired sessions.
const pruneEvery = time.Minute

// begin counts a command in a session. If the session is new and named, and the grant already has
// maxSessions named sessions, begin instead removes the least recently used of them in which no
// command runs, and returns it. The caller then stops the sandbox of that session and calls begin
// again.
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
		return "", fault.New(fault.Limited, "Commands are running in %d sessions of this key, which is the limit.", maxSessions)
	}
	delete(s.byID, oldest) // the caller stops the sandbox of oldest
	return oldest, nil
}

func (s *sessions) end(id space.SpaceID, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.byID[id]
	x.busy--
	x.used = now
}

// prune removes the sessions that were not used for so long that the pool has stopped their
// sandboxes.
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
