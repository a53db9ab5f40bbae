//go:build unix

package sandbox_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/internal/testenv"
	"satchel/sandbox"
	"satchel/sandbox/protocol"
	"satchel/sandbox/sandboxtest"
)

// machine is how much memory the machine can still give.
type machine struct{ atomic.Int64 }

func (m *machine) options(o *sandbox.Options) {
	o.FreeMemory, o.StartMemory = 100<<20, 10<<20
	o.Available = func() (int64, error) { return m.Load(), nil }
}

// TestNoSandboxStartsWhereTheMachineLacksMemory: a start waits for the machine's memory,
// not only for the pool's own sum. It fails with a plain error if that takes too long, and
// continues when memory is free.
func TestNoSandboxStartsWhereTheMachineLacksMemory(t *testing.T) {
	var m machine
	m.Store(109 << 20)
	b := newBench(t, func(o *sandbox.Options) {
		m.options(o)
		o.QueueTime = 50 * time.Millisecond
	})
	_, err := b.Pool.Exec(t.Context(), b.request("a", "true"))
	var f *fault.Error
	if !errors.As(err, &f) || f.Code != fault.Limited || f.RetryAfter <= 0 || !strings.Contains(f.Public, "too little memory") ||
		!strings.Contains(f.Public, "100 MB must stay free") {
		t.Errorf("%v", err)
	}
	if n := len(b.Runtime.Started()); n != 0 {
		t.Errorf("%d sandboxes were started", n)
	}
	m.Store(110 << 20)
	b.must("a", "true")
}

func TestAWaitingStartGoesOnWhenMemoryComesFree(t *testing.T) {
	var m machine
	b := newBench(t, m.options)
	one := b.exec(t.Context(), b.request("a", "echo one"))
	two := b.exec(t.Context(), b.request("b", "echo two"))
	if s := b.Pool.Status(); s.Queued != 2 {
		t.Errorf("%+v", s)
	}
	m.Store(110 << 20)
	b.Pool.Sweep(time.Now())
	for _, c := range []<-chan outcome{one, two} {
		if o := <-c; o.err != nil {
			t.Error(o.err)
		}
		m.Store(1 << 30)
		b.Pool.Sweep(time.Now())
	}
}

// TestIdleSandboxesGoWhereTheMachineLacksMemory: before a start is refused, and
// also where nobody waits.
func TestIdleSandboxesGoWhereTheMachineLacksMemory(t *testing.T) {
	var m machine
	m.Store(1 << 30)
	b := newBench(t, m.options)
	b.fake.SetMemory(30 << 20)
	busy := b.begun(t.Context(), b.request("busy", "sleep 300"))
	b.must("a", "true")
	b.must("b", "true")
	b.Pool.Sweep(time.Now())
	m.Store(60 << 20) // two idle ones hold what is lacking
	b.Pool.Sweep(time.Now())
	b.until("relieved", func(s sandbox.Status) bool { return s.Sandboxes == 1 && s.Evictions == 2 })
	b.Pool.Sweep(time.Now())
	select {
	case o := <-busy:
		t.Errorf("a busy one was stopped: %+v, %v", o.res, o.err)
	default:
	}
	m.Store(1 << 30)
	b.must("a", "true")
	if err := b.Pool.StopUser(t.Context(), "busy"); err != nil {
		t.Error(err)
	}
	<-busy
}

// TestNobodyKnowsTheMemory: if the machine's memory is unknown, or the operator configures
// it so, the pool's own sum decides.
func TestNobodyKnowsTheMemory(t *testing.T) {
	for name, change := range map[string]func(*sandbox.Options){
		"not told":      func(o *sandbox.Options) { o.Available = func() (int64, error) { return 0, errors.ErrUnsupported } },
		"not looked at": func(o *sandbox.Options) { o.FreeMemory, o.Available = -1, func() (int64, error) { return 0, nil } },
	} {
		t.Run(name, func(t *testing.T) { newBench(t, change).must("a", "true") })
	}
}

// reaping counts what a runtime is asked to reap.
type reaping struct {
	space.Runtime
	found chan int
}

func (r reaping) Reap(context.Context) (int, error) {
	select {
	case n := <-r.found:
		if n < 0 {
			return 0, errors.New("a cgroup is busy")
		}
		return n, nil
	default:
		return 0, nil
	}
}

// TestOrphansAreReapedWhileRunning: again and again, and counted.
func TestOrphansAreReapedWhileRunning(t *testing.T) {
	found := make(chan int, 3)
	found <- 2
	found <- -1 // a failure is no end of it
	found <- 1
	total := make(chan int, 100)
	b := newBench(t, func(o *sandbox.Options) {
		o.Runtime = reaping{o.Runtime, found}
		o.ReapEvery = 5 * time.Millisecond
		o.Metrics.Reaped = func(n int, err error) {
			if n > 0 || err != nil {
				total <- n
			}
		}
	})
	var got []int
	for range 3 {
		got = append(got, testenv.Receive(t, "an orphan", total))
	}
	if got[0] != 2 || got[1] != 0 || got[2] != 1 {
		t.Errorf("reaped %v", got)
	}
	b.until("counted", func(s sandbox.Status) bool { return s.Reaped == 3 })
	b.must("a", "true")
}

