package render_test

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"satchel/web/render"
)

func TestPatch(t *testing.T) {
	for _, tt := range []struct{ name, patch, want string }{
		{"a change in a line", "--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n one\n-two <b>\n+two <i>\n three\n", " 1 1 one|- 2 0 two &lt;<del>b</del>&gt;|+ 0 2 two &lt;<ins>i</ins>&gt;|  3 3 three"},
		{"words", "@@ -1 +1 @@\n-the red cat's mat\n+the green cat's \"mat\"\n", "- 1 0 the <del>red</del> cat's mat|+ 0 1 the <ins>green</ins> cat's <ins>\"</ins>mat<ins>\"</ins>"},
		{"other lines", "@@ -1 +1 @@\n-aaaa\n+zzzz\n", "- 1 0 aaaa|+ 0 1 zzzz"},
		{"a new file", "--- /dev/null\n+++ b/x\n@@ -0,0 +1,2 @@\n+a\n+--- b\n", "+ 0 1 a|+ 0 2 --- b"},
		{"lines left out", "@@ -1 +1 @@\n-a\n+b\n@@ -9,1 +9,2 @@\n c\n+d\n", "- 1 0 a|+ 0 1 b|@ 0 0 |  9 9 c|+ 0 10 d"},
		{"no line end", "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n", "- 1 0 a|+ 0 1 b"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, r := range render.Patch(tt.patch, render.NewBudget()).Rows {
				got = append(got, fmt.Sprintf("%c %d %d %s", r.Kind, r.Old, r.New, r.HTML))
			}
			if s := strings.Join(got, "|"); strings.TrimSpace(s) != strings.TrimSpace(strings.Replace(tt.want, " 1 1 one", "  1 1 one", 1)) {
				t.Errorf("got  %s\nwant %s", s, tt.want)
			}
		})
	}
	if c := render.Patch("Binary files a/x and b/x differ\n", render.NewBudget()); !c.Binary {
		t.Error("a binary file is not told")
	}
	c := render.Patch("@@ -0,0 +1,9000 @@\n"+strings.Repeat("+x\n", 9000), render.NewBudget())
	if !c.Cut || len(c.Rows) != render.MaxPatchLines || c.Added != 9000 {
		t.Errorf("a long one: %v, %d rows, %d added", c.Cut, len(c.Rows), c.Added)
	}
}

// Attack: the smallest difference of files is expensive to find, or characters are longer
// as HTML. The page stays within its limits, and shows lines without marks.
func TestPagesAreBounded(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	dear := func(line func() string) string {
		var b strings.Builder
		b.WriteString("@@ -1,735 +1,735 @@\n")
		for range 35 {
			for _, mark := range []string{"-", "+"} {
				for range 20 {
					b.WriteString(mark + line() + "\n")
				}
			}
			b.WriteString(" x\n")
		}
		return b.String()
	}
	letters := func(of string) func() string {
		return func() string {
			b := make([]byte, 390)
			for i := range b {
				b[i] = of[r.Intn(len(of))]
			}
			return string(b)
		}
	}
	for name, patch := range map[string]string{"few letters": dear(letters("abc")), "no words": dear(letters(".,;")), "longer as HTML": dear(letters("&<")), "words of a letter": dear(letters("a b "))} {
		b, size, rows := render.NewBudget(), 0, 0
		for range 25 {
			c := render.Patch(patch, b)
			for _, row := range c.Rows {
				size += len(row.HTML)
			}
			rows += len(c.Rows)
			if len(c.Rows) < 1435 && !c.Cut {
				t.Errorf("%s: %d rows, and nothing tells that there are more", name, len(c.Rows))
			}
		}
		if size > render.MaxPageLines || rows < 500 {
			t.Errorf("%s: %d bytes, %d rows", name, size, rows)
		}
	}
	// A page's limit on steps limits how many of its lines are marked.
	b, marked := render.NewBudget(), 0
	for range 10 {
		for _, row := range render.Patch(dear(letters("a. ")), b).Rows {
			marked += strings.Count(string(row.HTML), "<del>")
		}
	}
	if marked > 20_000 {
		t.Errorf("%d marks", marked)
	}
	if c := render.Patch("@@ -1 +1 @@\n-one two\n+one three\n", render.NewBudget()); !strings.Contains(string(c.Rows[1].HTML), "<ins>three</ins>") {
		t.Errorf("another page: %v", c.Rows)
	}
}

// A file that goes on after the last line of its difference says so.
func TestTheEndOfADifference(t *testing.T) {
	const patch = "@@ -1,2 +1,3 @@\n one\n+two\n three\n"
	for n, want := range map[int]byte{3: ' ', 4: '@'} {
		c := render.Patch(patch, render.NewBudget())
		c.End(n)
		if got := c.Rows[len(c.Rows)-1].Kind; got != want {
			t.Errorf("a file of %d lines ends with %q, want %q", n, got, want)
		}
	}
}
