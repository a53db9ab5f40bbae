package editdistance_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"satchel/internal/editdistance"
)

func TestWithin(t *testing.T) {
	long := strings.Repeat("long", 20)
	for _, c := range []struct {
		a, b        string
		limit, want int
	}{
		{"", "", 3, 0}, {"a", "", 3, 1}, {"query", "query", 3, 0},
		{"querry", "query", 3, 1}, {"qury", "query", 3, 1}, {"quary", "query", 3, 1}, {"qeury", "query", 3, 1},
		{"kitten", "sitting", 9, 3}, {"kitten", "sitting", 3, 3}, {"kitten", "sitting", 2, 3}, {"kitten", "sitting", 0, 1},
		{"short", "a much longer one", 2, 3}, {"привет", "привт", 2, 1}, {"naïve", "naive", 2, 1},
		{"ab", "ba", 1, 1}, {"xab", "yba", 2, 2},
		{long, long + "x", 2, 1}, {long + "ab", long + "ba", 2, 1},
	} {
		for _, p := range [][2]string{{c.a, c.b}, {c.b, c.a}} {
			if got := editdistance.Within(p[0], p[1], c.limit); got != c.want {
				t.Errorf("%q to %q within %d: %d, want %d", p[0], p[1], c.limit, got, c.want)
			}
		}
	}
}

// FuzzWithin: the bound changes nothing but what is over it, and the distance
// is symmetric and no more than the longer word.
func FuzzWithin(f *testing.F) {
	f.Add("kitten", "sitting", 2)
	f.Add("ab", "ba", 0)
	f.Fuzz(func(t *testing.T, a, b string, limit int) {
		if len(a) > 100 || len(b) > 100 || limit < 0 || limit > 100 {
			return
		}
		most := max(utf8.RuneCountInString(a), utf8.RuneCountInString(b))
		all := editdistance.Within(a, b, most)
		if all > most || all != editdistance.Within(b, a, most) {
			t.Fatalf("%d of %d, and %d the other way", all, most, editdistance.Within(b, a, most))
		}
		if got := editdistance.Within(a, b, limit); got != min(all, limit+1) {
			t.Fatalf("%d within %d, and %d in all", got, limit, all)
		}
	})
}
