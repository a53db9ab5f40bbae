package render_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/net/html"

	"satchel/web/render"
)

// FuzzMarkdown checks that a page contains only elements, attributes and addresses that
// this package writes itself.
func FuzzMarkdown(f *testing.F) {
	for _, s := range []string{"# a\n\n[x](javascript:alert(1)) <b>x</b>", "<details>\n<summary>a</summary>\n\n- [ ] b\n\n</details>", "|a|\n|-|\n|<br>|", "![x](a.png \"t\")", "a[^1]\n\n[^1]: b", "---\na: 1\n---\n> <kbd>", "```html\n<a href=x>\n```", "<svg><style><b>", "[a]: //x\n[a]", "<http://a\">", "www.a.b/\"x",
		"# files-a", "## Note fn", "# main\n# main", "<table><tr><td>\n\n|a|\n|-|\n\n</td></tr></table>"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, src string) {
		d, ok := render.Markdown([]byte(src), place)
		if !ok {
			return
		}
		check(t, string(d.HTML))
		if !utf8.ValidString(string(d.HTML)) {
			t.Errorf("%q is no text", d.HTML)
		}
	})
}

// FuzzSource checks that the text of highlighted code is the code itself.
func FuzzSource(f *testing.F) {
	for _, name := range []string{"a.go", "a.py", "a.sh", "a.html", "a.yaml", "a.json", "a.css", "a.sql", "a.rs", "a.diff", "Makefile", "a.lua"} {
		f.Add("a = \"b\\\n\" // c /* d */ <e f='g'> # h\n--[[\n'", name)
	}
	f.Fuzz(func(t *testing.T, src, name string) {
		if !utf8.ValidString(src) || strings.ContainsAny(src, "\r\x00") {
			return
		}
		out, _ := render.Source(src, name, 1<<30)
		check(t, string(out))
		var text strings.Builder
		z := html.NewTokenizer(strings.NewReader(string(out)))
		for kind := z.Next(); kind != html.ErrorToken; kind = z.Next() {
			if kind == html.TextToken {
				text.Write(z.Text())
			}
		}
		if text.String() != src {
			t.Errorf("%q is shown as %q", src, text.String())
		}
	})
}

// FuzzPatch checks that the text of a difference is never HTML, and that its lines stay
// within their limits.
func FuzzPatch(f *testing.F) {
	f.Add("diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n a\n-b <c>\n+b <d>\n")
	f.Add("@@ -0,0 +1 @@\n+a\n\\ No newline at end of file\n")
	f.Fuzz(func(t *testing.T, patch string) {
		c := render.Patch(patch, render.NewBudget())
		if len(c.Rows) > render.MaxPatchLines {
			t.Errorf("%d rows", len(c.Rows))
		}
		for _, r := range c.Rows {
			if err := unsafe(string(r.HTML)); err != nil {
				t.Errorf("%v in %s", err, r.HTML)
			}
			if r.Old < 0 || r.New < 0 {
				t.Errorf("%+v", r)
			}
		}
	})
}
