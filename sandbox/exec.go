package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/sandbox/protocol"
)

// MaxCommand bounds the text of one command, in bytes.
const MaxCommand = 256 << 10

// Exec runs a command in the user's sandbox over the space, and starts the sandbox
// if necessary. It returns when the command has ended and its changes are
// committed, or when the command continues as a job.
//
// If the command fails, reaches its time limit or is cancelled through ctx, there is
// a Result. An error means that there is no Result:
//   - fault.Invalid or fault.TooLarge: the request is malformed, or its command too long;
//   - fault.Canceled: ctx ended before the command began or before the agent answered;
//   - fault.Limited: there was no free sandbox in time;
//   - fault.Unavailable: no sandbox can start, the server shuts down, or the
//     sandbox died during the command (if it ran out of memory,
//     space.ErrOutOfMemory is in the error's tree);
//   - the errors of Checkouts, such as fault.NotFound for an unknown space.
//
// Exec never repeats a command that has started.
func (p *Pool) Exec(ctx context.Context, r Request) (Result, error) {
	switch {
	case r.User == "" || r.Space == "":
		return Result{}, fault.New(fault.Invalid, "A command needs a user and a space.")
	case strings.TrimSpace(r.Command) == "":
		return Result{}, fault.New(fault.Invalid, "The command is empty.")
	case len(r.Command) > MaxCommand:
		return Result{}, fault.New(fault.TooLarge, "The command has %d bytes, and %d are allowed. Write long content to a file first.", len(r.Command), MaxCommand)
	case strings.ContainsRune(r.Command, 0):
		return Result{}, fault.New(fault.Invalid, "The command contains a NUL character, which a command cannot contain.")
	}
	rep := newReporter(r.OnProgress)
	defer rep.stop()
	waited := false
	for try := 0; ; try++ {
		a, err := p.acquire(ctx, key{r.User, r.Space}, rep.phase)
		if errors.Is(err, space.ErrKilled) && try < maxTries && ctx.Err() == nil {
			waited = true // nothing was sent, and another start may well work
			continue
		}
		if err != nil {
			return Result{}, err
		}
		waited = waited || a.cold
		c := command{instance: a.instance, req: r, rep: rep, cold: waited}
		if a.note != "" {
			c.res.Notes = append(c.res.Notes, a.note)
		}
		res, err := c.run(ctx)
		var again *errNotStarted
		if errors.As(err, &again) {
			// The command was not sent, because the instance was dead or too old to be updated
			// to head. A fresh instance can take over without the caller noticing.
			cause := again.cause
			if again.refresh {
				p.refresh(a.instance)
			} else {
				a.die(nil)
			}
			if try == maxTries && !again.refresh {
				cause = errors.Join(cause, a.cause())
			}
			a.release()
			waited = true
			if try < maxTries {
				continue
			}
			return Result{}, startError(cause)
		}
		a.release()
		return res, err
	}
}

// maxTries limits how often Exec tries again after a command did not start. The instance of such a
// command was gone or too old, or something outside the pool ended the start of its sandbox.
const maxTries = 2

// errNotStarted says that a command was not sent to its sandbox.
type errNotStarted struct {
	cause   error
	refresh bool
}

func (e *errNotStarted) Error() string { return "the command did not begin: " + e.cause.Error() }
func (e *errNotStarted) Unwrap() error { return e.cause }

// refresh stops an instance that only the calling command uses.
func (p *Pool) refresh(b *instance) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b.stop(StopRefresh, p.o.Grace)
}

// alone reports whether only the calling command uses the instance.
func (b *instance) alone() bool {
	b.pool.mu.Lock()
	defer b.pool.mu.Unlock()
	return b.refs == 1 && len(b.jobs) == 0
}

// command is one Exec in one instance.
type command struct {
	*instance
	req  Request
	rep  *reporter
	cold bool
	mark int
	// damaged lists the damaged paths that the sandbox lacks.
	damaged []space.Path
	res     Result
}

func (c *command) run(ctx context.Context) (Result, error) {
	if err := c.commands.Acquire(ctx, 1); err != nil {
		return Result{}, canceled(ctx)
	}
	defer c.commands.Release(1)
	if err := c.prepare(ctx); err != nil {
		return Result{}, err
	}
	c.rep.phase(PhaseRunning)
	o := &c.pool.o
	var onOutput func(protocol.Stream, []byte)
	if c.rep != nil {
		onOutput = c.rep.output
	}
	if !c.req.ReadOnly {
		c.pool.mu.Lock()
		c.last, c.wrote = c.req.meta(), true
		c.pool.mu.Unlock()
	}
	detach := max(0, o.DetachAfter)
	if c.req.Attached {
		detach = 0
	}
	c.pool.mu.Lock()
	c.idleStop, c.ephemeral = c.req.IdleStop, c.req.Ephemeral
	c.pool.mu.Unlock()
	er, err := c.agent.Exec(ctx, protocol.ExecRequest{
		Command:     c.req.Command,
		ReadOnly:    c.req.ReadOnly,
		Background:  c.req.Background,
		DetachAfter: detach,
		WallTime:    c.wallTime(),
		Grace:       o.Grace,
		HeadTail:    o.OutputChars / 2,
	}, onOutput)
	if err != nil {
		return c.failed(ctx, err)
	}
	o.Metrics.command(er.Duration, er.End)
	c.fill(er)
	c.noteLimits(ctx, er)
	if er.End == protocol.Detached {
		c.keepJob(er)
		return c.finish(), nil
	}
	if !c.req.ReadOnly {
		c.rep.phase(PhaseSaving)
		c.save(ctx)
		c.renew()
	}
	return c.finish(), nil
}

