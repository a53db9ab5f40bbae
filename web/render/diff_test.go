package render_test

import (
	"fmt"
	"strings"
	"testing"

	"satchel/web/render"
)

func TestPatch(t *testing.T) {
	for _, tt := range []struct{ name, patch, want string }{
		{"a change in a line", "--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n one\n-two <b>\n+two <i>\n three\n", " 1 1 one|- 2 0 two &lt;<del>b</del>&gt;|+ 0 2 two &lt;<ins>i</ins>&gt;|  3 3 three"},
		{"other lines", "@@ -1 +1 @@\n-aaaa\n+zzzz\n", "- 1 0 aaaa|+ 0 1 zzzz"},
		{"a new file", "--- /dev/null\n+++ b/x\n@@ -0,0 +1,2 @@\n+a\n+--- b\n", "+ 0 1 a|+ 0 2 --- b"},
		{"lines left out", "@@ -1 +1 @@\n-a\n+b\n@@ -9,1 +9,2 @@\n c\n+d\n", "- 1 0 a|+ 0 1 b|@ 0 0 |  9 9 c|+ 0 10 d"},
		{"no line end", "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n", "- 1 0 a|+ 0 1 b"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, r := range render.Patch(tt.patch).Rows {
				got = append(got, fmt.Sprintf("%c %d %d %s", r.Kind, r.Old, r.New, r.HTML))
			}
			if s := strings.Join(got, "|"); strings.TrimSpace(s) != strings.TrimSpace(strings.Replace(tt.want, " 1 1 one", "  1 1 one", 1)) {
				t.Errorf("got  %s\nwant %s", s, tt.want)
			}
		})
	}
	if c := render.Patch("Binary files a/x and b/x differ\n"); !c.Binary {
		t.Error("a binary file is not told")
	}
	c := render.Patch("@@ -0,0 +1,9000 @@\n" + strings.Repeat("+x\n", 9000))
	if !c.Cut || len(c.Rows) != render.MaxPatchLines || c.Added != 9000 {
		t.Errorf("a long one: %v, %d rows, %d added", c.Cut, len(c.Rows), c.Added)
	}
}
