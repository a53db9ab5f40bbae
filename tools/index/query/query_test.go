package query

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

const maxBytes = 2000

// A Friday.
var testNow = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func parsed(text string) Parsed {
	return Parse(text, testNow, maxBytes)
}

// written returns a parsed query in one line, for tables.
func written(q Parsed) string {
	s := strings.Join(q.Words, " ")
	for _, p := range q.Phrases {
		s += ` "` + p + `"`
	}
	for _, w := range q.Without {
		s += " -<" + w + ">"
	}
	if d := q.Filters.Describe(); d != "" {
		s += " [" + d + "]"
	}
	return strings.TrimSpace(s)
}

func TestQueryLanguage(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`plain words here`, `plain words here`},
		{`"exact phrase" more`, `exact phrase more "exact phrase"`},
		{`“curly quotes” „unten” «guillemets»`, `curly quotes unten guillemets "curly quotes" "unten" "guillemets"`},
		{`never "closed quote`, `never closed quote`},
		{`alpha -beta -"c d"`, `alpha -<beta> -<c d>`},
		{`use-async-data - -- -`, `use-async-data - -- -`},
		{`source:nuxt path:docs/** kind:memory`, `[source:nuxt path:docs/** kind:memory]`},
		{`SOURCE:Nuxt,Astro -path:"old docs/*"`, `[source:nuxt,astro -path:"old docs/*"]`},
		{`-source:nuxt -kind:memories -lang:ja -version:4 -tag:draft x`, `x [-source:nuxt -kind:memory -lang:ja -version:4 -tag:draft]`},
		{`lang:en version:v5.1.x`, `[lang:en version:5.1]`},
		{`lang:English,pt_BR,jp`, `[lang:en,pt-br,ja]`},
		{`tag:#Howto,draft x`, `x [tag:howto,draft]`},
		{`path:*.{md,mdx},docs/**`, `[path:*.md,*.mdx,docs/**]`},
		{`path:/space/knowledge/a.md:12-40 path:knowledge/b.md#use-it`, `[path:/knowledge/a.md,knowledge/b.md]`},
		{`path:docs\guide\intro.md x`, `x [path:docs/guide/intro.md]`},
		{`path:'docs/my dir' x`, `x [path:"docs/my dir"]`},
		{`source:/library/docs/nuxt x`, `x [source:nuxt]`},
		{`(source:nuxt OR source:astro) fetch`, `OR fetch [source:nuxt,astro]`},
		{`folder:docs/guide language:german type:skill repo:nuxt tags:a fetch`, `fetch [source:nuxt path:docs/guide kind:skill lang:de tag:a]`},
		{`since:2026-01-01 before:7d x`, `x [since:2026-01-01 before:2026-11-13]`},
		{`-since:2026-03 x`, `x [before:2026-03-01]`},
		{`-date:<=2025 x`, `x [since:2026-01-01]`},
		{`updated:>=2026-03-04 x`, `x [since:2026-03-04]`},
		{`created:2026-01..2026-02 x`, `x [since:2026-01-01 before:2026-03-01]`},
		{`-created:2026-01..2026-02 x`, `x [before:2026-01-01]`},
		{`-created:..2026-02 x`, `x [since:2026-03-01]`},
		{`before:2025 -created:2026 x`, `x [before:2025-01-01]`},
		{`updated:2026-05 x`, `x [since:2026-05-01 before:2026-06-01]`},
		{`since:whenever x`, `x`},
		{`author:me x`, `author:me x`},

		// Code, commands and addresses consist of words.
		{`https://example.org/a?b=c:d std::vector C:\x a: :b`, `https://example.org/a?b=c:d std::vector C:\x a: :b`},
		{`import fs from 'node:fs'`, `import fs from 'node:fs'`},
		{`node:fs`, `node:fs`},
		{`Error: cannot find module`, `Error: cannot find module`},
		{`{"name":"x","files":["a"]}`, `{"name":"x","files":["a"]}`},
		{`"name":"x"`, `name":"x`},
		{`"a"+"b"`, `a"+"b`},
		{`^foo.*[a-z]+(bar|baz)$`, `^foo.*[a-z]+(bar|baz)$`},
		{`rm -rf node_modules && npm install --force -name`, `rm -rf node_modules && npm install --force -name`},
		{`ls -la`, `ls -la`},
		{`temperature -40`, `temperature -40`},
		{`NEAR(a b, 2) AND NOT "`, `NEAR(a b, 2) AND NOT`},
		{`{title}: x* ^y (z) "a" OR "b"`, `{title}: x* ^y (z) a OR b "a" "b"`},
		{`type:button label:(x) file:x in:progress`, `type:button label:(x) file:x in:progress`},
		{`<T extends Record<string, "a">>`, `<T extends Record<string, a">>`},
		{"\x00\xff", ``},
		{"na\u200bme \u202egnol\u202c a\u0301\u0301\u0301\u0301b", "name gnol a\u0301\u0301b"},
		{"می\u200cخواهم", "می\u200cخواهم"},
	} {
		if got := written(parsed(c.text)); got != c.want {
			t.Errorf("%q:\n got %s\nwant %s", c.text, got, c.want)
		}
	}
}

