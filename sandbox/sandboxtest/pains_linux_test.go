package sandboxtest_test

// Problems that users of other sandboxes report, each as a test against real sandboxes. See
// limits_linux_test.go for limits, and deaths_linux_test.go for the death of a part.

import (
	"context"
	"fmt"
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
