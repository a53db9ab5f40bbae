package present

import (
	"strings"
	"testing"
	"unicode/utf8"

	"satchel/tools/index/parse"
	"satchel/tools/index/postings"
)

func TestWholeFences(t *testing.T) {
	for text, want := range map[string]string{
		"a\n```\nb": "a\n```\nb\n```", "```\na\n```": "```\na\n```", "no code": "no code", "~~~~\n```\nx\n": "~~~~\n```\nx\n~~~~",
	} {
		if got := wholeFences(text, ""); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}

// Whatever the text and the words, a snippet is text, of a bounded size, with its
// fences whole, and its lines are among the passage's.
func FuzzSnippet(f *testing.F) {
	for _, s := range []string{
		"# A\n\n```\nheron\n", "heron 鷺。 heron! h", "> ~~~\n> heron\nx", "| a |\n|---|\n| heron |", "---\nheron: x\n---\n", "<p>heron<script>", "heron\x00\xff", "~~~\n```\n~~~ x\nheron",
		strings.Repeat("heron ", 300), strings.Repeat("鷺", 400), "00:00:01.0 --> 2\nheron", "- ```\n  heron",
	} {
		for _, name := range []string{"a.md", "a.html", "a.vtt", "a.csv", "a.go", "a.ipynb"} {
			f.Add(name, s, "heron 鷺")
		}
	}
	f.Fuzz(func(t *testing.T, name, text, query string) {
		a := parse.NewAnalyzer()
		w := newHighlightTerms(nil)
		a.Words(query, func(o parse.Word) { w.add(o.Term, 1) })
		p := parse.Parse(name, []byte(text), 20)
		for _, c := range p.Chunks {
			ps := passage{Passage: postings.Passage{Start: c.Start, End: c.End, Lines: c.Lines, Text: text[c.Start:c.End], Crumbs: strings.Join(c.Crumbs, "\n"), Anchors: strings.Join(c.Anchors, "\n")}}
			s := makeSnippet(a, ps, name, w, snippetBytes)
			if !utf8.ValidString(s.text) || strings.ContainsRune(s.text, 0) {
				t.Fatalf("no text: %q", s.text)
			}
			if s.lines[0] < c.Lines[0] || s.lines[1] > c.Lines[1] || s.lines[0] > s.lines[1] || s.from > s.to || s.to > len(ps.Text) {
				t.Fatalf("lines %v, bytes %d to %d of %+v", s.lines, s.from, s.to, c)
			}
			if len(s.text) > 3*(snippetBytes+parse.MaxHead)+4*len(s.text)/snippetBytes {
				t.Fatalf("%d bytes of snippet", len(s.text))
			}
			if parse.Format(name) == parse.FormatMarkdown {
				if again := wholeFences(s.text, ""); again != s.text {
					t.Fatalf("an open fence: %q", s.text)
				}
			}
		}
	})
}
