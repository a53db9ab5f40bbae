package index

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"satchel/internal/fault"
	"satchel/internal/testenv"
	"satchel/tools/index/postings"
	"satchel/tools/index/present"
	"satchel/tools/index/rank"
)

// hostileFiles returns files that no author writes but that an index must survive. Each
// contains the word heron.
func hostileFiles() map[string]string {
	bomb := "---\na: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'k'; c++ {
		bomb += fmt.Sprintf("%c: &%c [*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c]\n", c, c, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1)
	}
	return map[string]string{
		"line.md":           strings.Repeat("x1y2z3", 170_000) + " heron",
		"twomb.md":          strings.Repeat("heron ", 350_000), // over maxFileBytes
		"words.md":          strings.Repeat("heron ", 17_000),
		"binary.md":         "heron\x00" + strings.Repeat("\xff\xfe\x00", 1000),
		"late-nul.md":       strings.Repeat("heron words\n", 1000) + strings.Repeat("\x00", 5000),
		"deep.md":           strings.Repeat("#", 10_000) + " heron\n" + strings.Repeat("###### h\n", 20_000),
		"levels.md":         levels(10_000) + "heron",
		"setext.md":         strings.Repeat("heron\n===\n", 20_000),
		"yaml.md":           "---\n" + strings.Repeat("- [", 5000) + "\n---\nheron",
		"bomb.md":           bomb + "tags: *j\n---\nheron",
		"toml.md":           "+++\n" + strings.Repeat("a = [", 20_000) + "\n+++\nheron",
		"json.md":           "{\n" + strings.Repeat(`{"a":`, 20_000) + "\nheron",
		"utf8.md":           "heron \xc3\x28 \xf0\x28\x8c\xbc",
		"fence.md":          "```\n" + strings.Repeat("heron\n", 50_000),
		"fences.md":         strings.Repeat("> - ~~~\n", 50_000) + "heron",
		"comments.md":       strings.Repeat("<!--\n", 50_000) + "heron",
		"table.md":          strings.Repeat("| heron | b |\n", 20_000),
		"html.html":         strings.Repeat("<", 100_000) + strings.Repeat("<div", 50_000) + " heron",
		"scripts.html":      strings.Repeat("<script>", 50_000) + strings.Repeat("<h1", 50_000) + " heron",
		"meta.html":         strings.Repeat("<meta name=description ", 10_000) + " heron",
		"cells.ipynb":       strings.Repeat(`"cell_type": "markdown",`+"\n"+`"source": [`+"\n", 20_000) + `"heron"`,
		"titles.rst":        strings.Repeat("heron\n=====\n~~~~~\n", 20_000),
		"blocks.adoc":       strings.Repeat("----\n", 50_001) + "heron",
		"functions.go":      strings.Repeat("func heron() {\n\tfunc heron() {\n", 20_000),
		"comments.py":       strings.Repeat("# heron\n", 50_000) + "def heron():",
		"cues.vtt":          strings.Repeat("00:00:01.000 --> 00:00:02.000\nheron\n\n", 10_000),
		"cells.csv":         strings.Repeat(`"heron`, 50_000),
		"links.md":          strings.Repeat("](", 200_000) + " heron",
		"quotes.md":         `" heron " OR NEAR( * ^ {title}: '`,
		"empty.md":          "",
		"camel.md":          strings.Repeat("aB", 30) + strings.Repeat("aB-", 100_000) + " heron",
		"combining.md":      "heron " + strings.Repeat("\u0301", 300_000),
		"zalgo.md":          strings.Repeat("h\u0335\u0301\u0322e\u0336\u0348r\u0337o\u0338n\u0334 ", 10_000) + "heron",
		"bidi.md":           "heron \u202e\u2066evil\u2069\u202c " + strings.Repeat("\u202e", 50_000),
		"zero-width.md":     strings.Repeat("he\u200bron heron\ufeff ", 10_000),
		"spaces in ü?#%.md": "heron in an odd file name",
		"nul\u0001name.md":  "heron in an odder file name",
	}
}

// levels returns n headings with 1 to 8 marks in turn, although Markdown has only six
// levels.
func levels(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%s heading %d\n\n", strings.Repeat("#", 1+i%8), i)
	}
	return b.String()
}

