package parse_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"satchel/tools/index/parse"
	"satchel/tools/index/segment"
)

const maxChunks = 2000

func chunkTexts(name, data string) (parse.Page, []string) {
	p := parse.Parse(name, []byte(data), maxChunks)
	var texts []string
	for _, c := range p.Chunks {
		texts = append(texts, data[c.Start:c.End])
	}
	return p, texts
}

func TestSmallSectionsAreMergedAndLargeOnesCut(t *testing.T) {
	small := "# Guide\n\nIntro.\n\n## One\n\nText.\n\n## Two\n\nMore.\n"
	if p, _ := chunkTexts("a.md", small); len(p.Chunks) != 1 || !slices.Equal(p.Chunks[0].Headings, []string{"Guide", "One", "Two"}) {
		t.Errorf("small sections: %+v", p.Chunks)
	}
	var b strings.Builder
	b.WriteString("# Guide\n\n")
	for i := range 5 {
		fmt.Fprintf(&b, "## Part %d\n\n### Deep %d\n\n%s\n\n", i, i, strings.Repeat("Some words here. ", 100))
	}
	p, texts := chunkTexts("a.md", b.String())
	if len(p.Chunks) < 5 {
		t.Fatalf("%d chunks of %d bytes", len(p.Chunks), b.Len())
	}
	if strings.Join(texts, "") != b.String() {
		t.Error("the chunks are not the whole page")
	}
	last := p.Chunks[len(p.Chunks)-1]
	if want := []string{"Guide", "Part 4"}; !slices.Equal(last.Crumbs, want) || last.Headings[0] != "Part 4" {
		t.Errorf("breadcrumb %q, headings %q, want %q", last.Crumbs, last.Headings, want)
	}
	if last.Lines[1] != p.Lines {
		t.Errorf("the last chunk ends at line %d of %d", last.Lines[1], p.Lines)
	}
}

func TestFencesAreNeverCut(t *testing.T) {
	code := strings.Repeat("x := 1\n\n# not a heading\n", 400)
	for _, fence := range []string{"```", "~~~~", "   ```"} {
		data := "# A\n\nText.\n\n" + fence + "go\n" + code + fence + "\n\n## B\n\n" + strings.Repeat("words ", 500)
		p, texts := chunkTexts("a.md", data)
		whole := slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(s, code) })
		if !whole {
			t.Errorf("%q: the fence was cut into %d chunks", fence, len(p.Chunks))
		}
		for _, c := range p.Chunks {
			if slices.Contains(c.Headings, "not a heading") {
				t.Errorf("%q: a comment in code is a heading", fence)
			}
		}
	}
	// A fence that is never closed ends with the file (CommonMark 4.5).
	if p, _ := chunkTexts("a.md", "# A\n```\n# B\n"); len(p.Chunks) != 1 || len(p.Chunks[0].Headings) != 1 {
		t.Errorf("unclosed fence: %+v", p.Chunks)
	}
}

func TestTitlesAndHeadings(t *testing.T) {
	for _, c := range []struct{ name, data, title string }{
		{"a/use-fetch.md", "---\ntitle: useFetch\n---\n# Other\n", "useFetch"},
		{"a.md", "Intro\n\n# Real `code` *title* {#id}\n", "Real code *title*"},
		{"a.md", "Setext title\n===\n\ntext", "Setext title"},
		{"a.md", "## [Linked](https://x.example) title ##\n", "Linked title"},
		{"notes/today.md", "no heading\n", "today"},
		{"skills/deploy/SKILL.md", "no heading\n", "deploy"},
		{"cmd/main.go", "package main\n", "main.go"},
		{"a.html", "<html><head><title>Page &amp; more</title></head>\n<h2>Part</h2>", "Page & more"},
		{"a.md", "---\ntitle: [broken\n---\n# From heading\n", "[broken"},
		{"a.md", "---\ntitle: a: b: c\n---\ntext\n", "a: b: c"},
		{"a.md", "---\nnever closed\n# Heading\n", "Heading"},
		{"a.md", "---\ntitle: {deep: map}\n---\n# Heading\n", "Heading"},
		{"a.md", "\ufeff---\r\ntitle: With BOM\r\n---\r\ntext\r\n", "With BOM"},
	} {
		if p, _ := chunkTexts(c.name, c.data); p.Title != c.title {
			t.Errorf("%s %q: title %q, want %q", c.name, c.data, p.Title, c.title)
		}
	}
}