// Every part that was not understood gets one note.
func TestQueryNotes(t *testing.T) {
	for _, c := range []struct {
		text  string
		notes []string // the starts of the notes
	}{
		{`plain "phrase" -word source:x since:2w`, nil},
		{`author:me`, []string{`There is no qualifier author:, so "author:me" was searched for as words.`}},
		{`node:fs node:fs`, []string{`There is no qualifier node:`}},
		{`since:whenever x`, []string{`since:whenever was left out: a date is written as`}},
		{`sort:sideways limit:-3 x`, []string{`sort:sideways was left out`, `limit:-3 was left out`}},
		{`kind:memry x`, []string{`kind:memry is unknown`}},
		{`-alpha`, []string{`The query has only words to exclude`}},
		{`alpha NOT beta`, []string{`NOT was searched for as a word; use -word`}},
		{strings.Repeat("long ", 20_000), []string{`The query is longer than 2000 bytes; only its beginning was used.`}},
		{`https://x.example std::vector Error: x {"a":1}`, nil},
	} {
		notes := parsed(c.text).Notes
		if len(notes) != len(c.notes) {
			t.Errorf("%.60q: %q", c.text, notes)
			continue
		}
		for i, n := range notes {
			if !strings.HasPrefix(n, c.notes[i]) {
				t.Errorf("%.60q: %q", c.text, n)
			}
		}
	}
}

