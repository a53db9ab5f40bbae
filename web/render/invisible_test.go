package render_test

import (
	"strings"
	"testing"

	"satchel/web/render"
)

// Attack: a difference contains text that a model reads but a person does not see, or sees
// elsewhere.
func TestAttackNothingIsInvisibleInADifference(t *testing.T) {
	for name, hidden := range map[string]string{
		"tags": "\U000E0001\U000E0041\U000E007F", "bidirectional controls": "\u202A\u202E\u2066\u2069\u200F\u061C", "no width": "\u200B\u200C\u200D\u2060\uFEFF",
		"variation selectors": "\uFE00\uFE0F\U000E0100\U000E01EF", "fillers": "\u115F\u1160\u3164\uFFA0\u034F\u17B4\u180E\u2800", "spaces": "\u00A0\u2003\u3000\u00AD",
		"controls": "\x01\x1b\x7f\u0085\r\f", "line ends": "\u2028\u2029", "private": "\uE000\U0010FFFD", "not assigned": "\U000E0FFF\uFFFF\U000E1000",
	} {
		for _, patch := range []string{
			"@@ -0,0 +1,1 @@\n+a" + hidden + "<b>\n",
			"@@ -1,1 +1,1 @@\n-what there is a<b>\n+what there is a" + hidden + "<b>\n",
		} {
			rows := render.Patch(patch, render.NewBudget()).Rows
			got := string(rows[len(rows)-1].HTML)
			for _, r := range hidden {
				if strings.ContainsRune(got, r) {
					t.Errorf("%s: %U is in %q", name, r, got)
				}
			}
			if n := strings.Count(got, `<span class="odd">⟨U+`); n != len([]rune(hidden)) || !strings.HasSuffix(strings.ReplaceAll(strings.ReplaceAll(got, "</ins>", ""), "<ins>", ""), "</span>&lt;b&gt;") {
				t.Errorf("%s: %d are shown in %q", name, n, got)
			}
		}
	}
	const plain = "Grüße, 日本語 — “x” é\tعربى 🙂"
	if got := render.Patch("@@ -0,0 +1,1 @@\n+"+plain+"\n", render.NewBudget()).Rows[0].HTML; string(got) != plain {
		t.Errorf("%q", got)
	}
}

// The page shows a line completely, or says that something is missing.
func TestLongLines(t *testing.T) {
	long := strings.Repeat("kind ", 2000) + "evil"
	if c := render.Patch("@@ -0,0 +1,1 @@\n+"+long+"\n", render.NewBudget()); c.Cut || string(c.Rows[0].HTML) != long {
		t.Errorf("cut %v, %d bytes", c.Cut, len(c.Rows[0].HTML))
	}
	if c := render.Patch("@@ -0,0 +1,1 @@\n+"+strings.Repeat(long, 9)+"\n", render.NewBudget()); !c.Cut {
		t.Error("nothing tells that a line was cut")
	}
}
