package gvisor_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/internal/testenv"
	"satchel/sandbox/gvisor"
)

// gVisor's own tools find a container by the beginning of its id: with user10
// alone alive, a command for user1 ran in user10's sandbox.
func TestAttackPrefixID(t *testing.T) {
	r := newRuntime(t)
	for _, id := range []space.SandboxID{
		"user1", "user10", "", "../" + newID()[3:], newID() + "0", newID()[1:],
		space.SandboxID(strings.Repeat("A", 64)), newID()[:63] + "/", newID()[:63] + "\n",
	} {
		if _, err := r.Start(t.Context(), space.SandboxSpec{ID: id, Seed: newSeed(t)}); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("id %q: got %v, want a fault.Invalid", id, err)
		}
	}
	long := strings.Repeat("a", 63)
	one := start(t, r, space.SandboxSpec{ID: space.SandboxID(long + "1")})
	two := start(t, r, space.SandboxSpec{ID: space.SandboxID(long + "2")})
	bash(t, one, "mount -t tmpfs none /tmp && echo one > /tmp/who")
	if got := bash(t, two, "cat /tmp/who 2>&1"); strings.Contains(got, "one\n") || got == "one" {
		t.Errorf("the second sees the first one's file: %q", got)
	}
	if err := one.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := bash(t, two, "echo alive"); got != "alive" {
		t.Errorf("stopping the first changed the second: %q", got)
	}
}

func TestAttackHostEnvironment(t *testing.T) {
	const secret = "canary-5e0c1f"
	t.Setenv("SATCHEL_CANARY", secret)
	dir := filepath.Join(t.TempDir(), "run")
	s := start(t, newRuntime(t, func(o *gvisor.Options) { o.RunDir = dir }), space.SandboxSpec{})
	if got := bash(t, s, "tr '\\0' '\\n' < /proc/1/environ | grep -v ^HOME="); got != "[exit status 1]" {
		t.Errorf("process 1 has an environment: %q", got)
	}
	for _, c := range []string{"cat /proc/cmdline", "cat /proc/1/mountinfo", "cat /proc/*/environ", "dmesg"} {
		if got := bash(t, s, c); strings.Contains(got, secret) || strings.Contains(got, dir) {
			t.Errorf("%s tells of the host: %q", c, got)
		}
	}
	// Nor may what a break-out of gVisor would land in have it.
	pids := sandboxProcesses(t, dir)
	pids["the child"] = findChild(t)
	for name, pid := range pids {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err != nil && os.Getuid() == 0 {
			t.Fatal(err)
		}
		if strings.Contains(string(b), secret) || strings.Contains(string(b), "PATH=") {
			t.Errorf("%s has the server's environment: %q", name, b)
		}
	}
}