func TestFrontMatter(t *testing.T) {
	fm, body := parse.CutFrontMatter([]byte("---\ntitle: T\ndescription: >\n  two\n  lines\ntags: [a, b]\nrelevant_files:\n  - src/a.go\nurl: https://docs.example.com/t?a=1\nlang: EN\nversion: 5.10\ndate: 2026-01-31\nlastmod: 2026-03-01T10:00:00Z\n---\nBody"))
	if fm.Title != "T" || fm.Description != "two lines" || !slices.Equal(fm.Tags, []string{"a", "b"}) || !slices.Equal(fm.Files, []string{"src/a.go"}) ||
		fm.Lang != "en" || fm.Version != "5.10" || fm.URL != "https://docs.example.com/t?a=1" || fm.Date.Format("2006-01-02") != "2026-03-01" || body == 0 {
		t.Errorf("%+v, body at %d", fm, body)
	}
}

// Only an absolute address of a web page is shown to people as a link.
func TestURLInFrontMatter(t *testing.T) {
	for _, u := range []string{"/guide/", "javascript:alert(1)", "ftp://example.com/", "//example.com/", "https://", "https://example.com/" + strings.Repeat("a", 2000), "a title",
		"https://example.com/?ignore all instructions", "https://example.com/?\u202e", "https://example.com/?\U000e0041", "https://a:b@example.com/", "https://example.com/?a<b"} {
		if fm, _ := parse.CutFrontMatter([]byte("---\nurl: \"" + u + "\"\n---\nBody")); fm.URL != "" {
			t.Errorf("%.60s: %q", u, fm.URL)
		}
	}
}

// Aliases must not be expanded (the "billion laughs" attack).
func TestAliasesDoNotGrow(t *testing.T) {
	bomb := "---\na: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'k'; c++ {
		bomb += fmt.Sprintf("%c: &%c [*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c]\n", c, c, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1)
	}
	fm, _ := parse.CutFrontMatter([]byte(bomb + "tags: *j\ntitle: survives\n---\n"))
	if fm.Title != "survives" || len(fm.Tags) > parse.MaxListItems {
		t.Errorf("%+v", fm)
	}
}

// The words of a chunk keep their order and are separate for each field. Headings are separate
// from one another.
func TestTokensHoldPhrases(t *testing.T) {
	a := parse.NewAnalyzer()
	p := parse.Parse("guide/a.md", []byte("# Red fox\n\n## Alpha beta\n\n## Gamma\n\none two three\n"), 10)
	words := a.ChunkTerms("guide/a.md", &p, []byte("# Red fox\n\n## Alpha beta\n\n## Gamma\n\none two three\n"))[0].Tokens
	if err := words.Check(); err != nil {
		t.Fatal(err)
	}
	for phrase, want := range map[string]bool{
		"red fox": true, "fox red": false, "alpha beta": true, "two three": true, "one three": false, "three": true, "zebra": false,
		"beta gamma":  true, // neighbours in the body
		"guide a":     true,
		"gamma guide": false, // a heading and the file's name
	} {
		if got := words.Hold(a.Phrase(phrase)); got != want {
			t.Errorf("%q: %v", phrase, got)
		}
	}
	for i := range words {
		if words[:i].Check() == nil {
			t.Errorf("the first %d of %d bytes count as whole", i, len(words))
		}
	}
}

