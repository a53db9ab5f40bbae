package index

import (
	"slices"
	"strings"
	"testing"
)

func TestPathFilter(t *testing.T) {
	for _, c := range []struct{ glob, match, differ string }{
		{"docs", "docs/a.md docs/x/b.md x/docs/a.md", "docs.md mydocs/a.md"},
		{"docs/", "docs/a.md", "docs.md"},
		{"docs/**", "docs/a.md docs/x/b.md", "x/docs/a.md"},
		{"docs/*.md", "docs/a.md", "docs/x/b.md docs/a.txt"},
		{"**/test/*.go", "test/a.go x/y/test/a.go", "test/x/a.go"},
		{"*.md", "a.md x/y.md", "a.mdx"},
		{"*.{md,mdx}", "a.md x/y.mdx", "a.txt"},
		{"a?c.md", "abc.md", "ac.md a/c.md"},
		{"guide.md", "guide.md x/guide.md", "myguide.md"},
		{"/docs/a.md", "docs/a.md", "x/docs/a.md"},
		{"/space/docs/a.md", "docs/a.md", "x/docs/a.md"},
		{"a[b].(c)+.md", "a[b].(c)+.md", "ab.c.md"},
		{"readme.md", "README.md x/Readme.md", "read.md"},
		{"README.md", "README.md", "readme.md"},
		{"**/**/**/**", "a.md b/c.md", ""},
		{"/", "a.md b/c.md", ""},
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

// Filters apply before the best pages are picked: a filter finds its only page among very
// many that match better.
func TestFiltersApplyBeforeTheBestArePicked(t *testing.T) {
	files := map[string]string{"notes/one.md": "---\ntags: [Rare, other]\nversion: 5.1\nlang: fi\ndate: 2020-01-01\n---\n" + strings.Repeat("Long text of no interest.\n", 50) + "turbine"}
	for i := range 400 {
		files["docs/p"+strings.Repeat("i", i%7)+string(rune('a'+i%26))+string(rune('a'+i/26))+".md"] = "# Turbine\n\nturbine turbine turbine"
	}
	x, _ := indexOf(t, files)
	for _, q := range []string{
		"turbine path:notes", "turbine -path:docs", "turbine tag:rare", "turbine version:5.1.3", "turbine version:5", "turbine lang:fi",
		"turbine before:2021", "turbine created:2020-01", "tag:RARE", `turbine path:"notes/*.md" tag:other`,
	} {
		r := search(t, x, q)
		if got := paths(r); !slices.Equal(got, []string{"notes/one.md"}) || r.Total != 1 {
			t.Errorf("%s: %v of %d", q, got, r.Total)
		}
	}
	for _, q := range []string{"turbine version:5.2", "turbine tag:rar", "turbine -tag:rare path:notes", "turbine -version:5 path:notes"} {
		if got := paths(search(t, x, q)); len(got) > 0 {
			t.Errorf("%s: %v", q, got)
		}
	}
}

// No query is an error, even with the operators of other engines in any position.
func FuzzSearch(f *testing.F) {
	h := newHistory()
	h.commit(toBytes(map[string]string{"a.md": "# One\n\nalpha beta useAsyncData", "memory/b.md": "gamma NEAR OR AND NOT", "ja.md": "日本語の文章"}))
	x := openIndex(f, Options{})
	update(f, x, h)
	for _, s := range hostileQueries {
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
