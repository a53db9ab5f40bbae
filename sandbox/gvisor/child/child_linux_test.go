package child

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

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

// However many files the owner has open, a sentry inherits none under a number that it
// needs itself.
func TestDescriptorsOfTheSentryStayFree(t *testing.T) {
	if err := keepDescriptorsFree(); err != nil {
		t.Fatal(err)
	}
	var open []int
	t.Cleanup(func() {
		for _, fd := range append(open, 253, 254, 255) {
			unix.Close(fd)
		}
	})
	for range 300 {
		fd, err := unix.Open("/dev/null", unix.O_RDONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, fd)
	}
	for fd := 253; fd <= 255; fd++ {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if slices.Contains(open, fd) || err != nil || flags&unix.FD_CLOEXEC == 0 {
			t.Errorf("descriptor %d would be inherited: %v", fd, err)
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

func TestASandboxMayHaveThreadsOfTheHostForEachProcess(t *testing.T) {
	for processes, want := range map[int]int{1: 520, 32: 768, 128: 1536} {
		if got := hostTasks(processes); got != want {
			t.Errorf("%d processes: %d, want %d", processes, got, want)
		}
	}
}

// However few files may be open, the cache of directory entries leaves as many
// for the directories above them.
func TestDirentCacheLeavesOpenFiles(t *testing.T) {
	for _, openFiles := range []uint64{256, 1024, 4096, 20_000, 1 << 20} {
		if got := direntCache(16_384, openFiles); got < 1 || uint64(got) > openFiles/4 {
			t.Errorf("of %d files: %d entries", openFiles, got)
		}
	}
	if got := direntCache(10, 1<<20); got != 10 {
		t.Errorf("asked for 10: %d entries", got)
	}
}
