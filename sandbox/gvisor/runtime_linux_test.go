package gvisor_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/sandbox/gvisor"
)

func TestSandboxRunsProcessOne(t *testing.T) {
	s := start(t, newRuntime(t), space.SandboxSpec{})
	for _, c := range []struct{ command, want string }{
		{"echo hi", "hi"},
		{"id -u", "0"},
		{"user:id -u", "1000"},
		{"user:id -un", "satchel"},
		{"cat /.satchel/lower/note.md", "a note"},
		{"cat /.satchel/git/HEAD", "ref: refs/heads/main"},
		{"user:cat /library/page.md", "a page"},
		{"hostname", "satchel"},
		{"pwd", "/"},
		{"tr '\\0' ' ' < /proc/1/cmdline", "/.satchel/agent stand-in"},
		{"awk 'BEGIN { print 1+1 }'", "2"}, // through /etc/alternatives
		{"ls /.satchel", "agent\ngit\nlower\nupper"},
	} {
		if got := bash(t, s, c.command); got != c.want {
			t.Errorf("%s: got %q, want %q", c.command, got, c.want)
		}
	}
}

func TestSandboxWithoutGitAndLibrary(t *testing.T) {
	s := start(t, newRuntime(t), space.SandboxSpec{Seed: &space.Seed{Checkout: t.TempDir()}})
	if got := bash(t, s, "ls -A /library /.satchel/git"); got != "/.satchel/git:\n\n/library:" {
		t.Errorf("got %q, want both empty", got)
	}
}

func TestConfiguredRootFileSystem(t *testing.T) {
	rootfs := t.TempDir()
	for from, to := range map[string]string{"usr": "/usr", "bin": "usr/bin", "lib": "usr/lib", "lib64": "usr/lib64"} {
		if err := os.Symlink(to, filepath.Join(rootfs, from)); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(rootfs, "secret"), "the operator's own")
	s := start(t, newRuntime(t, func(o *gvisor.Options) { o.Rootfs = rootfs }), space.SandboxSpec{})
	if got := bash(t, s, "echo $(ls /bin/bash) $(ls /secret 2>&1) $(ls /etc | grep -c alternatives)"); got != "/bin/bash ls: cannot access '/secret': No such file or directory 0" {
		t.Errorf("got %q", got)
	}
}

func TestHostChangesShowAtOnceInGitAndLibrary(t *testing.T) {
	seed := newSeed(t)
	s := start(t, newRuntime(t), space.SandboxSpec{Seed: seed})
	for _, d := range []struct{ host, inside string }{{seed.GitView, "/.satchel/git"}, {seed.Library, "/library"}} {
		look := func() string { return bash(t, s, "cd "+d.inside+" && for f in *; do echo $f: $(cat $f); done") }
		look() // so that what is there is in every cache
		write(t, d.host+"/a", "one")
		if got := look(); !strings.Contains(got, "a: one") {
			t.Errorf("%s: a new file does not show: %q", d.inside, got)
		}
		write(t, d.host+"/a", "two and more")
		if got := look(); !strings.Contains(got, "a: two and more") {
			t.Errorf("%s: an edit does not show: %q", d.inside, got)
		}
		write(t, d.host+"/new", "three")
		if err := os.Rename(d.host+"/new", d.host+"/a"); err != nil {
			t.Fatal(err)
		}
		if got := look(); !strings.Contains(got, "a: three") || strings.Contains(got, "new:") {
			t.Errorf("%s: a rename over a file does not show: %q", d.inside, got)
		}
		if err := os.Remove(d.host + "/a"); err != nil {
			t.Fatal(err)
		}
		if got := look(); strings.Contains(got, "a:") {
			t.Errorf("%s: a removed file still shows: %q", d.inside, got)
		}
	}
}

func TestLibrarySnapshotIsSwappedByRename(t *testing.T) {
	seed := newSeed(t)
	for _, v := range []string{"v1", "v2"} {
		if err := os.MkdirAll(filepath.Join(seed.Library, ".snapshots", v), 0o777); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(seed.Library, ".snapshots", v, "page"), v)
	}
	link := filepath.Join(seed.Library, "docs")
	if err := os.Symlink(".snapshots/v1", link); err != nil {
		t.Fatal(err)
	}
	s := start(t, newRuntime(t), space.SandboxSpec{Seed: seed})
	if got := bash(t, s, "cat /library/docs/page"); got != "v1" {
		t.Fatalf("before the swap: %q", got)
	}
	if err := os.Symlink(".snapshots/v2", link+".new"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(link+".new", link); err != nil {
		t.Fatal(err)
	}
	if got := bash(t, s, "cat /library/docs/page"); got != "v2" {
		t.Errorf("after the swap: %q", got)
	}
}

