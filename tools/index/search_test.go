package index

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"satchel/tools/index/parse"
	"satchel/tools/index/rank"
)

var corpus = map[string]string{
	"resources/context.md":                                  "---\nname: Context\ndescription: Who I am\n---\nI live in Bergen and row boats.",
	"skills/deploy/SKILL.md":                                "---\nname: deploy\ndescription: How to deploy\n---\nRun the pipeline, then watch the logs.",
	"memory/preference/editor.md":                           "---\nvalue: helix\nconfidence: 0.9\nlast_confirmed: 2026-10-01\n---\nThe user prefers the helix editor.",
	"knowledge/nuxt/use-async-data.md":                      "---\ntitle: useAsyncData\ndescription: Fetch data on the server\ndate: 2026-02-01\n---\n# useAsyncData\n\nIt resolves data in an SSR-friendly way.\n\n## Options\n\nSet `lazy` to not block.\n",
	"knowledge/nuxt/use-fetch.md":                           "---\ntitle: useFetch\n---\nA wrapper around useAsyncData and $fetch. useAsyncData useAsyncData useAsyncData.",
	"knowledge/nuxt/data.md":                                "# Data\n\nMentions useAsyncData once, and async work. Use it. Data is here.",
	"knowledge/docs/v5.1/en/strings.md":                     "# Strings\n\nThe quick brown fox. Version 1.0.21 fixed the snake_case_name parser.",
	"knowledge/docs/v5.1/en/strings.conflict-0a1b2c3d4e.md": "# Strings\n\nThe quick brown fox, the losing side.",
	"knowledge/docs/v4.0/en/strings.md":                     "# Strings\n\nThe brown and very quick fox.",
	"knowledge/docs/v5.1/ja/strings.md":                     "# 文字列\n\n日本語の文書を検索する方法について説明します。",
	"src/parser.go":                                         "package parser\n\n// ParseConfig reads the configuration.\nfunc ParseConfig(name string) error {\n\treturn nil\n}\n",
	"notes.html":                                            "<html><head><title>Kept notes</title><script>var hidden = 1</script></head><body><p>A zebra &amp; its <b>stripes</b>.</p></body></html>",
	"data.bin":                                              "zebra\x00\x01\x02",
}

func TestSearch(t *testing.T) {
	x, _ := indexOf(t, corpus)
	for _, c := range []struct {
		query string
		first string   // the best hit; "" if there is none
		only  []string // all hits, if not nil
		not   string   // a path that must not be among the hits
	}{
		{query: "useAsyncData", first: "knowledge/nuxt/use-async-data.md"},
		{query: "use async data", first: "knowledge/nuxt/use-async-data.md"},
		{query: "use-async-data", first: "knowledge/nuxt/use-async-data.md"},
		{query: "useasyncdata", first: "knowledge/nuxt/use-async-data.md"},
		{query: "how do I fetch with useFetch?", first: "knowledge/nuxt/use-fetch.md"},
		{query: "snakeCaseName", first: "knowledge/docs/v5.1/en/strings.md"},
		{query: "1.0.21", first: "knowledge/docs/v5.1/en/strings.md", only: []string{"knowledge/docs/v5.1/en/strings.md"}},
		{query: "v1.0.21", first: "knowledge/docs/v5.1/en/strings.md"},
		{query: `"quick brown fox"`, only: []string{"knowledge/docs/v5.1/en/strings.md"}},
		{query: "quick brown fox", first: "knowledge/docs/v5.1/en/strings.md", not: "knowledge/docs/v5.1/en/strings.conflict-0a1b2c3d4e.md"},
		{query: "fox -version", only: []string{"knowledge/docs/v4.0/en/strings.md"}},
		{query: `fox -"very quick"`, only: []string{"knowledge/docs/v5.1/en/strings.md"}},
		{query: "fox version:4", only: []string{"knowledge/docs/v4.0/en/strings.md"}},
		{query: "fox version:v5.1", only: []string{"knowledge/docs/v5.1/en/strings.md"}},
		{query: "strings lang:ja", first: "knowledge/docs/v5.1/ja/strings.md"},
		{query: "文書の検索", first: "knowledge/docs/v5.1/ja/strings.md"},
		{query: "editors preferred", first: "memory/preference/editor.md"},
		{query: "helix kind:memory", only: []string{"memory/preference/editor.md"}},
		{query: "helix kind:skill", only: []string{}},
		{query: "kind:skill", only: []string{"skills/deploy/SKILL.md"}},
		{query: "deploying", first: "skills/deploy/SKILL.md"},
		{query: "ParseConfig", first: "src/parser.go"},
		{query: "parse config path:src", only: []string{"src/parser.go"}},
		{query: "zebra", only: []string{"notes.html"}},
		{query: "hidden", only: []string{}},
		{query: "stripes", first: "notes.html"},
		{query: "since:2026-01-01", only: []string{"memory/preference/editor.md", "knowledge/nuxt/use-async-data.md"}},
		{query: "data since:2026-01-01", only: []string{"knowledge/nuxt/use-async-data.md"}},
		{query: "before:2026-03-01", only: []string{"knowledge/nuxt/use-async-data.md"}},
		{query: "the of and", first: "knowledge/docs/v4.0/en/strings.md"},
		{query: "data.bin", first: "data.bin"},
		{query: "source:elsewhere fox", only: []string{}},
	} {
		got := paths(search(t, x, c.query))
		if c.only != nil && !slices.Equal(got, c.only) {
			t.Errorf("%s: %v, want only %v", c.query, got, c.only)
		}
		if c.first != "" && c.query != "the of and" && (len(got) == 0 || got[0] != c.first) {
			t.Errorf("%s: %v, want %s first", c.query, got, c.first)
		}
		if c.not != "" && slices.Contains(got, c.not) {
			t.Errorf("%s: %v", c.query, got)
		}
	}
}

