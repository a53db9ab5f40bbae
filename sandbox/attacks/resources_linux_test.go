package attacks_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/sandbox"
	"satchel/sandbox/protocol"
)

// hostProcesses is how many processes of the host a tenant's newest sandbox is.
func hostProcesses(t testing.TB, w *world) int {
	t.Helper()
	all := w.runtime.Started()
	s, err := all[len(all)-1].Stats(noContext())
	if err != nil {
		t.Fatal(err)
	}
	return s.Processes
}

// TestAttackForkBomb: a bomb stops at the limit of processes, ends with its
// command, and leaves the next command, the sandbox and the host as they were.
func TestAttackForkBomb(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *sandbox.Options) { o.Limits.Processes = 48; o.WallTime = 2 * time.Second })
	a := w.tenant(nil)
	a.out("true")
	before := hostProcesses(t, w)
	for _, bomb := range []string{
		`:(){ :|:& };:; sleep 1000`,
		`bomb() { setsid bash -c "$1" x "$1" </dev/null >/dev/null 2>&1 & }; f='setsid bash -c "$1" x "$1" & setsid bash -c "$1" x "$1" & sleep 1000'; bash -c "$f" x "$f" 2>/dev/null`,
		`python3 -c '
import os
while True:
    try: os.fork()
    except OSError: pass'`,
	} {
		r := a.sh(bomb)
		if r.End != protocol.TimedOut && r.End != protocol.Exited {
			t.Errorf("%s: %+v", short(bomb), r)
		}
		if left := a.out(processTable); left != "" {
			t.Errorf("%s: left\n%s", short(bomb), left)
		}
		if got := a.out("(sleep 0 &); echo works | cat"); got != "works\n" {
			t.Errorf("the next command: %q", got)
		}
	}
	// gVisor keeps the host's side of ended processes for the next ones: as many as
	// ran at once, however often.
	if after := hostProcesses(t, w); after > before+2*48 {
		t.Errorf("the host has %d processes of the sandbox, before there were %d", after, before)
	}
	if g := a.look("true").Generation; g != 1 {
		t.Errorf("the sandbox was replaced: generation %d", g)
	}
	a.alive()
	seenWithoutDefence(t, func(t *testing.T) {
		w := newWeakling(t)
		w.sh(1000, `for i in {1..20}; do sleep 1000 & done 2>&1`)
		if n := strings.Count(w.sh(1000, processTable), "\n"); n != 20 {
			t.Errorf("%d of 20 processes are seen to be left", n)
		}
	})
}

// memoryHogs take memory in every way that the limit has to count. Each takes
// more than a sandbox of 160 MB has.
var memoryHogs = []struct{ name, script string }{
	{"one process", `head -c 600M /dev/zero | tail | wc -c`},
	{"many processes", `for i in {1..12}; do python3 -c 'import time; x = bytearray(40<<20); open("/tmp/up%d" % '$i', "w"); time.sleep(1000)' & done; wait`},
	{"every tmpfs", `for d in /tmp /dev/shm /space; do head -c 60M /dev/urandom > $d/x; done; python3 -c 'x = bytearray(60<<20); print(len(x))'`},
	{"shared memory without a file", python + `
import mmap
keep = []
for i in range(30):
    fd = os.memfd_create("x"); os.write(fd, b"x" * (20 << 20)); keep.append(fd)` + pythonEnd},
	{"pipes and sockets", python + `
import threading
def fill(i):
    a, b = socket.socketpair(); a.setsockopt(1, 7, 4 << 20)
    keep.append((a, b))
    while True: a.send(b"x" * 65536)
keep = [bytearray(500 << 20)]` + pythonEnd},
}

// TestAttackMemory: what takes more than the sandbox's memory, in whatever way,
// ends with a typed answer in plain words; the next command works, what was
// committed is there, and another user's sandbox is not touched.
func TestAttackMemory(t *testing.T) {
	t.Parallel()
	const limit = 160 << 20
	w := newWorld(t, func(o *sandbox.Options) { o.Limits.Memory = limit })
	a, b := w.tenant(nil), w.tenant(nil)
	b.out("echo mine > mine")
	for i, hog := range memoryHogs {
		a.out(fmt.Sprintf("echo %d > safe", i))
		r, err := a.try(hog.script)
		switch {
		case err == nil:
			t.Errorf("%s: had its way: %+v", hog.name, r)
		case !errors.Is(err, space.ErrOutOfMemory) || fault.CodeOf(err) != fault.Unavailable || !strings.Contains(fault.PublicOf(err), "memory"):
			t.Errorf("%s: %v", hog.name, err)
		}
		r = a.sh("cat safe; ls /tmp/x /dev/shm/x 2>/dev/null | wc -l")
		if r.Stdout.Text != fmt.Sprintf("%d\n0\n", i) || !r.Restarted {
			t.Errorf("%s: the next command: %+v", hog.name, r)
		}
	}
	if r := b.sh("cat mine"); r.Stdout.Text != "mine\n" || r.Generation != 1 {
		t.Errorf("another user: %+v", r)
	}
	a.alive()
	seenWithoutDefence(t, func(t *testing.T) {
		w := newWorld(t, func(o *sandbox.Options) { o.Limits.Memory = 0 })
		a := w.tenant(nil)
		q := a.request(a.user, a.id, `python3 -c 'x = bytearray(200<<20); open("/space/up","w"); import time; time.sleep(1000)'`)
		q.Background = true
		if _, err := a.pool.Exec(noContext(), q); err != nil {
			t.Fatal(err)
		}
		a.out("until [ -e up ]; do :; done")
		s, err := w.runtime.Started()[0].Stats(noContext())
		if err != nil || s.Memory < limit {
			t.Errorf("%d MB are seen, %v", s.Memory>>20, err)
		}
	})
}