func TestStop(t *testing.T) {
	r := newRuntime(t)
	s := start(t, r, space.SandboxSpec{})
	bash(t, s, "setsid sleep 1000 >/dev/null 2>&1 &")
	for range 2 { // it may be called again
		if err := s.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-s.Done():
	default:
		t.Error("Stop returned before Done")
	}
	if err := s.Err(); err != nil {
		t.Errorf("Err after Stop: %v", err)
	}
	if _, err := s.Stats(t.Context()); err == nil {
		t.Error("a stopped sandbox has figures")
	}
	if _, err := s.Conn().Read(make([]byte, 1)); err == nil {
		t.Error("a stopped sandbox can be read from")
	}
}

func TestProcessOneExits(t *testing.T) {
	s := start(t, newRuntime(t), space.SandboxSpec{})
	fmt.Fprintln(s.Conn(), "!exit")
	ended(t, s)
	if s.Err() == nil {
		t.Error("a sandbox whose process 1 exited ended without an error")
	}
	if _, err := s.Conn().Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("reading from it: %v, want EOF", err)
	}
}

func TestStats(t *testing.T) {
	s := start(t, newRuntime(t), space.SandboxSpec{})
	before, err := s.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	bash(t, s, "!eat 64")
	after, err := s.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if before.Memory <= 0 || before.Processes < 2 {
		t.Errorf("before: %+v", before)
	}
	if grown := after.Memory - before.Memory; grown < 50<<20 || grown > 90<<20 {
		t.Errorf("64 MiB more in use show as %d bytes more", grown)
	}
	bash(t, s, "mount -t tmpfs none /tmp && head -c 64M /dev/zero > /tmp/f")
	tmp, err := s.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if grown := tmp.Memory - after.Memory; grown < 50<<20 || grown > 90<<20 {
		t.Errorf("64 MiB in a tmpfs show as %d bytes more", grown)
	}
}

