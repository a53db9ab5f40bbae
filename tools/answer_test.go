package tools_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"satchel/tools"
)

// pages are a small space for the answers below.
func pages() map[string]string {
	var flags strings.Builder
	for i := range 150 {
		fmt.Fprintf(&flags, "| flag %03d | it says number %d to those who see it |\n", i, i)
	}
	return map[string]string{
		"knowledge/harbour.md": "---\ntitle: Harbour\ndescription: Where and when to moor\ntags: [boats]\nrelevant_files: [src/berth.go, knowledge/missing.md]\ndate: 2026-02-03\n---\n# Harbour\n\n" +
			strings.Repeat("The office is open from seven.\n\n", 120) + "## Mooring lines\n\nTake two \"long\" lines & a spring.\nThe stern line goes ashore first.\n\n```sh\nmoor --stern\nmoor --bow\n```\n\n" +
			strings.Repeat("Nobody reads this far down.\n\n", 120),
		"src/berth.go":           "package harbour\n\n// Berth finds a place for a boat.\nfunc (h *Harbour) Berth(length float64) (Place, error) {\n\treturn h.free(length)\n}\n",
		"knowledge/flags.md":     "# Flags\n\nWhat they say.\n\n| Flag | Meaning |\n| --- | --- |\n" + flags.String(),
		"knowledge/talk.vtt":     "WEBVTT\n\n1\n00:12:31.000 --> 00:12:34.000\n<v Ann>Where is the lighthouse keeper?\n\n2\n00:12:35.000 --> 00:12:36.000\nUpstairs.\n",
		"knowledge/page.html":    "<html><head><title>Buoys</title><style>.buoy{}</style></head><body>\n<h2>Colours of buoys</h2>\n<p>A <b>cardinal</b> buoy is black &amp; yellow.</p>\n<script>var cardinal = 1</script></body></html>",
		"knowledge/tides.ipynb":  "{\n \"cells\": [\n  {\n   \"cell_type\": \"markdown\",\n   \"source\": [\n    \"# Spring tides\\n\",\n    \"They follow the syzygy.\"\n   ]\n  }\n ]\n}\n",
		"knowledge/ja/minato.md": "# 港\n\n港の事務所は七時に開きます。早く着いた船は北の桟橋に係留してください。\n",
	}
}

// fillerPattern is lines of which one is as good as a hundred.
var fillerPattern = regexp.MustCompile(`((The office is open from seven|Nobody reads this far down)\.\n+)+`)

// datePattern is the day of the commit. A page can name another day.
var datePattern = regexp.MustCompile(` \(20[0-9]{2}-[0-9]{2}-[0-9]{2}\)`)

// sincePattern is what the day of the test makes of "5 years ago".
var sincePattern = regexp.MustCompile(`since:[0-9]{4}-[0-9]{2}-[0-9]{2}`)

// TestAnswersAsTheyAreSent keeps what a model sees for some questions.
func TestAnswersAsTheyAreSent(t *testing.T) {
	set, c := realSet(t, pages())
	var all bytes.Buffer
	for _, args := range []string{
		`{"query":"the stern line goes ashore","max_tokens":900,"limit":1}`,
		`{"query":"Berth finds a place","max_tokens":700,"limit":1}`,
		`{"query":"flag 120","max_tokens":1200,"limit":1}`,
		`{"query":"lighthouse keepers","limit":1}`,
		`{"query":"cardinal buoys","limit":1}`,
		`{"query":"syzygy","limit":1}`,
		`{"query":"桟橋に係留"}`,
		`{"query":"\"stern line\" path:knowledge/** -kind:memory author:me since:last century"}`,
		`{"query":"moring lihgthouse kind:skill"}`,
		`{"query":"zzzqqq mooring"}`,
		`{"query":"tag:boats","since":"5 years ago"}`,
	} {
		r, err := set.Call(t.Context(), c, "search", json.RawMessage(args), nil)
		if err != nil {
			t.Fatal(err)
		}
		text := fillerPattern.ReplaceAllString(textOf(r), "…\n\n")
		text = sincePattern.ReplaceAllString(text, "since:…")
		text = datePattern.ReplaceAllString(text, " (…)")
		fmt.Fprintf(&all, "search %s\n%s\n\n", args, text)
	}
	golden(t, "answers.txt", all.String())
}