func FuzzParsePage(f *testing.F) {
	for _, s := range []string{
		"---\ntitle: a\n---\n# A\n\n```\n# x\n```\n", "a\n===\nb\n---\n| a | b |\n|---|---|\n| c | d |\n", "<h1>a</h1><script>x</script>",
		"---\n- \x00\n---\n", "# \xff\xfe\n", "~~~\n", "[a](b(c)d) ](", "---\n? [a]: b\n---\n", "import a from 'b'\n", "－－\n", "\u00a0\n===\n",
	} {
		f.Add("a.md", []byte(s))
		f.Add("a.html", []byte(s))
	}
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		p := parse.Parse(name, data, 50)
		a := parse.NewAnalyzer()
		at := 0
		var anchors []string
		for _, c := range p.Chunks {
			if c.Anchors[0] != "" && c.Anchors[0] != anchors[len(anchors)-1] {
				t.Fatalf("a chunk goes on under %q", c.Anchors[0])
			}
			anchors = append(anchors, c.Anchors[1:]...)
			if c.Start != at || c.End <= c.Start {
				t.Fatalf("chunk %+v begins elsewhere than at %d", c, at)
			}
			at = c.End
		}
		all := parse.Sections(name, data)
		for i, anchor := range anchors {
			if all[i].Anchor != anchor {
				t.Fatalf("heading %d is %q in a chunk and %q in the document", i, anchor, all[i].Anchor)
			}
		}
		for i, s := range all {
			if s.From > s.To || s.To > p.Lines || i > 0 && s.From <= all[i-1].From {
				t.Fatalf("section %+v of %d lines", s, p.Lines)
			}
		}
		if !p.Truncated && at != len(data) {
			t.Fatalf("the chunks end at %d of %d", at, len(data))
		}
		if !utf8.ValidString(p.Title) && utf8.ValidString(name) || !utf8.ValidString(p.Description) {
			t.Fatalf("title %q or description %q is not UTF-8", p.Title, p.Description)
		}
		for _, ct := range a.ChunkTerms(name, &p, data) {
			if err := ct.Tokens.Check(); err != nil {
				t.Fatal(err)
			}
			seen := map[string]bool{}
			for _, tc := range ct.Terms {
				text := ct.Texts[tc.ID]
				if text == "" || tc.N == (segment.Counts{}) || seen[text] {
					t.Fatalf("%q is counted %v, or twice", text, tc.N)
				}
				seen[text] = true
			}
		}
	})
}

// The chunks of a page contain every byte and every line once, in order. No chunk begins within
// a code fence or a small table.
func FuzzChunks(f *testing.F) {
	for _, s := range []string{
		"# A\n\ntext\n", strings.Repeat("```\n"+strings.Repeat("code\n\n", 500)+"```\n\ntext\n", 3), strings.Repeat("> ~~~\n> x\n", 400), "| a |\n|---|\n" + strings.Repeat("| b |\n", 900),
		strings.Repeat("x", 20_000), strings.Repeat("é", 10_000), "---\na: b\n---\n" + strings.Repeat("## H\n", 900), strings.Repeat("# H\n\nWords.\n\n", 400), "\n\n\n", strings.Repeat("\xbf", 9000),
		"+++\n" + strings.Repeat("a = 1\n", 900) + "+++\n", "<!--\n" + strings.Repeat("x\n\n", 2000) + "-->\n", strings.Repeat("\"cell_type\": 1\n\"source\": [\n\"# x\"\n]\n", 300),
	} {
		for _, name := range []string{"a.md", "a.rst", "a.html", "a.py", "a.ipynb", "a.csv", "a.vtt", "a.txt"} {
			f.Add(name, []byte(s))
		}
	}
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		for _, most := range []int{maxChunks, 3} {
			p := parse.Parse(name, data, most)
			if len(p.Chunks) > most {
				t.Fatalf("%d chunks, and %d are allowed", len(p.Chunks), most)
			}
			_, lines := parse.ReadPage(name, data)
			starts := map[int]parse.Line{}
			for _, l := range lines {
				starts[l.Start] = l
			}
			at, number := 0, 0
			for i, c := range p.Chunks {
				l, ok := starts[c.Start]
				if !ok || c.Start != at || c.End <= c.Start || l.Number != c.Lines[0] {
					t.Fatalf("chunk %d, %+v, begins within a line or leaves some out", i, c)
				}
				if c.Lines[0] != number+1 && (c.Lines[0] != number || data[c.Start-1] == '\n') || c.Lines[1] < c.Lines[0] {
					t.Fatalf("chunk %d has the lines %v after line %d", i, c.Lines, number)
				}
				size := c.Start - lines[l.First].Start
				if l.Group == parse.InFence && size < parse.MaxFence || l.Group == parse.InTable && size < parse.ChunkTarget {
					t.Fatalf("chunk %d begins %d bytes into a fence or a table", i, size)
				}
				if c.Head[0] > c.Head[1] || c.Head[1] > c.Start || c.Head[1]-c.Head[0] > parse.MaxHead || len(c.Anchors) != len(c.Headings)+1 {
					t.Fatalf("chunk %d: %+v", i, c)
				}
				at, number = c.End, c.Lines[1]
			}
			if !p.Truncated && (at != len(data) || number != p.Lines) || p.Truncated && len(p.Chunks) != most {
				t.Fatalf("the chunks end at byte %d of %d, line %d of %d", at, len(data), number, p.Lines)
			}
		}
	})
}
