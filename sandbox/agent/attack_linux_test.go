package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"satchel/sandbox/protocol"
)

// Each attack is a command that prints "harm" where it succeeds. Afterwards
// the agent still answers. These are the attacks on what the agent mounts and
// starts; sandbox/attacks has those on the whole sandbox.
func TestAttacks(t *testing.T) {
	t.Parallel()
	s := startSandbox(t, sandboxOption{seed: testSeed})
	before := s.sh("mount | sort")
	for _, c := range []struct{ name, command string }{
		{"unmount", "umount /space && echo harm; umount -l /space/.git && echo harm; umount -l /tmp && echo harm"},
		{"remount the git view", "mount -o remount,rw /space/.git && echo harm; touch /space/.git/x && echo harm"},
		{"see the upper layer", "ls /.satchel/upper && echo harm; ls /.satchel/upper/u && echo harm; cat /.satchel/upper/u/x && echo harm"},
		{"see the checkout past the overlay", "ls /.satchel/lower && echo harm; cat /.satchel/lower/a.txt && echo harm"},
		{"write to the checkout", "echo x > /.satchel/lower/a.txt && echo harm"},
		{"write to the git view's source", "touch /.satchel/git/x && echo harm"},
		{"change the agent's program", "echo x >> /.satchel/agent && echo harm; rm -f /.satchel/agent && echo harm"},
		{"become root", "python3 -c 'import os; os.setuid(0)' && echo harm; su -c true </dev/null && echo harm; setpriv --reuid 0 true && echo harm"},
		{"hide files of the checkout", "setfattr -n trusted.overlay.opaque -v y . && echo harm"},
		{"shed the mark", "python3 -c 'import os; os.setgroups([])' && echo harm; newgrp root </dev/null && echo harm; setpriv --clear-groups true && echo harm"},
		{"raise limits", "ulimit -n 100000 && echo harm; ulimit -u unlimited && echo harm"},
		{"write anywhere else", "for d in $(find / -xdev -type d -writable 2>/dev/null; find /dev /sys /run -type d -writable 2>/dev/null); do case $d in /tmp*|/space*|/dev/shm) ;; *) echo harm in $d;; esac; done"},
		{"shared memory past its size", "head -c 40M /dev/zero > /dev/shm/x && echo harm; rm -f /dev/shm/x"},
		{"sysctl", "echo 0 > /proc/sys/kernel/randomize_va_space && echo harm; echo x > /proc/sysrq-trigger && echo harm; echo 1 > /proc/sys/vm/drop_caches && echo harm"},
	} {
		r := s.exec(protocol.ExecRequest{Command: c.command})
		if strings.Contains(text(r.Stdout), "harm") || r.End != protocol.Exited {
			t.Errorf("%s: %s\n%s", c.name, text(r.Stdout), text(r.Stderr))
		}
	}
	if after := s.sh("mount | sort"); after != before {
		t.Errorf("mounts changed:\n%s\n%s", before, after)
	}
	if got, err := os.ReadFile(filepath.Join(s.lower, "a.txt")); err != nil || string(got) != "a" {
		t.Errorf("the host's checkout: %q %v", got, err)
	}
	if names, err := os.ReadDir(s.git); err != nil || len(names) != 1 {
		t.Errorf("the host's git view: %v %v", names, err)
	}
}

// A command holds a pipe of a command that has ended.
func TestPassedOutputDoesNotHangTheAnswer(t *testing.T) {
	t.Parallel()
	s := startSandbox(t, sandboxOption{})
	keeper := s.exec(protocol.ExecRequest{Background: true, Command: `exec python3 -c '
import socket,array,time,os
l=socket.socket(socket.AF_UNIX); l.bind("/tmp/keep"); l.listen()
c,_=l.accept(); m,a,_,_=c.recvmsg(1,socket.CMSG_SPACE(4)); open("/tmp/got","w"); time.sleep(1000)'`})
	start := time.Now()
	r := s.exec(protocol.ExecRequest{Command: `until [ -S /tmp/keep ]; do sleep 0.02; done; echo out; python3 -c '
import socket,array
s=socket.socket(socket.AF_UNIX); s.connect("/tmp/keep"); s.sendmsg([b"x"],[(socket.SOL_SOCKET,socket.SCM_RIGHTS,array.array("i",[1]))])'; until [ -e /tmp/got ]; do sleep 0.02; done`})
	if r.End != protocol.Exited || r.ExitCode != 0 || text(r.Stdout) != "out\n" {
		t.Errorf("%+v", r)
	}
	t.Logf("answered after %v", time.Since(start))
	must(t, s.Kill(t.Context(), keeper.JobID, "KILL"))
}

// A commit that the host makes while the sandbox runs is seen inside at once.
func TestGitViewIsCoherent(t *testing.T) {
	t.Parallel()
	s := startSandbox(t, sandboxOption{})
	s.sh("cat .git/HEAD; ls .git; ! cat .git/new 2>/dev/null")
	must(t, os.WriteFile(filepath.Join(s.git, "new"), []byte("1"), 0o644))
	must(t, os.WriteFile(filepath.Join(s.git, "HEAD.lock"), []byte("moved\n"), 0o644))
	must(t, os.Rename(filepath.Join(s.git, "HEAD.lock"), filepath.Join(s.git, "HEAD")))
	if got := s.sh("cat .git/HEAD .git/new"); got != "moved\n1" {
		t.Errorf("%q", got)
	}
	if r := s.exec(protocol.ExecRequest{Command: "cat .git/HEAD", ReadOnly: true}); text(r.Stdout) != "moved\n" {
		t.Errorf("%q", text(r.Stdout))
	}
}

func TestWithoutGitView(t *testing.T) {
	t.Parallel()
	s := startSandbox(t, sandboxOption{noGit: true})
	s.sh("mkdir .git; echo x > .git/config")
	if got := brief(s.collect()); got != "\".git\" opaque dir\n\".git/config\"=x\n\n" {
		t.Errorf("%s", got)
	}
}
