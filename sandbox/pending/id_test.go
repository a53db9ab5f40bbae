package pending

import (
	"regexp"
	"strings"
	"testing"

	"satchel/internal/testenv"
)

func TestSafeID(t *testing.T) {
	for _, id := range []string{"a", "Z", "0", "-", "_", "u_ann", "0190-9f_Z", strings.Repeat("a", 128)} {
		if !safeID(id) {
			t.Errorf("%q is refused", id)
		}
	}
	for _, id := range []string{"", ".", "..", "a/b", "a\\b", "a b", "a\n", "\x00", "ä", "a:", "@", "[", "`", "{", strings.Repeat("a", 129)} {
		if safeID(id) {
			t.Errorf("%q is taken", id)
		}
	}
}

func FuzzSafeID(f *testing.F) {
	for _, s := range []string{"", "a", "u_1-X", "a\n", "ä", strings.Repeat("x", 128), strings.Repeat("x", 129)} {
		f.Add(s)
	}
	same := regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`)
	f.Fuzz(func(t *testing.T, s string) {
		if got, want := safeID(s), same.MatchString(s); got != want {
			t.Errorf("%q: %v, want %v", s, got, want)
		}
	})
}

func TestInitIsCheap(t *testing.T) {
	if n := testenv.InitAllocs(t, "satchel/sandbox/pending"); n > 50 {
		t.Errorf("every process of the program begins with %d allocations of this package", n)
	}
}