// TestAnswersKeepTheirBudget: an answer costs no more than the budget, and uses most of it if
// there is enough content.
func TestAnswersKeepTheirBudget(t *testing.T) {
	files := pages()
	for i := range 40 {
		files[fmt.Sprintf("knowledge/turbines/p%02d.md", i)] = fmt.Sprintf("---\ndescription: Page %d on \"turbines\"\n---\n# Page %d\n\nAbout turbines.\n\n%s", i, i,
			strings.Repeat("Turbine blades\tturn in the \"wind\", slowly <https://x.example/?a=1&b=2>.\n", 20+i))
	}
	set, c := realSet(t, files)
	for _, query := range []string{"turbine blades", "turbine limit:50", "the office of the harbour", "港 事務所", "flag says number", "zzqx", "kind:knowledge"} {
		for _, budget := range []int{300, 700, 1500, 5000, 12_000, 20_000} {
			args, _ := json.Marshal(map[string]any{"query": query, "max_tokens": budget})
			r, err := set.Call(t.Context(), c, "search", args, nil)
			if err != nil {
				t.Fatal(err)
			}
			n, results := tools.Tokens(textOf(r)), len(resultsOf(r))
			if n > budget && results > 1 {
				t.Errorf("%s: %d tokens of %d, %d results", query, n, budget, results)
			}
			if strings.HasPrefix(query, "turbine") && budget <= 5000 && budget >= 700 && n < budget/2 {
				t.Errorf("%s: only %d tokens of %d are used", query, n, budget)
			}
			t.Logf("%s: %d of %d, %d results", query, n, budget, results)
		}
	}
}

// TestAsManyHitsAsWereWanted: texts give way before hits do, and where hits must,
// the note counts those that are given.
func TestAsManyHitsAsWereWanted(t *testing.T) {
	files := map[string]string{}
	for i := range 60 {
		files[fmt.Sprintf("knowledge/turbines/page-%02d.md", i)] = fmt.Sprintf("---\ndescription: Page %d on \"turbines\"\n---\n# Page %d\n\nAbout turbines (%d).\n\n%s", i, i, i,
			strings.Repeat(fmt.Sprintf("| `a[%d]` | {\"b\": '%d'} | <https://x.example/?a=%d&b=2> | turbine |\n", i, i*i, i), 5+i*i%37))
	}
	set, c := realSet(t, files)
	for _, budget := range []int{1, 400, 2000, 5000, 20_000} {
		for _, limit := range []int{1, 2, 7, 8, 9, 10, 11, 12, 15, 50} {
			args, _ := json.Marshal(map[string]any{"query": "turbine", "max_tokens": budget, "limit": limit})
			r, err := set.Call(t.Context(), c, "search", args, nil)
			if err != nil {
				t.Fatal(err)
			}
			n, cost := len(resultsOf(r)), tools.Tokens(textOf(r))
			notes, _ := r.Meta["notes"].([]string)
			t.Logf("limit %d in %d: %d hits, %d tokens, %q", limit, budget, n, cost, notes)
			if n > 1 && cost > budget {
				t.Errorf("limit %d in %d: %d tokens", limit, budget, cost)
			}
			if n < limit && (budget >= 5000 && limit <= 15 || budget == 20_000) {
				t.Errorf("limit %d in %d: %d hits, %q", limit, budget, n, notes)
			}
			var want []string
			if n < limit && n > 1 {
				want = []string{fmt.Sprintf("Only the best %d hits fit into the token budget.", n)}
			} else if n < limit {
				want = []string{"Only the best hit is shown: the token budget has no room for more."}
			}
			if !slices.Equal(notes, want) {
				t.Errorf("limit %d in %d: %d hits and the notes %q", limit, budget, n, notes)
			}
		}
	}
}
