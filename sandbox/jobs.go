package sandbox

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/sandbox/protocol"
)

// JobOwner selects jobs. With ReadOnly it selects only the jobs of read-only callers, who must
// not see what other callers run. Inside the sandbox, their commands can neither read the output
// of other jobs nor signal them.
type JobOwner struct {
	User     space.UserID
	Space    space.SpaceID
	ReadOnly bool
}

func (o JobOwner) key() key { return key{o.User, o.Space} }

// Jobs lists the background jobs that o selects in the user's sandbox; none if the
// sandbox does not run. It never starts a sandbox.
func (p *Pool) Jobs(ctx context.Context, o JobOwner) ([]protocol.Job, error) {
	b := p.running(o.key())
	if b == nil {
		return nil, nil
	}
	defer b.release()
	list, err := b.agent.Jobs(ctx)
	if o.ReadOnly {
		list = slices.DeleteFunc(list, func(j protocol.Job) bool { return !j.ReadOnly })
	}
	return list, err
}

// KillJob sends a signal, such as "SIGTERM", to all processes of a job. It returns fault.NotFound
// if the sandbox does not run or o does not select the job.
func (p *Pool) KillJob(ctx context.Context, o JobOwner, jobID, signal string) error {
	b := p.running(o.key())
	if b == nil {
		return fault.New(fault.NotFound, "There is no such job: the sandbox does not run.")
	}
	defer b.release()
	if o.ReadOnly {
		list, err := b.agent.Jobs(ctx)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(list, func(j protocol.Job) bool { return j.ID == jobID && j.ReadOnly }) {
			return fault.New(fault.NotFound, "There is no such job.")
		}
	}
	return b.agent.Kill(ctx, jobID, signal)
}

// jobSlack is how long the pool waits for the end of a job after its time limit.
const jobSlack = time.Minute

// maxNotices bounds the notices for the next answer.
const maxNotices = 20

// keepJob records a command that continues as a job, so that the instance stays and the job's
// changes are committed as those of its command.
func (c *command) keepJob(er protocol.ExecResult) {
	p, o := c.pool, &c.pool.o
	j := job{
		meta: c.req.meta(), label: firstLine(c.req.Command), save: !c.req.ReadOnly,
		wall: c.wallTime(), expires: time.Now().Add(c.wallTime() + o.Grace + jobSlack),
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if end, ok := c.ended[er.JobID]; ok { // the job has already ended
		delete(c.ended, er.JobID)
		c.endJob(j, end)
		return
	}
	c.jobs[er.JobID] = j
}

// jobEnded is called by the agent's client; it must not block.
func (b *instance) jobEnded(end protocol.JobEnd) {
	b.pool.mu.Lock()
	defer b.pool.mu.Unlock()
	j, ok := b.jobs[end.ID]
	if !ok {
		if len(b.ended) < b.pool.o.MaxCommands { // no more jobs can wait for keepJob
			b.ended[end.ID] = end
		}
		return
	}
	delete(b.jobs, end.ID)
	b.endJob(j, end)
}

// endJob commits a job's changes. If the instance is being stopped, the stop does that. The
// caller holds Pool.mu.
func (b *instance) endJob(j job, end protocol.JobEnd) {
	if b.state != live {
		return
	}
	b.refs++
	b.pool.wg.Go(func() {
		defer b.release()
		var commits []space.Commit
		var s saved
		if j.save {
			ctx, cancel := context.WithTimeout(b.pool.hard, b.pool.o.CollectTime)
			defer cancel()
			commits, s = b.saveJob(ctx, j.meta)
		}
		b.notice(j, end, commits, s)
	})
}

func (b *instance) saveJob(ctx context.Context, meta space.Meta) ([]space.Commit, saved) {
	var s saved
	if s.err = b.tree.lock(ctx); s.err != nil {
		return nil, s
	}
	defer b.tree.unlock()
	mark := b.mark()
	b.collect(ctx, meta, &s)
	return b.since(mark), s
}

// notice reports a job's end in the next answer.
func (b *instance) notice(j job, end protocol.JobEnd, commits []space.Commit, s saved) {
	var t strings.Builder
	fmt.Fprintf(&t, "Job %s (%q) ended", Clean([]byte(end.ID)), j.label)
	switch {
	case end.TimedOut:
		fmt.Fprintf(&t, " at the time limit of %s", j.wall)
		if j.wall == b.pool.o.WallTime {
			fmt.Fprintf(&t, " (the server's operator can raise %s)", LimitWallTime)
		}
	case end.Signal != "":
		fmt.Fprintf(&t, " by %s", Clean([]byte(end.Signal)))
	default:
		fmt.Fprintf(&t, " with exit code %d", end.ExitCode)
	}
	fmt.Fprintf(&t, " after %s", end.Duration.Round(time.Millisecond))
	for i, c := range commits {
		if i == 0 {
			t.WriteString("; committed as ")
		} else {
			t.WriteString(", ")
		}
		t.WriteString(c.ID.Short())
	}
	t.WriteString(".")
	for _, r := range s.refused {
		fmt.Fprintf(&t, " Not committed: %s: %s", shown(r.Path), r.Why)
	}
	for _, c := range s.conflicts {
		if c.Kept != "" {
			fmt.Fprintf(&t, " %q had changed in the space as well; this sandbox's version is kept as %q.", c.Path, c.Kept)
		}
	}
	if s.err != nil {
		b.pool.o.Logger.Error("a job's changes could not be committed", "space", b.key.space, "err", s.err)
		t.WriteString(" Its changes could not be committed yet.")
	}
	b.pool.mu.Lock()
	defer b.pool.mu.Unlock()
	b.notices = append(b.notices, t.String())
	if n := len(b.notices) - maxNotices; n > 0 {
		b.notices = slices.Delete(b.notices, 0, n)
	}
}

// checkJobs drops overdue jobs whose end was never reported, so that they do not keep an
// instance for ever. If an overdue job may still run, checkJobs stops the sandbox.
func (b *instance) checkJobs(ctx context.Context, now time.Time) {
	ctx, cancel := context.WithTimeout(ctx, measureTime)
	defer cancel()
	listed, err := b.agent.Jobs(ctx)
	b.pool.mu.Lock()
	defer b.pool.mu.Unlock()
	running := map[string]bool{}
	for _, j := range listed {
		running[j.ID] = j.Running
	}
	for id, j := range b.jobs {
		if !now.After(j.expires) {
			continue
		}
		if err == nil && !running[id] {
			delete(b.jobs, id)
			b.endJob(j, protocol.JobEnd{ID: id, TimedOut: true, Duration: j.wall})
			continue
		}
		b.pool.o.Logger.Error("a job outlived its time limit; its sandbox is stopped", "space", b.key.space, "job", id, "err", err)
		b.stop(StopAsked, 0)
		return
	}
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(Clean([]byte(s))), "\n")
	if t := firstChars(s, 60); t != s {
		return t + "…"
	}
	return s
}
