package render_test

import (
	"fmt"
	"html"
	"regexp"
	"strings"
	"testing"

	"satchel/web/render"
)

// TestSourceIsBounded contains attacks with source code whose HTML is many times longer.
func TestSourceIsBounded(t *testing.T) {
	const size, limit = 512 << 10, 10_000
	tags := regexp.MustCompile(`<[^>]*>`)
	for _, part := range []string{"'", "\"", "\"\"\"a'''", "&", "<", "<a ", "1 ", "'a", "1.\n", "if ", "''a", "/**/ "} {
		src := strings.Repeat(part, size/len(part))
		for _, name := range []string{"x.css", "x.py", "x.html", "x.txt"} {
			out, cut := render.Source(src, name, limit)
			// The limit counts the text, three marks of half a MiB, and a link for each of
			// the lines.
			if most := 1<<20 + 3<<19 + limit*110; len(out) > most {
				t.Errorf("%s of %q: %d bytes, and %d are the limit", name, part, len(out), most)
			}
			text := html.UnescapeString(tags.ReplaceAllString(string(out), ""))
			if !strings.HasPrefix(src, text) || !cut && text != src || cut && len(text) < 15_000 {
				t.Errorf("%s of %q: cut %v at %d bytes", name, part, cut, len(text))
			}
		}
	}
	out, _ := render.Source(strings.Repeat("'", 1000), "x.css", 10)
	if n := strings.Count(string(out), `class="ts"`); n != 1 {
		t.Errorf("%d elements of one class follow each other", n)
	}
}

// TestDocumentsAreBounded contains attacks with Markdown whose HTML is many times longer,
// or whose parts each cause another search of the text.
func TestDocumentsAreBounded(t *testing.T) {
	var notes strings.Builder
	for i := range 11_000 {
		fmt.Fprintf(&notes, "[^%d] \n\n[^%d]: b\n\n", i, i)
	}
	deep := render.Place{Path: strings.Repeat(strings.Repeat("d", 150)+"/", 6) + "a.md", Files: "/spaces/s_x/files/", Raw: "/spaces/s_x/raw/"}
	for name, src := range map[string]string{
		"footnotes":                 notes.String(),
		"one footnote":              "[^a]: b\n\n" + strings.Repeat("[^a]\n\n", 2000),
		"links from far below":      strings.Repeat("[x](a)\n\n", 8_000),
		"source code of few blocks": "```css\n" + strings.Repeat("'a'b", 50_000) + "\n```\n",
	} {
		d, ok := render.Markdown([]byte(src), deep)
		if len(d.HTML) > 2<<20 || ok && !strings.HasPrefix(name, "source") {
			t.Errorf("%s: shown %v, %d bytes", name, ok, len(d.HTML))
		}
	}
	few := strings.Repeat("a[^1]\n\n", 100) + "[^1]: b\n"
	if d, ok := render.Markdown([]byte(few), deep); !ok || !strings.Contains(string(d.HTML), "note-fn") {
		t.Error("a document with footnotes is refused")
	}
}
