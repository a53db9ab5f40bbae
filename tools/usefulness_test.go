package tools_test

import (
	_ "embed"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"satchel/internal/testenv"
	"satchel/internal/tokenizer"
	"satchel/tools/index/evaluate"
)

// questions has a question on each line, after the page and the line that answer it.
//
//go:embed testdata/questions.tsv
var questions string

type question struct{ text, answer string }

// documentation returns the pages of three projects, and the questions about them.
func documentation(t testing.TB) (pages map[string]string, asked []question) {
	t.Helper()
	pages = map[string]string{}
	for name, under := range map[string]string{"nuxt": "docs", "astro": "src/content/docs/en", "shadcn": "apps/v4/content/docs"} {
		some, err := evaluate.ReadPages(testenv.LargeData(t, "docs", name+".tar.gz"), under)
		if err != nil {
			t.Fatal(err)
		}
		for p, data := range some {
			pages["knowledge/"+name+strings.TrimPrefix(p, under)] = string(data)
		}
	}
	for l := range strings.Lines(questions) {
		place, text, _ := strings.Cut(strings.TrimSpace(l), "\t")
		path, number, _ := strings.Cut(place, ":")
		n, err := strconv.Atoi(number)
		lines := strings.Split(pages["knowledge/"+path], "\n")
		if err != nil || n > len(lines) || len(lines[n-1]) < 20 {
			t.Fatalf("%s is not a line of the documentation", place)
		}
		asked = append(asked, question{text, squeezed(lines[n-1])})
	}
	return pages, asked
}

var blanks = regexp.MustCompile(`\s+`)

func squeezed(s string) string { return strings.TrimSpace(blanks.ReplaceAllString(s, " ")) }

// TestAnswersHoldTheAnsweringPassage: for most questions about real documentation, the answer
// has the line that answers the question, at a price that a client can pay each time.
func TestAnswersHoldTheAnsweringPassage(t *testing.T) {
	pages, asked := documentation(t)
	set, c := realSet(t, pages)
	counter := tokenizer.New()
	ask := func(query string) (text string, tokens int) {
		args, _ := json.Marshal(map[string]any{"query": query})
		r, err := set.Call(t.Context(), c, "search", args, nil)
		if err != nil {
			t.Fatal(err)
		}
		text = textOf(r)
		if tokens, err = counter.Count(text); err != nil {
			t.Fatal(err)
		}
		return text, tokens
	}
	held := 0
	var costs []int
	for _, q := range asked {
		text, tokens := ask(q.text)
		costs = append(costs, tokens)
		has := strings.Contains(squeezed(text), q.answer)
		if has {
			held++
		}
		t.Logf("%5v %4d %s", has, tokens, q.text)
	}
	slices.Sort(costs)
	median := costs[len(costs)/2]
	t.Logf("%d of %d answers have the line; tokens: median %d, most %d", held, len(asked), median, costs[len(costs)-1])
	if held < 45 || median > 1200 {
		t.Errorf("%d answers have the line, at least 45 are wanted; the median has %d tokens, at most 1,200 are wanted", held, median)
	}

	text, tokens := ask("zzzqqq component")
	if !strings.HasPrefix(text, `No page has "zzzqqq". Weak matches only: `) || strings.Count(text, ".md") > 3 || tokens > 100 {
		t.Errorf("a query with a nonsense word is answered by %d tokens: %s", tokens, text)
	}
}
