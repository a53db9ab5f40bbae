package sandboxtest_test

// The pains that users of other sandboxes report, each as a test against real
// sandboxes. How a limit's breach is told is in limits_linux_test.go, how the
// death of a part is in deaths_linux_test.go.

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/internal/testenv"
	"satchel/sandbox"
	"satchel/sandbox/agent"
	"satchel/sandbox/sandboxtest"
)

// begun runs a command and returns once it has printed the word "started".
func (c *cell) begun(r sandbox.Request) <-chan outcome {
	c.t.Helper()
	started := make(chan struct{}, 1)
	r.OnProgress = func(p sandbox.Progress) {
		if p.Line == "started" {
			select {
			case started <- struct{}{}:
			default:
			}
		}
	}
	done := make(chan outcome, 1)
	go func() {
		res, err := c.exec(r)
		done <- outcome{res, err}
	}()
	select {
	case <-started:
	case o := <-done:
		c.t.Fatalf("%s: ended before it started: %+v, %v", r.Command, o.res, o.err)
	}
	return done
}

type outcome struct {
	res sandbox.Result
	err error
}

// processes returns the pids of the sentries or gofers of the cell's runtime.
func (c *cell) processes(name string) []int {
	c.t.Helper()
	var pids []int
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		c.t.Fatal(err)
	}
	for _, f := range files {
		b, _ := os.ReadFile(f)
		if strings.HasPrefix(string(b), name+"\x00") && strings.Contains(string(b), c.run+"/") {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(f)))
			pids = append(pids, pid)
		}
	}
	return pids
}

// signal sends a signal to the one sentry or gofer that there is. With SIGSTOP it
// returns once every thread has stopped: until then a command may still be answered.
func (c *cell) signal(name string, sig unix.Signal) {
	c.t.Helper()
	pids := c.processes(name)
	if len(pids) != 1 {
		c.t.Fatalf("there are %d processes %s", len(pids), name)
	}
	if err := unix.Kill(pids[0], sig); err != nil {
		c.t.Fatal(err)
	}
	if sig == unix.SIGSTOP {
		testenv.WaitFor(c.t, name+" to stop", func() bool {
			threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pids[0]))
			return err == nil && len(threads) > 0 && !slices.ContainsFunc(threads, func(stat string) bool {
				b, err := os.ReadFile(stat)
				_, state, _ := strings.Cut(string(b), ") ")
				return err == nil && !strings.HasPrefix(state, "T")
			})
		})
	}
}

// descendants are the ways to outlive the death of one's parent.
const descendants = `
	tick() { trap '' TERM HUP INT; while :; do echo x >> /tmp/ticks; sleep 0.05; done; }
	export -f tick
	tick &
	setsid bash -c tick &
	(setsid bash -c 'tick & disown' &)
	nohup bash -c tick >/dev/null 2>&1 &
	(bash -c '(tick </dev/null >/dev/null 2>&1 &) &' &)
	trap '' TERM
	until [ -s /tmp/ticks ]; do sleep 0.02; done
	echo started
	while :; do sleep 1; done`

// alive counts the processes inside beside those of the one who counts.
const alive = `n=0; for p in /proc/[0-9]*; do
	case "$(tr '\0' ' ' < $p/cmdline)" in *tick*) n=$((n+1));; esac; done; s=$(stat -c %s /tmp/ticks); sleep 0.3
	echo $n $(( $(stat -c %s /tmp/ticks) - s ))`

// TestPainTimeoutLeavesDescendants: the timeout kills the leader, and what it
// started lives on.
func TestPainTimeoutLeavesDescendants(t *testing.T) {
	t.Parallel()
	c := newCell(t, func(o *sandbox.Options) { o.WallTime, o.Grace = 4*time.Second, 100*time.Millisecond }, nil)
	r := c.must(descendants)
	if r.End != agent.TimedOut || r.ExitCode == 0 || !says(r, "time limit") {
		t.Errorf("end %d, exit code %d, notes %q", r.End, r.ExitCode, r.Notes)
	}
	if r := c.look(alive); r.Stdout.Text != "0 0\n" {
		t.Errorf("processes that live on, and what they wrote meanwhile: %q (%s)", r.Stdout.Text, r.Stderr.Text)
	}
}

