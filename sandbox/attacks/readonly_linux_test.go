package attacks_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"satchel/sandbox"
	"satchel/sandbox/protocol"
)

// readOnlyProbes are ways for a caller that may only read to write the space.
// They find a file that is there, beside processes of a writer.
var readOnlyProbes = []probe{
	{name: "write, append, truncate", weakAs: noFilter, script: `for c in 'echo harm > victim' 'echo x >> victim' 'truncate -s 0 victim' 'cp /etc/passwd victim' 'sed -i s/a/b/ victim' 'tee victim </dev/null' 'dd if=/dev/zero of=victim count=1'; do bash -c "cd /space; $c" 2>/dev/null && echo harm; done`},
	{name: "make, remove, rename, link", weakAs: noFilter, script: `cd /space; for c in 'touch new' 'mkdir new' 'rm -f victim' 'mv victim moved' 'ln victim hard' 'ln -s x soft' 'mv /tmp/home /space/' 'mkfifo pipe' 'chmod 777 victim' 'touch -d 2000-01-01 victim' 'setfattr -n user.x -v y victim'; do bash -c "$c" 2>/dev/null && echo harm $c; done`},
	{name: "open for writing", weakAs: noFilter, script: python + `
for flags in (os.O_RDWR, os.O_WRONLY, os.O_RDONLY|os.O_TRUNC, os.O_WRONLY|os.O_CREAT, 0o20200000|os.O_RDWR):
    try: os.open("/space" if flags & 0o20000000 else "/space/victim", flags); harm(flags)
    except OSError: pass
try:
    f = os.open("/space/victim", os.O_RDONLY)
    for act in (lambda: os.ftruncate(f, 0), lambda: os.fchmod(f, 0o777), lambda: os.utime(f), lambda: os.open("/proc/self/fd/%d" % f, os.O_RDWR), lambda: os.link("/proc/self/fd/%d" % f, "/space/l")):
        try: act(); harm("through a descriptor")
        except OSError: pass
    import mmap
    try: mmap.mmap(f, 0, mmap.MAP_SHARED, mmap.PROT_READ|mmap.PROT_WRITE); harm("mapped")
    except (OSError, ValueError): pass
except OSError: pass` + pythonEnd},
	{name: "remount and unmount", weakAs: oneUID, script: `mount -o remount,rw /space 2>/dev/null && touch /space/new 2>/dev/null && echo harm; mount -o remount,bind,rw /space 2>/dev/null && touch /space/new 2>/dev/null && echo harm; umount -l /space/.git 2>/dev/null && echo harm; umount -l /space 2>/dev/null && echo harm`},
	{name: "a namespace of one's own", weakAs: noFilter, script: `unshare -Urm bash -c 'mount -o remount,bind,rw /space; mount --bind /space /tmp; umount -l /space; touch /tmp/new /space/new && echo harm' 2>/dev/null`},
	{name: "the other roots", weakAs: noFilter, script: `for r in /proc/self/root /proc/thread-self/root /proc/1/root /proc/self/cwd/.. /proc/[0-9]*/root /proc/[0-9]*/cwd/..; do touch $r/space/new 2>/dev/null && echo harm $r; done`},
	{name: "a writer's descriptors, memory and working directory", weakAs: noFilter, script: `for p in /proc/[0-9]*; do
		[ "$(stat -c %u $p 2>/dev/null)" = 1001 ] && continue
		for f in $p/fd/*; do [ "$(readlink $f 2>/dev/null)" = /space/victim ] && { { echo x > $f; } 2>/dev/null && echo harm $f; }; done
		touch $p/cwd/new 2>/dev/null && echo harm; [ -w $p/mem ] && echo harm; [ -r $p/environ ] && cat $p/environ >/dev/null 2>&1 && echo harm
	done`},
	{name: "a writer's process", weakAs: noFilter, script: `for p in /proc/[0-9]*; do p=${p#/proc/}; [ $p = $$ ] || [ $p = 1 ] || [ ! -d /proc/$p ] && continue
		[ $(stat -c %u /proc/$p) = 1001 ] && continue
		kill -0 $p 2>/dev/null && echo harm; prlimit --pid $p --fsize=0 2>/dev/null && echo harm; kill -STOP $p 2>/dev/null && { kill -CONT $p; echo harm; }; done`},
}

