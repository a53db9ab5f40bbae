package attacks_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"satchel/internal/testenv"
)

// python is what scripts of probes begin with: call returns the name of the
// error of a system call, "" where it had its way.
const python = `python3 - <<'EOF'
import ctypes, errno, os, signal, socket, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(nr, *args):
    ctypes.set_errno(0)
    r = libc.syscall(nr, *args)
    return "" if r >= 0 else errno.errorcode.get(ctypes.get_errno(), "?")
def harm(*what): print("harm:", *what, flush=True)
`

const pythonEnd = "\nEOF\n"

// probe is an attack that prints "harm" where it has its way. Its control runs
// it against the weak agent: as a command's user, who then has neither filter
// nor walls of the agent's, or as the agent's own.
type probe struct {
	name   string
	script string
	weakAs int // the uid of the control
	// why there is no control, where there is none
	noControl string
}

const (
	oneUID   = 0
	noFilter = 1000
)

// run plays the probes in one sandbox, and their controls in one without
// defences.
func runProbes(t *testing.T, a *tenant, probes []probe, readOnly bool) {
	t.Helper()
	for _, p := range probes {
		var out string
		if readOnly {
			r := a.readonly(p.script)
			out = r.Stdout.Text + r.Stderr.Text
		} else {
			r := a.sh(p.script)
			out = r.Stdout.Text + r.Stderr.Text
		}
		if harmed(out) || strings.Contains(out, "SyntaxError") {
			t.Errorf("%s: %s", p.name, out)
		}
	}
	seenWithoutDefence(t, func(t *testing.T) {
		w := newWeakling(t)
		for _, p := range probes {
			if p.noControl != "" {
				continue
			}
			if out := w.sh(p.weakAs, p.script); !harmed(out) {
				t.Errorf("%s: the test would not see the harm: %s", p.name, out)
			}
		}
	})
}

// TestAttackRegainedPower: without a filter, an unprivileged command gets every
// capability in a user namespace of its own, and with them memory and mounts
// past every limit. Every way there is shut: by the tools and by the bare calls.
func TestAttackRegainedPower(t *testing.T) {
	t.Parallel()
	a := newWorld(t).tenant(nil)
	before := a.out("cat /proc/self/mountinfo")
	runProbes(t, a, []probe{
		{name: "a tmpfs past every size", weakAs: noFilter, script: `unshare -Urm bash -c 'mount -t tmpfs -o size=1g none /tmp && head -c 100M /dev/zero > /tmp/big && echo harm' 2>&1`},
		{name: "unshare", weakAs: noFilter, script: python + `
for flag in (0x10000000, 0x10020000, 0x10000000|0x40000000):
    if os.fork() == 0:
        if call(272, flag) != "EPERM": harm("unshare", hex(flag))
        os._exit(0)
    os.wait()` + pythonEnd},
		{name: "clone with a namespace", weakAs: noFilter, script: python + `
r = libc.syscall(56, 0x10000000|17, 0, 0, 0, 0)
if r == 0: os._exit(0)
if r > 0: harm("clone")` + pythonEnd},
		{name: "clone3", weakAs: noFilter, script: python + `
if call(435, 0, 0) != "ENOSYS": harm("clone3 is looked at")` + pythonEnd},
		{name: "setns", weakAs: noFilter, script: python + `
fd = os.open("/proc/self/ns/user", os.O_RDONLY)
if call(308, fd, 0) != "EPERM": harm("setns is looked at")` + pythonEnd},
		{name: "mount, once there were a namespace", weakAs: noFilter, script: `unshare -Urm bash -c 'mkdir -p /tmp/m && mount --bind /usr /tmp/m && echo harm; umount /tmp/m; mount -o remount,rw / && echo harm; mount -t proc none /tmp/m && echo harm' 2>&1`},
		{name: "the new mount calls", noControl: "gVisor does not have them; the filter is for runtimes that do", script: python + `
for nr in (428, 429, 430, 431, 432, 433, 442, 467):
    if call(nr, -1, 0, 0, 0, 0) != "EPERM": harm(nr)` + pythonEnd},
		{name: "pivot_root and chroot", weakAs: noFilter, script: `unshare -Urm chroot / /bin/echo harm 2>&1; mkdir -p /tmp/r; chroot /tmp/r /bin/true && echo harm`},
		{name: "calls of another architecture", noControl: "gVisor knows none; the filter is for runtimes that do", script: python + `
pid = os.fork()
if pid == 0:
    call(0x40000000 | 39); os._exit(0)
if os.waitstatus_to_exitcode(os.wait()[1]) != -signal.SIGSYS: harm("x32")` + pythonEnd},
		{name: "ptrace of one's own", weakAs: noFilter, script: python + `
pid = os.fork()
if pid == 0:
    signal.pause(); os._exit(0)
if call(101, 16, pid, 0, 0) != "EPERM": harm("attached")
os.kill(pid, 9)` + pythonEnd},
	}, false)
	if after := a.out("cat /proc/self/mountinfo"); after != before {
		t.Errorf("the mounts are others:\n%s\n%s", before, after)
	}
	a.alive()
}