// No file prevents other files, or its own words, from being found. Answers contain only
// valid text.
func TestHostileFiles(t *testing.T) {
	for name, text := range hostileFiles() {
		x, _ := indexOfWith(t, allHits, map[string]string{"plain.md": "A plain page about heron migration.", name: text})
		r := search(t, x, "heron migration limit:50")
		got := paths(r)
		if len(got) == 0 || !slices.Contains(got, "plain.md") {
			t.Errorf("beside %q: %v", name, got)
		}
		findable := !slices.Contains([]string{"twomb.md", "binary.md", "empty.md", "scripts.html", "fences.md"}, name)
		if findable && !slices.Contains(got, name) {
			t.Errorf("%q is not found", name)
		}
		for _, h := range r.Hits {
			for _, s := range []string{h.Title, h.Heading, h.Snippet, h.Text, h.Description} {
				if !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
					t.Errorf("%q: what is shown is no text: %.80q", name, s)
				}
			}
			if n := len(h.Snippet); n > 8*320 {
				t.Errorf("%q: a snippet of %d bytes", name, n)
			}
		}
		if r.Tokens > present.DefaultMaxTokens {
			t.Errorf("%q: an answer of %d tokens", name, r.Tokens)
		}
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	}
	x, _ := indexOf(t, map[string]string{"huge.md": hostileFiles()["twomb.md"]})
	if got := paths(search(t, x, "huge")); !slices.Equal(got, []string{"huge.md"}) {
		t.Errorf("a file over the limit is not found by its name: %v", got)
	}
	if got := paths(search(t, x, "heron")); len(got) > 0 {
		t.Error("a file over the limit was indexed by its content")
	}
}

// hostileQueries hold the operators of other engines, program code, and bytes that are not
// text.
var hostileQueries = []string{
	`"`, `""`, `"""`, `'`, "`", `“`, `(`, `)`, `((()`, `*`, `^`, `:`, `::`, `-`, `--`, `+`, `AND`, `OR`, `NOT`, `NEAR`, `NEAR(a b, 2)`, `NEAR/2`,
	`{title body}: x`, `title:x`, `-title:x`, `col : "x"`, `x*`, `^x`, `"x"*`, `"x" + "y"`, `x NOT`, `NOT x`, `OR OR`, `; DROP TABLE docs; --`, `' OR '1'='1`,
	`%`, `_`, `[a-z]`, `(?s).*`, `\`, `\\x\`, `$(rm -rf /)`, "`id`", `{{7*7}}`, `<script>`, `../../etc/passwd`, `path:../..`, `path:/`, `path:**`, `path:[`, `path:{`, `path:"`,
	`kind:`, `kind:,`, `lang:*`, `version:'`, `tag:%`, `source:""`, `since:`, `since:0`, `before:-1`, `limit:-1`, `limit:9999999999999999999`, `sort:`,
	"\x00", "\xff\xfe", "\u202e", "\u200b", "\ufeff", "a\u0301\u0301\u0301\u0301\u0301", "\r\n", "\t", "𝕳𝖊𝖗𝖔𝖓", "🪿", "-🪿", `"🪿"`, "鷺", "-鷺",
}

// No input is an error in any part of a query, and no answer reveals internals.
func TestHostileQueries(t *testing.T) {
	x, _ := indexOf(t, map[string]string{"a.md": "# Heron\n\nThe heron waits. NEAR AND OR NOT", "b.md": "Another heron.", "ja.md": "鷺は待つ"})
	for _, h := range hostileQueries {
		for _, q := range []string{h, h + " heron", "heron " + h, "heron " + h + " waits", "heron" + h, h + "heron", `"heron ` + h + `"`, `-` + h, `path:a.md ` + h, strings.Repeat(h+" ", 50) + "heron"} {
			r, err := x.Search(t.Context(), testCollections, Query{Text: q})
			if err != nil {
				t.Fatalf("%q: %v", q, err)
			}
			if r.Scope == "" || r.Truncated != (r.Total > len(r.Hits)) {
				t.Errorf("%q: %+v", q, r)
			}
			for _, n := range append(append(slices.Clone(r.Notes), r.Scope), r.Suggestions...) {
				low := strings.ToLower(strings.ReplaceAll(n, h, ""))
				for _, word := range []string{"fts", "sqlite", "syntax", "regexp", "panic", "no such", "goroutine"} {
					if strings.Contains(low, word) {
						t.Errorf("%q: a note tells of %q: %s", q, word, n)
					}
				}
				if !utf8.ValidString(n) || len(n) > 1000 {
					t.Errorf("%q: a note of %d bytes: %.80q", q, len(n), n)
				}
			}
		}
	}
	for _, q := range []string{"heron *", `heron "`, "heron AND", "(heron)", "heron^2", "heron:", "+heron", "heron;", "title:heron", `heron "unclosed phrase`, "heron\x00", "he\u200bron"} {
		if got := paths(search(t, x, q)); len(got) < 2 {
			t.Errorf("%q finds %v", q, got)
		}
	}
}

// Only the beginning of a query of 100 kB is used, and the answer says so.
func TestLongQueries(t *testing.T) {
	x, _ := indexOf(t, map[string]string{"a.md": "heron"})
	for _, q := range []string{
		strings.Repeat("heron ", 17_000), strings.Repeat(`"heron" `, 12_500), strings.Repeat("-x ", 33_000) + "heron", strings.Repeat("path:a.md,b.md ", 6_700),
		strings.Repeat("(", 100_000), strings.Repeat("a", 100_000), strings.Repeat("鷺", 33_000), strings.Repeat("path:"+strings.Repeat("**/", 50)+"x ", 600), strings.Repeat("since:last ", 9_000),
	} {
		r := search(t, x, q)
		if len(r.Notes) == 0 || !slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, "only its beginning was used") }) {
			t.Errorf("%.40q: %q", q, r.Notes)
		}
	}
}