// TestAttackReadOnlyCaller: no way of writing, alone or through a writer's
// process, lets a read-only caller change the space.
func TestAttackReadOnlyCaller(t *testing.T) {
	t.Parallel()
	a := newWorld(t).tenant(map[string]string{"victim": "untouched\n"})
	// A writer with the file open, in the background.
	q := a.request(a.user, a.id, `exec 9<>/space/victim; echo draft > /tmp/draft; echo draft > /dev/shm/draft; touch /space/up; sleep 1000`)
	q.Background = true
	job, err := a.pool.Exec(noContext(), q)
	if err != nil {
		t.Fatal(err)
	}
	a.out("until [ -e up ]; do :; done")
	head := a.git("rev-parse", "HEAD")
	for _, p := range readOnlyProbes {
		if r := a.readonly(p.script); harmed(r.Stdout.Text) || r.End != protocol.Exited {
			t.Errorf("%s: %s%s", p.name, r.Stdout.Text, r.Stderr.Text)
		}
	}
	// Neither may it find or plant anything where the writer works.
	r := a.readonly(`ls /tmp/draft /dev/shm/draft 2>/dev/null && echo harm; ln -s /space/victim /tmp/draft2; ln -s /space/victim /dev/shm/x; ls -A /tmp; id -u; touch /run/satchel/x 2>/dev/null && echo harm; true`)
	if harmed(r.Stdout.Text) || !strings.Contains(r.Stdout.Text, "1001") {
		t.Errorf("its /tmp: %q", r.Stdout.Text)
	}
	if out := a.out(`cat victim /tmp/draft /dev/shm/draft; ls /tmp/draft2 /dev/shm/x 2>/dev/null | wc -l`); out != "untouched\ndraft\ndraft\n0\n" {
		t.Errorf("the writer has %q", out)
	}
	if after := a.git("rev-parse", "HEAD"); after != head {
		t.Errorf("a read-only caller made a commit: %s", a.git("log", "--stat", "-1"))
	}
	if err := a.pool.KillJob(noContext(), sandbox.JobOwner{User: a.user, Space: a.id}, job.JobID, "KILL"); err != nil {
		t.Error(err)
	}
	a.alive()
	seenWithoutDefence(t, func(t *testing.T) {
		for _, p := range readOnlyProbes {
			w := newWeakling(t)
			w.sh(0, `mkdir -p /tmp/home /space/.git; chown 1000:1000 /tmp/home; mount --bind /space/.git /space/.git`)
			w.sh(1000, `echo untouched > victim; (exec 9<>/space/victim; touch up; exec sleep 1000) >/dev/null 2>&1 & until [ -e up ]; do :; done`)
			if out := w.sh(p.weakAs, p.script); !harmed(out) {
				t.Errorf("%s: the test would not see the harm: %s", p.name, out)
			}
		}
	})
}

// TestAttackReadOnlySockets: a Unix socket, named or abstract, hands a reader
// nothing that its writer did not mean to hand out: a listening writer is
// reached, since both are one person's, and even then a descriptor that it sends
// is all that is gained; the host's abstract sockets are not reached at all.
func TestAttackReadOnlySockets(t *testing.T) {
	t.Parallel()
	a := newWorld(t).tenant(map[string]string{"victim": "untouched\n"})
	q := a.request(a.user, a.id, `exec python3 -c '
import socket, time
named = socket.socket(socket.AF_UNIX); named.bind("/tmp/sock"); named.listen()
up = open("/space/up", "w"); up.close(); time.sleep(1000)'`)
	q.Background = true
	if _, err := a.pool.Exec(noContext(), q); err != nil {
		t.Fatal(err)
	}
	a.out("until [ -e up ]; do :; done")
	r := a.readonly(python + `
for path in ["/tmp/sock", "/proc/1/root/tmp/sock"] + ["/proc/%s/root/tmp/sock" % p for p in os.listdir("/proc") if p.isdigit()]:
    s = socket.socket(socket.AF_UNIX)
    try: s.connect(path); harm(path)
    except OSError: pass` + pythonEnd)
	if harmed(r.Stdout.Text) || r.ExitCode != 0 {
		t.Errorf("%s%s", r.Stdout.Text, r.Stderr.Text)
	}
	a.alive()
}

// TestAttackHostIsNotWritten: with all that a command, a reader and the agent
// could do, the directories that a sandbox is given are byte for byte what they
// were.
func TestAttackHostIsNotWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if err := os.WriteFile(filepath.Join(w.library, "page.md"), []byte("page\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(w.library, "page.md"), 0o666); err != nil {
		t.Fatal(err)
	}
	a := w.tenant(map[string]string{"file": "x\n", "dir/file": "x\n"})
	a.out("true")
	checkout := hostSh(t, fmt.Sprintf("cd '%s' && find . -path '*/checkout-*' -printf '%%p %%m %%s %%T@ %%l\\n' | sort", w.dir))
	if !strings.Contains(checkout, "dir/file") {
		t.Fatalf("the checkout is not where the test looks: %s", checkout)
	}
	library := hostSh(t, "ls -laR --time-style=full-iso "+w.library)
	script := `for f in /library/page.md /usr/bin/true /etc/passwd /space/.git/HEAD /.satchel/lower/file; do
		for c in "echo harm > $f" "rm -f $f" "chmod 4777 $f" "mv $f /tmp" "ln $f /tmp/l" "touch $f" "ln -sf /tmp $f"; do bash -c "$c" 2>/dev/null && echo harm $c; done; done
		for d in / /library /usr /etc /.satchel /space/.git /var/tmp /home /opt /sys /proc/sys/kernel; do touch $d/harm 2>/dev/null && echo harm $d; done; true`
	for _, out := range []string{a.out(script), a.readonly(script).Stdout.Text} {
		if harmed(out) {
			t.Errorf("written: %s", out)
		}
	}
	a.sh("echo y >> file; chmod 777 dir/file; rm dir/file; mkdir dir2; mv dir dir3")
	if after := hostSh(t, "ls -laR --time-style=full-iso "+w.library); after != library {
		t.Errorf("the library was\n%s\nand is\n%s", library, after)
	}
	if after := hostSh(t, fmt.Sprintf("cd '%s' && find . -path '*/checkout-*' -printf '%%p %%m %%s %%T@ %%l\\n' | sort", w.dir)); after != checkout {
		t.Errorf("the checkout of a live sandbox was\n%s\nand is\n%s", checkout, after)
	}
	a.alive()
	seenWithoutDefence(t, func(t *testing.T) {
		if out := newWeakling(t).sh(0, strings.ReplaceAll(script, "/.satchel/lower/file", "/run/satchel/out")); !strings.Contains(out, "harm") {
			t.Errorf("the script harms nobody: %s", out)
		}
	})
}