// wallTime returns how long the command may take.
func (c *command) wallTime() time.Duration { return cmp.Or(c.req.WallTime, c.pool.o.WallTime) }

// prepare updates the instance to head, and remembers where the commits that follow begin.
func (c *command) prepare(ctx context.Context) error {
	if err := c.tree.lock(ctx); err != nil {
		return canceled(ctx)
	}
	defer c.tree.unlock()
	// An agent may answer heartbeats but never report what it has done.
	bounded, cancel := context.WithTimeout(ctx, c.pool.o.CollectTime)
	defer cancel()
	applied, notes, err := c.syncToHead(bounded, true)
	switch {
	case errors.Is(err, errTooMuch) && c.alone():
		return &errNotStarted{cause: err, refresh: true}
	case errors.Is(err, errTooMuch):
		notes = append(notes, "Many files changed in the space. They appear in the sandbox once its other commands and jobs have ended.")
	case err != nil && c.isGone():
		return &errNotStarted{cause: err}
	case err != nil && ctx.Err() != nil:
		return canceled(ctx)
	case err != nil:
		c.pool.o.Logger.Error("a sandbox could not be brought up to head", "space", c.key.space, "err", err)
		note := "The newest changes of the space could not be copied into the sandbox; its files may be older than those that search and read show."
		if fault.CodeOf(err) == fault.Damaged {
			note += " " + fault.PublicOf(err)
		}
		notes = append(notes, note)
	}
	if c.alone() {
		c.forget() // no running command needs the earlier commits
	}
	c.showHistory(ctx)
	if c.isGone() {
		return &errNotStarted{cause: errors.New("the sandbox has ended")}
	}
	c.mark = c.instance.mark()
	c.damaged = c.view.stillDamaged()
	c.res.Applied = applied
	c.res.Notes = append(c.res.Notes, notes...)
	return nil
}

// viewer is a Checkouts that updates Checkout.GitView to a new head in the background.
type viewer interface {
	// WaitView returns when the git view shows the commit that was head at the call.
	WaitView(ctx context.Context, id space.SpaceID) error
}

// showHistory waits until git inside the sandbox shows the newest commit, but not longer than
// ViewTime.
func (c *command) showHistory(ctx context.Context) {
	v, ok := c.pool.o.Checkouts.(viewer)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, c.pool.o.ViewTime)
	defer cancel()
	if err := v.WaitView(ctx, c.key.space); err != nil && ctx.Err() == nil {
		c.pool.o.Logger.Warn("git inside a sandbox may not show the newest commit", "space", c.key.space, "err", err)
	}
}

// isGone reports whether the sandbox has ended or is being stopped.
func (b *instance) isGone() bool {
	select {
	case <-b.agent.Done():
		return true
	case <-b.sandbox.Done():
		return true
	default:
		return b.stateNow() != live
	}
}

// failed reports why the agent gave no result.
func (c *command) failed(ctx context.Context, err error) (Result, error) {
	select {
	case <-c.agent.Done():
	case <-c.sandbox.Done():
	default:
		if ctx.Err() != nil {
			return Result{}, fault.Wrap(err, fault.Canceled, "The call was cancelled.")
		}
		return Result{}, fmt.Errorf("run a command: %w", err)
	}
	return Result{}, c.diedError(c.cause(), false)
}

// fill copies the agent's result of the command into the answer.
func (c *command) fill(er protocol.ExecResult) {
	r := &c.res
	r.End, r.ExitCode, r.Duration = er.End, er.ExitCode, er.Duration
	r.Signal, r.JobID, r.JobDir = Clean([]byte(er.Signal)), Clean([]byte(er.JobID)), Clean([]byte(er.JobDir))
	r.Stdout, r.Stderr = prepareOutput(er.Stdout, er.Stderr, c.pool.o.OutputChars)
	switch er.End {
	case protocol.TimedOut:
		c.met(LimitWallTime)
	case protocol.Canceled:
		c.note("The command was cancelled and ended.")
	case protocol.Shutdown:
		c.note("The command was ended because its sandbox is shutting down.")
	case protocol.Detached:
		c.note("The command continues as job %s; its output is in %s. Its changes are committed when it ends.", r.JobID, r.JobDir)
	}
	if er.Leftover > 0 {
		c.note("Processes that the command left running were ended: %d. To keep one running, start a background job.", er.Leftover)
	}
}

func (c *command) note(format string, args ...any) {
	c.res.Notes = append(c.res.Notes, fmt.Sprintf(format, args...))
}