// Very many tiny files need memory for only a few of them at a time.
func TestManyTinyFiles(t *testing.T) {
	n := 5_000
	if testenv.Soak() {
		n = 1_000_000
	}
	files := make(map[string]string, n)
	for i := range n {
		files[fmt.Sprintf("d%d/f%d.md", i%97, i)] = fmt.Sprintf("heron %d", i)
	}
	x, _ := indexOf(t, files)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	r := search(t, x, "heron 4321")
	runtime.ReadMemStats(&after)
	if len(r.Hits) == 0 || r.Hits[0].Path != "d53/f4321.md" || r.Total < n {
		t.Errorf("%v of %d", paths(r), r.Total)
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > 64<<20 {
		t.Errorf("one query allocates %d bytes", got)
	}
}

// Attack: a page that shows a reader something other than its bytes, or shows an AI
// something that a person does not see.
func TestNothingShownDeceives(t *testing.T) {
	const evil = "\u202e\u2066\u2069\u202a\u202c\u200b\ufeff\u2060\u2064\u206f\u180e\ufff9\U000e0041\U000e007f"
	const good = "می\u200cخواهم 👩\u200d🚀 क्\u200dष \u200fשלום\u200e" // joiners and marks that some scripts need
	page := "---\ntitle: He" + evil + "ron " + good + "\ndescription: About" + evil + " it\nversion: \"1" + evil + "\"\nrelevant_files: [\"nowhere" + evil + ".go\"]\n---\n" +
		"# Mig" + evil + "ration " + good + "\n\nHerons " + evil + good + ".\n"
	long := page + strings.Repeat("\nFiller"+evil+" words.\n", 3000)
	for name, text := range map[string]string{"short.md": page, "long.md": long, "page.html": "<title>He" + evil + "ron</title><h1>Mig" + evil + "ration</h1><p>Herons " + evil + good} {
		x, _ := indexOf(t, map[string]string{name: text})
		for _, budget := range []int{60, 500, 20_000} {
			r, err := x.Search(t.Context(), testCollections, Query{Text: "herons", MaxTokens: budget})
			if err != nil || len(r.Hits) != 1 {
				t.Fatalf("%s: %v, %v", name, paths(r), err)
			}
			h := r.Hits[0]
			for _, s := range append(h.Related, h.Title, h.Heading, h.Anchor, h.Description, h.Version, h.Snippet, h.Text) {
				if strings.ContainsAny(s, evil) {
					t.Errorf("%s: shown as %.80q", name, s)
				}
			}
			if !strings.Contains(h.Snippet, good) {
				t.Errorf("%s: what scripts need is gone: %q", name, h.Snippet)
			}
		}
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Attack: hundreds of path filters, each slow on every path.
func TestManyPathFiltersAreBounded(t *testing.T) {
	x, _ := indexOf(t, map[string]string{"a/heron.md": "heron"})
	many := make([]string, 3*postings.MaxGlobs)
	for i := range many {
		many[i] = fmt.Sprintf("**/*a*%d/**/*x", i)
	}
	r := search(t, x, "heron path:"+strings.Join(many, ",")+",a/**")
	if !slices.Contains(r.Notes, fmt.Sprintf("Only the first %d path filters were used.", postings.MaxGlobs)) {
		t.Errorf("notes %q", r.Notes)
	}
	for _, n := range r.Notes {
		if strings.Count(n, " or ") >= maxUnmet {
			t.Errorf("a long note: %q", n)
		}
	}
	// A filter that is repeated counts once.
	if r := search(t, x, "heron path:"+strings.Repeat("a/**,", 3*postings.MaxGlobs)+"a/**"); len(r.Hits) != 1 || len(r.Notes) != 0 {
		t.Errorf("%v, notes %q", paths(r), r.Notes)
	}
}

// Attack: a search that takes too long is cancelled, and the answer says so.
func TestASearchHasATimeLimit(t *testing.T) {
	x, _ := indexOfWith(t, Options{maxTime: time.Nanosecond}, map[string]string{"heron.md": "heron"})
	_, err := x.Search(t.Context(), testCollections, Query{Text: "heron path:**/*.md"})
	if fault.CodeOf(err) != fault.TooLarge || !strings.Contains(fault.PublicOf(err), "stopped after") {
		t.Errorf("%v", err)
	}
}

// A phrase of frequent words is found even if many chunks have its words in another order.
func TestAPhraseAmongManyWithoutIt(t *testing.T) {
	files := map[string]string{"right.md": strings.Repeat("filler words that make it long. ", 200) + "alpha beta"}
	for i := range 60 {
		files[fmt.Sprintf("wrong%d.md", i)] = fmt.Sprintf("beta then alpha then beta then alpha %d", i)
	}
	x, _ := indexOfWith(t, Options{ranking: rank.Options{MaxRows: 10}}, files)
	if got := paths(search(t, x, `"alpha beta"`)); !slices.Equal(got, []string{"right.md"}) {
		t.Errorf("%v", got)
	}
	if got := paths(search(t, x, `alpha -"then alpha"`)); !slices.Equal(got, []string{"right.md"}) {
		t.Errorf("%v", got)
	}
}

// If the search did not read every passage that may have a phrase, the answer says that its
// total is incomplete.
func TestAPhraseThatIsNotCountedToTheEnd(t *testing.T) {
	files := map[string]string{}
	for i := range 60 {
		files[fmt.Sprintf("%d.md", i)] = fmt.Sprintf("alpha beta number%d", i)
	}
	x, _ := indexOfWith(t, Options{ranking: rank.Options{MaxRows: 20, Candidates: 30}}, files)
	for query, want := range map[string]struct {
		total int
		noted bool
	}{
		`"alpha beta"`:              {30, true},
		`"alpha beta" path:1*.md`:   {11, false},
		`"beta number7"`:            {1, false},
		`alpha beta`:                {60, false},
		`alpha -"beta number7"`:     {59, false},
		`"alpha beta" sort:path`:    {30, true},
		`"alpha beta" "number7"`:    {1, false},
		`"alpha" "beta"`:            {60, false}, // single words do not require reading passages
		`"alpha beta" "beta alpha"`: {0, false},
	} {
		r := search(t, x, query)
		noted := slices.ContainsFunc(r.Notes, func(n string) bool {
			return strings.HasPrefix(n, "More pages of space may contain the phrase than the total says")
		})
		if r.Total != want.total || noted != want.noted {
			t.Errorf("%s: %d, notes %q", query, r.Total, r.Notes)
		}
	}
}

// An excluded word excludes the whole page, wherever the word is.
func TestExcludedByThePage(t *testing.T) {
	section := strings.Repeat("filler words that make it long. ", 100)
	x, _ := indexOf(t, map[string]string{
		"draft.md": "# Herons\n\nheron " + section + "\n\n# State\n\nthis is a draft in a yellow submarine " + section,
		"final.md": "# Herons\n\nheron " + section + "\n\n# State\n\nthis is a submarine, yellow " + section,
	})
	for query, want := range map[string][]string{
		"heron -draft":              {"final.md"},
		`heron -"yellow submarine"`: {"final.md"},
		`"heron filler" -draft`:     {"final.md"},
	} {
		if got := paths(search(t, x, query)); !slices.Equal(got, want) {
			t.Errorf("%s: %v", query, got)
		}
	}
	if r := search(t, x, "-draft path:*.md"); len(r.Notes) == 0 {
		t.Errorf("an exclusion was left out without a word: %v", paths(r))
	}
}