// TestPainCancelLeavesDescendants: so does a caller who goes away.
func TestPainCancelLeavesDescendants(t *testing.T) {
	t.Parallel()
	c := newCell(t, func(o *sandbox.Options) { o.Grace = 100 * time.Millisecond }, nil)
	ctx, cancel := context.WithCancel(t.Context())
	r := c.request(descendants)
	r.OnProgress = func(p sandbox.Progress) {
		if p.Line == "started" {
			cancel()
		}
	}
	if res, err := c.Pool.Exec(ctx, r); err != nil || res.End != agent.Canceled {
		t.Errorf("%+v, %v", res, err)
	}
	if r := c.must(alive); r.Stdout.Text != "0 0\n" {
		t.Errorf("processes that live on, and what they wrote meanwhile: %q (%s)", r.Stdout.Text, r.Stderr.Text)
	}
}

// quick has a sandbox that hangs found out soon.
func quick(o *sandbox.Options) {
	o.AnswerTime, o.SweepEvery = 15*time.Second, 200*time.Millisecond
}

// TestPainExecHangs: the whole sandbox is frozen, under a command and before
// one. The caller gets an answer, and the next command a new sandbox.
func TestPainExecHangs(t *testing.T) {
	t.Parallel()
	for _, idle := range []bool{false, true} {
		t.Run(fmt.Sprintf("while idle %v", idle), func(t *testing.T) {
			t.Parallel()
			c := newCell(t, quick, nil)
			c.must("echo safe > safe")
			var done <-chan outcome
			if idle {
				c.signal("runsc-sandbox", unix.SIGSTOP)
				one := make(chan outcome, 1)
				go func() {
					res, err := c.exec(c.request("echo false exit"))
					one <- outcome{res, err}
				}()
				done = one
			} else {
				done = c.begun(c.request("echo lost > lost; echo started; sleep 300"))
				c.signal("runsc-sandbox", unix.SIGSTOP)
			}
			o := <-done
			if fault.CodeOf(o.err) != fault.Unavailable || !strings.Contains(fault.PublicOf(o.err), "stopped answering") {
				t.Errorf("%+v, %v", o.res, o.err)
			}
			if r := c.must("cat safe; test ! -e lost"); r.Generation != 2 || r.Stdout.Text != "safe\n" || r.ExitCode != 0 || !says(r, "had stopped answering") {
				t.Errorf("the next: %+v", r)
			}
		})
	}
}

// deaf is an agent that reads nothing and never answers, from a time of the
// test's choice.
type deaf struct {
	sandbox.Agent
	since <-chan struct{}
	gone  chan struct{}
	once  *sync.Once
}

func (d deaf) hang(ctx context.Context) error {
	select {
	case <-d.since:
	default:
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-d.gone:
		return agent.ErrProtocol
	}
}

func (d deaf) Exec(ctx context.Context, r agent.ExecRequest, f func(agent.Stream, []byte)) (agent.ExecResult, error) {
	if err := d.hang(ctx); err != nil {
		return agent.ExecResult{}, err
	}
	return d.Agent.Exec(ctx, r, f)
}

func (d deaf) Jobs(ctx context.Context) ([]agent.Job, error) {
	if err := d.hang(ctx); err != nil {
		return nil, err
	}
	return d.Agent.Jobs(ctx)
}

func (d deaf) Collect(ctx context.Context, l agent.CollectLimits) (agent.Batch, error) {
	if err := d.hang(ctx); err != nil {
		return agent.Batch{}, err
	}
	return d.Agent.Collect(ctx, l)
}

func (d deaf) Shutdown(ctx context.Context, grace time.Duration) error {
	if err := d.hang(ctx); err != nil {
		return err
	}
	return d.Agent.Shutdown(ctx, grace)
}

func (d deaf) Close() error {
	d.once.Do(func() { close(d.gone) })
	return d.Agent.Close()
}

// TestPainAgentNeverReads: the agent is there and says nothing.
func TestPainAgentNeverReads(t *testing.T) {
	t.Parallel()
	since := make(chan struct{})
	first := true
	c := newCell(t, func(o *sandbox.Options) {
		quick(o)
		o.Connect = func(ctx context.Context, conn io.ReadWriteCloser, b agent.Boot) (sandbox.Agent, error) {
			a, err := agent.Connect(ctx, conn, b)
			if err != nil || !first {
				return a, err
			}
			first = false
			return deaf{a, since, make(chan struct{}), new(sync.Once)}, nil
		}
	}, nil)
	c.must("true")
	close(since)
	_, err := c.exec(c.request("echo false exit"))
	if fault.CodeOf(err) != fault.Unavailable || !strings.Contains(fault.PublicOf(err), "stopped answering") {
		t.Errorf("%v", err)
	}
	c.works("an agent that never reads")
}

