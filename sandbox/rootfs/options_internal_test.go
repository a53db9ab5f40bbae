package rootfs

import (
	"regexp"
	"strings"
	"testing"

	"satchel/internal/testenv"
)

// The rules as they are written down elsewhere: the loops must mean the same.
func FuzzNames(f *testing.F) {
	for _, s := range []string{"", "a", "g++", "bookworm", "-y", "a,b", "A", "0ad", "a\n", "ä", "a_b",
		strings.Repeat("a", 41), strings.Repeat("a", 42), strings.Repeat("a", 101), strings.Repeat("a", 102)} {
		f.Add(s)
	}
	suites := regexp.MustCompile(`^[a-z][a-z0-9-]{0,40}$`)
	packages := regexp.MustCompile(`^[a-z0-9][a-z0-9+.-]{1,100}$`)
	f.Fuzz(func(t *testing.T, s string) {
		if got, want := suiteName(s), suites.MatchString(s); got != want {
			t.Errorf("suite %q: %v, want %v", s, got, want)
		}
		if got, want := packageName(s), packages.MatchString(s); got != want {
			t.Errorf("package %q: %v, want %v", s, got, want)
		}
	})
}

func TestInitIsCheap(t *testing.T) {
	if n := testenv.InitAllocs(t, "satchel/sandbox/rootfs"); n > 50 {
		t.Errorf("every process of the program begins with %d allocations of this package", n)
	}
}