// TestForeignLinksAndLargeFilesStayOutside is the attack of a commit from elsewhere, which
// no space has checked: links that lead out of the space, and blobs that would fill the
// memory of a reader.
func TestForeignLinksAndLargeFilesStayOutside(t *testing.T) {
	var got []protocol.ApplyEntry
	b := newBench(t, func(o *sandbox.Options) {
		o.MaxApplyBytes = 10_000
		o.Connect = recordApply(o.Connect, &got)
	})
	b.must("a", "echo old > was-file; echo keep > big")
	long := strings.Repeat("x/", 5000)
	b.Store.Put(b.space, map[space.Path]*sandboxtest.Entry{
		"etc":      {Mode: space.Symlink, Content: "/etc"},
		"up":       {Mode: space.Symlink, Content: "../../root"},
		"long":     {Mode: space.Symlink, Content: long[:5000]},
		"was-file": {Mode: space.Symlink, Content: "/proc/1/environ"},
		"fine":     {Mode: space.Symlink, Content: "f"},
		"new":      {Content: "new\n"},
	})
	r := b.must("a", "cat fine new; ls")
	if r.Stdout.Text != "f\nnew\nbig\nf\nfine\nnew\n" {
		t.Errorf("inside: %q", r.Stdout.Text)
	}
	if n := notesWith(r, "cannot be in a sandbox"); len(n) != 1 || !strings.Contains(n[0], `"etc" (its link target is absolute)`) {
		t.Errorf("notes %q", r.Notes)
	}
	for _, e := range got {
		if e.Mode == space.Symlink && !e.Delete && space.CheckSymlink(space.Path(e.Path), string(e.Content)) != nil {
			t.Errorf("the sandbox was given %q → %q", e.Path, e.Content)
		}
	}
	// The note appears once, and the links are still in the space.
	if r := b.must("a", "echo x > mine"); len(r.Notes) != 0 || len(r.Commits) != 1 || len(r.Commits[0].Files) != 1 {
		t.Errorf("again: %+v", r)
	}
	if b.Store.Tree(b.space)["was-file"].Content != "/proc/1/environ" {
		t.Error("the space has lost a link")
	}

}

// TestWhatIsTooLargeIsNotRead: if the newer version of a file that a command changed too is
// too large, it is reported, and not read into memory.
func TestWhatIsTooLargeIsNotRead(t *testing.T) {
	var got []protocol.ApplyEntry
	b := newBench(t, func(o *sandbox.Options) {
		o.MaxApplyBytes = 10_000
		o.Connect = recordApply(o.Connect, &got)
	})
	b.must("a", "echo old > big")
	running := b.begun(t.Context(), b.request("a", "until [ -e go ]; do sleep 0.02; done"))
	b.Store.Put(b.space, map[space.Path]*sandboxtest.Entry{"big": {Content: strings.Repeat("y", 20_000)}})
	r := b.must("a", "echo mine > big; touch go")
	// The first of the two to end reports it.
	other := <-running
	if other.err != nil {
		t.Fatal(other.err)
	}
	r.Conflicts, r.Notes = append(r.Conflicts, other.res.Conflicts...), append(r.Notes, other.res.Notes...)
	if len(r.Conflicts) != 1 || len(notesWith(r, `The newer version of "big" could not be copied into the sandbox: it has 19.6 kB, and a running sandbox accepts 9.8 kB`)) != 1 {
		t.Errorf("conflicts %+v, notes %q", r.Conflicts, r.Notes)
	}
	for _, e := range got {
		if len(e.Content) > 10_000 {
			t.Errorf("%q with %d bytes was brought in", e.Path, len(e.Content))
		}
	}
	// A sandbox that starts has it from its checkout.
	if r := b.must("a", "wc -c < big"); strings.TrimSpace(r.Stdout.Text) != "20000" || r.Generation != 2 {
		t.Errorf("%+v", r)
	}
}

type connectFunc = func(context.Context, io.ReadWriteCloser, protocol.Boot) (sandbox.Agent, error)

// recordApply notes what an agent is given.
func recordApply(connect connectFunc, got *[]protocol.ApplyEntry) connectFunc {
	return func(ctx context.Context, conn io.ReadWriteCloser, boot protocol.Boot) (sandbox.Agent, error) {
		a, err := connect(ctx, conn, boot)
		return applyRecorder{a, got}, err
	}
}

type applyRecorder struct {
	sandbox.Agent
	got *[]protocol.ApplyEntry
}

func (a applyRecorder) Apply(ctx context.Context, entries []protocol.ApplyEntry) ([]protocol.ApplyResult, error) {
	*a.got = append(*a.got, entries...)
	return a.Agent.Apply(ctx, entries)
}