// TestPainStuckDeleting: a sandbox that is frozen can be stopped all the same,
// by an administrator and at the server's end.
func TestPainStuckDeleting(t *testing.T) {
	t.Parallel()
	c := newCell(t, quick, nil)
	c.must("echo safe > safe")
	c.signal("runsc-sandbox", unix.SIGSTOP)
	ctx := testenv.Context(t)
	if err := c.Pool.StopUser(ctx, "u_one"); err != nil {
		t.Errorf("StopUser: %v", err)
	}
	if n := len(c.processes("runsc-sandbox")) + len(c.processes("runsc-gofer")); n != 0 {
		t.Errorf("%d processes are left", n)
	}
	if r := c.must("cat safe"); r.Stdout.Text != "safe\n" {
		t.Errorf("%+v", r)
	}
	c.signal("runsc-sandbox", unix.SIGSTOP)
	if err := c.Pool.Close(ctx); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// TestPainFilesLostOverSuspend: what was written is there after the sandbox
// slept, was evicted, restarted or stopped, committed or held.
func TestPainFilesLostOverSuspend(t *testing.T) {
	t.Parallel()
	kept := openHeld(t)
	c := newCell(t, func(o *sandbox.Options) {
		o.Held, o.MaxFile = kept, 1000
		o.IdleStop, o.SweepEvery, o.MaxSandboxes = time.Hour, 50*time.Millisecond, 2
	}, nil)
	stops := []struct {
		name string
		stop func()
	}{
		{"evicted for another", func() {
			for _, u := range []space.UserID{"u_two", "u_three"} {
				r := c.request("true")
				r.User = u
				if _, err := c.exec(r); err != nil {
					t.Fatal(err)
				}
			}
		}},
		{"stopped for its user", func() { c.Pool.StopUser(t.Context(), "u_one") }},
		{"stopped for its space", func() { c.Pool.StopSpace(t.Context(), c.space) }},
	}
	want := ""
	for i, s := range stops {
		// The second file is too large to be committed, and is held.
		r := c.must(fmt.Sprintf("echo %d >> log; mkdir -p d; mv f d/f%d; echo f > f; head -c 2000 /dev/zero | tr '\\0' x > large%d", i, i, i))
		if r.NotSaved != nil || len(r.Commits) != 1 || len(r.Held) != i+1 {
			t.Fatalf("%s: %+v", s.name, r)
		}
		want += fmt.Sprintf("%d\n", i)
		gen := r.Generation
		s.stop()
		r = c.must(fmt.Sprintf("cat log; cat d/f%d; wc -c < large%d", i, i))
		if r.Generation <= gen || r.Stdout.Text != want+"f\n2000\n" || len(r.Held) != i+1 {
			t.Errorf("%s: generation %d after %d, %q, held %d", s.name, r.Generation, gen, r.Stdout.Text, len(r.Held))
		}
	}
	if got := c.Store.Tree(c.space)["log"].Content; got != want {
		t.Errorf("the space has %q, want %q", got, want)
	}
}

// TestPainFilesLostOverIdleStop is the same for a sandbox that goes to sleep by
// itself, with a job's last words.
func TestPainFilesLostOverIdleStop(t *testing.T) {
	t.Parallel()
	c := newCell(t, func(o *sandbox.Options) { o.IdleStop, o.SweepEvery = 200*time.Millisecond, 50*time.Millisecond }, nil)
	job := c.request("sleep 0.5; echo job > job")
	job.Background = true
	if _, err := c.exec(job); err != nil {
		t.Fatal(err)
	}
	c.must("echo command > command")
	<-c.Runtime.Started()[0].Done()
	tree := c.Store.Tree(c.space)
	if tree["job"].Content != "job\n" || tree["command"].Content != "command\n" {
		t.Errorf("the space holds %v", tree)
	}
	if r := c.must("cat job command"); r.Stdout.Text != "job\ncommand\n" {
		t.Errorf("woken: %+v", r)
	}
}

// TestPainIdleTimerUnderLiveWork: a command and a job that outlast the idle
// time several times over end by themselves, in the same sandbox.
func TestPainIdleTimerUnderLiveWork(t *testing.T) {
	t.Parallel()
	c := newCell(t, func(o *sandbox.Options) { o.IdleStop, o.SweepEvery = 300*time.Millisecond, 50*time.Millisecond }, nil)
	job := c.request("until [ -e /tmp/go ]; do sleep 0.05; done; sleep 2; echo job > job; echo end > /tmp/end")
	job.Background = true
	r, err := c.exec(job)
	if err != nil || r.End != agent.Detached {
		t.Fatalf("%+v, %v", r, err)
	}
	long := c.must(": > /tmp/go; for i in 1 2 3 4; do sleep 0.4; echo $i; done; until [ -e /tmp/end ]; do sleep 0.1; done; echo end")
	if long.Stdout.Text != "1\n2\n3\n4\nend\n" || long.Generation != r.Generation {
		t.Errorf("%q in generation %d, begun in %d", long.Stdout.Text, long.Generation, r.Generation)
	}
	c.Store.Wait(t.Context(), c.space, func(tree sandboxtest.Tree) bool { return tree["job"].Content == "job\n" })
	<-c.Runtime.Started()[0].Done() // now it may
	if r := c.must("cat job"); r.Stdout.Text != "job\n" || r.Generation != 2 || !r.Restarted {
		t.Errorf("woken: %+v", r)
	}
}

// TestPainSilentReplacement: a caller whose sandbox was replaced is told so
// once, with what is gone, and never finds half of the old one.
func TestPainSilentReplacement(t *testing.T) {
	t.Parallel()
	c := newCell(t, nil, nil)
	r := c.must("echo kept > kept; echo gone > /tmp/gone")
	c.Runtime.Started()[0].Stop(t.Context())
	next := c.must("cat kept; ls /tmp/gone 2>/dev/null")
	if next.Generation != r.Generation+1 || !next.Restarted || !says(next, "background processes, jobs and /tmp of before are gone") || next.Stdout.Text != "kept\n" {
		t.Errorf("the first answer: %+v", next)
	}
	if again := c.must("true"); again.Restarted || len(again.Notes) != 0 {
		t.Errorf("the second answer: %+v", again)
	}
}

// TestPainZombies: processes whose parents are gone are reaped, inside and on
// the host.
func TestPainZombies(t *testing.T) {
	c := newCell(t, nil, nil)
	for range 20 {
		c.must("(bash -c 'sleep 0 & exec true' &); (setsid sh -c : &); for i in 1 2 3; do (:) & done; exit 0")
	}
	// The answer may come before the last orphan was waited for.
	r := c.must("zombies() { grep -l '^State:.[ZX]' /proc/[0-9]*/status 2>/dev/null | wc -l; }; for i in {1..400}; do [ $(zombies) = 0 ] && break; sleep 0.05; done; zombies; ls -d /proc/[0-9]* | wc -l")
	f := strings.Fields(r.Stdout.Text)
	if n, err := strconv.Atoi(f[1]); f[0] != "0" || err != nil || n > 12 {
		t.Errorf("zombies and processes inside: %q", f)
	}
	if err := c.Pool.StopUser(t.Context(), "u_one"); err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		b, _ := os.ReadFile(file)
		i := strings.LastIndexByte(string(b), ')')
		if i < 0 {
			continue
		}
		rest := strings.Fields(string(b[i+1:]))
		if ppid, _ := strconv.Atoi(rest[1]); rest[0] == "Z" && ppid == os.Getpid() {
			t.Errorf("a zombie of this process: %s", b)
		}
	}
}

