package link

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func newPair(t testing.TB) (a *Link, b *os.File) {
	t.Helper()
	ours, theirs, err := Pair()
	if err != nil {
		t.Fatal(err)
	}
	l, err := New(ours)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close(); theirs.Close() })
	return l, theirs
}

func TestLinkCarriesFiles(t *testing.T) {
	a, raw := newPair(t)
	fd, err := unix.Dup(int(raw.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	b, err := New(os.NewFile(uintptr(fd), "b"))
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := a.Send(Message{ID: 7, Op: Start}, w); err != nil {
		t.Fatal(err)
	}
	w.Close()
	m, files, err := b.Receive()
	if err != nil || m.ID != 7 || m.Op != Start || len(files) != 1 {
		t.Fatalf("got %+v, %d files, %v", m, len(files), err)
	}
	flags, err := unix.FcntlInt(files[0].Fd(), unix.F_GETFD, 0)
	if err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Errorf("a passed file would be inherited: %x, %v", flags, err)
	}
	fmt.Fprint(files[0], "through")
	CloseAll(files)
	if got, err := io.ReadAll(r); err != nil || string(got) != "through" {
		t.Errorf("got %q, %v", got, err)
	}
	if err := a.Send(Message{Error: strings.Repeat("x", maxMessage)}); err == nil {
		t.Error("a message over the limit was sent")
	}
	a.Close()
	raw.Close()
	if _, _, err := b.Receive(); !errors.Is(err, io.EOF) {
		t.Errorf("the end: %v, want EOF", err)
	}
}

// Whatever is received, it neither fails badly nor keeps a file open. (No fuzz
// target: gVisor does not link with the fuzzer's instrumentation, and the other
// end is this program itself.)
func TestLinkSurvivesWhatItDoesNotExpect(t *testing.T) {
	for _, c := range []struct {
		name   string
		packet string
		files  int
		ok     bool
	}{
		{"a request with its files", `{"id":1,"op":"start","start":{"lower":"/x"}}`, 3, true},
		{"half a message", `{`, 1, false},
		{"no message", "", 1, false},
		{"a number", "7", 0, false},
		{"other types", `{"id":"x"}`, 2, false},
		{"too long", strings.Repeat("x", maxMessage+1), 0, false},
		{"too many files", `{"id":1}`, 60, false},
		{"bytes", "\x00\xff\xfe", 3, false},
	} {
		l, raw := newPair(t)
		fds := make([]int, c.files)
		for i := range fds {
			fds[i] = int(raw.Fd())
		}
		var oob []byte
		if c.files > 0 {
			oob = unix.UnixRights(fds...)
		}
		before := countFiles(t)
		if err := unix.Sendmsg(int(raw.Fd()), []byte(c.packet), oob, nil, 0); err != nil {
			t.Fatal(err)
		}
		_, files, err := l.Receive()
		if (err == nil) != c.ok || err != nil && len(files) != 0 {
			t.Errorf("%s: %d files, %v", c.name, len(files), err)
		}
		CloseAll(files)
		if after := countFiles(t); after > before {
			t.Errorf("%s: %d files are open, %d were before", c.name, after, before)
		}
	}
}

func countFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