// TestAttackProcessOne: the agent speaks for the sandbox, so an attacker who can kill,
// trace, read or write it controls the sandbox. Commands run as other users to prevent
// this.
func TestAttackProcessOne(t *testing.T) {
	t.Parallel()
	a := newWorld(t).tenant(nil)
	runProbes(t, a, []probe{
		{name: "its protocol", weakAs: oneUID, script: `for n in 0 1 2; do [ -w /proc/1/fd/$n ] && echo harm; done`},
		{name: "its memory", weakAs: oneUID, script: python + `
try:
    with open("/proc/1/mem", "r+b") as f: harm("mem is open")
except OSError: pass` + pythonEnd},
		{name: "ptrace", weakAs: oneUID, script: python + `
pid = os.fork()
if pid == 0:
    if call(101, 0x4206, 1, 0, 0) in ("", "EBUSY"): harm("attached")
    os._exit(0)
os.waitpid(pid, 0)
buf = ctypes.create_string_buffer(8)
iov = struct.pack("QQ", ctypes.addressof(buf), 8)
line = [l for l in open("/proc/1/maps") if "r-x" in l or "r--" in l][0]
remote = struct.pack("QQ", int(line.split("-")[0], 16), 8)
if call(310, 1, iov, 1, remote, 1, 0) == "": harm("its memory was read")` + pythonEnd},
		{name: "its environment and descriptors", weakAs: oneUID, script: `cat /proc/1/environ >/dev/null && echo harm; ls /proc/1/fd >/dev/null && echo harm; readlink /proc/1/exe && echo harm; ls /proc/1/root/ && echo harm`},
		{name: "its limits", weakAs: oneUID, script: `prlimit --pid 1 --core=0 && echo harm`},
		{name: "its descriptors by pidfd", weakAs: oneUID, script: python + `
fd = libc.syscall(434, 1, 0)
if fd >= 0 and libc.syscall(438, fd, 0, 0) >= 0: harm("taken")
# gVisor has no pidfd_getfd; that it may be opened at all is the control's.
if os.getuid() == 0: harm("control")` + pythonEnd},
		{name: "its program", weakAs: oneUID, script: `[ -r /.satchel/agent ] && echo harm; [ -x /.satchel ] && ls /.satchel/upper 2>/dev/null && echo harm`},
	}, false)
	for _, signal := range []string{"KILL", "STOP", "TERM", "SEGV", "HUP", "34"} {
		if r := a.sh("kill -" + signal + " 1 && echo harm; for t in /proc/1/task/*; do kill -" + signal + " ${t##*/} && echo harm; done"); harmed(r.Stdout.Text) {
			t.Errorf("SIG%s: %s", signal, r.Stdout.Text)
		}
	}
	a.sh("kill -9 -1")
	a.alive()
	if g := a.sh("true").Generation; g != 1 {
		t.Errorf("the sandbox was replaced: generation %d", g)
	}
	seenWithoutDefence(t, func(t *testing.T) {
		w := newWeakling(t)
		// One user for both: a command's bytes are the agent's answer, and it can
		// end the agent.
		if _, err := w.ask(weakRequest{Script: "printf '\\0\\0\\0\\4harm' > /proc/1/fd/1"}); err != nil {
			t.Fatal(err)
		}
		if out := w.sh(0, "true"); harmed(out) {
			t.Log("the answer before was the command's")
		}
		w.ask(weakRequest{Script: "kill -9 1"})
		testenv.Receive(t, "the agent's end", w.sandbox.Done())
	})
}