// TestAttackDisk: files and their number stop at the sandbox's limits with
// ENOSPC, on every file system that a command can write; the host's disk holds
// nothing of them, and after cleaning up the next command works.
func TestAttackDisk(t *testing.T) {
	t.Parallel()
	small := func(o *sandbox.Options) {
		o.Limits.Disk, o.Limits.Tmp, o.Limits.Inodes, o.Limits.Memory = 8<<20, 4<<20, 500, 256<<20
	}
	a := newWorld(t, small).tenant(nil)
	a.out("true")
	before := diskUse(t, a.dir)
	r := a.sh(`for d in /space /tmp /dev/shm; do head -c 20M /dev/urandom > $d/big; stat -c %s $d/big; rm -f $d/big; done; ls -A / /run /var /home >/dev/null`)
	var sizes [3]int64
	if _, err := fmt.Sscan(r.Stdout.Text, &sizes[0], &sizes[1], &sizes[2]); err != nil || sizes[0] > 8<<20 || sizes[1] > 4<<20 || sizes[2] > 4<<20 {
		t.Errorf("%v: %s%s", err, r.Stdout.Text, r.Stderr.Text)
	}
	if !strings.Contains(r.Stderr.Text, "No space left") {
		t.Errorf("%s", r.Stderr.Text)
	}
	r = a.sh(`python3 -c '
n = 0
try:
    while n < 5000:
        open("f%d" % n, "w").close(); n += 1
except OSError as e: print(n, e.strerror)'; rm -f f*; ls | wc -l`)
	if !strings.Contains(r.Stdout.Text, "No space left") || !strings.HasSuffix(r.Stdout.Text, "\n0\n") {
		t.Errorf("%s%s", r.Stdout.Text, r.Stderr.Text)
	}
	// Full, and committed all the same.
	if r := a.sh("head -c 7M /dev/urandom > kept; head -c 20M /dev/zero > filled"); r.NotSaved != nil {
		t.Errorf("%v", r.NotSaved)
	}
	a.sh("rm -f filled")
	if grown := diskUse(t, a.dir) - before; grown > 40<<20 {
		t.Errorf("the host's disk holds %d MB more", grown>>20)
	}
	a.alive()
	seenWithoutDefence(t, func(t *testing.T) {
		a := newWorld(t).tenant(nil)
		if out := a.out("head -c 20M /dev/zero > big; stat -c %s big; rm big"); out != "20971520\n" {
			t.Errorf("with room there is none either: %s", out)
		}
	})
}

// TestAttackOutputFlood: endless output costs its reader nothing: the answer has
// a beginning, an end and the exact count between, and nothing on the host grows.
func TestAttackOutputFlood(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *sandbox.Options) { o.WallTime = 2 * time.Second })
	a := w.tenant(nil)
	before := diskUse(t, w.dir)
	r := newWorld(t).tenant(nil).sh("(echo first; head -c 2M /dev/zero | tr '\\0' a; echo; echo last) | cat")
	if !strings.HasPrefix(r.Stdout.Text, "first\naaa") || !strings.HasSuffix(r.Stdout.Text, "aaa\nlast\n") {
		t.Errorf("%.40q … %d characters", r.Stdout.Text, len(r.Stdout.Text))
	}
	// What the line about the cut says, and the text around it, is all of it.
	mark := strings.Index(r.Stdout.Text, "[…")
	end := strings.Index(r.Stdout.Text, "…]\n")
	if mark < 0 || end < 0 {
		t.Fatalf("no line about the cut: %.100q", r.Stdout.Text)
	}
	shown := int64(mark - 1 + len(r.Stdout.Text) - end - len("…]\n"))
	if want := int64(2<<20 + len("first\n") + len("\nlast\n")); r.Stdout.Cut+shown != want {
		t.Errorf("%d cut and %d shown are not %d", r.Stdout.Cut, shown, want)
	}
	for _, flood := range []string{"yes", "yes >&2 & yes", "cat /dev/zero", "cat /dev/urandom", `yes $'\e[2J\e]0;x'`} {
		r := a.sh(flood)
		if n := utf8.RuneCountInString(r.Stdout.Text) + utf8.RuneCountInString(r.Stderr.Text); r.End != protocol.TimedOut || n > 30_000 || r.Stdout.Cut == 0 {
			t.Errorf("%s: ended %d, %d characters, %d cut", flood, r.End, n, r.Stdout.Cut)
		}
	}
	if grown := diskUse(t, w.dir) - before; grown > 5<<20 {
		t.Errorf("the host's disk holds %d MB more", grown>>20)
	}
	if r := a.look(":"); r.Generation != 1 {
		t.Errorf("the sandbox was replaced: generation %d", r.Generation)
	}
}
