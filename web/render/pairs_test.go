package render_test

import (
	"fmt"
	"strings"
	"testing"

	"satchel/web/render"
)

// TestPairs shows a difference as rows with the line before and the line after.
func TestPairs(t *testing.T) {
	for _, tt := range []struct{ name, patch, want string }{
		{"a changed line is beside the line before", "@@ -1,3 +1,3 @@\n one\n-a red cat\n+a green cat\n three\n", "one|one; a <del>red</del> cat|a <ins>green</ins> cat; three|three"},
		{"a new line before a changed line", "@@ -1 +1,2 @@\n-the old shop opens at nine\n+Hours\n+the new shop opens at nine\n", "|Hours; the <del>old</del> shop opens at nine|the <ins>new</ins> shop opens at nine"},
		{"a line without a twin is alone", "@@ -1,2 +1 @@\n-gone for good\n-the shop is open\n+the shop is closed\n", "gone for good|; the shop is <del>open</del>|the shop is <ins>closed</ins>"},
		{"lines are left out", "@@ -5 +5 @@\n-a\n+b\n", "gap; a|b"},
		{"only new lines need one column", "@@ -0,0 +1,2 @@\n+a\n+b\n", ""},
		{"only removed lines need one column", "@@ -1,2 +0,0 @@\n-a\n-b\n", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, p := range render.Pairs(render.Patch(tt.patch, render.NewBudget()).Rows) {
				side := func(r *render.Row) string {
					if r == nil {
						return ""
					}
					return string(r.HTML)
				}
				if p.Gap {
					got = append(got, "gap")
					continue
				}
				got = append(got, fmt.Sprintf("%s|%s", side(p.Old), side(p.New)))
			}
			if s := strings.Join(got, "; "); s != tt.want {
				t.Errorf("got  %s\nwant %s", s, tt.want)
			}
		})
	}
}
