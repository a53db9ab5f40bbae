package crun_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// What the kernel of the host has one of for everyone, or lets one process do
// to another, where gVisor has a kernel for each sandbox.

// A job that writes into the memory of a shell that waits would choose what the
// next command is, and what it answers.
func TestAttackMemoryOfAWaitingShell(t *testing.T) {
	c := connect(t, newRuntime(t))
	for range 2 { // what waits after a command
		out, code := sh(t, c, `python3 - <<'X'
import os
mine = {os.getpid(), os.getppid()}
for p in os.listdir("/proc"):
    if p.isdigit() and int(p) not in mine:
        try:
            open(f"/proc/{p}/mem", "r+b", 0)
            print("harm:", p, open(f"/proc/{p}/cmdline").read())
        except OSError:
            pass
X
`)
		if code != 0 || out != "" {
			t.Errorf("exit %d, %q", code, out)
		}
	}
}

// The machine has one bounded number of pseudo-terminals.
func TestAttackAllTerminals(t *testing.T) {
	c := connect(t, newRuntime(t))
	out, code := sh(t, c, `python3 - <<'X'
import os
held = []
try:
    while len(held) < 200:
        held.append(os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY))
except OSError as e:
    print(e.strerror)
print(len(held))
X
`)
	if code != 0 || out != "No space left on device\n16" {
		t.Errorf("exit %d, %q", code, out)
	}
}

// What TCP holds for a sandbox that talks to itself is the machine's memory.
func TestAttackMemoryOfConnections(t *testing.T) {
	c := connect(t, newRuntime(t))
	before := tcpPages(t)
	out, code := sh(t, c, `cat > /tmp/fill.py <<'X'
import socket, time
l = socket.socket(); l.bind(("127.0.0.1", 0)); l.listen(100)
held = []
try:
    for i in range(100):
        a = socket.socket(); a.connect(l.getsockname()); b, _ = l.accept()
        for s in (a, b):
            s.setblocking(False)
            full = 0
            while full < 30: # the kernel lets the buffers grow by and by
                try: s.send(b"x" * 65536); full = 0
                except BlockingIOError: full += 1; time.sleep(0.0005)
        held.append((a, b))
except OSError: pass
print("held", flush=True)
input()
X
mkfifo /tmp/go; (python3 /tmp/fill.py < /tmp/go > /tmp/out 2>&1 &) ; exec 5> /tmp/go
until grep -q held /tmp/out; do read -t 0.05 <> <(:); done; sed -n "s/^TCP:.*mem //p" /proc/net/sockstat`)
	if code != 0 {
		t.Fatalf("exit %d, %q", code, out)
	}
	var during int
	if _, err := fmt.Sscan(out, &during); err != nil {
		t.Fatalf("%q: %v", out, err)
	}
	// The sandbox has 512 MiB, of which an eighth may be TCP's; the rest
	// is room for what others do meanwhile.
	if mib := (during - before) * os.Getpagesize() >> 20; mib > 96 {
		t.Errorf("a sandbox's connections hold %d MiB", mib)
	}
}

// tcpPages is what TCP holds on the machine, in pages.
func tcpPages(t *testing.T) int {
	b, err := os.ReadFile("/proc/net/sockstat")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(b), "TCP: ")
	_, after, _ = strings.Cut(after, "mem ")
	var n int
	if _, err := fmt.Sscan(after, &n); err != nil {
		t.Fatalf("%q: %v", b, err)
	}
	return n
}

// Files that are the same for all, such as those of /usr, are watched and kept
// by their inode, past every mount namespace.
func TestAttackWhatOthersOpen(t *testing.T) {
	c := connect(t, newRuntime(t))
	out, code := sh(t, c, `python3 - <<'X'
import ctypes, fcntl, os
libc = ctypes.CDLL(None, use_errno=True)
fd = libc.inotify_init1(0)
if fd >= 0: print("harm: inotify")
if libc.inotify_add_watch(max(fd, 0), b"/usr/bin", 0x20) >= 0: print("harm: a watch")
f = os.open("docs/note.md", os.O_RDONLY)
for what, arg in ((fcntl.F_SETLEASE, fcntl.F_WRLCK), (fcntl.F_NOTIFY, 1)):
    try:
        fcntl.fcntl(f if what == fcntl.F_SETLEASE else os.open("/usr/bin", os.O_RDONLY), what, arg)
        print("harm:", what)
    except OSError as e:
        if e.errno != 1: print(what, e)
X
(timeout 1 tail -n 1 -f docs/note.md || true) 2>/dev/null`)
	if code != 0 || out != "a note" {
		t.Errorf("exit %d, %q", code, out)
	}
}
