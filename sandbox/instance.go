package sandbox

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"satchel/internal/bytesize"
	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/sandbox/protocol"
)

// key is a user and a space, which have at most one sandbox at a time.
type key struct {
	user  space.UserID
	space space.SpaceID
}

type state uint8

const (
	live     state = iota
	stopping       // takes no new command
	dead           // ended unexpectedly
)

// instance is one sandbox from its start to its end.
type instance struct {
	pool     *Pool
	key      key
	gen      uint64
	sandbox  space.Sandbox
	agent    Agent
	seed     *space.Checkout
	commands *semaphore.Weighted

	// Guarded by Pool.mu.
	state     state
	refs      int // commands and collections in progress
	lastUsed  time.Time
	memory    int64
	idleStop  time.Duration // the newest command's Request.IdleStop; zero means the pool's
	ephemeral bool          // the end of the instance leaves no record in Pool.lives
	jobs      map[string]job
	ended     map[string]protocol.JobEnd // jobs whose end arrived before keepJob recorded them
	notices   []string                   // notes for the next answer
	reported  bool                       // an answer said that this generation replaced another
	reason    StopReason
	last      space.Meta // describes the newest command that could write
	wrote     bool       // last is set; otherwise all changes are restored files

	asked    bool      // a heartbeat waits for its answer
	answered time.Time // when the last heartbeat ended

	keep time.Time // until then the instance is not idle: its changes could not be committed

	shown atomic.Pointer[[]space.Rejection] // the pending files, as every answer lists them

	settled chan struct{} // made when the state leaves live; closed once the sandbox is gone or live
	drained chan struct{} // made when the state leaves live; closed once refs is 0
	gone    chan struct{} // closed when nothing is left of the instance

	// tree serialises the calls of Collect and Apply, which access files.
	tree lock
	treeState
}

// job is a command that continues after its answer.
type job struct {
	meta    space.Meta
	label   string
	save    bool // the command could write
	wall    time.Duration
	expires time.Time // from then on, the report of the job's end is overdue
}

// lock is a mutex with a context for the wait.
type lock chan struct{}