func TestHitTellsWhereAndWhy(t *testing.T) {
	page := "---\ntitle: Handbook\ndescription: All of it\n---\n# Handbook\n\n" + strings.Repeat("Filler words stand here.\n\n", 120) +
		"## Ballast tanks\n\nFirst line.\nThe trim valve must be shut before departure.\nLast line.\n\n" + strings.Repeat("More filler.\n\n", 300)
	x, h := indexOf(t, map[string]string{"knowledge/handbook.md": page})
	r := search(t, x, "trim valve")
	if len(r.Hits) != 1 {
		t.Fatalf("%+v", r)
	}
	hit := r.Hits[0]
	if hit.Heading != "Ballast tanks" || hit.Anchor != "ballast-tanks" || hit.Title != "Handbook" || hit.Description != "All of it" || hit.Kind != parse.KindKnowledge {
		t.Errorf("%+v", hit)
	}
	if !strings.Contains(hit.Snippet, "The trim valve must be shut before departure.") {
		t.Errorf("snippet %q", hit.Snippet)
	}
	lines := strings.Split(page, "\n")
	if got := strings.Join(lines[hit.Lines[0]-1:hit.Lines[1]], "\n"); !strings.Contains(got, "trim valve") || strings.TrimRight(hit.Text, "\n") != strings.TrimRight(got, "\n") {
		t.Errorf("lines %v do not hold the text %q", hit.Lines, hit.Text)
	}
	if hit.Blob != h.trees[h.head]["knowledge/handbook.md"] || r.IndexCommit != h.head || r.IndexAge != 0 {
		t.Errorf("etag %s, commit %s, age %s", hit.Blob, r.IndexCommit, r.IndexAge)
	}
}

func TestBudgetIsKeptAndTiersAreTwo(t *testing.T) {
	files := map[string]string{}
	for i := range 30 {
		files[fmt.Sprintf("knowledge/p%02d.md", i)] = fmt.Sprintf("# Page %d\n\nAbout turbines.\n\n%s", i, strings.Repeat("Turbine blades turn in the wind, slowly. ", 60))
	}
	x, _ := indexOf(t, files)
	for _, budget := range []int{200, 1000, 5000, 20_000} {
		r, err := x.Search(t.Context(), testCollections, Query{Text: "turbine limit:30", MaxTokens: budget})
		if err != nil {
			t.Fatal(err)
		}
		if r.Tokens > budget && len(r.Hits) > 1 {
			t.Errorf("%d tokens of %d", r.Tokens, budget)
		}
		full, bare := 0, false
		for _, h := range r.Hits {
			if h.Text == "" {
				bare = true
				continue
			}
			full++
			if bare && budget < 20_000 {
				t.Errorf("budget %d: a hit has its text after one without", budget)
			}
		}
		if r.Total != 30 || r.Truncated != (len(r.Hits) < 30) {
			t.Errorf("budget %d: total %d, truncated %v, %d hits", budget, r.Total, r.Truncated, len(r.Hits))
		}
		t.Logf("budget %d: %d hits, %d with text, %d tokens", budget, len(r.Hits), full, r.Tokens)
	}
	if r := search(t, x, "turbine limit:1000"); len(r.Hits) > rank.MaxResults {
		t.Errorf("%d hits", len(r.Hits))
	}
}

