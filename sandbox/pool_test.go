//go:build unix

package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/internal/testenv"
	"satchel/sandbox"
	"satchel/sandbox/protocol"
	"satchel/sandbox/sandboxtest"
)

// bench is a fake pool whose starts wait for the test.
type bench struct {
	*sandboxtest.Harness
	t     *testing.T
	fake  *sandboxtest.Fake
	space space.SpaceID
	gate  chan struct{} // each start takes one; closed: starts go on freely
}

func newBench(t *testing.T, change func(*sandbox.Options)) *bench {
	b := &bench{t: t, gate: make(chan struct{})}
	b.Harness, b.fake = newFake(t, func(o *sandbox.Options) {
		o.SweepEvery = time.Hour // the test sweeps
		if change != nil {
			change(o)
		}
	})
	b.space = b.Store.Space(sandboxtest.Tree{"f": {Content: "f\n"}})
	return b
}

// gated makes starts wait until the test lets them through.
func (b *bench) gated() *bench {
	b.Runtime.Before = func(ctx context.Context, _ space.SandboxSpec) error {
		select {
		case <-b.gate:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	b.t.Cleanup(func() { // before the pool is closed
		select {
		case <-b.gate:
		default:
			close(b.gate)
		}
	})
	return b
}

func (b *bench) request(user, command string) sandbox.Request {
	return sandbox.Request{User: space.UserID(user), Space: b.space, Command: command, Tool: "bash", Client: "test"}
}

type outcome struct {
	res sandbox.Result
	err error
}

// exec runs a command on another goroutine and returns once it waits for or
// has a sandbox.
func (b *bench) exec(ctx context.Context, r sandbox.Request) <-chan outcome {
	b.t.Helper()
	done := make(chan outcome, 1)
	seen := make(chan struct{})
	once := sync.OnceFunc(func() { close(seen) })
	r.OnProgress = func(sandbox.Progress) { once() }
	go func() {
		res, err := b.Pool.Exec(ctx, r)
		once()
		done <- outcome{res, err}
	}()
	<-seen
	return done
}

// begun runs "echo started" and a command, and returns once the first is seen.
func (b *bench) begun(ctx context.Context, r sandbox.Request) <-chan outcome {
	b.t.Helper()
	done := make(chan outcome, 1)
	seen := make(chan struct{})
	once := sync.OnceFunc(func() { close(seen) })
	r.Command = "echo started; " + r.Command
	r.OnProgress = func(p sandbox.Progress) {
		if p.Line == "started" {
			once()
		}
	}
	go func() {
		res, err := b.Pool.Exec(ctx, r)
		once()
		done <- outcome{res, err}
	}()
	<-seen
	return done
}

func (b *bench) must(user, command string) sandbox.Result {
	b.t.Helper()
	res, err := b.Pool.Exec(b.t.Context(), b.request(user, command))
	if err != nil || res.ExitCode != 0 {
		b.t.Fatalf("%s: %s: %+v, %v", user, command, res, err)
	}
	return res
}

// until waits for a status that a background goroutine brings about.
func (b *bench) until(what string, ok func(sandbox.Status) bool) {
	b.t.Helper()
	testenv.WaitFor(b.t, what, func() bool { return ok(b.Pool.Status()) })
}

func TestConcurrentStartsAreOne(t *testing.T) {
	b := newBench(t, nil).gated()
	var all []<-chan outcome
	for range 20 {
		all = append(all, b.exec(t.Context(), b.request("a", "true")))
	}
	if s := b.Pool.Status(); s.Starting != 1 || s.Queued != 0 {
		t.Errorf("%+v", s)
	}
	close(b.gate)
	for _, c := range all {
		if o := <-c; o.err != nil || !o.res.Cold {
			t.Errorf("%+v, %v", o.res, o.err)
		}
	}
	if s := b.Pool.Status(); s.Starts != 1 || s.Sandboxes != 1 || s.Busy != 0 {
		t.Errorf("%+v", s)
	}
}

func TestUsersAreServedInTurn(t *testing.T) {
	b := newBench(t, func(o *sandbox.Options) { o.MaxSandboxes = 1 }).gated()
	served := make(chan string)
	run := func(user string, id space.SpaceID) {
		r := b.request(user, "true")
		r.Space = id
		c := b.exec(t.Context(), r)
		go func() {
			if o := <-c; o.err != nil {
				t.Error(o.err)
			}
			served <- user
		}()
	}
	run("greedy", b.space) // it starts; all others wait
	for range 3 {
		run("greedy", b.Store.Space(nil))
	}
	run("modest", b.space)
	run("meek", b.space)
	if s := b.Pool.Status(); s.Starting != 1 || s.Queued != 5 {
		t.Errorf("%+v", s)
	}
	// One start at a time: the next continues when the previous one is done.
	var order []string
	for range 6 {
		b.gate <- struct{}{}
		order = append(order, <-served)
	}
	// The first was started already; then the users take turns.
	if i := slices.Index(order, "meek"); i < 0 || i > 3 {
		t.Errorf("served in the order %q", order)
	}
	if s := b.Pool.Status(); s.Evictions != 5 || s.Sandboxes != 1 {
		t.Errorf("%+v", s)
	}
}

func TestBusySandboxesAreNotEvicted(t *testing.T) {
	b := newBench(t, func(o *sandbox.Options) { o.MaxSandboxes, o.QueueTime = 1, 50*time.Millisecond })
	ctx, cancel := context.WithCancel(t.Context())
	long := b.begun(ctx, b.request("a", "sleep 300"))
	_, err := b.Pool.Exec(t.Context(), b.request("b", "true"))
	var f *fault.Error
	if !errors.As(err, &f) || f.Code != fault.Limited || f.RetryAfter == 0 {
		t.Errorf("while all are busy: %v", err)
	}
	if s := b.Pool.Status(); s.Queued != 0 {
		t.Errorf("who gave up still waits: %+v", s)
	}
	cancel()
	if o := <-long; o.err != nil || o.res.End != protocol.Canceled {
		t.Errorf("%+v, %v", o.res, o.err)
	}
}

func TestIdleSandboxesMakeRoom(t *testing.T) {
	b := newBench(t, func(o *sandbox.Options) { o.MaxSandboxes = 1 })
	b.must("a", "true")
	if r := b.must("b", "true"); r.Generation != 1 {
		t.Errorf("%+v", r)
	}
	if r := b.must("a", "true"); !r.Restarted || !strings.Contains(strings.Join(r.Notes, " "), "make room") {
		t.Errorf("%+v", r)
	}
}

func TestWaitingEndsWithItsContext(t *testing.T) {
	b := newBench(t, func(o *sandbox.Options) { o.MaxSandboxes, o.MaxQueue = 1, 1 }).gated()
	first := b.exec(t.Context(), b.request("a", "true"))
	ctx, cancel := context.WithCancel(t.Context())
	second := b.exec(ctx, b.request("b", "true"))
	if _, err := b.Pool.Exec(t.Context(), b.request("c", "true")); fault.CodeOf(err) != fault.Limited {
		t.Errorf("beyond the queue: %v", err)
	}
	cancel()
	if o := <-second; fault.CodeOf(o.err) != fault.Canceled {
		t.Errorf("cancelled in the queue: %v", o.err)
	}
	if s := b.Pool.Status(); s.Queued != 0 {
		t.Errorf("%+v", s)
	}
	close(b.gate)
	if o := <-first; o.err != nil {
		t.Error(o.err)
	}
	if s := b.Pool.Status(); s.Starts != 1 {
		t.Errorf("%+v", s)
	}
}

func TestWhoLeavesDuringAStartDoesNotHoldIt(t *testing.T) {
	b := newBench(t, nil).gated()
	ctx, cancel := context.WithCancel(t.Context())
	c := b.exec(ctx, b.request("a", "true"))
	cancel()
	if o := <-c; fault.CodeOf(o.err) != fault.Canceled {
		t.Errorf("%v", o.err)
	}
	close(b.gate)
	b.until("started", func(s sandbox.Status) bool { return s.Sandboxes == 1 })
	if s := b.Pool.Status(); s.Busy != 0 {
		t.Errorf("%+v", s)
	}
	if r := b.must("a", "true"); r.Generation != 1 {
		t.Errorf("%+v", r)
	}
}

func TestFailedStarts(t *testing.T) {
	b := newBench(t, nil)
	for _, c := range []struct {
		err  error
		code fault.Code
	}{
		{errors.New("no room in /var/secret"), fault.Unavailable},
		{fault.New(fault.Unavailable, "gVisor needs user namespaces."), fault.Unavailable},
	} {
		b.Runtime.Before = func(context.Context, space.SandboxSpec) error { return c.err }
		_, err := b.Pool.Exec(t.Context(), b.request("a", "true"))
		if fault.CodeOf(err) != c.code || strings.Contains(fault.PublicOf(err), "secret") {
			t.Errorf("%v: %v", c.err, err)
		}
	}
	if n := b.Store.Seeds(); n != 0 {
		t.Errorf("%d seeds are held", n)
	}
	b.Runtime.Before = nil
	if r := b.must("a", "true"); r.Generation != 1 || r.Restarted {
		t.Errorf("%+v", r)
	}
	if s := b.Pool.Status(); s.Failures != 2 || s.Starts != 1 {
		t.Errorf("%+v", s)
	}
}

func TestIdlenessBeginsWhenNothingRuns(t *testing.T) {
	b := newBench(t, func(o *sandbox.Options) { o.IdleStop = time.Minute })
	later := time.Now().Add(2 * time.Minute)
	job := b.request("a", "sleep 300")
	job.Background = true
	res, err := b.Pool.Exec(t.Context(), job)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	command := b.begun(ctx, b.request("b", "sleep 300"))
	b.Pool.Sweep(later)
	if s := b.Pool.Status(); s.Sandboxes != 2 || s.IdleStops != 0 {
		t.Errorf("work was stopped for idleness: %+v", s)
	}
	if err := b.Pool.KillJob(t.Context(), sandbox.JobOwner{User: "a", Space: b.space}, res.JobID, "SIGKILL"); err != nil {
		t.Fatal(err)
	}
	cancel()
	<-command
	b.until("idle", func(s sandbox.Status) bool { return s.Busy == 0 })
	b.Pool.Sweep(time.Now().Add(30 * time.Second))
	if s := b.Pool.Status(); s.Sandboxes != 2 {
		t.Errorf("stopped before its time: %+v", s)
	}
	b.Pool.Sweep(later.Add(time.Minute))
	b.until("stopped", func(s sandbox.Status) bool { return s.Sandboxes == 0 && s.IdleStops == 2 })
}

func TestAJobThatOutlivesItsLimitDoesNotHoldItsSandbox(t *testing.T) {
	b := newBench(t, nil)
	job := b.request("a", "echo 1 > one; sleep 300")
	job.Background = true
	if _, err := b.Pool.Exec(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	b.Pool.SetExpiry(now.Add(-time.Second))
	b.Pool.Sweep(now)
	b.until("stopped", func(s sandbox.Status) bool { return s.Sandboxes == 0 })
}

func TestMemoryPressureStopsIdleSandboxes(t *testing.T) {
	b := newBench(t, func(o *sandbox.Options) { o.MaxMemory, o.StartMemory = 100<<20, 10<<20 })
	b.fake.SetMemory(30 << 20)
	for _, u := range []string{"a", "b", "c"} {
		b.must(u, "true")
		b.Pool.Sweep(time.Now())
	}
	if s := b.Pool.Status(); s.Sandboxes != 3 || s.Memory != 90<<20 {
		t.Errorf("%+v", s)
	}
	// A fourth counts as 10 MB, which fits. Measured, they are too many, and the
	// one that was used longest ago goes.
	b.must("d", "true")
	b.Pool.Sweep(time.Now())
	b.until("relieved", func(s sandbox.Status) bool { return s.Sandboxes == 3 && s.Evictions == 1 })
	if r := b.must("b", "true"); r.Restarted {
		t.Error("a sandbox that was used later was stopped")
	}
	b.fake.SetMemory(50 << 20)
	b.Pool.Sweep(time.Now())
	b.until("relieved again", func(s sandbox.Status) bool { return s.Sandboxes <= 2 && s.Memory <= 100<<20 })
	b.must("e", "true") // makes room for itself
}

func TestOneSandboxAlwaysFits(t *testing.T) {
	b := newBench(t, func(o *sandbox.Options) { o.MaxMemory = 1 })
	b.must("a", "true")
	b.must("b", "true")
}

func TestASandboxOverItsMemoryLimitIsEnded(t *testing.T) {
	b := newBench(t, nil)
	c := b.begun(t.Context(), b.request("a", "sleep 300"))
	b.fake.SetMemory(1 << 30)
	b.Pool.Sweep(time.Now())
	if o := <-c; fault.CodeOf(o.err) != fault.Unavailable || !strings.Contains(fault.PublicOf(o.err), "out of memory") {
		t.Errorf("%v", o.err)
	}
}

func TestOutOfMemoryIsToldInPlainWords(t *testing.T) {
	b := newBench(t, nil)
	b.must("a", "echo safe > safe")
	c := b.begun(t.Context(), b.request("a", "echo lost > lost; sleep 300"))
	b.Runtime.Started()[0].(*sandboxtest.FakeSandbox).Crash(space.ErrOutOfMemory)
	o := <-c
	if !errors.Is(o.err, space.ErrOutOfMemory) || fault.CodeOf(o.err) != fault.Unavailable || !strings.Contains(fault.PublicOf(o.err), "512 MB") {
		t.Errorf("%v", o.err)
	}
	r := b.must("a", "cat safe")
	if !r.Restarted || !strings.Contains(strings.Join(r.Notes, " "), "run out of memory") {
		t.Errorf("%+v", r)
	}
	if s := b.Pool.Status(); s.OutOfMemory != 1 {
		t.Errorf("%+v", s)
	}
}

func TestStoppingReachesWhatWaitsAndWhatStarts(t *testing.T) {
	b := newBench(t, func(o *sandbox.Options) { o.MaxSandboxes = 1 }).gated()
	starting := b.exec(t.Context(), b.request("a", "true"))
	queued := b.exec(t.Context(), b.request("b", "true"))
	if err := b.Pool.StopUser(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	if o := <-queued; fault.CodeOf(o.err) != fault.Unavailable {
		t.Errorf("in the queue: %v", o.err)
	}
	stopped := make(chan error)
	go func() { stopped <- b.Pool.Close(t.Context()) }()
	b.until("closed", func(s sandbox.Status) bool { return s.Closed })
	close(b.gate)
	if o := <-starting; fault.CodeOf(o.err) != fault.Unavailable {
		t.Errorf("while it started: %v", o.err)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

func TestBusyPathsWaitForTheirCommand(t *testing.T) {
	b := newBench(t, nil)
	b.fake.SetBusy(func(p string) bool { return p == "log" })
	if r := b.must("a", "echo 1 > log; echo 2 > done"); len(r.Commits) != 1 || len(r.Commits[0].Files) != 1 {
		t.Errorf("%+v", r)
	}
	b.fake.SetBusy(nil)
	if r := b.must("a", "true"); len(r.Commits) != 1 || r.Commits[0].Files[0].Path != "log" {
		t.Errorf("%+v", r)
	}
}

func TestLargeChangesAreSeveralCommits(t *testing.T) {
	b := newBench(t, func(o *sandbox.Options) { o.MaxChangeFiles = 10 })
	r := b.must("a", "touch {1..25}")
	if len(r.Commits) != 3 {
		t.Errorf("%d commits", len(r.Commits))
	}
	// A rejected change does not stop the following ones.
	b.Store.RefusePath = func(p string) error {
		if strings.HasPrefix(p, "a") {
			return fault.New(fault.Invalid, "No.")
		}
		return nil
	}
	r = b.must("a", "touch a{1..30} b")
	if n := len(r.Refused); n != 30 || len(b.Store.Tree(b.space)) != 27 {
		t.Errorf("%d refused, %d files", n, len(b.Store.Tree(b.space)))
	}
}

func TestChangesThatCannotBeCommittedKeepTheirSandbox(t *testing.T) {
	b := newBench(t, func(o *sandbox.Options) {
		o.MaxSandboxes, o.IdleStop, o.QueueTime = 1, time.Minute, 100*time.Millisecond
	})
	b.must("a", "true")
	b.Store.FailCommit = func(space.ChangeSet) error { return errors.New("the disk is full") }
	if r := b.must("a", "echo 1 > one"); r.NotSaved == nil {
		t.Errorf("%+v", r)
	}
	b.Pool.Sweep(time.Now().Add(2 * time.Minute)) // idle
	if r := b.must("a", "cat one"); r.Restarted || r.Stdout.Text != "1\n" {
		t.Errorf("after the idle stop: %+v", r)
	}
	if _, err := b.Pool.Exec(t.Context(), b.request("b", "true")); fault.CodeOf(err) != fault.Limited { // wants its room
		t.Errorf("the other user: %v", err)
	}
	b.Store.FailCommit = nil
	if r := b.must("a", "true"); len(r.Commits) != 1 || r.Restarted {
		t.Errorf("after mending: %+v", r)
	}
}

func TestARefusalIsForgottenWithItsFile(t *testing.T) {
	b := newBench(t, nil)
	b.Store.RefusePath = func(p string) error { return fault.New(fault.Invalid, "No.") }
	if r := b.must("a", "echo s > secret"); len(r.Refused) != 1 {
		t.Errorf("%+v", r)
	}
	if r := b.must("a", "true"); len(r.Notes) != 1 {
		t.Errorf("%+v", r)
	}
	if r := b.must("a", "rm secret"); len(r.Notes)+len(r.Refused) != 0 {
		t.Errorf("%+v", r)
	}
}

// TestATakenOverAgentIsNotTrustedAgain is the attack of an agent that sends
// more than it was asked for.
func TestATakenOverAgentIsNotTrustedAgain(t *testing.T) {
	b := newBench(t, func(o *sandbox.Options) {
		connect, hostile := o.Connect, true
		o.Connect = func(ctx context.Context, conn io.ReadWriteCloser, boot protocol.Boot) (sandbox.Agent, error) {
			a, err := connect(ctx, conn, boot)
			if hostile {
				a, hostile = flooder{a}, false
			}
			return a, err
		}
	})
	r, err := b.Pool.Exec(t.Context(), b.request("a", "true"))
	if err != nil || r.NotSaved == nil || len(r.Commits) != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if r := b.must("a", "echo 1 > one"); !r.Restarted || len(r.Commits) != 1 {
		t.Errorf("%+v", r)
	}
}

// flooder is an agent that ignores the limits of a collection.
type flooder struct{ sandbox.Agent }

func (flooder) Collect(_ context.Context, l protocol.CollectLimits) (protocol.Batch, error) {
	return protocol.Batch{Entries: []protocol.Entry{{Path: "x", Content: make([]byte, l.FileSize+1)}}}, nil
}

func TestManyAtOnce(t *testing.T) {
	b := newBench(t, func(o *sandbox.Options) { o.MaxSandboxes, o.IdleStop = 3, time.Nanosecond })
	var wg sync.WaitGroup
	for u := range 6 {
		for c := range 4 {
			wg.Go(func() {
				for i := range 3 {
					name := fmt.Sprintf("u%d-%d-%d", u, c, i)
					r := b.must(fmt.Sprintf("u%d", u), "echo x > "+name)
					if !slices.ContainsFunc(r.Commits, func(c space.Commit) bool {
						return slices.ContainsFunc(c.Files, func(f space.FileChange) bool { return string(f.Path) == name })
					}) {
						t.Errorf("%s was not committed: %+v", name, r)
					}
					b.Pool.Sweep(time.Now())
				}
			})
		}
	}
	wg.Wait()
	if n := len(b.Store.Tree(b.space)); n != 6*4*3+1 {
		t.Errorf("%d files", n)
	}
}

func TestOptions(t *testing.T) {
	if _, err := sandbox.New(sandbox.Options{}); err == nil {
		t.Error("a pool without a runtime was made")
	}
}
