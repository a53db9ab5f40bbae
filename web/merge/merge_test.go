package merge_test

import (
	"slices"
	"strings"
	"testing"

	"satchel/web/merge"
)

func conflict(yours, theirs string) string {
	return merge.MarkYours + "\n" + yours + merge.MarkTheirs + "\n" + theirs + merge.MarkEnd + "\n"
}

// TestThree is the specification of what is merged and what is left to a person.
func TestThree(t *testing.T) {
	tests := []struct {
		name, base, yours, theirs, want string
		conflicts                       int
	}{
		{"nobody changed it", "a\nb\n", "a\nb\n", "a\nb\n", "a\nb\n", 0},
		{"only you did", "a\nb\n", "a\nB\n", "a\nb\n", "a\nB\n", 0},
		{"only they did", "a\nb\n", "a\nb\n", "A\nb\n", "A\nb\n", 0},
		{"different places", "a\nb\nc\nd\ne\n", "A\nb\nc\nd\ne\n", "a\nb\nc\nd\nE\n", "A\nb\nc\nd\nE\n", 0},
		{"the same change", "a\nb\n", "a\nX\n", "a\nX\n", "a\nX\n", 0},
		{"both add at the end, alike", "a\n", "a\nb\n", "a\nb\n", "a\nb\n", 0},
		{"you add above, they below", "a\n", "x\na\n", "a\ny\n", "x\na\ny\n", 0},
		{"you delete, they leave it", "a\nb\nc\n", "a\nc\n", "a\nb\nc\n", "a\nc\n", 0},
		{"the same line, differently", "a\nb\nc\n", "a\nB1\nc\n", "a\nB2\nc\n", "a\n" + conflict("B1\n", "B2\n") + "c\n", 1},
		{"what both added alike is no conflict", "a\nz\n", "a\nsame\nmine\nz\n", "a\nsame\ntheirs\nz\n", "a\nsame\n" + conflict("mine\n", "theirs\n") + "z\n", 1},
		{"you change what they delete", "a\nb\nc\n", "a\nB\nc\n", "a\nc\n", "a\n" + conflict("B\n", "") + "c\n", 1},
		{"a last line without an end", "a\nb", "a\nB", "a\nC", "a\n" + conflict("B\n", "C\n"), 1},
		{"everything anew", "", "mine\n", "theirs\n", conflict("mine\n", "theirs\n"), 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := merge.Three(tt.base, tt.yours, tt.theirs)
			if got.Text != tt.want || got.Conflicts != tt.conflicts {
				t.Errorf("%d conflicts:\n%s\nwant %d:\n%s", got.Conflicts, got.Text, tt.conflicts, tt.want)
			}
			if n := merge.Marked(got.Text); n != 3*tt.conflicts {
				t.Errorf("%d marks, want %d", n, 3*tt.conflicts)
			}
		})
	}
}

// Attack: texts for which a search by trying each place would take minutes.
func TestLargeTexts(t *testing.T) {
	n := 1 << 18
	base := strings.Repeat("\n", n)
	yours := "x\n" + strings.Repeat(strings.Repeat("\n", n/8)+"y\n", 4) + "z\n"
	theirs := "a\n" + strings.Repeat("\n", n/2) + "b\n"
	if got := merge.Three(base, yours, theirs); got.Conflicts == 0 {
		t.Error("no conflict")
	}
	var b strings.Builder
	for i := range 60_000 {
		b.WriteString(strings.Repeat("l", i%7) + string(rune('a'+i%26)) + "\n")
	}
	long := b.String()
	if got := merge.Three(long, "first\n"+long, long+"last\n"); got.Conflicts != 0 || got.Text != "first\n"+long+"last\n" {
		t.Errorf("what is added at either end of a long text: %d conflicts", got.Conflicts)
	}
}