func TestEmptyAnswerSaysWhatWasSearched(t *testing.T) {
	x, _ := indexOf(t, corpus)
	r := search(t, x, "useAsincData kind:knowledge")
	if !strings.Contains(r.Scope, "space") || !strings.Contains(r.Scope, "kind:knowledge") || !strings.Contains(r.Scope, "12 documents") {
		t.Errorf("scope %q", r.Scope)
	}
	if r := search(t, x, "helixx"); !slices.Contains(r.Suggestions, "helix") {
		t.Errorf("suggestions %q", r.Suggestions)
	}
	if r := search(t, x, "configuratoin"); !slices.Contains(r.Suggestions, "configuration") {
		t.Errorf("suggestions are words, not stems: %q", r.Suggestions)
	}
	r, err := x.Search(t.Context(), []Collection{{ID: "absent", Label: "nuxt"}}, Query{Text: "anything"})
	if err != nil || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "not indexed yet") {
		t.Errorf("%+v, %v", r, err)
	}
}

// A page with all words is listed even if another page has them much more often. A query
// with only an order lists all pages.
func TestSort(t *testing.T) {
	files := map[string]string{
		"sitemap.md": "---\ndate: 2020-01-01\n---\n# Sitemap\n\nThe sitemap: a sitemap is a sitemap.",
		"notes.md":   "---\ndate: 2026-01-01\n---\n# Release\n\n" + strings.Repeat("Much of it is about pumps. ", 40) + "A sitemap too.",
		"other.md":   "---\ndate: 2025-01-01\n---\n# Other\n\nPumps.",
	}
	x, _ := indexOf(t, files)
	for query, want := range map[string]string{
		"sitemap sort:recent": "notes.md sitemap.md", "sort:recent": "notes.md other.md sitemap.md",
		"sort:path limit:2": "notes.md other.md", "pumps sort:path limit:1": "notes.md",
	} {
		if got := strings.Join(paths(search(t, x, query)), " "); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
}

// An answer in the order of paths or dates has the matches that are about as good as the
// best, and each page once. It says so if it leaves out other pages.
func TestSortedAnswersTellWhatIsLeftOut(t *testing.T) {
	files := map[string]string{"zebra.md": "# Zebra stripes\n\nZebra stripes: how the zebra got its stripes."}
	for _, lang := range []string{"en", "fr", "de"} {
		files["docs/"+lang+"/zebra.md"] = "---\nlang: " + lang + "\n---\n# Zebra stripes\n\nThe zebra has stripes, zebra stripes of its own."
	}
	for i := range 20 {
		files[fmt.Sprintf("n%02d.md", i)] = fmt.Sprintf("# Page %d\n\n%sSomewhere a zebra.%s", i, strings.Repeat("Much of it is about pumps and valves. ", 30), strings.Repeat(" And about hoses.", i))
	}
	x, _ := indexOf(t, files)
	note := "Only the pages with all words of the best one, or at least 40% of its score, are sorted; the other matches are left out."
	for _, order := range []string{"path", "recent"} {
		r := search(t, x, "zebra stripes limit:20 sort:"+order)
		if got := paths(r); !slices.Contains(got, "zebra.md") || len(got) != 2 {
			t.Errorf("sort:%s: %v", order, got)
		}
		// The three translations are one page.
		if r.Total != 22 || !slices.Equal(r.Notes, []string{note}) {
			t.Errorf("sort:%s: total %d, notes %q", order, r.Total, r.Notes)
		}
	}
	if r := search(t, x, "pumps sort:path limit:20"); len(r.Hits) != 20 || len(r.Notes) != 0 {
		t.Errorf("%v, %q", paths(r), r.Notes)
	}
	if r := search(t, x, "path:docs sort:path"); len(r.Hits) != 1 || len(r.Notes) != 0 {
		t.Errorf("%v, %q", paths(r), r.Notes)
	}
}

// Hits far below the best share only one frequent word with the query and use up the
// budget. An answer lists them only up to the default limit.
func TestWeakHitsAreLeftOut(t *testing.T) {
	files := map[string]string{"wifi.md": "# Wifi\n\nThe wifi for guests: the guest network is called birch."}
	for i := range 20 {
		files[fmt.Sprintf("n%02d.md", i)] = fmt.Sprintf("# Page %d\n\nAbout the network of pumps, number %d.", i, i)
	}
	x, _ := indexOf(t, files)
	r := search(t, x, "wifi guest network limit:20")
	if got := paths(r); len(got) != DefaultLimit || got[0] != "wifi.md" {
		t.Errorf("%v", got)
	}
	if r.Total != 21 || !r.Truncated || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "Hits under 20% of the best score are left out.") {
		t.Errorf("total %d, truncated %v, notes %q", r.Total, r.Truncated, r.Notes)
	}
	for _, h := range r.Hits {
		if weak := h.Score < r.Hits[0].Score*rank.DefaultMinScoreShare; weak == (h.Text != "") {
			t.Errorf("%s with score %.1f of %.1f has the text %q", h.Path, h.Score, r.Hits[0].Score, h.Text)
		}
	}
	if r := search(t, x, "network"); len(r.Hits) != DefaultLimit || len(r.Notes) != 0 {
		t.Errorf("hits that are alike were left out: %v, %q", paths(r), r.Notes)
	}
	all, _ := indexOfWith(t, allHits, files)
	if r := search(t, all, "wifi guest network limit:20"); len(r.Hits) != 20 || len(r.Notes) != 0 {
		t.Errorf("%v, %q", paths(r), r.Notes)
	}
}

