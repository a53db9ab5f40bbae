package gvisor_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"satchel/internal/space"
	"satchel/internal/testenv"
	"satchel/sandbox/gvisor"
	"satchel/sandbox/oci"
)

// TestReapWhileSandboxesRun plants what a failed stop leaves (a process, a bundle, state,
// cgroups) next to sandboxes that run, start and stop: the orphan is removed, and the
// others are not affected.
func TestReapWhileSandboxesRun(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	r := newRuntime(t, func(o *gvisor.Options) { o.RunDir = dir })
	limits := space.Limits{Memory: 256 << 20, Processes: 64, CPUs: 2}
	s := start(t, r, space.SandboxSpec{Limits: limits})
	if n, err := r.Reap(t.Context()); n != 0 || err != nil {
		t.Fatalf("with nothing to reap: %d, %v", n, err)
	}

	id := string(oci.NewID())
	bundle := filepath.Join(dir, "bundles", id)
	if err := os.MkdirAll(bundle, 0o700); err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(dir, "state", id+"_sandbox:"+id+".state")
	writeFile(t, state, "{}")
	cgroup := plantCgroup(t, id)
	elsewhere := plantCgroupElsewhere(t, bundle, id)
	socket := filepath.Join(dir, "state", "runsc-"+string(oci.NewID())+".sock") // of a start that failed
	writeFile(t, socket, "")
	orphan := lookalike(t, "runsc-sandbox", bundle)

	var busy sync.WaitGroup
	stop := make(chan struct{})
	for range 2 {
		busy.Go(func() { // sandboxes that start and stop meanwhile
			for {
				select {
				case <-stop:
					return
				default:
				}
				o, err := r.Start(t.Context(), space.SandboxSpec{ID: oci.NewID(), Checkout: newCheckout(t), Limits: limits})
				if err != nil {
					t.Errorf("a start beside Reap: %v", err)
					return
				}
				if got, err := tryBash(o, "echo started"); err != nil || got != "started" {
					t.Errorf("a sandbox beside Reap says %q, %v", got, err)
				}
				if err := o.Stop(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	reaped := 0
	for range 20 {
		n, err := r.Reap(t.Context())
		if err != nil {
			t.Error(err)
		}
		reaped += n
	}
	close(stop)
	busy.Wait()
	if reaped != 2 {
		t.Errorf("%d sandboxes were reaped, want the two planted ones", reaped)
	}
	if err := orphan.Wait(); err == nil {
		t.Error("the orphan's process was not killed")
	}
	for _, p := range []string{bundle, state, cgroup, socket, elsewhere} {
		if _, err := os.Stat(p); p != "" && err == nil {
			t.Errorf("%s is left", p)
		}
	}
	if got := bash(t, s, "echo alive"); got != "alive" {
		t.Errorf("the sandbox that ran says %q", got)
	}
}

// plantCgroup makes a cgroup as a sandbox's of that id; "" where this machine
// has none.
func plantCgroup(t *testing.T, id string) string {
	t.Helper()
	for _, parent := range []string{"/sys/fs/cgroup/pids", "/sys/fs/cgroup/satchel"} {
		dir := filepath.Join(parent, "satchel-"+id)
		if os.Geteuid() == 0 && os.Mkdir(dir, 0o755) == nil {
			t.Cleanup(func() { unix.Rmdir(dir) })
			return dir
		}
	}
	return ""
}

// plantCgroupElsewhere is plantCgroup for a server that was in another cgroup
// than this one, and noted where it made the sandbox's.
func plantCgroupElsewhere(t *testing.T, bundle, id string) string {
	t.Helper()
	parent := "/sys/fs/cgroup/pids/other-" + id[:8]
	if os.Geteuid() != 0 || os.Mkdir(parent, 0o755) != nil {
		return ""
	}
	dir := filepath.Join(parent, "satchel-"+id)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Rmdir(dir); unix.Rmdir(parent) })
	// The second line is none of the sandbox's.
	writeFile(t, filepath.Join(bundle, "cgroups"), dir+"\n"+parent+"\n")
	return dir
}

// TestAHungRuntimeChild: the process that owns the sandboxes hangs. A stop is
// bounded all the same, and the next sandbox starts.
func TestAHungRuntimeChild(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	r := newRuntime(t, func(o *gvisor.Options) { o.RunDir = dir; o.StopTimeout = time.Second })
	s := start(t, r, space.SandboxSpec{})
	child := findChild(t)
	if err := unix.Kill(child, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(testenv.Context(t)); err != nil {
		unix.Kill(child, unix.SIGCONT)
		t.Errorf("Stop: %v", err)
	}
	ended(t, s)
	if left := sandboxProcesses(t, dir); len(left) != 0 {
		t.Errorf("processes are left: %v", left)
	}
	s = start(t, r, space.SandboxSpec{})
	if got := bash(t, s, "echo again"); got != "again" {
		t.Errorf("the next sandbox says %q", got)
	}
}

// The attack: a process of any user has the command line of a sentry whose bundle is not
// one of ours, so that the reaper, as the server's user, would remove other files, or all
// bundles.
func TestAttackReaperIsLedAstray(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	r := newRuntime(t, func(o *gvisor.Options) { o.RunDir = dir })
	s := start(t, r, space.SandboxSpec{})
	bundles := filepath.Join(dir, "bundles")
	beside := filepath.Join(dir, "precious")
	writeFile(t, beside, "kept")
	writeFile(t, filepath.Join(bundles, "precious"), "kept")
	for _, bundle := range []string{bundles + "/..", bundles + "/.", bundles + "/precious", bundles + "/", bundles + "/../precious"} {
		lookalike(t, "runsc-sandbox", bundle)
		lookalike(t, "runsc-gofer", bundle)
	}
	if n, err := r.Reap(t.Context()); n != 0 || err != nil {
		t.Errorf("reaped %d, %v", n, err)
	}
	for _, f := range []string{beside, filepath.Join(bundles, "precious"), filepath.Join(dir, "lock")} {
		if _, err := os.Stat(f); err != nil {
			t.Error(err)
		}
	}
	if got, err := tryBash(s, "echo alive"); err != nil || got != "alive" {
		t.Errorf("a live sandbox says %q, %v", got, err)
	}
	start(t, r, space.SandboxSpec{})
}