// The server's open files (databases, sockets, its terminal) must not be open
// in a sandbox's processes.
func TestAttackHostDescriptors(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	f, err := os.Create(filepath.Join(t.TempDir(), "database"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	// As careless as a library may be.
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETFD, 0); err != nil {
		t.Fatal(err)
	}
	start(t, newRuntime(t, func(o *gvisor.Options) { o.RunDir = dir }), space.SandboxSpec{})
	for name, pid := range sandboxProcesses(t, dir) {
		links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range links {
			if target, _ := os.Readlink(l); target == f.Name() || strings.HasPrefix(target, "/dev/pts") {
				t.Errorf("%s has %s of the server open", name, target)
			}
		}
	}
}

func TestAttackHostFiles(t *testing.T) {
	seed := newSeed(t)
	beside := filepath.Join(filepath.Dir(seed.Checkout), "another-users-file")
	write(t, beside, "secret")
	if err := os.Symlink(beside, filepath.Join(seed.Checkout, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../another-users-file", filepath.Join(seed.Library, "link")); err != nil {
		t.Fatal(err)
	}
	s := start(t, newRuntime(t), space.SandboxSpec{Seed: seed})
	want := []string{".satchel", "bin", "dev", "etc", "home", "lib", "library", "mnt", "opt", "proc", "root", "run", "sbin", "space", "sys", "tmp", "usr", "var"}
	optional := []string{"lib32", "lib64", "libx32"}
	got := slices.DeleteFunc(strings.Fields(bash(t, s, "ls -A /")), func(n string) bool { return slices.Contains(optional, n) })
	if !slices.Equal(got, want) {
		t.Errorf("/ holds %q, want %q", got, want)
	}
	for _, c := range []string{
		"cat " + beside, "cat /.satchel/lower/link", "cat /library/link", "cat /library/../another-users-file",
		"cat /etc/shadow", "cat /proc/1/root" + beside, "ls /root/..?*", "cat /.satchel/lower/../../../" + beside,
	} {
		if got := bash(t, s, c); strings.Contains(got, "secret") || strings.Contains(got, "root:") || !strings.Contains(got, "[exit status") {
			t.Errorf("%s: %q", c, got)
		}
	}
	if got := bash(t, s, "find /var /home /root /mnt /opt /run -type f"); got != "" {
		t.Errorf("files of the host are there: %q", got)
	}
	// To an ordinary user's sandbox the directory belongs to commands, and the
	// agent covers it.
	if got := bash(t, s, "user:ls /.satchel"); os.Geteuid() == 0 && !strings.Contains(got, "ermission denied") {
		t.Errorf("a command sees what is the agent's: %q", got)
	}
}

func TestAttackHostSocketInMount(t *testing.T) {
	seed := newSeed(t)
	for _, d := range []string{seed.Checkout, seed.GitView, seed.Library} {
		// Short paths: a socket's may have 108 bytes.
		short := filepath.Join(shortDir(t), "d")
		if err := os.Symlink(d, short); err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("unix", filepath.Join(short, "sock"))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if err := os.Chmod(filepath.Join(d, "sock"), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mkfifo(filepath.Join(d, "fifo"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	s := start(t, newRuntime(t), space.SandboxSpec{Seed: seed})
	for _, d := range []string{"/.satchel/lower", "/.satchel/git", "/library"} {
		if got := bash(t, s, "!dial unix "+d+"/sock"); !strings.HasPrefix(got, "error:") {
			t.Errorf("a socket of the host in %s: %s", d, got)
		}
		if got := bash(t, s, "!open "+d+"/fifo"); !strings.HasPrefix(got, "error:") {
			t.Errorf("a FIFO of the host in %s: %s", d, got)
		}
	}
}

func shortDir(t *testing.T) string {
	t.Helper()
	d, err := os.MkdirTemp("", "s")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(d) })
	return d
}

func TestAttackDeviceInMount(t *testing.T) {
	s := start(t, newRuntime(t), space.SandboxSpec{})
	bash(t, s, "mount -t tmpfs none /tmp")
	if got := bash(t, s, "!mknod /tmp/disk"); got == "made" {
		if got := bash(t, s, "!open /tmp/disk"); !strings.HasPrefix(got, "error:") {
			t.Errorf("a disk of the host: %s", got)
		}
	}
	if os.Getuid() != 0 {
		return // only root can make one on the host
	}
	seed := newSeed(t)
	// /dev/kmsg, which root can read everywhere.
	if err := unix.Mknod(filepath.Join(seed.Library, "kmsg"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 11))); err != nil {
		testenv.SkipOrFail(t, "no device can be made here: "+err.Error())
	}
	s = start(t, newRuntime(t), space.SandboxSpec{Seed: seed})
	if got := bash(t, s, "!open /library/kmsg"); !strings.HasPrefix(got, "error:") {
		t.Errorf("a device of the host: %s", got)
	}
}

func TestAttackNetwork(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s := start(t, newRuntime(t), space.SandboxSpec{})
	for _, to := range []string{
		"tcp 169.254.169.254:80", "tcp " + l.Addr().String(), "tcp [::1]:" + fmt.Sprint(l.Addr().(*net.TCPAddr).Port),
		"tcp 10.0.0.1:22", "udp 8.8.8.8:53", "tcp [2001:4860:4860::8888]:53",
	} {
		if got := bash(t, s, "!dial "+to); !strings.HasPrefix(got, "error:") {
			t.Errorf("%s: %s", to, got)
		}
	}
	if got := bash(t, s, "!interfaces"); got != "lo" && got != "" {
		t.Errorf("there are interfaces %q", got)
	}
	if got := bash(t, s, "cat /etc/resolv.conf"); !strings.Contains(got, "[exit status") {
		t.Errorf("there is a resolver: %q", got)
	}
}

func TestAttackSetuidProgram(t *testing.T) {
	seed := newSeed(t)
	// A program that keeps its rights where it is given some.
	src, err := exec.LookPath("id")
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(src)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{seed.Checkout, seed.Library} {
		p := filepath.Join(d, "id")
		if err := os.WriteFile(p, b, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(p, 0o755|os.ModeSetuid|os.ModeSetgid); err != nil {
			t.Fatal(err)
		}
	}
	s := start(t, newRuntime(t), space.SandboxSpec{Seed: seed})
	for _, c := range []string{
		"user:/library/id -u", "user:cp /library/id /tmp/x && chmod 6755 /tmp/x && /tmp/x -u",
		"cp /library/id /dev/shm/x && chmod 6755 /dev/shm/x",
	} {
		if got := bash(t, s, c); got == "0" || strings.HasPrefix(got, "0\n") {
			t.Errorf("%s: root", c)
		}
	}
	if got := bash(t, s, "user:/dev/shm/x -u"); got == "0" {
		t.Error("a setuid program of root's gave root to a command")
	}
	if got := bash(t, s, "grep NoNewPrivs /proc/1/status"); !strings.HasSuffix(got, "1") {
		t.Errorf("process 1 can gain rights: %q", got)
	}
}

func TestAttackHostIsNotWritable(t *testing.T) {
	seed := newSeed(t)
	s := start(t, newRuntime(t), space.SandboxSpec{Seed: seed})
	for _, d := range []struct{ inside, host string }{
		{"/usr", "/usr"}, {"/.satchel/lower", seed.Checkout}, {"/.satchel/git", seed.GitView}, {"/library", seed.Library}, {"/etc", "/etc"}, {"/", ""},
	} {
		const name = "/satchel-was-here"
		t.Cleanup(func() { os.Remove(d.host + name) })
		bash(t, s, "!remount "+d.inside) // with all the rights that the agent has
		for _, c := range []string{"touch " + d.inside + name, "mkdir " + d.inside + name, "ln -s x " + d.inside + name} {
			if got := bash(t, s, c); !strings.Contains(got, "[exit status") {
				t.Errorf("%s: %q", c, got)
			}
		}
		if _, err := os.Lstat(d.host + name); err == nil {
			t.Errorf("%s was made on the host", d.host+name)
		}
	}
	for _, f := range []struct{ inside, host string }{{"/.satchel/lower/note.md", seed.Checkout + "/note.md"}, {"/.satchel/git/HEAD", seed.GitView + "/HEAD"}, {"/library/page.md", seed.Library + "/page.md"}} {
		before, err := os.ReadFile(f.host)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []string{"echo x > " + f.inside, "rm -f " + f.inside, "chmod 4777 " + f.inside, "mv " + f.inside + " /tmp/"} {
			bash(t, s, c)
		}
		after, err := os.ReadFile(f.host)
		if err != nil || string(after) != string(before) {
			t.Errorf("%s was changed to %q (%v)", f.host, after, err)
		}
	}
}

func TestAttackKillFromOutside(t *testing.T) {
	for _, name := range []string{"runsc-sandbox", "runsc-gofer"} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "run")
			r := newRuntime(t, func(o *gvisor.Options) { o.RunDir = dir })
			s, bystander := start(t, r, space.SandboxSpec{}), ""
			pid := sandboxProcesses(t, dir)[name]
			other := start(t, r, space.SandboxSpec{})
			kill(t, pid)
			ended(t, s)
			if s.Err() == nil {
				t.Error("it ended without an error")
			}
			if bystander = bash(t, other, "echo alive"); bystander != "alive" {
				t.Errorf("another sandbox says %q", bystander)
			}
			if err := other.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
			if left := sandboxProcesses(t, dir); len(left) != 0 {
				t.Errorf("processes are left: %v", left)
			}
			for _, d := range []string{"bundles"} {
				if got := ls(t, filepath.Join(dir, d)); len(got) != 0 {
					t.Errorf("%s are left: %q", d, got)
				}
			}
		})
	}
}

// What the agent writes to its standard error cannot fill the server's memory
// or block the agent.
func TestAttackStderrFlood(t *testing.T) {
	s := start(t, newRuntime(t), space.SandboxSpec{})
	for range 50 {
		bash(t, s, "!complain "+strings.Repeat("x", 4000))
	}
	if got := bash(t, s, "head -c 4M /dev/zero >/proc/1/fd/2; echo done"); !strings.HasSuffix(got, "done") {
		t.Errorf("got %q", got)
	}
}