// TestNotes checks that an answer says which parts of a query found nothing, so that a
// caller does not believe that the results match all of it.
func TestNotes(t *testing.T) {
	x, _ := indexOf(t, corpus)
	for _, c := range []struct {
		query string
		notes []string
	}{
		{"helix editor", nil},
		{"helix zzqqx", []string{`No page has "zzqqx".`}},
		{"Zzqqx helix qqzzy, the wwvvq", []string{`No page has "Zzqqx", "qqzzy" or "wwvvq".`}},
		{"SSR-friendly", nil},
		{"deployed skills/deploy", nil}, // other forms, and parts of identifiers
		{"日本語の文書 検索しない", nil},
		{"the of and", nil},
		{"helix kind:memry", []string{"kind:memry is unknown: it can be memory, resource, skill, knowledge or file."}},
		{"fox version:9", []string{"No page is version:9."}},
		{"fox lang:fi path:nowhere/**", []string{"No page is path:nowhere/** or lang:fi."}},
		{"fox lang:ja", []string{"No page with lang:ja has these words."}},
		{`"fox quick"`, []string{`No page has the phrase "fox quick".`}},
		{`"fox quick" "brown very"`, []string{"No page has all of the 2 phrases."}},
		{"helix -preferred -editor -user -helix", []string{"No page has these words without the excluded words."}},
		{"fox since:2099-01-01", []string{"No page is since:2099-01-01."}},
		{"kind:memory lang:ja", []string{"No page matches all of these filters: kind:memory lang:ja."}},
		{"🚀", []string{"The query has no word to search for."}},
		{"!!!", []string{"The query has no word to search for."}},
		{"fox -source:space", []string{"The filters leave no source to search."}},
		{"fox source:nuxt", []string{`There is no source "nuxt" here. The sources are: space.`}},
		{"helix sort:oldest", []string{"sort:oldest was left out: it can be recent, path or relevance."}},
		{"helix -sort:path -limit:3", []string{"-sort:path was left out: a minus sign can only exclude pages.", "-limit:3 was left out: a minus sign can only exclude pages."}},
		{"helix limit:500", []string{"limit was lowered to 50, the most that is allowed."}},
	} {
		r := search(t, x, c.query)
		if !slices.Equal(r.Notes, c.notes) {
			t.Errorf("%s: %q, want %q", c.query, r.Notes, c.notes)
		}
	}
}

