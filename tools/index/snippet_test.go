package index

import (
	"fmt"
	"satchel/tools/index/present"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// snippetOf returns the only hit of a query on a page of one passage.
func snippetOf(t *testing.T, name, text, query string) present.Hit {
	t.Helper()
	x, _ := indexOf(t, map[string]string{name: text})
	defer x.Close()
	r, err := x.Search(t.Context(), testCollections, Query{Text: query, MaxTokens: 1}) // the budget leaves no room for the text
	if err != nil || len(r.Hits) != 1 {
		t.Fatalf("%s: %+v, %v", query, r, err)
	}
	return r.Hits[0]
}

func TestSnippetsShowWhy(t *testing.T) {
	filler := strings.Repeat("Filler of no interest stands in this line.\n\n", 12)
	for _, c := range []struct{ what, name, text, query, want, not string }{
		{"another form of the word", "a.md", filler + "They were configured in spring.\n\n" + filler, "configuring", "They were configured in spring.", ""},
		{"a part of an identifier", "a.md", filler + "Call useAsyncData with a key.\n\n" + filler, "async", "Call useAsyncData with a key.", ""},
		{"an identifier in words", "a.md", filler + "Set max_retry_count to 3.\n\n" + filler, "maxRetryCount", "Set max_retry_count to 3.", ""},
		{"Japanese", "a.md", filler + "港の事務所は七時に開きます。\n\n" + filler, "事務所", "港の事務所は七時に開きます。", ""},
		{"Korean", "a.md", filler + "항구 사무소는 일곱 시에 문을 엽니다.\n\n" + filler, "사무소", "항구 사무소는 일곱 시에 문을 엽니다.", ""},
		{"Russian, another form", "a.md", filler + "Лодки швартуются у причала.\n\n" + filler, "лодка", "Лодки швартуются у причала.", ""},
		{"the rarer of two words", "a.md", "A filler and a heron.\n\n" + filler + "Only one heron here: the grey one.\n", "filler grey", "Only one heron here: the grey one.", ""},
		{"a whole sentence of a long line", "a.md", strings.Repeat("Filler stands here. ", 40) + "The heron waits in the reeds. " + strings.Repeat("More of it follows. ", 40), "heron", "… The heron waits in the reeds. More of it follows.", "reeds. More of it follows. … …"},
		{"words of an endless sentence", "a.md", strings.Repeat("filler ", 300) + "heron " + strings.Repeat("words ", 300), "heron", "heron words", "iller filler filler …"},
		{"characters of one in Japanese", "a.md", strings.Repeat("文", 2000) + "港の事務所" + strings.Repeat("字", 2000), "事務所", "事務所", "\ufffd"},
		{"no front matter", "a.md", "---\ntitle: Other\nowner: heron\n---\n" + filler + "A heron waits.\n", "heron", "A heron waits.", "owner"},
		{"front matter where there is nothing else", "a.md", "---\nvalue: helix\n---\n", "helix", "value: helix", ""},
		{"text where only the title matches", "a.md", "---\ntitle: Heron\n---\n# Heron\n\nIt waits in the reeds.\n", "heron", "It waits in the reeds.", "---"},
		{"HTML without its marks", "a.html", "<p class='x'>A <b>heron</b> &amp; more</p>", "heron", "A heron & more", "<"},
		{"a table's row under its header", "a.md", "# T\n\n| bird | where |\n|---|---|\n" + strings.Repeat("| duck | in the pond, most of the time |\n", 20) + "| heron | reeds |\n", "heron", "| bird | where |\n|---|---|\n", ""},
		{"CSV under its header", "a.csv", "bird,where\n" + strings.Repeat("duck,pond\n", 60) + "heron,reeds\n", "heron", "bird,where\n", ""},
	} {
		h := snippetOf(t, c.name, c.text, c.query)
		if !strings.Contains(h.Snippet, c.want) || c.not != "" && strings.Contains(h.Snippet, c.not) {
			t.Errorf("%s: %q", c.what, h.Snippet)
		}
		if !utf8.ValidString(h.Snippet) || len(h.Snippet) > 3*320 {
			t.Errorf("%s: %d bytes: %q", c.what, len(h.Snippet), h.Snippet)
		}
	}
}

// A part of a code block is still shown as code.
func TestFencesInAnswersAreWhole(t *testing.T) {
	code := strings.Repeat("let filler = 1\n", 60) + "let heron = 2\n" + strings.Repeat("let more = 3\n", 60)
	for _, c := range []struct{ what, text, open, end string }{
		{"its middle", "# A\n\n```js\n" + code + "```\n\nAfter.\n", "```js\n", "\n```"},
		{"within a quote", "# A\n\n> ~~~~js\n> " + strings.ReplaceAll(strings.TrimSpace(code), "\n", "\n> ") + "\n> ~~~~\n", "> ~~~~js\n", "\n> ~~~~"},
	} {
		s := snippetOf(t, "a.md", c.text, "heron").Snippet
		if !strings.HasPrefix(s, c.open) || !strings.HasSuffix(s, c.end) || strings.Count(s, c.open) != 1 {
			t.Errorf("%s: %q", c.what, s)
		}
	}
	s := snippetOf(t, "a.md", "# A\n\n"+strings.Repeat("Filler.\n\n", 50)+"The heron:\n\n```js\n"+code+"```\n", "the heron").Snippet
	if strings.Count(s, "```") != 2 {
		t.Errorf("the beginning of code: %q", s)
	}
}

// The lines of a hit are exactly those that it shows.
func TestLinesOfHitsAreExact(t *testing.T) {
	var b strings.Builder
	for i := range 900 {
		if i%60 == 0 {
			fmt.Fprintf(&b, "## Part %d\n\n", i/60)
		}
		fmt.Fprintf(&b, "Line with mark%d on it.\n", i)
		if i%7 == 0 {
			b.WriteString("\n")
		}
	}
	text := b.String()
	lines := strings.Split(text, "\n")
	x, _ := indexOf(t, map[string]string{"a.md": text})
	for _, budget := range []int{1, 500, 900, 3000} {
		for _, n := range []int{0, 3, 59, 60, 61, 450, 899} {
			r, err := x.Search(t.Context(), testCollections, Query{Text: fmt.Sprintf("mark%d", n), MaxTokens: budget})
			if err != nil || len(r.Hits) != 1 {
				t.Fatal(r, err)
			}
			h := r.Hits[0]
			shown := h.Snippet
			if h.Text != "" {
				shown = h.Text
			}
			want := strings.Trim(strings.Join(lines[h.Lines[0]-1:h.Lines[1]], "\n"), "\n")
			if strings.Trim(shown, "\n") != want || !strings.Contains(shown, fmt.Sprintf("mark%d ", n)) {
				t.Errorf("budget %d, mark%d: lines %v are shown as %.120q, and are %.120q", budget, n, h.Lines, shown, want)
			}
			if want := fmt.Sprintf("Part %d", n/60); h.Heading != want && h.Text == "" {
				t.Errorf("mark%d is under %q, want %q", n, h.Heading, want)
			}
		}
	}
}

// Passages that were only cut because of their length are shown as one.
func TestNeighboursAreJoined(t *testing.T) {
	part := func(word string) string {
		return strings.Repeat("Words that fill a paragraph with "+word+".\n\n", 45)
	}
	text := "# Book\n\n" + part("introductions") + part("more") + "## One\n\n" + part("reeds") + part("heron") + "## Two\n\n" + part("otters") + part("more otters")
	x, _ := indexOf(t, map[string]string{"a.md": text})
	h := search(t, x, "heron").Hits[0]
	if !strings.HasPrefix(h.Text, "## One") || !strings.Contains(h.Text, "heron") || strings.Contains(h.Text, "otters") {
		t.Errorf("a section in two chunks: lines %v, %.60q", h.Lines, h.Text)
	}
	h = search(t, x, "reeds otters").Hits[0]
	if !strings.Contains(h.Text, "reeds") && !strings.Contains(h.Text, "otters") {
		t.Errorf("lines %v, %.60q", h.Lines, h.Text)
	}
}

// A page and the files that it is about name one another, whether the search finds the page
// or a file.
func TestRelatedFiles(t *testing.T) {
	x, _ := indexOf(t, map[string]string{
		"docs/heron.md":     "---\nrelevant_files:\n  - src/bird/heron.go\n  - ./src/pond/\n  - lib/*.ts\n  - gone.txt\n---\nHow herons wait.",
		"docs/other.md":     "Another page.",
		"src/bird/heron.go": "package bird\n\nfunc Stalk() {}\n", "src/pond/water.go": "package pond\n\nfunc Fill() {}\n", "src/pondlife.go": "package src\n\nfunc Frog() {}\n",
		"lib/wing.ts": "export function flap() {}\n",
	})
	for query, want := range map[string]string{
		"herons wait": "src/bird/heron.go src/pond/ lib/*.ts gone.txt", "Stalk": "docs/heron.md", "Fill": "docs/heron.md", "flap": "docs/heron.md", "Frog": "", "another page": "",
	} {
		if got := strings.Join(search(t, x, query).Hits[0].Related, " "); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	if got := paths(search(t, x, "heron.go")); !slices.Contains(got, "docs/heron.md") || !slices.Contains(got, "src/bird/heron.go") {
		t.Errorf("by the file's name: %v", got)
	}
}

// The pages that a file names do not depend on when they were indexed.
func TestRelatedPagesAreInTheOrderOfTheirPaths(t *testing.T) {
	files := map[string]string{"f.md": "A heron."}
	for i := range 7 {
		files[fmt.Sprintf("p%d.md", i)] = "---\nrelevant_files: [f.md]\n---\nA page."
	}
	x, h := indexOf(t, files)
	h.commit(map[string][]byte{"p0.md": []byte(files["p0.md"] + " And more.")})
	update(t, x, h)
	if got := strings.Join(search(t, x, "heron").Hits[0].Related, " "); got != "p0.md p1.md p2.md p3.md p4.md" {
		t.Error(got)
	}
}

// BenchmarkPresent compares a search that shows one hit's snippet with searches that show
// 10 and 50 hits with their texts. The difference is the cost of showing hits.
func BenchmarkPresent(b *testing.B) {
	files := map[string]string{}
	for i := range 300 {
		files[fmt.Sprintf("p%d.md", i)] = fmt.Sprintf("---\ntitle: Page %d\ndescription: About turbines\n---\n# Page %d\n\n%s## Turbines\n\n%s", i, i,
			strings.Repeat("Words that stand here and fill the page with `code` and more.\n\n", 60), strings.Repeat("Turbine blades turn in the wind, slowly.\n\n", 80))
	}
	x, _ := indexOf(b, files)
	for _, q := range []Query{{Text: "turbine blades", Limit: 1, MaxTokens: 1}, {Text: "turbine blades", Limit: 10, MaxTokens: 5000}, {Text: "turbine blades", Limit: 50, MaxTokens: 20_000}} {
		b.Run(fmt.Sprintf("%d hits in %d tokens", q.Limit, q.MaxTokens), func(b *testing.B) {
			for b.Loop() {
				r, err := x.Search(b.Context(), testCollections, q)
				if err != nil || len(r.Hits) == 0 {
					b.Fatal(r, err)
				}
			}
		})
	}
}

// No snippet has a code block without its code, or only a heading.
func TestSnippetsSaySomething(t *testing.T) {
	filler := strings.Repeat("Filler of no interest stands in this line.\n", 6)
	long := strings.Repeat("Otters swim past it. ", 15) + "\n"
	for _, c := range []struct{ what, text, query, want, not string }{
		{"code that no longer fits", "# A\n\nThe heron waits:\n\n" + filler + "\n```js\n" + strings.Repeat("call(\"the otter that swims past the reeds in spring\")\n", 40) + "```\n", "heron", "The heron waits:", "```"},
		{"the name of a file with its code", "# A\n\n" + filler + "\n```js [heron.js]\n" + "call(\"" + strings.Repeat("x", 310) + "\")\n```\n", "heron", "call(", "```\n```"},
		{"a heading above a long paragraph", "# A\n\n" + filler + "\n## Heron\n\n" + long, "heron", "Otters swim past it.", ""},
		{"a heading above code", "# A\n\n" + filler + "\n## Heron\n\n### More\n\n```js\n" + "call(\"" + strings.Repeat("x", 310) + "\")\n```\n", "heron", "call(", "```\n```"},
	} {
		s := snippetOf(t, "a.md", c.text, c.query).Snippet
		if !strings.Contains(s, c.want) || c.not != "" && strings.Contains(s, c.not) {
			t.Errorf("%s: %q", c.what, s)
		}
	}
}
