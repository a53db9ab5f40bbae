package index

import (
	"slices"
	"strings"
	"testing"
	"time"
)

var testNow = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func parse(text string) parsedQuery {
	return parseQuery(text, testNow, Options{}.withDefaults())
}

func TestQueryLanguage(t *testing.T) {
	for _, c := range []struct {
		text  string
		words string
		check func(q parsedQuery) bool
	}{
		{`plain words here`, "plain words here", func(q parsedQuery) bool { return len(q.notes) == 0 }},
		{`"exact phrase" more`, "exact phrase more", func(q parsedQuery) bool { return slices.Equal(q.phrases, []string{"exact phrase"}) }},
		{`“curly quotes”`, "curly quotes", func(q parsedQuery) bool { return slices.Equal(q.phrases, []string{"curly quotes"}) }},
		{`never "closed quote`, "never closed quote", func(q parsedQuery) bool { return len(q.phrases) == 0 }},
		{`a -b -"c d"`, "a", func(q parsedQuery) bool { return slices.Equal(q.without, []string{"b", "c d"}) }},
		{`use-async-data - -- -`, "use-async-data - -- -", nil},
		{`source:nuxt path:docs/** kind:memory`, "", func(q parsedQuery) bool {
			return q.filters.source.is[0] == "nuxt" && q.filters.path.is[0] == "docs/**" && q.filters.kind.is[0] == "memory"
		}},
		{`SOURCE:Nuxt,Astro -path:"old docs/*"`, "", func(q parsedQuery) bool {
			return slices.Equal(q.filters.source.is, []string{"nuxt", "astro"}) && q.filters.path.not[0] == "old docs/*"
		}},
		{`lang:en version:5.1`, "", func(q parsedQuery) bool { return q.filters.lang.is[0] == "en" && q.filters.version.is[0] == "5.1" }},
		{`since:2026-01-01 before:7d x`, "x", func(q parsedQuery) bool {
			return q.filters.since.Format(time.DateOnly) == "2026-01-01" && q.filters.before.Format(time.DateOnly) == "2026-11-13"
		}},
		{`since:whenever x`, "x", func(q parsedQuery) bool { return len(q.notes) == 1 && q.filters.since.IsZero() }},
		{`sort:recent limit:20 x`, "x", func(q parsedQuery) bool { return q.sort == byDate && q.limit == 20 }},
		{`sort:sideways limit:-3 x`, "x", func(q parsedQuery) bool { return len(q.notes) == 2 && q.limit == 0 }},
		{`author:me x`, "author:me x", func(q parsedQuery) bool { return len(q.notes) == 1 && strings.Contains(q.notes[0], "author") }},
		{`https://example.org/a std::vector C:\x a: :b`, `https://example.org/a std::vector C:\x a: :b`, func(q parsedQuery) bool { return len(q.notes) == 0 }},
		{`NEAR(a b) AND NOT "`, "NEAR(a b) AND NOT", nil},
		{"\x00\xff", "", nil},
		{strings.Repeat("long ", 20_000), strings.TrimSpace(strings.Repeat("long ", 400)), func(q parsedQuery) bool { return len(q.notes) == 1 }},
	} {
		q := parse(c.text)
		if got := strings.Join(q.words, " "); got != c.words {
			t.Errorf("%.60q: words %.80q, want %.80q", c.text, got, c.words)
		}
		if c.check != nil && !c.check(q) {
			t.Errorf("%.60q: %+v", c.text, q)
		}
	}
}

func TestPathFilter(t *testing.T) {
	for _, c := range []struct{ glob, match, differ string }{
		{"docs", "docs/a.md docs/x/b.md x/docs/a.md", "docs.md mydocs/a.md"},
		{"docs/", "docs/a.md", "docs.md"},
		{"docs/**", "docs/a.md docs/x/b.md", "x/docs/a.md"},
		{"docs/*.md", "docs/a.md", "docs/x/b.md docs/a.txt"},
		{"**/test/*.go", "test/a.go x/y/test/a.go", "test/x/a.go"},
		{"*.md", "a.md x/y.md", "a.mdx"},
		{"a?c.md", "abc.md", "ac.md a/c.md"},
		{"guide.md", "guide.md x/guide.md", "myguide.md"},
		{"/docs/a.md", "docs/a.md", "x/docs/a.md"},
		{"a[b].(c)+.md", "a[b].(c)+.md", "ab.c.md"},
	} {
		x, _ := indexOf(t, func() map[string]string {
			m := map[string]string{}
			for p := range strings.FieldsSeq(c.match + " " + c.differ) {
				m[p] = "word"
			}
			return m
		}())
		got := paths(search(t, x, `word path:"`+c.glob+`"`))
		slices.Sort(got)
		want := strings.Fields(c.match)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", c.glob, got, want)
		}
	}
}

// Nothing that is typed may be an error, in any position and with any of
// FTS5's operators.
func FuzzSearch(f *testing.F) {
	h := newHistory()
	h.commit(toBytes(map[string]string{"a.md": "# One\n\nalpha beta useAsyncData", "memory/b.md": "gamma NEAR OR AND NOT", "ja.md": "日本語の文章"}))
	x := openIndex(f, Options{})
	update(f, x, h)
	for _, s := range []string{
		`a OR b`, `"`, `""`, `a" OR "b`, `NEAR(a b, 2)`, `{title}: x`, `a*`, `^a`, `-`, `--a`, `-"`, `(((`, `path:*`, `path:[`, `path:**/**/**`, `since:9999-99`,
		`since:99999y`, `limit:99999999999999999999`, `kind:memory`, `a:`, `日本 -語`, "\x00", `'; DROP TABLE docs; --`, `the of and`, `source:x`, `-path:a alpha`, `sort:path kind:file`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := x.Search(t.Context(), testCollections, Query{Text: s})
		if err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		if r.Scope == "" || len(r.Hits) > r.Total && r.Total != 0 {
			t.Fatalf("%q: %+v", s, r)
		}
	})
}