// TestPainHostFiguresInside: nproc and free show the sandbox's limits.
func TestPainHostFiguresInside(t *testing.T) {
	t.Parallel()
	c := newCell(t, func(o *sandbox.Options) {
		o.Limits = sandbox.DefaultLimits()
		o.Limits.CPUs, o.Limits.Memory = 1, 200<<20
	}, nil)
	r := c.must("awk '/MemTotal/ { print $2 }' /proc/meminfo; [ $(nproc) -le 2 ] && echo few; df -k --output=size /space /tmp | tail -n 2")
	if want := []string{"204800", "few", "262144", "65536"}; strings.Join(strings.Fields(r.Stdout.Text), " ") != strings.Join(want, " ") {
		t.Errorf("inside: %q, want %q", strings.Fields(r.Stdout.Text), want)
	}
}

// TestPainDiskLeak counts everything that 12 starts and stops leave, 1,000 in a
// soak.
func TestPainDiskLeak(t *testing.T) {
	c := newCell(t, nil, nil)
	c.watchIDs()
	const users = 4
	var spaces [users]space.SpaceID
	for u := range users {
		spaces[u] = c.Store.Space(sandboxtest.Tree{"f": {Content: "f\n"}})
	}
	cycle := func(i int) {
		var all sync.WaitGroup
		for u := range users {
			r := c.request(fmt.Sprintf("echo %d > n; echo x > /tmp/x; (setsid sleep 100 &); mkfifo pipe 2>/dev/null; rm -f pipe", i))
			r.User, r.Space = space.UserID(fmt.Sprintf("u_%d", u)), spaces[u]
			all.Go(func() {
				if res, err := c.exec(r); err != nil || len(res.Commits) != 1 {
					t.Errorf("%+v, %v", res, err)
				}
				if err := c.Pool.StopUser(t.Context(), r.User); err != nil {
					t.Error(err)
				}
			})
		}
		if all.Wait(); t.Failed() {
			t.FailNow()
		}
	}
	cycle(-1) // what stays with the runtime is there now
	before := c.footprint()
	cycles := 12 / users
	if testenv.Soak() {
		cycles = 1000 / users
	}
	for i := range cycles {
		cycle(i)
	}
	// gVisor leaves its handles of ended processes to the garbage collector, which
	// takes them some starts later. What leaks never comes down.
	after := c.footprint()
	for i := 0; i < 20 && after.over(before); i++ {
		cycle(cycles + i)
		after = c.footprint()
	}
	if after.over(before) {
		t.Errorf("after %d starts and stops %+v, before %+v", cycles*users, after, before)
	}
	if n := c.Store.Seeds(); n != 0 {
		t.Errorf("%d seeds are left", n)
	}
}

