package gvisor_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"satchel/internal/space"
	"satchel/internal/testenv"
	"satchel/sandbox/gvisor"
	"satchel/sandbox/oci"
)

// spareRuntime returns a runtime that keeps one booted sandbox, with its directory.
func spareRuntime(t *testing.T) (*gvisor.Runtime, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	r := newRuntime(t, func(o *gvisor.Options) {
		o.RunDir, o.Spare, o.SpareLimits = dir, 1, space.Limits{Memory: 128 << 20}
	})
	return r, dir
}

// sentries returns the processes of the sandboxes of a run directory.
func sentries(run string) []int {
	var out []int
	for pid := range processes() {
		if c := commandLine(pid); c[0] == "runsc-sandbox" && strings.Contains(strings.Join(c, " "), run+"/") {
			out = append(out, pid)
		}
	}
	slices.Sort(out)
	return out
}

// awaitSentries waits until so many sandboxes have booted or are booting.
func awaitSentries(t *testing.T, run string, n int) []int {
	t.Helper()
	var got []int
	testenv.WaitFor(t, fmt.Sprintf("%d sandboxes", n), func() bool {
		got = sentries(run)
		return len(got) == n
	})
	return got
}

func startIn(t *testing.T, r *gvisor.Runtime, limits space.Limits) (space.Sandbox, *space.Checkout) {
	t.Helper()
	c := newCheckout(t)
	return start(t, r, space.SandboxSpec{ID: oci.NewID(), Checkout: c, Limits: limits}), c
}

func TestTheNextStartTakesTheSpare(t *testing.T) {
	t.Parallel()
	r, dir := spareRuntime(t)
	if err := r.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	spare := awaitSentries(t, dir, 1)
	s, _ := startIn(t, r, space.Limits{Memory: 128 << 20})
	if now := sentries(dir); !slices.Equal(now, spare) {
		t.Errorf("the sandboxes are %v, the spare was %v", now, spare)
	}
	if got := bash(t, s, "cat /.satchel/lower/attached/note.md; head -c 3 /.satchel/git/attached/HEAD; cat /library/page.md"); got != "a note\nrefa page" {
		t.Errorf("it says %q", got)
	}
	awaitSentries(t, dir, 2) // another waits
}

// A sandbox that boots before another one has its space must not come to see that
// space, from inside or in the mounts of its processes outside.
func TestASpareDoesNotSeeTheSpacesOfOthers(t *testing.T) {
	t.Parallel()
	r, dir := spareRuntime(t)
	limits := space.Limits{Memory: 128 << 20}
	first, ada := startIn(t, r, limits)
	if err := os.WriteFile(filepath.Join(ada.Dir, "only-adas.md"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	awaitSentries(t, dir, 2) // the spare boots while ada's space is attached
	second, bob := startIn(t, r, limits)
	third, _ := startIn(t, r, limits) // boots after both
	for name, s := range map[string]space.Sandbox{"second": second, "third": third} {
		if got := bash(t, s, "find / -xdev -name only-adas.md 2>/dev/null; ls /.satchel/lower"); got != "attached" {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := bash(t, first, "ls /.satchel/lower/attached"); got != "note.md\nonly-adas.md" {
		t.Errorf("the first: %q", got)
	}
	for name, dir := range map[string]string{"ada": ada.Dir, "bob": bob.Dir} {
		with := map[string]bool{} // sandboxes that have the space mounted
		for pid := range processes() {
			c := commandLine(pid)
			mounts, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", pid))
			if strings.HasPrefix(c[0], "runsc-") && err == nil && bytes.Contains(mounts, []byte(dir)) {
				with[c[len(c)-1]] = true
			}
		}
		if len(with) != 1 {
			t.Errorf("%s's space is mounted in the sandboxes %v", name, with)
		}
	}
}

func TestASpareThatIsNoUseIsReplaced(t *testing.T) {
	t.Parallel()
	r, dir := spareRuntime(t)
	if err := r.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	kill(t, awaitSentries(t, dir, 1)[0])
	testenv.WaitFor(t, "the end of the spare to be noticed", func() bool {
		left, err := os.ReadDir(filepath.Join(dir, "bundles"))
		return err == nil && len(left) == 0
	})
	s, _ := startIn(t, r, space.Limits{Memory: 128 << 20})
	if got := bash(t, s, "cat /.satchel/lower/attached/note.md"); got != "a note" {
		t.Errorf("after the spare was killed: %q", got)
	}
	// Others' limits are not the spare's.
	spare := awaitSentries(t, dir, 2)
	other, _ := startIn(t, r, space.Limits{Memory: 256 << 20})
	if got := bash(t, other, "awk '/MemTotal/ { print $2 }' /proc/meminfo"); got != "262144" {
		t.Errorf("a sandbox of 256 MiB has %s kB", got)
	}
	if now := sentries(dir); len(now) != len(spare)+1 {
		t.Errorf("%v were there, now %v", spare, now)
	}
}

func TestCloseEndsTheSpare(t *testing.T) {
	t.Parallel()
	r, dir := spareRuntime(t)
	if err := r.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	awaitSentries(t, dir, 1)
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if left := sandboxProcesses(t, dir); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}
