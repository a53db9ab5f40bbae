package gvisor

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"satchel/internal/fault"
	"satchel/internal/space"
)

func TestIsRunsc(t *testing.T) {
	for _, c := range []struct {
		args string
		want bool
	}{
		{"runsc-sandbox --root=/x --debug=false boot --bundle=/b id", true},
		{"runsc-gofer --root=/x gofer --bundle /b id", true},
		{"/proc/self/exe umount --sync-fd=3 /proc", true},
		{"/proc/self/exe --root=/x gofer --apply-caps=false id", true},
		{"satchel serve", false},
		{"satchel gofer", false},
		{"/usr/bin/runsc-sandbox boot", false},
		{"runsc-sandbox", false},
		{"runsc-sandbox exec id true", false},
		{"runsc-sandbox --root=/x do true", false},
		{"runsc-gofer boot", false},
		{"runsc run id", false},
		{"/proc/self/exe agent", false},
		{"/proc/self/exe agent-exec", false},
		{"/proc/self/exe serve boot", false},
		{"", false},
	} {
		if got := isRunsc(strings.Fields(c.args)); got != c.want {
			t.Errorf("%q: %v, want %v", c.args, got, c.want)
		}
	}
}

func TestShownLimits(t *testing.T) {
	for _, c := range []struct {
		lim  space.Limits
		host int
		want shown
	}{
		{space.Limits{}, 8, shown{}},
		{space.Limits{Memory: 512 << 20, CPUs: 0.5}, 8, shown{512 << 20, 2}},
		{space.Limits{CPUs: 2}, 8, shown{0, 2}},
		{space.Limits{CPUs: 2.1}, 8, shown{0, 3}},
		{space.Limits{CPUs: 64}, 8, shown{0, 8}},
		{space.Limits{CPUs: 1}, 1, shown{0, 1}},
	} {
		if got := shownOf(c.lim, c.host); got != c.want {
			t.Errorf("%+v of %d: %+v, want %+v", c.lim, c.host, got, c.want)
		}
	}
	for _, c := range []struct {
		args string
		s    shown
		want string
	}{
		{"runsc-sandbox --root=/x boot --bundle=/b --total-memory 9 --attached id", shown{5, 3}, "runsc-sandbox --root=/x boot --total-memory=5 --cpu-num=3 --bundle=/b --attached id"},
		{"runsc-sandbox boot --cpu-num=7 --total-host-memory 9 id", shown{0, 2}, "runsc-sandbox boot --cpu-num=2 --total-host-memory 9 id"},
		{"runsc-sandbox boot --total-memory 9 id", shown{}, "runsc-sandbox boot --total-memory 9 id"},
	} {
		args := strings.Fields(c.args)
		if got := strings.Join(withShown(args, slices.Index(args, "boot"), c.s), " "); got != c.want {
			t.Errorf("%s: %s, want %s", c.args, got, c.want)
		}
	}
	if got := flagOf(strings.Fields("x --bundle /a --other=b boot"), "bundle") + flagOf(strings.Fields("x --other=b"), "other") + flagOf([]string{"bundle"}, "bundle"); got != "/ab" {
		t.Errorf("flags: %q", got)
	}
}

func TestNamespaceRemedy(t *testing.T) {
	for setting, want := range map[string]string{
		"kernel/apparmor_restrict_unprivileged_userns=1": "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0", // Ubuntu 24.04
		"kernel/unprivileged_userns_clone=0":             "sudo sysctl -w kernel.unprivileged_userns_clone=1",             // older Debian
		"user/max_user_namespaces=0":                     "sudo sysctl -w user.max_user_namespaces",                       // RHEL
		"kernel/apparmor_restrict_unprivileged_userns=0": "seccomp profile",
		"": "seccomp profile",
	} {
		name, value, _ := strings.Cut(setting, "=")
		got := namespaceRemedy(1000, func(n string) string {
			if n == name {
				return value
			}
			return ""
		})
		if !strings.Contains(got, want) || !strings.Contains(got, "as root") {
			t.Errorf("%s: %q does not say %q", setting, got, want)
		}
	}
	if got := namespaceRemedy(0, func(string) string { return "" }); !strings.Contains(got, "CAP_SYS_ADMIN") {
		t.Errorf("as root: %q", got)
	}
	if err := namespaceFault(unix.EPERM); fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("EPERM: %v", err)
	}
	if err := namespaceFault(unix.ENOENT); fault.CodeOf(err) != fault.Internal {
		t.Errorf("ENOENT: %v", err)
	}
}

