package gvisor_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/internal/testenv"
	"satchel/sandbox/gvisor"
	"satchel/sandbox/gvisor/rundir"
	"satchel/sandbox/oci"
)

// TestKilledWhileItStarts: if a part of a starting sandbox is killed from outside, the
// error does not blame the machine.
func TestKilledWhileItStarts(t *testing.T) {
	for _, part := range []string{"runtime", "runsc-gofer", "runsc-sandbox"} {
		t.Run(part, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "run")
			r := newRuntime(t, func(o *gvisor.Options) { o.RunDir = dir })
			start(t, r, space.SandboxSpec{}) // what gVisor does not tell is judged by this
			before := partsOf(dir, part)
			spec := space.SandboxSpec{ID: oci.NewID(), Checkout: newCheckout(t)}
			type outcome struct {
				s   space.Sandbox
				err error
			}
			done := make(chan outcome, 1)
			go func() {
				s, err := r.Start(t.Context(), spec)
				done <- outcome{s, err}
			}()
			if part == "runtime" {
				awaitEntry(t, filepath.Join(dir, "bundles", string(spec.ID)))
				kill(t, findChild(t))
			} else {
				killNew(t, dir, part, before)
			}
			o := <-done
			if o.err == nil { // it was quicker, and ended right after
				ended(t, o.s)
				o.err = o.s.Err()
			}
			if !errors.Is(o.err, space.ErrKilled) || errors.Is(o.err, space.ErrOutOfMemory) || strings.Contains(fault.PublicOf(o.err), "doctor") {
				t.Errorf("%v", o.err)
			}
			if got := bash(t, start(t, r, space.SandboxSpec{}), "echo next"); got != "next" {
				t.Errorf("the next sandbox says %q", got)
			}
		})
	}
}

// TestARuntimeThatIsKilledWhileItStarts: such a runtime is distinguished from one that
// cannot run here.
func TestARuntimeThatIsKilledWhileItStarts(t *testing.T) {
	for _, tt := range []struct {
		name string
		exe  string
		want bool // that it was killed
	}{
		{"killed", "kill -9 $$", true},
		{"cannot run here", "exit 1", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			exe := filepath.Join(t.TempDir(), "satchel")
			if err := os.WriteFile(exe, []byte("#!/bin/sh\n"+tt.exe+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			r := newRuntime(t, withProgram(exe))
			_, err := r.Start(t.Context(), space.SandboxSpec{ID: oci.NewID(), Checkout: newCheckout(t)})
			if err == nil || errors.Is(err, space.ErrKilled) != tt.want {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestKilledAtAnyMoment kills a server while it starts a sandbox, with and without a spare. In
// about half of the runs it kills the runtime child first. The next server removes what is left.
func TestKilledAtAnyMoment(t *testing.T) {
	needNoRace(t)
	const longest = 600 * time.Millisecond // about two starts of a server with a spare
	random := rand.New(rand.NewPCG(18, 18))
	var left []string
	t.Cleanup(func() {
		for _, l := range left {
			t.Errorf("%s is left", l)
		}
	})
	for i := 0; i < 200; i += testenv.Stride(25) {
		spare, child := i%2 == 0, random.IntN(2) == 0
		moment := time.Duration(random.Int64N(int64(longest)))
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, "checkout"), 0o777); err != nil {
			t.Fatal(err)
		}
		server := serverProcess(t, dir, "echo alive")
		if spare {
			server.Env = append(server.Env, serverSpare+"=1")
		}
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		afterAMoment(moment)
		if child {
			for pid, ppid := range processes() {
				if ppid == server.Process.Pid {
					_ = unix.Kill(pid, unix.SIGKILL) // it may have ended
				}
			}
		}
		if err := server.Process.Kill(); err != nil {
			t.Log(err)
		}
		_ = server.Wait()

		run := filepath.Join(dir, "run")
		begun, _ := os.ReadDir(filepath.Join(run, "bundles")) // none if the server was killed early
		r := newRuntime(t, func(o *gvisor.Options) { o.RunDir = run })
		if _, err := r.Reap(t.Context()); err != nil {
			t.Fatal(err)
		}
		// A process dies with its parent, but the kernel may need a moment for that.
		what := fmt.Sprintf("nothing is left (killed after %v, spare %v, child first %v)", moment, spare, child)
		testenv.WaitFor(t, what, func() bool {
			left = leftIn(dir)
			for _, e := range begun {
				left = append(left, remains(run, space.SandboxID(e.Name()))...)
			}
			return len(left) == 0
		})
	}
}

// afterAMoment leaves to chance how far a start gets.
func afterAMoment(d time.Duration) { <-time.After(d) }

// leftIn returns the processes and mounts that name a server's directory, and the files of
// sandboxes in it.
func leftIn(dir string) []string {
	left := remains(filepath.Join(dir, "nothing"), space.SandboxID(dir)) // whatever has dir in its description
	for _, sub := range []string{"bundles", "state"} {
		entries, _ := os.ReadDir(filepath.Join(dir, "run", sub))
		for _, e := range entries {
			if e.Name() != rundir.NullNamespace {
				left = append(left, filepath.Join(sub, e.Name()))
			}
		}
	}
	return left
}

// awaitEntry waits until something has a name.
func awaitEntry(t *testing.T, name string) {
	t.Helper()
	testenv.WaitFor(t, name, func() bool { _, err := os.Lstat(name); return err == nil })
}

// partsOf returns the processes of a kind that have a run directory's bundles.
func partsOf(dir, kind string) map[int]bool {
	out := map[int]bool{}
	names, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, n := range names {
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(n)))
		raw, err := os.ReadFile(n)
		if err == nil && strings.HasPrefix(string(raw), kind) && strings.Contains(string(raw), dir+"/") {
			out[pid] = true
		}
	}
	return out
}

// killNew kills the first process of a kind that was not there before.
func killNew(t *testing.T, dir, kind string, before map[int]bool) {
	t.Helper()
	for t.Context().Err() == nil {
		for pid := range partsOf(dir, kind) {
			if !before[pid] {
				if err := unix.Kill(pid, unix.SIGKILL); err != nil {
					t.Error(err)
				}
				return
			}
		}
	}
}