// save commits the changes, even if the caller has gone, because the command has run.
func (c *command) save(ctx context.Context) {
	ctx, cancel := context.WithTimeout(c.pool.hardValues(ctx), c.pool.o.CollectTime)
	defer cancel()
	s := c.instance.save(ctx, c.req.meta())
	c.res.Refused, c.res.Conflicts = s.refused, s.conflicts
	c.res.Notes = append(c.res.Notes, s.notes...)
	if s.err == nil {
		return
	}
	if s.agent && c.isGone() {
		c.res.NotSaved = c.diedError(c.cause(), s.some)
		return
	}
	c.pool.o.Logger.Error("changes could not be committed", "space", c.key.space, "err", s.err)
	c.res.NotSaved = notSaved(s.err)
}

// finish adds the notes and commits of the instance.
func (c *command) finish() Result {
	r, b, p := &c.res, c.instance, c.pool
	r.Cold, r.Generation = c.cold, b.gen
	p.mu.Lock()
	before := p.lives[b.key]
	if b.gen > 1 && (c.cold || !b.reported) {
		r.Restarted = true
		r.Notes = append(r.Notes, restartNote(before.ended, cmp.Or(c.req.IdleStop, p.o.IdleStop)))
	}
	b.reported = true
	r.Notes = append(r.Notes, b.notices...)
	b.notices = nil
	p.mu.Unlock()
	r.Notes = unique(r.Notes)
	if list := b.shown.Load(); list != nil {
		r.Pending = slices.Clone(*list)
	}
	if c.req.ReadOnly {
		c.noteDamage()
		return *r
	}
	ctx, cancel := context.WithTimeout(p.hard, p.o.CollectTime)
	defer cancel()
	if b.tree.lock(ctx) == nil {
		r.Commits = b.since(c.mark)
		c.damaged = b.view.stillDamaged()
		if note := b.stillRefused(r.Refused); note != "" && p.o.Pending == nil {
			r.Notes = append(r.Notes, note)
		}
		b.tree.unlock()
	}
	c.noteDamage()
	return *r
}

// maxDamaged limits how many damaged paths an answer names.
const maxDamaged = 3

// noteDamage adds a note about the damaged paths. Every answer repeats the note, so that
// nobody takes an absent file for a deleted one.
func (c *command) noteDamage() {
	n := len(c.damaged)
	if n == 0 {
		return
	}
	var names []string
	for _, p := range c.damaged[:min(n, maxDamaged)] {
		names = append(names, shown(string(p)))
	}
	list := strings.Join(names, ", ")
	if n > maxDamaged {
		list += fmt.Sprintf(" and %d more", n-maxDamaged)
	}
	c.note("Missing in this sandbox, because they are damaged on the server's disk: %s (%s in all). They still belong to the space, and their absence here deletes nothing. %s",
		list, count(n, "path"), space.DamagedAdvice)
}

// unique drops repeated notes: the same file can fail to be updated before and after the
// command.
func unique(notes []string) []string {
	var out []string
	for _, n := range notes {
		if !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// restartNote says why a new sandbox replaced the previous one, and what was lost.
func restartNote(why StopReason, idle time.Duration) string {
	reason := "The sandbox was restarted"
	switch why {
	case StopIdle:
		reason = fmt.Sprintf("The sandbox had stopped after %s without a command and was started again", idle)
	case StopEvicted:
		reason = "The sandbox had been stopped to make room for others and was started again"
	case StopHistory:
		reason = "The sandbox was stopped because a person changed the space's history or its remote, or repaired it, and was started again"
	case StopMemory:
		reason = "The sandbox had run out of memory and was started again"
	case StopFull:
		reason = "The sandbox was started again to have room for changed files"
	case StopHung:
		reason = "The sandbox had stopped answering and was started again"
	case StopDied:
		reason = "The sandbox had ended unexpectedly and was started again"
	case StopRefresh:
		reason = "The sandbox was started again because many files had changed in the space"
	}
	return reason + "; its earlier background processes, jobs and /tmp are gone."
}

// stillRefused names the files that earlier answers named as refused and that exist only in
// the sandbox. The caller holds the tree lock.
func (b *instance) stillRefused(now []space.Rejection) string {
	reported := map[string]bool{}
	for _, r := range now {
		reported[r.Path] = true
	}
	var names []string
	old := 0
	for _, p := range slices.Sorted(maps.Keys(b.refused)) {
		if reported[p] {
			continue
		}
		if old++; old <= 5 {
			names = append(names, shown(p))
		}
	}
	if old == 0 {
		return ""
	}
	if old > len(names) {
		names = append(names, "…")
	}
	return fmt.Sprintf("%s that earlier answers named could not be committed and will be lost when the sandbox stops: %s.",
		count(old, "path"), strings.Join(names, ", "))
}

// hardValues returns a context that has the values of ctx, but ends with the pool.
func (p *Pool) hardValues(ctx context.Context) context.Context {
	return joined{Context: p.hard, values: ctx}
}

// joined ends with one context and has the values of another, such as the
// request id for logs.
type joined struct {
	context.Context
	values context.Context
}

func (j joined) Value(k any) any {
	if v := j.Context.Value(k); v != nil {
		return v
	}
	return j.values.Value(k)
}