func TestMemoryLimit(t *testing.T) {
	for _, c := range []struct {
		name string
		opt  func(*gvisor.Options)
	}{
		{"kernel or watchdog, as the machine has it", func(*gvisor.Options) {}},
		{"watchdog", func(o *gvisor.Options) { o.NoCgroups = true; o.WatchInterval = 10 * time.Millisecond }},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRuntime(t, c.opt)
			lim := space.Limits{Memory: 128 << 20}
			s := start(t, r, space.SandboxSpec{Limits: lim})
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

func TestManyStartAtOnce(t *testing.T) {
	r := newRuntime(t)
	warmUp(t, r)
	files, procs := openFiles(t), children(t, os.Getpid())
	const n = 16
	var wg sync.WaitGroup
	sandboxes := make([]space.Sandbox, n)
	for i := range n {
		wg.Go(func() {
			s, err := r.Start(t.Context(), space.SandboxSpec{ID: newID(), Seed: newSeed(t)})
			if err != nil {
				t.Errorf("starting: %v", err)
				return
			}
			sandboxes[i] = s
			got, err := tryBash(s, fmt.Sprintf("echo %d", i))
			if err != nil || got != strconv.Itoa(i) {
				t.Errorf("sandbox %d says %q (%v)", i, got, err)
			}
		})
	}
	wg.Wait()
	for _, s := range sandboxes {
		if s == nil {
			continue
		}
		wg.Go(func() {
			if err := s.Stop(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := openFiles(t); got > files {
		t.Errorf("%d files are open, %d were before", got, files)
	}
	if got := children(t, os.Getpid()); got != procs {
		t.Errorf("%d processes below this one, %d before", got, procs)
	}
}

// warmUp starts and stops a sandbox, so that what stays with the runtime is
// there.
func warmUp(t *testing.T, r *gvisor.Runtime) {
	t.Helper()
	if err := start(t, r, space.SandboxSpec{}).Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestSameIDTwice(t *testing.T) {
	r := newRuntime(t)
	id := newID()
	s := start(t, r, space.SandboxSpec{ID: id})
	if _, err := r.Start(t.Context(), space.SandboxSpec{ID: id, Seed: newSeed(t)}); err == nil {
		t.Fatal("the same id started twice")
	}
	if got := bash(t, s, "echo alive"); got != "alive" {
		t.Errorf("the first one says %q", got)
	}
}

func TestCanceledStartLeavesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	r := newRuntime(t, func(o *gvisor.Options) { o.RunDir = dir })
	warmUp(t, r)
	procs := children(t, os.Getpid())
	for _, after := range []time.Duration{0, time.Millisecond, 10 * time.Millisecond, 30 * time.Millisecond, 60 * time.Millisecond} {
		ctx, cancel := context.WithTimeout(t.Context(), after)
		s, err := r.Start(ctx, space.SandboxSpec{ID: newID(), Seed: newSeed(t)})
		cancel()
		if err == nil { // it was quicker
			if err := s.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
		} else if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("canceled after %v: %v", after, err)
		}
		if got := children(t, os.Getpid()); got != procs {
			t.Errorf("canceled after %v: %d processes, %d before", after, got, procs)
		}
		if got := ls(t, filepath.Join(dir, "bundles")); len(got) != 0 {
			t.Errorf("canceled after %v: bundles %q are left", after, got)
		}
	}
}

func TestStartFailsCleanly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	r := newRuntime(t, func(o *gvisor.Options) { o.RunDir = dir; o.Args = []string{"/no/such/program"} })
	_, err := r.Start(t.Context(), space.SandboxSpec{ID: newID(), Seed: newSeed(t)})
	if fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("got %v, want a fault.Unavailable", err)
	}
	if got := ls(t, filepath.Join(dir, "bundles")); len(got) != 0 {
		t.Errorf("bundles are left: %q", got)
	}
	if got := ls(t, filepath.Join(dir, "state")); len(got) > 1 { // the pinned network namespace stays
		t.Errorf("state is left: %q", got)
	}
}

func TestCloseStopsEverything(t *testing.T) {
	procs := children(t, os.Getpid())
	r := newRuntime(t)
	a, b := start(t, r, space.SandboxSpec{}), start(t, r, space.SandboxSpec{})
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	ended(t, a)
	ended(t, b)
	if got := children(t, os.Getpid()); got != procs {
		t.Errorf("%d processes are left, %d before", got, procs)
	}
	if _, err := r.Start(t.Context(), space.SandboxSpec{ID: newID(), Seed: newSeed(t)}); err == nil {
		t.Error("a closed runtime starts sandboxes")
	}
}

func TestRunDirIsOneRuntimes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	r := newRuntime(t, func(o *gvisor.Options) { o.RunDir = dir })
	s := start(t, r, space.SandboxSpec{})
	other := newRuntime(t, func(o *gvisor.Options) { o.RunDir = dir; o.StopTimeout = time.Millisecond })
	if _, err := other.Reap(t.Context()); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("a second server reaps the first one's sandboxes: %v", err)
	}
	if got := bash(t, s, "echo alive"); got != "alive" {
		t.Errorf("the sandbox says %q", got)
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

func TestKilledServer(t *testing.T) {
	needStatic(t)
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "checkout"), 0o777); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serverRunDir+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "started\n" {
		cmd.Process.Kill()
		t.Fatalf("the server says %q", line)
	}
	run := filepath.Join(dir, "run")
	pids := sandboxProcesses(t, run)
	if len(pids) != 2 {
		t.Errorf("a sandbox has processes %v, want a sentry and a gofer", pids)
	}
	cmd.Process.Kill()

	// The next server waits for the rest of the first to end.
	r := newRuntime(t, func(o *gvisor.Options) { o.RunDir = run })
	if _, err := r.Reap(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := sandboxProcesses(t, run); len(left) != 0 {
		t.Errorf("processes of the killed server are left: %v", left)
	}
	for _, d := range []string{"bundles", "state"} {
		if got := ls(t, filepath.Join(run, d)); len(got) != 0 {
			t.Errorf("%s of the killed server are left: %q", d, got)
		}
	}
	s := start(t, r, space.SandboxSpec{})
	if got := bash(t, s, "echo next"); got != "next" {
		t.Errorf("the next server's sandbox says %q", got)
	}
}

func TestReapEndsWhatIsLeft(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	id := string(newID())
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
