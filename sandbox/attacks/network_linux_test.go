package attacks_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"satchel/internal/testenv"
)

// trap is a set of listeners on the host that no sandbox may reach.
type trap struct {
	touched  atomic.Int64
	tcp, udp int    // ports on loopback
	abstract string // name of an abstract Unix socket
	path     string // of a Unix socket
	wait     chan struct{}
}

func newTrap(t *testing.T, dir string) *trap {
	t.Helper()
	tr := &trap{abstract: fmt.Sprintf("satchel-canary-%d", time.Now().UnixNano()), path: filepath.Join(dir, "sock"), wait: make(chan struct{}, 100)}
	touch := func() {
		tr.touched.Add(1)
		select {
		case tr.wait <- struct{}{}:
		default:
		}
	}
	var listeners []net.Listener
	for _, a := range [][2]string{{"tcp", "127.0.0.1:0"}, {"unix", "@" + tr.abstract}, {"unix", tr.path}} {
		l, err := net.Listen(a[0], a[1])
		if err != nil {
			t.Fatal(err)
		}
		listeners = append(listeners, l)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				touch()
				c.Close()
			}
		}()
		t.Cleanup(func() { l.Close(); <-done })
	}
	if err := os.Chmod(tr.path, 0o777); err != nil {
		t.Fatal(err)
	}
	tr.tcp = listeners[0].Addr().(*net.TCPAddr).Port
	u, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	tr.udp = u.LocalAddr().(*net.UDPAddr).Port
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			if _, _, err := u.ReadFrom(make([]byte, 64)); err != nil {
				return
			}
			touch()
		}
	}()
	t.Cleanup(func() { u.Close(); <-done })
	return tr
}

// script dials every listener, and the addresses that a cloud's machine has.
func (tr *trap) script(paths ...string) string {
	return python + fmt.Sprintf(`
TCP, UDP, ABSTRACT, PATHS = %d, %d, %q, %q.split()
def dial(family, kind, to, data=b""):
    s = socket.socket(family, kind); s.settimeout(2)
    try:
        s.connect(to)
        if data: s.send(data)
        return True
    except OSError: return False
for ip in ("127.0.0.1", "127.0.0.53", "0.0.0.0", "169.254.169.254", "10.0.0.1", "172.17.0.1", "192.168.0.1", "100.100.100.200"):
    if dial(socket.AF_INET, socket.SOCK_STREAM, (ip, TCP)): harm("tcp", ip)
if dial(socket.AF_INET, socket.SOCK_STREAM, ("169.254.169.254", 80)): harm("metadata")
for ip, port in (("127.0.0.1", UDP), ("8.8.8.8", 53), ("169.254.169.254", 53), ("127.0.0.53", 53)):
    if dial(socket.AF_INET, socket.SOCK_DGRAM, (ip, port), b"x") and not ip.startswith("127."): harm("udp", ip)
for ip in ("::1", "fe80::1", "fd00:ec2::254", "::ffff:127.0.0.1"):
    try:
        if dial(socket.AF_INET6, socket.SOCK_STREAM, (ip, TCP)): harm("tcp6", ip)
    except OSError: pass
if dial(socket.AF_UNIX, socket.SOCK_STREAM, "\0" + ABSTRACT): harm("abstract")
for p in PATHS:
    if dial(socket.AF_UNIX, socket.SOCK_STREAM, p): harm(p)
for family, kind in ((socket.AF_INET, socket.SOCK_RAW), (socket.AF_PACKET, socket.SOCK_RAW), (40, socket.SOCK_STREAM)):
    try: socket.socket(family, kind, 1 if family == socket.AF_INET else 0); harm("socket", family)
    except OSError: pass
try: socket.getaddrinfo("localhost.localdomain.example.org", 80); harm("names are resolved")
except OSError: pass
`, tr.tcp, tr.udp, tr.abstract, strings.Join(paths, " ")) + pythonEnd
}

// TestAttackNetwork: nothing of the host or beyond is reached: loopback, cloud
// metadata, name servers, raw sockets, the host's abstract Unix sockets, and
// sockets and FIFOs of the host in a mounted directory.
func TestAttackNetwork(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "s") // a socket's path may have 108 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	tr := newTrap(t, dir)
	w := newWorld(t)
	// The library's directory holds the host's socket and a FIFO, as no server
	// would have it.
	if err := os.Link(tr.path, filepath.Join(w.library, "sock")); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(filepath.Join(w.library, "fifo"), 0o666); err != nil {
		t.Fatal(err)
	}
	a := w.tenant(nil)
	for _, run := range []func() string{
		func() string { r := a.sh(tr.script("/library/sock", tr.path)); return r.Stdout.Text + r.Stderr.Text },
		func() string {
			r := a.readonly(tr.script("/library/sock", tr.path))
			return r.Stdout.Text + r.Stderr.Text
		},
	} {
		if out := run(); harmed(out) || strings.Contains(out, "Traceback") {
			t.Errorf("reached: %s", out)
		}
	}
	if out := a.sh("timeout 2 cat /library/fifo && echo harm; { echo x > /library/fifo; } 2>/dev/null && echo harm; ls /sys/class/net; cat /etc/resolv.conf 2>/dev/null && echo harm; true").Stdout.Text; harmed(out) {
		t.Errorf("%s", out)
	}
	if n := tr.touched.Load(); n != 0 {
		t.Errorf("the host saw %d connections", n)
	}
	a.alive()
	seenWithoutDefence(t, func(t *testing.T) {
		out := hostSh(t, tr.script(tr.path))
		for _, reached := range []string{"tcp 127.0.0.1", "abstract", tr.path} {
			if !strings.Contains(out, reached) {
				t.Errorf("the host does not reach %s with the same script: %s", reached, out)
			}
		}
		for range 4 {
			testenv.Receive(t, "a connection", tr.wait)
		}
	})
}