// TestPainOrphansUnderConcurrentCreate: callers who come and go while their
// sandboxes start leave none behind, and each key has at most one.
func TestPainOrphansUnderConcurrentCreate(t *testing.T) {
	t.Parallel()
	c := newCell(t, func(o *sandbox.Options) { o.MaxSandboxes, o.ReapEvery = 4, 200*time.Millisecond }, nil)
	c.watchIDs()
	c.must("true")
	var all sync.WaitGroup
	for i := range 60 {
		all.Go(func() {
			ctx, cancel := sandboxtest.Leaving(t.Context(), time.Duration(rand.IntN(800))*time.Millisecond)
			defer cancel()
			r := c.request("echo $$ > pid; sleep 0.1")
			r.User = space.UserID(fmt.Sprintf("u_%d", i%7))
			if i%10 == 0 {
				c.Pool.StopUser(ctx, r.User)
			}
			if _, err := c.Pool.Exec(ctx, r); err != nil {
				switch fault.CodeOf(err) {
				case fault.Canceled, fault.Unavailable, fault.Limited:
				default:
					t.Errorf("%v", err)
				}
			}
		})
	}
	all.Wait()
	if n := c.Runtime.Running(); n > 4 {
		t.Errorf("%d sandboxes run, and 4 may", n)
	}
	if r, err := c.exec(c.request("echo works")); err != nil || r.Stdout.Text != "works\n" {
		t.Errorf("afterwards: %+v, %v", r, err)
	}
	if n := c.Pool.Status().Reaped; n != 0 {
		t.Errorf("%d sandboxes were reaped that nothing owned", n)
	}
	c.close()
	f := c.footprint()
	if n, err := c.runtime.Reap(t.Context()); n != 0 || err != nil || f.processes != 0 || f.cgroups != 0 {
		t.Errorf("%d orphans, %v; %+v", n, err, f)
	}
	if left, _ := os.ReadDir(filepath.Join(c.run, "bundles")); len(left) != 0 {
		t.Errorf("bundles are left: %v", left)
	}
}

// watchIDs notes the ids of what starts.
func (c *cell) watchIDs() {
	c.Runtime.Before = func(_ context.Context, spec space.SandboxSpec) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.started = append(c.started, string(spec.ID))
		return nil
	}
}

func (c *cell) ids() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.started...)
}

// child returns the pid of the runtime child. Other tests have children too;
// this one keeps the run directory locked.
func (c *cell) child() string {
	lock := filepath.Join(c.run, "lock")
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		b, _ := os.ReadFile(f)
		pid := filepath.Base(filepath.Dir(f))
		status, _ := os.ReadFile("/proc/" + pid + "/status")
		if strings.HasSuffix(string(b), "\x00runtime\x00") && strings.Contains(string(status), fmt.Sprintf("\nPPid:\t%d\n", os.Getpid())) {
			fds, _ := filepath.Glob("/proc/" + pid + "/fd/*")
			for _, fd := range fds {
				if target, _ := os.Readlink(fd); target == lock {
					return pid
				}
			}
		}
	}
	return ""
}
