package config

import (
	"regexp"
	"strings"
	"testing"

	"satchel/internal/testenv"
)

func TestHosts(t *testing.T) {
	long := strings.Repeat("a", 63)
	for _, s := range []string{"a", "A1", "a.example", "b-c.d_e.f", "1.2.3.4", long, long + "." + long} {
		if why := host(s); why != "" {
			t.Errorf("%q: %s", s, why)
		}
	}
	for _, s := range []string{"", ".", "a.", ".a", "a..b", "-a", "a-", "_a", "a_", "a.-b", "a\n", "a b", "ä", "a:1", long + "a", strings.Repeat("a.", 126) + "ab"} {
		if host(s) == "" {
			t.Errorf("%q is taken", s)
		}
	}
}

// FuzzNames compares the loops with regular expressions of the same rules.
func FuzzNames(f *testing.F) {
	for _, s := range []string{"", "a", "a.b", "-", "a-b", "a..b", "ä", "a\n", strings.Repeat("a", 63), strings.Repeat("a", 64), strings.Repeat("_", 32), strings.Repeat("_", 33)} {
		f.Add(s)
	}
	hosts := regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9_-]{0,61}[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9_-]{0,61}[A-Za-z0-9])?)*$`)
	prefixes := regexp.MustCompile(`^[a-zA-Z0-9_-]{0,32}$`)
	f.Fuzz(func(t *testing.T, s string) {
		if got, want := host(s) == "", len(s) <= 253 && hosts.MatchString(s); got != want {
			t.Errorf("host %q: %v, want %v", s, got, want)
		}
		if got, want := toolPrefix(s) == "", prefixes.MatchString(s); got != want {
			t.Errorf("prefix %q: %v, want %v", s, got, want)
		}
	})
}

func TestInitIsCheap(t *testing.T) {
	if n := testenv.InitAllocs(t, "satchel/internal/config"); n > 100 {
		t.Errorf("every process of the program begins with %d allocations of this package", n)
	}
}