// A limit outside the text counts like one in the text, and the smaller one applies. The
// usual limit and the default apply only without a limit.
func TestLimits(t *testing.T) {
	files := map[string]string{}
	for i := range 60 {
		files[fmt.Sprintf("%d.md", i)] = fmt.Sprintf("heron number%d", i)
	}
	x, _ := indexOf(t, files)
	for _, c := range []struct {
		text         string
		limit, usual int
		hits         int
	}{
		{"heron", 0, 0, DefaultLimit},
		{"heron", 0, 4, 4},
		{"heron", 7, 4, 7},
		{"heron limit:20", 0, 4, 20},
		{"heron limit:20", 5, 4, 5},
		{"heron limit:3", 5, 4, 3},
		{"heron limit:3", 50, 4, 3},
		{"heron limit:0", 0, 4, 4},
		{"heron limit:-2", 6, 4, 6},
		{"heron", -1, -1, DefaultLimit},
		{"heron limit:99999999999999999999", 0, 4, 50},
		{"heron limit:99999999999999999999", 2, 4, 2},
	} {
		r, err := x.Search(t.Context(), testCollections, Query{Text: c.text, Limit: c.limit, UsualLimit: c.usual, MaxTokens: 100_000})
		if err != nil || len(r.Hits) != c.hits || r.Total != len(files) {
			t.Errorf("%+v: %d hits of %d, %v; notes %q", c, len(r.Hits), r.Total, err, r.Notes)
		}
	}
}

// A query whose phrase is found gives no suggestions.
func TestPhrasesThatMatchGiveNoSuggestions(t *testing.T) {
	x, _ := indexOf(t, corpus)
	for _, q := range []string{
		`"quick brown fox"`, `"Version 1.0.21 fixed"`, `"snake_case_name parser"`, `"an SSR-friendly way"`, `"$fetch. useAsyncData"`,
		`"then watch the logs" zzqqx`, `"name string"`, `"日本語の文書"`, `"the user prefers"`, `"useAsyncData and $fetch"`, `"to not block"`,
	} {
		if r := search(t, x, q); len(r.Hits) == 0 || len(r.Suggestions) > 0 {
			t.Errorf("%s: %v, suggestions %q", q, paths(r), r.Suggestions)
		}
	}
}

// A hit names its heading by the anchor that Sections gives it, even if other headings have
// the same words and wherever the chunks are cut.
func TestHitsNameRepeatedHeadings(t *testing.T) {
	var b strings.Builder
	words := []string{"almond", "banana", "cherry", "damson", "elder", "fig"}
	for i, w := range words {
		fmt.Fprintf(&b, "# Part\n\n## Setup\n\nHere is the %s.\n\n", w)
		if i%2 == 0 { // so that only some sections share a chunk
			b.WriteString(strings.Repeat("Filler of no interest.\n\n", 200))
		}
	}
	x, _ := indexOf(t, map[string]string{"a.md": b.String()})
	sections := parse.Sections("a.md", []byte(b.String()))
	for i, w := range words {
		h := search(t, x, w).Hits[0]
		want := "setup"
		if i > 0 {
			want = fmt.Sprintf("setup-%d", i)
		}
		at := slices.IndexFunc(sections, func(s parse.Section) bool { return s.Anchor == h.Anchor })
		if h.Anchor != want || at < 0 || !strings.Contains(strings.Join(strings.Split(b.String(), "\n")[sections[at].From-1:sections[at].To], "\n"), w) {
			t.Errorf("%s is under %q, want %q", w, h.Anchor, want)
		}
	}
}

// Only pages of a collection that was made from the web have an address there. Elsewhere, an author
// may have written any address into a page.
func TestTheAddressOnTheWeb(t *testing.T) {
	x, _ := indexOf(t, map[string]string{"a.md": "---\nurl: https://docs.example.com/a\n---\n# Turbines\n"})
	for _, web := range []bool{false, true} {
		cols := slices.Clone(testCollections)
		cols[0].Web = web
		r, err := x.Search(t.Context(), cols, Query{Text: "turbines"})
		if err != nil || len(r.Hits) != 1 {
			t.Fatalf("%d hits, %v", len(r.Hits), err)
		}
		if got := r.Hits[0].URL; (got == "https://docs.example.com/a") != web {
			t.Errorf("from the web: %v; the address is %q", web, got)
		}
	}
}
