package pathlist

import (
	"strings"
	"testing"
)

// A list is taken apart whatever it holds, and no path has its separators.
func FuzzSplit(f *testing.F) {
	f.Add([]byte("a.md\n\"b\\303\\266.md\"\n"))
	f.Add([]byte("a\x00b\n\x00"))
	f.Add([]byte("\"a\\nb\"\n"))
	f.Fuzz(func(t *testing.T, list []byte) {
		nuls := strings.Contains(string(list), "\x00")
		for _, p := range Split(list) {
			if p == "" || strings.Contains(p, "\x00") && nuls {
				t.Errorf("%q", p)
			}
		}
	})
}