func TestEndings(t *testing.T) {
	tests := []struct{ name, file, text, want string }{
		{"LF", "a\nb\n", "a\r\nB\r\n", "a\nB\n"},
		{"CRLF", "a\r\nb\r\n", "a\r\nB\r\nc\r\n", "a\r\nB\r\nc\r\n"},
		{"CR alone", "a\rb\r", "a\r\nb\r\nc\r\n", "a\rb\rc\r"},
		{"mixed: each line keeps its own", "a\r\nb\nc\n", "a\r\nnew\r\nb\r\nc\r\n", "a\r\nnew\nb\nc\n"},
		{"no newline at the end", "a\nb", "a\r\nB", "a\nB"},
		{"one at the end that was typed over", "a\nb\n", "a\r\nb\r\nc", "a\nb\nc\n"},
		{"a byte order mark", "\ufeffa\r\n", "b\r\n", "\ufeffb\r\n"},
		{"a new file", "", "a\r\nb", "a\nb\n"},
		{"emptied", "a\n", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := merge.Endings(tt.file, tt.text); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

func TestChanges(t *testing.T) {
	var from, to strings.Builder
	for i := range 40 {
		l := string(rune('A'+i)) + "\n"
		from.WriteString(l)
		if i == 20 {
			l = "changed\n"
		}
		to.WriteString(l)
	}
	hunks, cut := merge.Changes(from.String(), to.String(), 2, 100)
	if cut || len(hunks) != 1 || hunks[0].Line != 19 {
		t.Fatalf("%+v", hunks)
	}
	var got []string
	for _, l := range hunks[0].Lines {
		got = append(got, l.Mark()+l.Text)
	}
	if want := []string{" S", " T", "-U", "+changed", " V", " W"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if h, cut := merge.Changes("", strings.Repeat("x\n", 500), 3, 100); !cut || len(h[0].Lines) != 100 {
		t.Errorf("%d lines, cut %v", len(h[0].Lines), cut)
	}
	if h, _ := merge.Changes("a\n", "a\n", 3, 100); h != nil {
		t.Errorf("no difference: %v", h)
	}
}

// FuzzThree: who changed nothing gets the other's text, both orders agree on what
// is a conflict, and no line that somebody wrote is lost.
func FuzzThree(f *testing.F) {
	f.Add("a\nb\nc\n", "a\nB\nc\n", "a\nb\nC\n")
	f.Add("", "x", "y\n")
	f.Add("a\na\na\n", "a\n", "a\na\na\na")
	f.Fuzz(func(t *testing.T, base, yours, theirs string) {
		for _, c := range []struct{ a, b, want string }{{yours, base, yours}, {base, theirs, theirs}, {yours, yours, yours}} {
			if got := merge.Three(base, c.a, c.b); got.Text != c.want || got.Conflicts != 0 {
				t.Fatalf("%q with %q and %q is %+v, want %q", base, c.a, c.b, got, c.want)
			}
		}
		got := merge.Three(base, yours, theirs)
		have := map[string]int{}
		for l := range strings.Lines(got.Text) {
			have[strings.TrimSuffix(l, "\n")]++
		}
		// What one side wrote anew is there, whatever the other did.
		for _, side := range []string{yours, theirs} {
			for l := range strings.Lines(side) {
				l = strings.TrimSuffix(l, "\n")
				if have[l] == 0 && !hasLine(base, l) {
					t.Fatalf("the line %q is lost of %q", l, got.Text)
				}
			}
		}
	})
}

func hasLine(text, line string) bool {
	for l := range strings.Lines(text) {
		if strings.TrimSuffix(l, "\n") == line {
			return true
		}
	}
	return false
}

// FuzzEndings: who saves a file as it was shown changes nothing.
func FuzzEndings(f *testing.F) {
	for _, s := range []string{"", "a", "a\r\nb\nc\r", "\ufeff\r\r\n\n", "\n\n", "\ufeff\ufeff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, file string) {
		if got := merge.Endings(file, strings.ReplaceAll(merge.Plain(file), "\n", "\r\n")); got != file {
			t.Fatalf("%q became %q", file, got)
		}
	})
}