func (l lock) lock(ctx context.Context) error {
	select {
	case l <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l lock) unlock() { <-l }

// library adds the part of the library that the user can read to a checkout.
func (p *Pool) library(ctx context.Context, user space.UserID, seed *space.Checkout) error {
	if p.o.Library == nil {
		return nil
	}
	dir, drop, err := p.o.Library(ctx, user)
	if err != nil {
		return fmt.Errorf("prepare the library: %w", err)
	}
	release := seed.Release
	seed.Library, seed.Release = dir, func() {
		drop()
		release()
	}
	return nil
}

// start boots a sandbox. If start fails, nothing of the sandbox is left.
func (p *Pool) start(ctx context.Context, k key, gen uint64) (_ *instance, err error) {
	seed, err := p.o.Checkouts.Checkout(ctx, k.space)
	if err != nil {
		return nil, fmt.Errorf("prepare the space: %w", err)
	}
	if err := p.library(ctx, k.user, seed); err != nil {
		seed.Release()
		return nil, err
	}
	defer func() {
		if err != nil {
			seed.Release()
		}
	}()
	var id [32]byte
	rand.Read(id[:])
	sb, err := p.o.Runtime.Start(ctx, space.SandboxSpec{
		ID: space.SandboxID(hex.EncodeToString(id[:])), Checkout: seed, Limits: p.o.Limits,
	})
	if err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	a, err := p.o.Connect(ctx, sb.Conn(), p.o.boot())
	if err != nil {
		err = endOf(ctx, sb, err)
		p.destroy(sb)
		return nil, fmt.Errorf("reach the agent: %w", err)
	}
	b := &instance{
		pool: p, key: k, gen: gen, sandbox: sb, agent: a, seed: seed,
		commands: semaphore.NewWeighted(int64(p.o.MaxCommands)),
		memory:   p.o.StartMemory,
		jobs:     map[string]job{},
		ended:    map[string]protocol.JobEnd{},
		gone:     make(chan struct{}),
		tree:     make(lock, 1),
	}
	b.treeState = newTreeState(p.o.Checkouts, k.space, seed)
	if err := b.restore(ctx); err != nil {
		select {
		case <-a.Done():
			err = endOf(ctx, sb, err)
		default:
		}
		a.Close()
		p.destroy(sb)
		return nil, fmt.Errorf("put back what is held: %w", err)
	}
	a.OnJobEnd(b.jobEnded)
	return b, nil
}

// endOf adds the reason of the sandbox's end, if it has ended, to a connection error. It waits
// for the reason, because the agent's connection breaks before the runtime reports the end.
func endOf(ctx context.Context, sb space.Sandbox, err error) error {
	t := time.NewTimer(endTime)
	defer t.Stop()
	select {
	case <-sb.Done():
		return errors.Join(err, sb.Err())
	case <-t.C:
	case <-ctx.Done():
	}
	return err
}

// endTime is how long the runtime may take to report the reason after a connection broke:
// on a busy machine, freeing a large sandbox's memory takes seconds.
const endTime = 10 * time.Second

// destroy stops a sandbox even if the caller's context has ended.
func (p *Pool) destroy(sb space.Sandbox) {
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	if err := sb.Stop(ctx); err != nil {
		p.o.Logger.Error("a sandbox could not be stopped", "err", err)
	}
}

// stopTime bounds the killing of one sandbox.
const stopTime = 30 * time.Second

// watch waits for an unexpected end of the sandbox.
func (b *instance) watch() {
	select {
	case <-b.gone:
	case <-b.sandbox.Done():
		b.die(nil)
	case <-b.agent.Done():
		b.die(nil)
	}
}

// die records that the sandbox ended unexpectedly or is no longer trusted. It finds the cause if
// cause is nil. It does nothing if the instance is already ending.
func (b *instance) die(cause error) {
	p := b.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if b.state != live {
		return
	}
	b.leave(dead, StopDied)
	p.wg.Go(func() {
		if cause == nil {
			cause = b.cause()
		}
		p.mu.Lock()
		b.reason = reasonOf(cause)
		p.mu.Unlock()
		p.o.Logger.Warn("a sandbox died", "space", b.key.space, "generation", b.gen, "err", cause)
		b.bury()
	})
}

func reasonOf(cause error) StopReason {
	switch {
	case errors.Is(cause, space.ErrOutOfMemory):
		return StopMemory
	case errors.Is(cause, errHung):
		return StopHung
	}
	return StopDied
}

// cause returns why the sandbox ended. A broken connection shows before the runtime knows the
// reason, so cause first waits for the reason, up to endTime.
func (b *instance) cause() error {
	t := time.NewTimer(endTime)
	defer t.Stop()
	select {
	case <-b.sandbox.Done():
		if err := b.sandbox.Err(); err != nil {
			return errors.Join(err, b.agent.Err()) // a broken connection may be what ended it
		}
	case <-t.C:
	}
	if err := b.agent.Err(); err != nil {
		return err
	}
	return errors.New("it was stopped from outside")
}

// diedError returns the error of a command whose sandbox died. some means that part of
// its changes was committed before.
func (b *instance) diedError(cause error, some bool) error {
	b.pool.mu.Lock()
	reason := b.reason
	b.pool.mu.Unlock()
	if errors.Is(cause, space.ErrOutOfMemory) {
		reason = StopMemory
	}
	what, errs := "The sandbox ended unexpectedly while the command ran.", []error{space.ErrSandboxEnded, cause}
	switch reason {
	case StopMemory:
		what = "The sandbox ran out of memory (" + memoryLimit(b.pool.o.Limits.Memory) + ") and was ended with everything that ran in it."
		errs = append(errs, space.ErrOutOfMemory)
	case StopHung:
		what = "The sandbox stopped answering and was ended with everything that ran in it."
	}
	lost := "The command's changes are lost"
	if some {
		lost = "The command's changes are lost, except the commits that this answer names"
	}
	return fault.Wrap(errors.Join(errs...), fault.Unavailable, "%s %s, and so are background processes and /tmp. "+
		"Everything that an earlier answer reported as committed is safe. %sThe next command starts a fresh sandbox.", what, lost, b.stillPending())
}

// memoryLimit returns a text with the limit and the option that raises it.
func memoryLimit(n int64) string {
	if n <= 0 {
		return "of the machine"
	}
	return "it may use " + bytesize.Text(n) + "; the server's operator can raise sandbox.memory"
}

// leave takes the instance from live to another state. The caller holds Pool.mu.
func (b *instance) leave(to state, why StopReason) {
	b.state, b.reason = to, why
	b.settled, b.drained = make(chan struct{}), make(chan struct{})
	b.drain()
}

// drain closes drained if the instance takes no new commands and nothing uses it.
// The caller holds Pool.mu.
func (b *instance) drain() {
	if b.state == live || b.refs > 0 {
		return
	}
	select {
	case <-b.drained:
	default:
		close(b.drained)
	}
}

// release ends one use of the instance.
func (b *instance) release() {
	p := b.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	b.refs--
	b.lastUsed = time.Now()
	b.drain()
	p.dispatch()
}

// stop ends the instance; it takes no more commands. It does nothing if the instance is
// already ending. The caller holds Pool.mu.
func (b *instance) stop(why StopReason, grace time.Duration) {
	if b.state == stopping && !why.optional() {
		b.reason = why // an optional stop becomes a forced one
	}
	if b.state != live {
		return
	}
	for _, j := range b.jobs {
		if j.save {
			b.last = j.meta // the last collection includes the job's changes
		}
	}
	b.leave(stopping, why)
	b.pool.wg.Go(func() { b.retire(grace) })
}

// optional reports whether a stop can wait until the changes are committed.
func (r StopReason) optional() bool {
	return r == StopIdle || r == StopEvicted || r == StopRefresh || r == StopFull
}

// keepTime is how long an instance stays if its changes could not be committed.
const keepTime = 30 * time.Second

// revive makes an instance live again if its stop was optional, so that changes that
// cannot be committed now are not lost. It returns false if the instance must go.
func (b *instance) revive(err error) bool {
	p := b.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || !b.reason.optional() {
		return false
	}
	b.state, b.lastUsed = live, time.Now()
	b.keep = b.lastUsed.Add(keepTime)
	close(b.settled)
	p.o.Logger.Error("a sandbox is kept because its changes cannot be committed", "space", b.key.space, "err", err)
	return true
}

// retire ends the commands, commits the changes and stops the sandbox.
func (b *instance) retire(grace time.Duration) {
	p := b.pool
	ctx, cancel := context.WithTimeout(p.hard, grace+p.o.CollectTime)
	defer cancel()
	p.mu.Lock()
	optional, meta, wrote := b.reason.optional(), b.last, b.wrote
	p.mu.Unlock()
	if optional && wrote { // nothing runs; first commit what an earlier save left behind
		if s := b.save(ctx, meta); s.err != nil && !s.agent && b.revive(s.err) {
			return
		}
	}
	if err := b.agent.Shutdown(ctx, grace); err != nil {
		p.o.Logger.Warn("the commands of a sandbox could not be ended cleanly", "space", b.key.space, "err", err)
	} else {
		select {
		case <-b.drained: // each command has collected what it changed
		case <-ctx.Done():
		}
		p.mu.Lock()
		meta, wrote := b.last, b.wrote
		p.mu.Unlock()
		if wrote { // without a command that could write, there is no author for a commit
			if s := b.save(ctx, meta); s.err != nil || len(s.refused) > 0 {
				p.o.Logger.Warn("a sandbox stops with changes that were not committed",
					"space", b.key.space, "refused", len(s.refused), "err", s.err)
			}
		}
	}
	b.bury()
}

// bury removes an ended instance, and gives its room to the next start.
func (b *instance) bury() {
	p := b.pool
	p.destroy(b.sandbox)
	b.agent.Close()
	// A command whose sandbox died may still be collecting. Its commit and its pending
	// files must come before the next sandbox.
	ctx, cancel := context.WithTimeout(context.Background(), p.o.CollectTime)
	defer cancel()
	if b.tree.lock(ctx) == nil {
		defer b.tree.unlock()
	}
	b.seed.Release()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.instances[b.key] == b {
		delete(p.instances, b.key)
	}
	if b.ephemeral {
		delete(p.lives, b.key)
	} else {
		p.lives[b.key] = life{gen: b.gen, ended: b.reason}
	}
	p.count.stopped(b.reason)
	close(b.settled)
	close(b.gone)
	p.dispatch()
	p.o.Metrics.stopped(b.reason)
	p.o.Logger.Debug("a sandbox stopped", "space", b.key.space, "generation", b.gen, "reason", b.reason)
}

// busy reports whether stopping the instance would end something. The caller holds
// Pool.mu.
func (b *instance) busy() bool { return b.refs > 0 || len(b.jobs) > 0 }

// idle reports whether the instance may be stopped at will. The caller holds Pool.mu.
func (b *instance) idle(now time.Time) bool {
	return b.state == live && !b.busy() && now.After(b.keep)
}