func TestQueryDates(t *testing.T) {
	for _, c := range []struct{ text, since, rest string }{
		{"since:today x", "2026-11-20", "x"},
		{"since:yesterday x", "2026-11-19", "x"},
		{"since:7d x", "2026-11-13", "x"},
		{"since:2w x", "2026-11-06", "x"},
		{"since:3m x", "2026-08-20", "x"},
		{"since:1y x", "2025-11-20", "x"},
		{"since:last week x", "2026-11-13", "x"},
		{`since:"last week" x`, "2026-11-13", "x"},
		{"since:last-week x", "2026-11-13", "x"},
		{"since:last_month", "2026-10-20", ""},
		{"since:this week x", "2026-11-16", "x"},
		{"since:this year x", "2026-01-01", "x"},
		{"since:2 weeks ago x", "2026-11-06", "x"},
		{"since:the past 10 days x y", "2026-11-10", "x y"},
		{"since:a month ago x", "2026-10-20", "x"},
		{"since:monday x", "2026-11-16", "x"},
		{"since:last friday x", "2026-11-13", "x"},
		{"since:march x", "2026-03-01", "x"},
		{"since:march 2024 x", "2024-03-01", "x"},
		{"since:december notes", "2025-12-01", "notes"},
		{"since:2026-Q2 x", "2026-04-01", "x"},
		{"since:2026 x", "2026-01-01", "x"},
		{"since:2026-03 x", "2026-03-01", "x"},
		{"since:20260304 x", "2026-03-04", "x"},
		{"since:2026/3/4 x", "2026-03-04", "x"},
		{"since:4.3.2026 x", "2026-03-04", "x"},
		{"since:March 4, 2026 x", "2026-03-04", "x"},
		{"since:2026-03-04T10:00:00Z x", "2026-03-04", "x"},
		{"since:>2026-03-04 x", "2026-03-05", "x"},
		{"after:2026-03-04 x", "2026-03-04", "x"},
		{"since:2026-01-01 since:2026-02-01 x", "2026-02-01", "x"},
		{"since:99999999y x", "", "x"},
		{"since:2026-13-45 x", "", "x"},
	} {
		q := parsed(c.text)
		got := ""
		if !q.Filters.Since.IsZero() {
			got = q.Filters.Since.Format(time.DateOnly)
		}
		if got != c.since || strings.Join(q.Words, " ") != c.rest || (len(q.Notes) > 0) != (c.since == "") {
			t.Errorf("%s: since %s, words %q, notes %q", c.text, got, q.Words, q.Notes)
		}
	}
	for text, limit := range map[string]int{"limit:20": 20, "limit:20 top:7 limit:30": 7, "limit:0": 0, "limit:-1": 0, "limit:1.5": 0, "limit:99999999999999999999": math.MaxInt} {
		if q := parsed("sort:newest x " + text); q.Sort != ByDate || q.Limit != limit {
			t.Errorf("%s: %+v", text, q)
		}
	}
	// the names of the orders in docs/search.md
	for text, order := range map[string]SortOrder{"recent": ByDate, "date": ByDate, "newest": ByDate, "path": ByPath, "relevance": ByRelevance} {
		if q := parsed("x sort:path sort:" + text); q.Sort != order || len(q.Notes) > 0 {
			t.Errorf("sort:%s: %+v", text, q)
		}
	}
}

// Parse accepts any text. Its result is valid and limited, and every lost word has a note.
func FuzzQuery(f *testing.F) {
	for _, s := range []string{
		`a OR b`, `"`, `""`, `a" OR "b`, `NEAR(a b, 2)`, `{title}: x`, `a*`, `^a`, `-`, `--a`, `-"`, `(((`, `path:*`, `path:[`, `path:{a,b}{c,d}`, `since:9999-99`,
		`since:last week ago`, `since:>`, `date:..`, `before:<=2026..2027`, `limit:99999999999999999999`, `a:`, `日本 -語`, "\x00", `'; DROP TABLE docs; --`,
		`path:'`, `lang:","`, `-kind:`, `since:"`, "path:`a b`", `sort:path kind:file`, "a\u200b:b", `type:"skill"`, `date:2026-q9`, `since:-`, `since:the`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		q := Parse(s, testNow, maxBytes)
		if len(q.Notes) > MaxNotes || len(q.Phrases) > MaxPhrases || q.Limit < 0 {
			t.Fatalf("%q: %+v", s, q)
		}
		all := append(append(append(slices.Clone(q.Words), q.Phrases...), q.Without...), q.Notes...)
		for _, w := range all {
			if w == "" || !utf8.ValidString(w) || strings.ContainsFunc(w, unicode.IsControl) {
				t.Fatalf("%q: %q of %+v", s, w, q)
			}
		}
		if d := q.Filters.Describe(); len(d) > 12*(MaxDescribed+20) || !utf8.ValidString(d) {
			t.Fatalf("%q: described as %q", s, d)
		}
		if again := Parse(strings.Join(q.Words, " "), testNow, maxBytes); len(again.Phrases) > MaxPhrases {
			t.Fatalf("%q: %+v", s, again)
		}
	})
}
