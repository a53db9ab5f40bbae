package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Each attack is a command that prints "harm" where it succeeds. Afterwards
// the agent still answers.
func TestAttacks(t *testing.T) {
	t.Parallel()
	s := startSandbox(t, sandboxOption{seed: testSeed})
	before := s.sh("mount | sort")
	for _, c := range []struct{ name, command string }{
		{"kill the agent", "kill -9 1 && echo harm; kill -STOP 1 && echo harm; for t in /proc/1/task/*; do kill -9 ${t##*/} && echo harm; done"},
		{"write into the protocol", "for fd in 0 1 2; do echo x > /proc/1/fd/$fd && echo harm; done"},
		{"read the protocol", "timeout 1 head -c 1 /proc/1/fd/0 && echo harm; ls /proc/1/fd && echo harm"},
		{"read the agent's memory", "head -c 1 /proc/1/mem && echo harm; timeout 1 dd if=/proc/1/mem of=/dev/null count=1 && echo harm"},
		{"read the agent's environment", "grep -a SECRET /proc/1/environ && echo harm"},
		{"the agent's root and directory", "ls /proc/1/root/ && echo harm; ls /proc/1/cwd/ && echo harm"},
		{"user namespace", "unshare -Urm true && echo harm; unshare -U true && echo harm; unshare -r mount -t tmpfs none /tmp && echo harm"},
		{"other namespaces", "for n in -i -m -n -p -u -C; do unshare $n true && echo harm; done"},
		{"enter a namespace", "nsenter -t 1 -m true && echo harm; nsenter -t $$ -U true && echo harm"},
		{"mount", "mount -t tmpfs none /tmp && echo harm; mount --bind /tmp /space && echo harm"},
		{"unmount", "umount /space && echo harm; umount -l /space/.git && echo harm; umount -l /tmp && echo harm"},
		{"remount the git view", "mount -o remount,rw /space/.git && echo harm; touch /space/.git/x && echo harm"},
		{"chroot", "mkdir -p r; chroot r true && echo harm; chroot . true && echo harm"},
		{"see the upper layer", "ls /.satchel/upper && echo harm; ls /.satchel/upper/u && echo harm; cat /.satchel/upper/u/x && echo harm"},
		{"see the checkout past the overlay", "ls /.satchel/lower && echo harm; cat /.satchel/lower/a.txt && echo harm"},
		{"write to the checkout", "echo x > /.satchel/lower/a.txt && echo harm"},
		{"write to the git view's source", "touch /.satchel/git/x && echo harm"},
		{"change the agent's program", "echo x >> /.satchel/agent && echo harm; rm -f /.satchel/agent && echo harm"},
		{"become root", "python3 -c 'import os; os.setuid(0)' && echo harm; su -c true </dev/null && echo harm; setpriv --reuid 0 true && echo harm"},
		{"a setuid file of one's own", "cp /usr/bin/id i; chmod 6755 i; [ $(./i -u) = 0 ] && echo harm; [ \"$(find / -xdev -perm -4000 2>/dev/null | head -1 | xargs -r -n1 env | head -c0)\" ] && echo harm"},
		{"file capabilities", "cp /usr/bin/true c; setcap cap_sys_admin+ep c && echo harm; setfattr -n trusted.overlay.opaque -v y . && echo harm"},
		{"shed the mark", "python3 -c 'import os; os.setgroups([])' && echo harm; newgrp root </dev/null && echo harm; setpriv --clear-groups true && echo harm"},
		{"make a device", "mknod d c 1 1 && echo harm; mknod w c 0 0 && echo harm"},
		{"write to the agent's directory", "touch /run/satchel/x && echo harm; ln -s /space /run/satchel/jobs/9 && echo harm; mv /run/satchel/jobs /tmp && echo harm"},
		{"raise limits", "ulimit -n 100000 && echo harm; ulimit -u unlimited && echo harm"},
		{"trace the waiting shell", "for p in /proc/[0-9]*; do p=${p#/proc/}; [ -d /proc/$p ] && [ $p != $$ ] && python3 -c \"import ctypes,sys; sys.exit(ctypes.CDLL(None).ptrace(16,$p,0,0)!=0)\" && echo harm; done"},
		{"write a process's memory", "for m in /proc/[0-9]*/mem; do printf x > $m && echo harm; done"},
		{"write anywhere else", "for d in $(find / -xdev -type d -writable 2>/dev/null; find /dev /sys /run -type d -writable 2>/dev/null); do case $d in /tmp*|/space*|/dev/shm) ;; *) echo harm in $d;; esac; done"},
		{"shared memory past its size", "head -c 40M /dev/zero > /dev/shm/x && echo harm; rm -f /dev/shm/x"},
		{"sysctl", "echo 0 > /proc/sys/kernel/randomize_va_space && echo harm; echo x > /proc/sysrq-trigger && echo harm; echo 1 > /proc/sys/vm/drop_caches && echo harm"},
	} {
		r := s.exec(ExecRequest{Command: c.command})
		if strings.Contains(text(r.Stdout), "harm") || r.End != Exited {
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
	keeper := s.exec(ExecRequest{Background: true, Command: `exec python3 -c '
import socket,array,time,os
l=socket.socket(socket.AF_UNIX); l.bind("/tmp/keep"); l.listen()
c,_=l.accept(); m,a,_,_=c.recvmsg(1,socket.CMSG_SPACE(4)); open("/tmp/got","w"); time.sleep(1000)'`})
	start := time.Now()
	r := s.exec(ExecRequest{Command: `until [ -S /tmp/keep ]; do sleep 0.02; done; echo out; python3 -c '
import socket,array
s=socket.socket(socket.AF_UNIX); s.connect("/tmp/keep"); s.sendmsg([b"x"],[(socket.SOL_SOCKET,socket.SCM_RIGHTS,array.array("i",[1]))])'; until [ -e /tmp/got ]; do sleep 0.02; done`})
	if r.End != Exited || r.ExitCode != 0 || text(r.Stdout) != "out\n" {
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
	if r := s.exec(ExecRequest{Command: "cat .git/HEAD", ReadOnly: true}); text(r.Stdout) != "moved\n" {
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
