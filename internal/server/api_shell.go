package server

import (
	"context"
	"sync"
	"time"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/sandbox"
	"satchel/web/api"
)

// shellLimits bound the sandboxes of one grant.
type shellLimits struct {
	Sessions int           // that it names
	Idle     time.Duration // how long one of those is kept without a call
	Time     time.Duration // of a command
}

// apiShells lets a program keep a few sandboxes between its calls, and none that it
// forgot. Its caller waits for a command, so that it ends long before a job would.
var apiShells = shellLimits{Sessions: 8, Idle: 30 * time.Minute, Time: 2 * time.Minute}

// executor is what runs commands; *sandbox.Pool is one.
type executor interface {
	Exec(ctx context.Context, r sandbox.Request) (sandbox.Result, error)
	StopMember(ctx context.Context, u space.UserID, id space.SpaceID) error
}

// shells runs the commands of the REST API in the pool.
type shells struct {
	pool   executor
	limits shellLimits
	now    func() time.Time

	mu       sync.Mutex
	sessions map[space.SpaceID]*shellSession
	pruned   time.Time
}

type shellSession struct {
	user  space.UserID
	grant space.GrantID
	named bool // by a sessionId
	busy  int
	used  time.Time
}

var _ api.Shells = (*shells)(nil)

func newShells(pool executor, limits shellLimits) *shells {
	return &shells{pool: pool, limits: limits, now: time.Now, sessions: map[space.SpaceID]*shellSession{}}
}

// Run implements api.Shells.
func (s *shells) Run(ctx context.Context, at api.Shell, command string) (api.Ran, error) {
	id := shellSpace(at.User, at.Grant, at.Session)
	if err := s.begin(ctx, id, at); err != nil {
		return api.Ran{}, err
	}
	defer s.end(id)
	r := sandbox.Request{
		User: at.User, Space: id, Command: "cd /library; " + command, ReadOnly: true, Tool: "api",
		Attached: true, WallTime: s.limits.Time, Passing: true,
	}
	if at.Session != "" {
		r.IdleStop = s.limits.Idle
	}
	began := s.now()
	res, err := s.pool.Exec(ctx, r)
	if end := deathOf(err); end != "" {
		// The command began, so that it is an answer.
		return api.Ran{End: string(end), ExitCode: -1, Duration: s.now().Sub(began), Notes: []string{fault.PublicOf(err)}}, nil
	}
	if err != nil {
		return api.Ran{}, err
	}
	return api.Ran{
		Stdout: res.Stdout.Text, Stderr: res.Stderr.Text, StdoutCut: res.Stdout.Cut, StderrCut: res.Stderr.Cut,
		End: string(ends[res.End]), ExitCode: res.ExitCode, Signal: res.Signal, Duration: res.Duration,
		Fresh: res.Cold, Notes: res.Notes,
	}, nil
}

// pruneEvery is how often sessions are looked through whose time is over.
const pruneEvery = time.Minute

// begin counts a command in a session, and makes room for a new one.
func (s *shells) begin(ctx context.Context, id space.SpaceID, at api.Shell) error {
	for {
		s.mu.Lock()
		s.prune()
		if x := s.sessions[id]; x != nil {
			x.busy++
			s.mu.Unlock()
			return nil
		}
		named := 0
		var oldest space.SpaceID
		for other, x := range s.sessions {
			if x.grant != at.Grant || x.user != at.User || !x.named {
				continue
			}
			named++
			if x.busy == 0 && (oldest == "" || x.used.Before(s.sessions[oldest].used)) {
				oldest = other
			}
		}
		if at.Session == "" || named < s.limits.Sessions {
			s.sessions[id] = &shellSession{user: at.User, grant: at.Grant, named: at.Session != "", busy: 1}
			s.mu.Unlock()
			return nil
		}
		if oldest == "" {
			s.mu.Unlock()
			return fault.New(fault.Limited, "Commands run in %d sessions of this key, and no more may be at a time.", s.limits.Sessions)
		}
		// Nobody may begin in it while it is stopped.
		delete(s.sessions, oldest)
		s.mu.Unlock()
		if err := s.pool.StopMember(ctx, at.User, oldest); err != nil {
			return fault.Wrap(err, fault.Canceled, "The call was cancelled before the command began.")
		}
	}
}

func (s *shells) end(id space.SpaceID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.sessions[id]
	x.busy--
	x.used = s.now()
}

// prune forgets the sessions whose sandboxes the pool has stopped by now. The
// caller holds mu.
func (s *shells) prune() {
	now := s.now()
	if now.Sub(s.pruned) < min(pruneEvery, s.limits.Idle) {
		return
	}
	s.pruned = now
	for id, x := range s.sessions {
		if x.busy == 0 && now.Sub(x.used) > s.limits.Idle+pruneEvery {
			delete(s.sessions, id)
		}
	}
}
