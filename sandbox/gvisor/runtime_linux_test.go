package gvisor_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"satchel/internal/space"
	"satchel/sandbox/gvisor"
	"satchel/sandbox/oci"
)

func TestMemoryLimit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		opt  func(*gvisor.Options)
	}{
		{"kernel or watchdog, as the machine has it", func(*gvisor.Options) {}},
		{"watchdog", func(o *gvisor.Options) { o.NoCgroups = true; o.WatchInterval = 10 * time.Millisecond }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRuntime(t, c.opt)
			id, lim := oci.NewID(), space.Limits{Memory: 128 << 20}
			s := start(t, r, space.SandboxSpec{ID: id, Limits: lim})
			if made := cgroupFiles(t, id, "cgroup.procs"); c.name == "watchdog" && len(made) != 0 {
				t.Errorf("cgroups were made: %v", made)
			}
			fmt.Fprintln(s.Conn(), "!eat 4000")
			ended(t, s)
			if !errors.Is(s.Err(), space.ErrOutOfMemory) {
				t.Errorf("Err is %v, want ErrOutOfMemory", s.Err())
			}
			s = start(t, r, space.SandboxSpec{Limits: lim})
			if got := bash(t, s, "echo next"); got != "next" {
				t.Errorf("the next sandbox says %q", got)
			}
		})
	}
}

func TestKilledRuntimeChild(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	r := newRuntime(t, func(o *gvisor.Options) { o.RunDir = dir })
	s := start(t, r, space.SandboxSpec{})
	kill(t, findChild(t))
	ended(t, s)
	if s.Err() == nil {
		t.Error("the sandbox ended with its runtime, without an error")
	}
	if left := sandboxProcesses(t, dir); len(left) != 0 {
		t.Errorf("processes are left: %v", left)
	}
	s = start(t, r, space.SandboxSpec{})
	if got := bash(t, s, "echo again"); got != "again" {
		t.Errorf("the next sandbox says %q", got)
	}
}

func TestReapEndsWhatIsLeft(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	id := string(oci.NewID())
	bundle := filepath.Join(dir, "bundles", id)
	if err := os.MkdirAll(bundle, 0o700); err != nil {
		t.Fatal(err)
	}
	// What is left of a sandbox whose owner could not end it, a bystander that
	// says the same about another server's directory, and one by another name.
	orphan := lookalike(t, "runsc-gofer", bundle)
	foreign := lookalike(t, "runsc-gofer", filepath.Join(t.TempDir(), "bundles", id))
	other := lookalike(t, "cat", bundle)

	r := newRuntime(t, func(o *gvisor.Options) { o.RunDir = dir })
	n, err := r.Reap(t.Context())
	if err != nil || n != 1 {
		t.Errorf("Reap: %d, %v; want 1", n, err)
	}
	if err := orphan.Wait(); err == nil {
		t.Error("the orphan was not killed")
	}
	for _, c := range []*exec.Cmd{foreign, other} {
		if err := unix.Kill(c.Process.Pid, 0); err != nil {
			t.Errorf("%q was killed, which is not ours", c.Args)
		}
		c.Process.Kill()
		c.Wait()
	}
	if got := ls(t, filepath.Join(dir, "bundles")); len(got) != 0 {
		t.Errorf("bundles are left: %q", got)
	}
	if n, err := r.Reap(t.Context()); n != 0 || err != nil {
		t.Errorf("a second Reap: %d, %v", n, err)
	}
}

// lookalike starts a process that waits, whose command line is that of a gofer.
func lookalike(t *testing.T, name, bundle string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/bin/bash")
	cmd.Args = []string{name, "-c", "read x", "gofer", "--bundle", bundle}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close() })
	return cmd
}