func TestASandboxMayHaveThreadsOfTheHostForEachProcess(t *testing.T) {
	for processes, want := range map[int]int{1: 520, 32: 768, 128: 1536} {
		if got := hostTasks(processes); got != want {
			t.Errorf("%d processes: %d, want %d", processes, got, want)
		}
	}
}

// What a process allocates while it idles must not count as work, and one
// stretch of work is over once.
func TestRest(t *testing.T) {
	var r rest
	total := uint64(0)
	for i, c := range []struct {
		allocates uint64
		want      bool
	}{
		{4 << 20, false}, // the boot
		{1000, false},
		{1000, true},
		{1000, false},
		{slimIdle, false},
		{slimIdle + 1, false}, // a command
		{0, false},
		{8 << 20, false}, // another
		{100, false},
		{0, true},
		{0, false},
	} {
		total += c.allocates
		if got := r.idles(total); got != c.want {
			t.Errorf("look %d: %v", i, got)
		}
	}
}

func newPair(t testing.TB) (a *link, b *os.File) {
	t.Helper()
	ours, theirs, err := socketPair()
	if err != nil {
		t.Fatal(err)
	}
	l, err := newLink(ours)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.close(); theirs.Close() })
	return l, theirs
}

func TestLinkCarriesFiles(t *testing.T) {
	a, raw := newPair(t)
	fd, err := unix.Dup(int(raw.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	b, err := newLink(os.NewFile(uintptr(fd), "b"))
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := a.send(message{ID: 7, Op: opStart}, w); err != nil {
		t.Fatal(err)
	}
	w.Close()
	m, files, err := b.receive()
	if err != nil || m.ID != 7 || m.Op != opStart || len(files) != 1 {
		t.Fatalf("got %+v, %d files, %v", m, len(files), err)
	}
	flags, err := unix.FcntlInt(files[0].Fd(), unix.F_GETFD, 0)
	if err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Errorf("a passed file would be inherited: %x, %v", flags, err)
	}
	fmt.Fprint(files[0], "through")
	closeAll(files)
	if got, err := io.ReadAll(r); err != nil || string(got) != "through" {
		t.Errorf("got %q, %v", got, err)
	}
	if err := a.send(message{Error: strings.Repeat("x", maxMessage)}); err == nil {
		t.Error("a message over the limit was sent")
	}
	a.close()
	raw.Close()
	if _, _, err := b.receive(); !errors.Is(err, io.EOF) {
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
		_, files, err := l.receive()
		if (err == nil) != c.ok || err != nil && len(files) != 0 {
			t.Errorf("%s: %d files, %v", c.name, len(files), err)
		}
		closeAll(files)
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

// However few files may be open, the cache of directory entries leaves as many
// for the directories above them.
func TestDirentCacheLeavesOpenFiles(t *testing.T) {
	for _, openFiles := range []uint64{256, 1024, 4096, 20_000, 1 << 20} {
		if got := direntCache(defaultDirentCache, openFiles); got < 1 || uint64(got) > openFiles/4 {
			t.Errorf("of %d files: %d entries", openFiles, got)
		}
	}
	if got := direntCache(10, 1<<20); got != 10 {
		t.Errorf("asked for 10: %d entries", got)
	}
}