// TestAttackWaitingShell: the shell that waits for the next command runs as the
// same user as the command before it, which must not write its text, forge its
// output, or take its rights.
func TestAttackWaitingShell(t *testing.T) {
	t.Parallel()
	a := newWorld(t).tenant(nil)
	attack := `for p in /proc/[0-9]*; do
		n=${p#/proc/}; [ $n = 1 ] || [ $n = $$ ] || [ ! -e $p/fd/3 ] && continue
		{ printf '%0400d\necho harm\n' 0 > $p/fd/3; } 2>/dev/null
		{ echo harm > $p/fd/1; } 2>/dev/null; { echo harm > $p/fd/2; } 2>/dev/null; { echo > $p/fd/4; } 2>/dev/null
		printf 'echo harm\n' > $p/mem
		prlimit --pid $n --fsize=0 --nproc=0 --nofile=5 --as=1000
		renice 19 $n; taskset -p 1 $n
		kill -STOP $n
	done >/dev/null 2>&1; true`
	for _, run := range []func(string) string{
		func(s string) string { r := a.sh(s); return r.Stdout.Text + r.Stderr.Text },
		func(s string) string { r := a.readonly(s); return r.Stdout.Text + r.Stderr.Text },
	} {
		for range 3 {
			run(attack)
			if got := run("echo fine; echo more > /tmp/file && cat /tmp/file; ls /usr >/dev/null"); got != "fine\nmore\n" {
				t.Errorf("the next command: %q", got)
			}
		}
	}
	if a.sh("for p in /proc/[0-9]*; do kill -9 ${p#/proc/}; done 2>/dev/null"); a.out("echo fine") != "fine\n" {
		t.Error("the waiting shell was killed, and no other came")
	}
	a.alive()
	seenWithoutDefence(t, func(t *testing.T) {
		w := newWeakling(t)
		// A shell as it would wait: its text in a file that all may write.
		w.sh(1000, `: > text; (exec 3< text; touch ready; until [ -e go ]; do sleep 0.01; done; . /dev/fd/3) > out 2>&1 & until [ -e ready ]; do :; done`)
		w.sh(1000, strings.ReplaceAll(attack, "kill -STOP $n", ""))
		w.sh(1000, `touch go`)
		if out := w.sh(1000, `until grep -q . out; do sleep 0.01; done; cat out`); !harmed(out) {
			t.Errorf("the attack does not reach a shell that is open: %q", out)
		}
	})
}

// TestAttackPlantedLinks: wherever the agent writes on its own or on the host's
// behalf (kept output, jobs, newer files, its own directories), a command may
// have planted a link to where it wants the agent's hand.
func TestAttackPlantedLinks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.tenant(map[string]string{"dir/file": "old\n", "plain": "old\n", "gone/file": "old\n"})
	// The agent's directories are closed to commands.
	r := a.sh(`for d in /run/satchel /run/satchel/jobs /run/satchel/output; do
		ln -s /space/plain $d/1 && echo harm; mkdir $d/2 && echo harm; mv $d /tmp/x && echo harm; rmdir $d && echo harm; : > $d/3 && echo harm
	done 2>/dev/null; chmod 777 /run/satchel 2>/dev/null && echo harm; mknod /run/satchel/x p 2>/dev/null && echo harm`)
	if harmed(r.Stdout.Text) {
		t.Errorf("a command can write where the agent does: %s", r.Stdout.Text)
	}
	// What is kept of a flood is the agent's file.
	r = a.sh("yes | head -c 1M; true")
	if r.Stdout.Saved == "" {
		t.Fatalf("nothing is kept: %+v", r.Stdout.Cut)
	}
	if out := a.sh("echo harm > '" + r.Stdout.Saved + "'; rm -f '" + r.Stdout.Saved + "'; stat -c '%u %a %F' '" + r.Stdout.Saved + "' | grep -vE '^0 6[04][04] regular file$' | sed s/^/harm:/"); harmed(out.Stdout.Text) {
		t.Errorf("the kept output can be changed: %s", out.Stdout.Text)
	}
	// A newer head, where links wait at every level: to the agent's own, out of
	// the space, to a FIFO that would make it wait.
	a.sh(`rm -r dir gone; ln -s /run/satchel dir; ln -s /tmp gone; rm plain; mkfifo plain; touch /tmp/file; for i in $(seq 0 20); do ln -s /tmp/file .satchel-apply-$i; done`)
	edit(t, a, map[string]string{"dir/file": "new\n", "gone/file": "new\n", "plain": "new\n", "fresh": "new\n"})
	r = a.sh("cat fresh; ls -l /run/satchel /tmp/file; [ -s /tmp/file ] && echo harm; [ -e /run/satchel/file ] && echo harm; true")
	if harmed(r.Stdout.Text) || !strings.HasPrefix(r.Stdout.Text, "new\n") {
		t.Errorf("the agent followed a link: %s%s", r.Stdout.Text, r.Stderr.Text)
	}
	a.alive()
	seenWithoutDefence(t, func(t *testing.T) {
		w := newWeakling(t)
		w.sh(0, "touch /tmp/roots && chmod 600 /tmp/roots")
		w.sh(1000, "ln -s /tmp/roots /run/satchel/1")
		if _, err := w.ask(weakRequest{WriteTo: "/run/satchel/1"}); err != nil {
			t.Fatal(err)
		}
		if out := w.sh(0, "cat /tmp/roots"); !harmed(out) {
			t.Errorf("the test would not see it: %q", out)
		}
	})
}

