package diff_test

import (
	"fmt"
	"strings"
	"testing"

	"satchel/internal/diff"
)

func TestUnified(t *testing.T) {
	ten := "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n"
	for name, tt := range map[string]struct {
		from, to string
		want     string
	}{
		"equal":                     {ten, ten, ""},
		"a line in the middle":      {ten, strings.Replace(ten, "5", "five", 1), "@@ -3,5 +3,5 @@\n 3\n 4\n-5\n+five\n 6\n 7"},
		"the first and the last":    {ten, strings.Replace(strings.Replace(ten, "1\n", "", 1), "10\n", "ten\n", 1), "@@ -1,3 +1,2 @@\n-1\n 2\n 3\n@@ -8,3 +7,3 @@\n 8\n 9\n-10\n+ten"},
		"two changes near another":  {ten, strings.NewReplacer("3", "x", "6", "y").Replace(ten), "@@ -1,8 +1,8 @@\n 1\n 2\n-3\n+x\n 4\n 5\n-6\n+y\n 7\n 8"},
		"a part of a line":          {"abc def\n", "abc xyz def\n", "@@ -1 +1 @@\n-abc def\n+abc xyz def"},
		"an empty text":             {"", "a\nb\n", "@@ -0,0 +1,2 @@\n+a\n+b"},
		"all is gone":               {"a\nb\n", "", "@@ -1,2 +0,0 @@\n-a\n-b"},
		"the last line ending":      {"a\nb", "a\nb\n", "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b"},
		"lines at the end":          {"a\n", "a\nb\n", "@@ -1 +1,2 @@\n a\n+b"},
		"a repeated line":           {"a\na\na\n", "a\na\n", "@@ -1,3 +1,2 @@\n a\n a\n-a"},
		"line endings":              {"a\r\nb\r\n", "a\nb\r\n", "@@ -1,2 +1,2 @@\n-a\n+a\n b"},
		"nothing but a line ending": {"\n", "", "@@ -1 +0,0 @@\n-"},
	} {
		if got := strings.Join(diff.Unified(tt.from, tt.to, 100).Lines, "\n"); got != tt.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, tt.want)
		}
	}
}

// A long difference is cut and counted, and so are long lines.
func TestUnifiedIsBounded(t *testing.T) {
	var from, to strings.Builder
	for i := range 1000 {
		fmt.Fprintln(&from, "old", i)
		fmt.Fprintln(&to, "new", i)
	}
	d := diff.Unified(from.String(), to.String(), 20)
	if len(d.Lines) != 20 || d.Left != 2001-20 || d.Added != 1000 || d.Removed != 1000 {
		t.Errorf("%d lines, %+v", len(d.Lines), d)
	}
	d = diff.Unified("", strings.Repeat("é", 100_000), 20)
	if len(d.Lines) != 3 || len(d.Lines[1]) > 1000 {
		t.Errorf("%.1000q", d.Lines)
	}
	big := strings.Repeat("a\n", 1<<20)
	if d = diff.Unified(big, strings.ReplaceAll(big, "a", "b"), 20); len(d.Lines) > 0 || d.Left != 2<<20 || d.Added != 1<<20 {
		t.Errorf("%+v", d)
	}
	if d = diff.Unified(big, big+"b\n", 20); len(d.Lines) != 4 || d.Added != 1 {
		t.Errorf("%+v", d)
	}
}

// FuzzUnified checks that the difference, applied to the first text, gives the second.
func FuzzUnified(f *testing.F) {
	f.Add("a\nb\nc\n", "a\nc\nd")
	f.Fuzz(func(t *testing.T, from, to string) {
		const cut = 200
		if len(from)+len(to) > 2000 || strings.Contains(from+to, "\r") || !short(from, cut) || !short(to, cut) {
			return
		}
		d := diff.Unified(from, to, 1_000_000)
		x := strings.SplitAfter(from, "\n")
		var got strings.Builder
		at := 0
		for i, l := range d.Lines {
			end := "\n"
			if i+1 < len(d.Lines) && strings.HasPrefix(d.Lines[i+1], `\ `) {
				end = ""
			}
			switch l[0] {
			case '@':
				var start int
				var rest string
				_, _ = fmt.Sscanf(l, "@@ -%d%s", &start, &rest)
				if !strings.HasPrefix(rest, ",0") {
					start--
				}
				got.WriteString(strings.Join(x[at:start], ""))
				at = start
			case ' ':
				got.WriteString(l[1:] + end)
				at++
			case '-':
				at++
			case '+':
				got.WriteString(l[1:] + end)
			}
		}
		got.WriteString(strings.Join(x[at:], ""))
		if got.String() != to {
			t.Errorf("%q to %q: %q gives %q", from, to, d.Lines, got.String())
		}
	})
}

func short(s string, n int) bool {
	for l := range strings.Lines(s) {
		if len(l) > n {
			return false
		}
	}
	return true
}
