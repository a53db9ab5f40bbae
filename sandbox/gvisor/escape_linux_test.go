package gvisor_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"satchel/internal/testenv"
)

// escapeChecks try what no sandbox may let through, with all the rights
// that the agent has.
var escapeChecks = []runtimeCheck{
	{name: "attack: the host's files", run: func(e *runtimeExercise) {
		spec := e.spec()
		beside := filepath.Join(filepath.Dir(spec.Checkout.Dir), "another-users-file")
		writeFile(e, beside, "secret")
		for dir, to := range map[string]string{spec.Checkout.Dir: beside, spec.Checkout.Library: "../another-users-file"} {
			if err := os.Symlink(to, filepath.Join(dir, "link")); err != nil {
				e.Fatal(err)
			}
		}
		s := e.start(e.runtime(), spec)
		want := []string{".satchel", "bin", "dev", "etc", "home", "lib", "library", "mnt", "opt", "proc", "root", "run", "sbin", "space", "sys", "tmp", "usr", "var"}
		optional := []string{"lib32", "lib64", "libx32"}
		got := slices.DeleteFunc(strings.Fields(e.run(s, "ls -A /")), func(n string) bool { return slices.Contains(optional, n) })
		if !slices.Equal(got, want) {
			e.Errorf("/ holds %q, want %q", got, want)
		}
		for _, c := range []string{
			"cat " + beside, "cat /.satchel/lower/attached/link", "cat /library/link", "cat /library/../another-users-file",
			"cat /etc/shadow", "cat /proc/1/root" + beside, "ls /root/..?*", "cat /.satchel/lower/attached/../../../" + beside,
		} {
			if got := e.run(s, c); strings.Contains(got, "secret") || strings.Contains(got, "root:") || !strings.Contains(got, "[exit status") {
				e.Errorf("%s: %q", c, got)
			}
		}
		if got := e.run(s, "find /var /home /root /mnt /opt /run -type f"); got != "" {
			e.Errorf("files of the host are there: %q", got)
		}
		// To an ordinary user's sandbox the directory belongs to commands, and the
		// agent covers it.
		if got := e.run(s, "user:ls /.satchel"); os.Geteuid() == 0 && !strings.Contains(got, "ermission denied") {
			e.Errorf("a command sees what is the agent's: %q", got)
		}
	}},
	{name: "attack: devices", run: func(e *runtimeExercise) {
		r := e.runtime()
		s := e.start(r, e.spec())
		e.run(s, "mount -t tmpfs none /tmp")
		if got := e.run(s, "!mknod /tmp/disk"); got == "made" {
			if got := e.run(s, "!open /tmp/disk"); !strings.HasPrefix(got, "error:") {
				e.Errorf("a disk of the host: %s", got)
			}
		}
		if os.Getuid() != 0 {
			return // only root can make one on the host
		}
		spec := e.spec()
		// /dev/kmsg, which root can read everywhere.
		if err := unix.Mknod(filepath.Join(spec.Checkout.Library, "kmsg"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 11))); err != nil {
			testenv.SkipOrFail(e, "no device can be made here: "+err.Error())
		}
		s = e.start(r, spec)
		if got := e.run(s, "!open /library/kmsg"); !strings.HasPrefix(got, "error:") {
			e.Errorf("a device of the host: %s", got)
		}
	}},
	{name: "attack: a socket or FIFO of the host's in a mount", run: func(e *runtimeExercise) {
		spec := e.spec()
		for _, d := range []string{spec.Checkout.Dir, spec.Checkout.GitView, spec.Checkout.Library} {
			// Short paths: a socket's may have 108 bytes.
			short, err := os.MkdirTemp("", "s")
			if err != nil {
				e.Fatal(err)
			}
			defer os.RemoveAll(short)
			if err := os.Symlink(d, short+"/d"); err != nil {
				e.Fatal(err)
			}
			l, err := net.Listen("unix", short+"/d/sock")
			if err != nil {
				e.Fatal(err)
			}
			defer l.Close()
			if err := os.Chmod(filepath.Join(d, "sock"), 0o777); err != nil {
				e.Fatal(err)
			}
			if err := unix.Mkfifo(filepath.Join(d, "fifo"), 0o666); err != nil {
				e.Fatal(err)
			}
		}
		s := e.start(e.runtime(), spec)
		for _, d := range []string{"/.satchel/lower/attached", "/.satchel/git/attached", "/library"} {
			if got := e.run(s, "!dial unix "+d+"/sock"); !strings.HasPrefix(got, "error:") {
				e.Errorf("a socket of the host in %s: %s", d, got)
			}
			if got := e.run(s, "!open "+d+"/fifo"); !strings.HasPrefix(got, "error:") {
				e.Errorf("a FIFO of the host in %s: %s", d, got)
			}
		}
	}},
	{name: "attack: the network", run: func(e *runtimeExercise) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			e.Fatal(err)
		}
		defer l.Close()
		s := e.start(e.runtime(), e.spec())
		for _, to := range []string{
			"tcp 169.254.169.254:80", "tcp " + l.Addr().String(), "tcp [::1]:" + fmt.Sprint(l.Addr().(*net.TCPAddr).Port),
			"tcp 10.0.0.1:22", "udp 8.8.8.8:53", "tcp [2001:4860:4860::8888]:53",
		} {
			if got := e.run(s, "!dial "+to); !strings.HasPrefix(got, "error:") {
				e.Errorf("%s: %s", to, got)
			}
		}
		if got := e.run(s, "!interfaces"); got != "lo" && got != "" {
			e.Errorf("there are interfaces %q", got)
		}
		if got := e.run(s, "cat /etc/resolv.conf"); !strings.Contains(got, "[exit status") {
			e.Errorf("there is a resolver: %q", got)
		}
	}},
	{name: "attack: a setuid program", run: func(e *runtimeExercise) {
		// A program that keeps its rights where it is given some.
		src, err := exec.LookPath("id")
		if err != nil {
			e.Fatal(err)
		}
		b, err := os.ReadFile(src)
		if err != nil {
			e.Fatal(err)
		}
		spec := e.spec()
		for _, d := range []string{spec.Checkout.Dir, spec.Checkout.Library} {
			p := filepath.Join(d, "id")
			if err := os.WriteFile(p, b, 0o755); err != nil {
				e.Fatal(err)
			}
			if err := os.Chmod(p, 0o755|os.ModeSetuid|os.ModeSetgid); err != nil {
				e.Fatal(err)
			}
		}
		s := e.start(e.runtime(), spec)
		for _, c := range []string{
			"user:/library/id -u", "user:cp /library/id /tmp/x && chmod 6755 /tmp/x && /tmp/x -u",
			"cp /library/id /dev/shm/x && chmod 6755 /dev/shm/x",
		} {
			if got := e.run(s, c); got == "0" || strings.HasPrefix(got, "0\n") {
				e.Errorf("%s: root", c)
			}
		}
		if got := e.run(s, "user:/dev/shm/x -u"); got == "0" {
			e.Error("a setuid program of root's gave root to a command")
		}
		if got := e.run(s, "grep NoNewPrivs /proc/1/status"); !strings.HasSuffix(got, "1") {
			e.Errorf("process 1 can gain rights: %q", got)
		}
	}},
	{name: "attack: writing to the host", run: func(e *runtimeExercise) {
		spec := e.spec()
		seed := spec.Checkout
		s := e.start(e.runtime(), spec)
		for _, d := range []struct{ inside, host string }{
			{"/usr", "/usr"}, {"/.satchel/lower/attached", seed.Dir}, {"/.satchel/git/attached", seed.GitView}, {"/library", seed.Library}, {"/etc", "/etc"}, {"/", ""},
		} {
			const name = "/satchel-was-here"
			defer os.Remove(d.host + name)
			e.run(s, "!remount "+d.inside)
			for _, c := range []string{"touch " + d.inside + name, "mkdir " + d.inside + name, "ln -s x " + d.inside + name} {
				if got := e.run(s, c); !strings.Contains(got, "[exit status") {
					e.Errorf("%s: %q", c, got)
				}
			}
			if _, err := os.Lstat(d.host + name); err == nil {
				e.Errorf("%s was made on the host", d.host+name)
			}
		}
		for _, f := range []struct{ inside, host string }{
			{"/.satchel/lower/attached/note.md", seed.Dir + "/note.md"}, {"/.satchel/git/attached/HEAD", seed.GitView + "/HEAD"}, {"/library/page.md", seed.Library + "/page.md"},
		} {
			before, err := os.ReadFile(f.host)
			if err != nil {
				e.Fatal(err)
			}
			for _, c := range []string{"echo x > " + f.inside, "rm -f " + f.inside, "chmod 4777 " + f.inside, "mv " + f.inside + " /tmp/"} {
				e.run(s, c)
			}
			after, err := os.ReadFile(f.host)
			if err != nil || string(after) != string(before) {
				e.Errorf("%s was changed to %q (%v)", f.host, after, err)
			}
		}
	}},
}