// TestAttackHostInformation: a sandbox does not reveal the server's environment, command
// line, paths, mounts and processes.
func TestAttackHostInformation(t *testing.T) {
	const canary = "canary-8c1f0e"
	t.Setenv("SATCHEL_CANARY", canary) // so not in parallel
	w := newWorld(t)
	a := w.tenant(nil)
	look := `tr '\0' '\n' < /proc/self/environ; cat /proc/*/environ /proc/cmdline /proc/*/cmdline /proc/*/mountinfo /proc/mounts /proc/version /proc/cpuinfo /proc/sys/kernel/hostname /proc/gvisor/spec_environ /etc/passwd /etc/hosts /etc/hostname /etc/resolv.conf; ps aux; env; dmesg; df; ls -R /dev /sys /run /etc /opt /home /root /mnt /var 2>/dev/null`
	r := a.sh("{ " + look + "; } 2>/dev/null > all; head -c 9M all | base64 -w0 | tail -c 10; cp all seen; true")
	if r.NotSaved != nil {
		t.Fatal(r.NotSaved)
	}
	seen := a.git("show", "HEAD:seen")
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{canary, w.dir, strong.dir, host + "\n", "SATCHEL_", filepath.Base(os.Args[0])} {
		if strings.Contains(seen, secret) {
			t.Errorf("%q is told inside", secret)
		}
	}
	if !strings.Contains(seen, "/.satchel/agent") || len(seen) < 1000 {
		t.Errorf("too little was looked at: %d bytes", len(seen))
	}
	// Sizes are the sandbox's own where it may write.
	if out := a.out(`df --output=size -k /space /tmp /dev/shm | tail -n +2 | tr -d ' ' | tr '\n' ' '`); out != "262144 65536 65536 " {
		t.Errorf("sizes: %s", out)
	}
	seenWithoutDefence(t, func(t *testing.T) {
		// The same look where the environment is the server's.
		out := hostSh(t, "env; cat /proc/sys/kernel/hostname", "SATCHEL_CANARY="+canary)
		if !strings.Contains(out, canary) || !strings.Contains(out, host) {
			t.Errorf("the look does not see what it looks for: %s", out)
		}
	})
}

// TestAttackSetuidPrograms: neither a setuid program of the command's own making
// nor file capabilities nor those of the lent /usr give a command rights.
func TestAttackSetuidPrograms(t *testing.T) {
	t.Parallel()
	a := newWorld(t).tenant(nil)
	r := a.sh(`cp /usr/bin/id ./id; chmod 6755 id /tmp 2>/dev/null; [ "$(./id -u)" = 0 ] && echo harm
		cp /usr/bin/id /tmp/id; chmod 6755 /tmp/id; [ "$(/tmp/id -u)" = 0 ] && echo harm
		setcap cap_setuid+ep /tmp/id 2>/dev/null && echo harm; setfattr -n security.capability -v 0x0100000200200000000000000000000000000000 /tmp/id 2>/dev/null && echo harm
		chown 0 /tmp/id 2>/dev/null && echo harm; mknod d b 8 0 2>/dev/null && echo harm
		grep -qE '^Cap(Prm|Eff|Bnd|Amb|Inh):.*[1-9a-f]' /proc/self/status && echo harm
		grep -q '^NoNewPrivs:.1' /proc/self/status || echo harm
		for p in $(find /usr/bin /usr/sbin -xdev -perm /6000 -type f 2>/dev/null); do
			case $p in *su|*sudo|*pkexec|*mount|*newgrp|*passwd) timeout 2 $p -c 'id -u' </dev/null 2>/dev/null | grep -qx 0 && echo harm $p;; esac
		done; true`)
	if harmed(r.Stdout.Text) {
		t.Errorf("%s", r.Stdout.Text)
	}
	// The bits do not reach the host: git has none, and the data directory is
	// looked through when the world ends.
	if got := a.git("ls-tree", "HEAD", "id"); !strings.HasPrefix(got, "100755 ") {
		t.Errorf("%q", got)
	}
	seenWithoutDefence(t, func(t *testing.T) {
		dir := t.TempDir()
		f := filepath.Join(dir, "id")
		if err := os.WriteFile(f, nil, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(f, 0o755|os.ModeSetuid); err != nil {
			t.Fatal(err)
		}
		if len(harmfulFiles(t, dir)) != 1 {
			t.Error("the look through the data directory does not see a setuid file")
		}
	})
}
