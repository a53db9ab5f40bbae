package diff_test

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"satchel/internal/diff"
)

// apply checks that runs lead from one sequence to the other, and counts edits.
func apply[T comparable](t *testing.T, from, to []T, runs []diff.Run) (edits int) {
	t.Helper()
	i, j := 0, 0
	for n, r := range runs {
		if r.N <= 0 || n > 0 && (runs[n-1].Kind == r.Kind || runs[n-1].Kind == diff.Added && r.Kind == diff.Removed) {
			t.Fatalf("the runs are not put together: %v", runs)
		}
		switch r.Kind {
		case diff.Same:
			if !slices.Equal(from[i:i+r.N], to[j:j+r.N]) {
				t.Fatalf("other elements are the same: %v of %v and %v", runs, from, to)
			}
			i, j = i+r.N, j+r.N
		case diff.Removed:
			i, edits = i+r.N, edits+r.N
		case diff.Added:
			j, edits = j+r.N, edits+r.N
		}
	}
	if i != len(from) || j != len(to) {
		t.Fatalf("%v of %v and %v ends at %d and %d", runs, from, to, i, j)
	}
	return edits
}

func TestDiff(t *testing.T) {
	for _, tt := range []struct{ from, to, want string }{
		{"", "", ""}, {"abc", "abc", " 3"}, {"", "ab", "+2"}, {"ab", "", "-2"}, {"abc", "axc", " 1-1+1 1"},
		{"aaa", "aa", " 2-1"}, {"abcabba", "cbabac", "-2 1+1 2-1 1+1"}, {"xay", "zaw", "-1+1 1-1+1"},
	} {
		work := 1000
		runs, exact := diff.Diff([]byte(tt.from), []byte(tt.to), &work)
		var got strings.Builder
		for _, r := range runs {
			fmt.Fprintf(&got, "%c%d", r.Kind, r.N)
		}
		if n := apply(t, []byte(tt.from), []byte(tt.to), runs); !exact || got.String() != tt.want && tt.from != "abcabba" || tt.from == "abcabba" && n != 5 {
			t.Errorf("%q to %q is %q", tt.from, tt.to, got.String())
		}
	}
}

// Attack: sequences for which the smallest difference is dear. The work ends where
// it is to end, and the answer is right all the same.
func TestWorkIsBounded(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	made := func(n, of int) []int {
		out := make([]int, n)
		for i := range out {
			out[i] = r.Intn(of)
		}
		return out
	}
	equal := make([]int, 100_000)
	for name, c := range map[string][2][]int{
		"two kinds":   {made(60_000, 2), made(60_000, 2)},
		"many kinds":  {made(60_000, 60_000), made(60_000, 60_000)},
		"equal lines": {append([]int{1}, equal...), append(append([]int{2}, equal[:50_000]...), 3)},
	} {
		const most = 2_000_000
		work := most
		runs, _ := diff.Diff(c[0], c[1], &work)
		apply(t, c[0], c[1], runs)
		if over := -work; over > 200_000 { // a row ends where its equal elements do
			t.Errorf("%s: %d steps over the limit", name, over)
		}
	}
	// Beyond the limit what each has once still keeps the rest apart.
	x := append(append(made(2000, 5), 100), made(2000, 5)...)
	y := append(append(made(2000, 5), 100), made(2000, 5)...)
	work := 100
	runs, exact := diff.Diff(x, y, &work)
	apply(t, x, y, runs)
	if exact || !slices.ContainsFunc(runs, func(r diff.Run) bool { return r.Kind == diff.Same }) {
		t.Errorf("exact %v: %v", exact, runs)
	}
}

// FuzzDiff: the runs lead from the one to the other, whatever the work allowed,
// and no fewer edits do where the search came to its end.
func FuzzDiff(f *testing.F) {
	f.Add([]byte("abcabba"), []byte("cbabac"), 1000)
	f.Add([]byte("aaab"), []byte("baaa"), 3)
	f.Fuzz(func(t *testing.T, x, y []byte, work int) {
		x, y = x[:min(len(x), 60)], y[:min(len(y), 60)]
		runs, exact := diff.Diff(x, y, &work)
		if n := apply(t, x, y, runs); exact && n != len(x)+len(y)-2*common(x, y) {
			t.Fatalf("%d edits from %q to %q: %v", n, x, y, runs)
		}
	})
}

// common is the length of the longest common subsequence.
func common(x, y []byte) int {
	row := make([]int, len(y)+1)
	for _, a := range x {
		before := 0
		for j, b := range y {
			up := row[j+1]
			if a == b {
				row[j+1] = before + 1
			} else {
				row[j+1] = max(up, row[j])
			}
			before = up
		}
	}
	return row[len(y)]
}
