//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"satchel/gitstore"
	"satchel/internal/space"
	"satchel/sandbox"
	"satchel/sandbox/agent"
	"satchel/sandbox/gvisor"
)

// parts is a pool in this process over sandboxes of the real binary, whose seams
// are timed. It has one user with one space.
type parts struct {
	store   *gitstore.Store
	runtime *gvisor.Runtime
	pool    *sandbox.Pool
	id      space.SpaceID
	written int // files, so that each is new

	mu    sync.Mutex
	marks map[mark]time.Time
	saved []capture
}

// mark names a moment of a command.
type mark string

// The moments of a start and of a command, in order. Those of applying are
// there only where others changed something.
const (
	seeding    mark = "seeding"
	booting    mark = "booting"
	connecting mark = "connecting"
	connected  mark = "connected"
	applying   mark = "applying"
	executing  mark = "executing"
	executed   mark = "executed"
	committing mark = "committing"
	committed  mark = "committed"
)

// capture is one collection that found changes.
type capture struct {
	took  time.Duration // collecting and committing
	files int
}

const owner = space.UserID("u_ada")

func (b *bench) openParts(ctx context.Context, name string, files int) (_ *parts, err error) {
	p := &parts{id: space.NewSpaceID(), marks: map[mark]time.Time{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	quiet := slog.New(slog.DiscardHandler)
	dir := filepath.Join(b.dir, name)
	if p.store, err = gitstore.Open(gitstore.Options{Dir: filepath.Join(dir, "spaces"), CheckoutOwner: agent.CommandUID, Logger: quiet}); err != nil {
		return nil, err
	}
	if _, err = p.store.Create(ctx, p.id, corpusChanges(files, 2000), space.Meta{Author: author}); err != nil {
		return nil, err
	}
	if p.runtime, err = gvisor.New(gvisor.Options{RunDir: filepath.Join(dir, "run"), Exe: b.binary, Logger: quiet}); err != nil {
		return nil, err
	}
	p.pool, err = sandbox.New(sandbox.Options{
		Runtime: timedRuntime{p.runtime, p}, Checkouts: timedStore{p.store, p}, Committer: timedStore{p.store, p},
		Connect: p.connect,
		Metrics: sandbox.Metrics{Collected: func(took time.Duration, files int, _ error) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.saved = append(p.saved, capture{took, files})
		}},
		Logger: quiet,
	})
	return p, err
}

func (p *parts) close() error {
	var errs []error
	if p.pool != nil {
		errs = append(errs, p.pool.Close(context.Background()))
	}
	if p.runtime != nil {
		errs = append(errs, p.runtime.Close())
	}
	if p.store != nil {
		errs = append(errs, p.store.Close())
	}
	return errors.Join(errs...)
}

// now marks a moment; the last one counts.
func (p *parts) now(m mark) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.marks[m] = time.Now()
}

// run runs a command, and returns when it began and what was marked.
func (p *parts) run(ctx context.Context, command string) (began time.Time, marks map[mark]time.Time, err error) {
	p.mu.Lock()
	p.marks, p.saved = map[mark]time.Time{}, nil
	p.mu.Unlock()
	began = time.Now()
	r, err := p.pool.Exec(ctx, sandbox.Request{User: owner, Space: p.id, Command: command, Author: author})
	if err == nil {
		err = r.NotSaved
	}
	if err == nil && r.ExitCode != 0 {
		err = fmt.Errorf("%s: exit code %d: %s", command, r.ExitCode, r.Stderr.Text)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return began, p.marks, err
}

// newFile is a path and a content that no command had before.
func (p *parts) newFile() (path, content string) {
	p.written++
	return fmt.Sprintf("notes/note-%d.md", p.written), fmt.Sprintf("note %d\n", p.written)
}

func (p *parts) connect(ctx context.Context, conn io.ReadWriteCloser, b agent.Boot) (sandbox.Agent, error) {
	p.now(connecting)
	c, err := agent.Connect(ctx, conn, b)
	if err != nil {
		return nil, err
	}
	p.now(connected)
	return timedAgent{c, p}, nil
}

type timedRuntime struct {
	*gvisor.Runtime
	p *parts
}

func (r timedRuntime) Start(ctx context.Context, spec space.SandboxSpec) (space.Sandbox, error) {
	r.p.now(booting)
	return r.Runtime.Start(ctx, spec)
}

type timedStore struct {
	*gitstore.Store
	p *parts
}

func (s timedStore) Checkout(ctx context.Context, id space.SpaceID) (*space.Checkout, error) {
	s.p.now(seeding)
	return s.Store.Checkout(ctx, id)
}

func (s timedStore) Commit(ctx context.Context, id space.SpaceID, cs space.ChangeSet, m space.Meta) (space.Commit, error) {
	s.p.now(committing)
	defer s.p.now(committed)
	return s.Store.Commit(ctx, id, cs, m)
}

type timedAgent struct {
	*agent.Client
	p *parts
}

func (a timedAgent) Apply(ctx context.Context, entries []agent.ApplyEntry) ([]agent.ApplyResult, error) {
	a.p.now(applying)
	return a.Client.Apply(ctx, entries)
}

func (a timedAgent) Exec(ctx context.Context, r agent.ExecRequest, onOutput func(agent.Stream, []byte)) (agent.ExecResult, error) {
	a.p.now(executing)
	defer a.p.now(executed)
	return a.Client.Exec(ctx, r, onOutput)
}
