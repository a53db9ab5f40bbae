package index

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"satchel/internal/testenv"
	"satchel/tools/index/rank"
	"satchel/tools/index/semantic"
	"satchel/tools/index/semantic/endpoint"
	"satchel/tools/index/semantic/semantictest"
)

// animals embeds a text so that some words have the same meaning.
func animals(text string) []float32 {
	v := make([]float32, 4)
	v[3] = 0.1
	for i, words := range [][]string{{"cat", "feline", "kitten"}, {"dog", "hound", "puppy"}, {"bread", "loaf", "bakery"}} {
		for _, w := range words {
			v[i] += float32(strings.Count(strings.ToLower(text), w))
		}
	}
	return v
}

func semanticOf(t *testing.T, s *semantictest.Server) *rank.Semantic {
	t.Helper()
	e, err := endpoint.NewEmbeddings(endpoint.EmbeddingOptions{
		Identity: semantic.Identity{Model: "m", MaxChars: 6000},
		Options:  endpoint.Options{URL: s.URL, Key: s.Key, Backoff: time.Millisecond, Tries: 2},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return &rank.Semantic{Vectors: &semantic.Options{Dir: t.TempDir(), Embedder: e, QueryWait: time.Hour, BreakAfter: 1, BreakFor: time.Hour, RetryAfter: time.Millisecond}}
}

// embedded waits until the vectors are at the head of the history.
func embedded(t testing.TB, x *Index) {
	t.Helper()
	if err := x.WaitVectors(testenv.Context(t), testSpace); err != nil {
		t.Fatal(err)
	}
}

func pets() *history {
	h := newHistory()
	h.commit(map[string][]byte{
		"feline.md": []byte("# About felines\n\nA feline sleeps all day.\n"),
		"hound.md":  []byte("# About hounds\n\nA hound runs after the postman.\n"),
		"loaf.md":   []byte("# A loaf\n\nFlour, water, salt.\n"),
		"de/cat.md": []byte("# Katze\n\nkitten\n"),
	})
	return h
}

func TestFindsWhatIsSaidInOtherWords(t *testing.T) {
	s := semantictest.New(t, 4)
	s.Serve(animals)
	h := pets()
	x := openIndex(t, Options{Semantic: semanticOf(t, s)})
	r := search(t, x, "kitten")
	if !slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, "not indexed yet") }) {
		t.Errorf("notes are %q", r.Notes)
	}
	update(t, x, h)
	embedded(t, x)
	if got := paths(search(t, x, "cat")); len(got) == 0 || got[0] != "feline.md" && got[0] != "de/cat.md" {
		t.Errorf("cat finds %v", got)
	}
	if got := paths(search(t, x, "puppy")); len(got) == 0 || got[0] != "hound.md" {
		t.Errorf("puppy finds %v", got)
	}
	for query, without := range map[string]string{
		"cat lang:de":      "feline.md", // a filter applies to words and vectors
		"cat path:hound*":  "feline.md",
		`kitten "sleeps"`:  "de/cat.md", // a phrase must occur
		"kitten -katze":    "de/cat.md",
		"kitten path:nono": "feline.md",
	} {
		if got := paths(search(t, x, query)); slices.Contains(got, without) {
			t.Errorf("%s finds %v", query, got)
		}
	}
	// Vectors follow changes, and deleted pages are not found.
	h.commit(map[string][]byte{"hound.md": nil, "new.md": []byte("# News\n\nThe hound has a puppy.\n")})
	update(t, x, h)
	if got := paths(search(t, x, "dog")); slices.Contains(got, "hound.md") {
		t.Errorf("before it is embedded, dog finds %v", got)
	}
	embedded(t, x)
	if got := paths(search(t, x, "dog")); len(got) == 0 || got[0] != "new.md" {
		t.Errorf("dog finds %v", got)
	}
	// A rebuild renumbers documents but embeds nothing again.
	before := len(s.Texts())
	if err := x.Rebuild(t.Context(), testSpace, h); err != nil {
		t.Fatal(err)
	}
	if got := paths(search(t, x, "puppy")); len(got) == 0 || got[0] != "new.md" {
		t.Errorf("puppy finds %v", got)
	}
	if got := s.Texts()[before:]; len(got) != 0 { // the embedding of the query is cached
		t.Errorf("a rebuild embeds %q", got)
	}
}

// TestAVectorIsOfItsDocumentAlone rebuilds an index, so that documents get the former ids
// of others before they are embedded. The old vectors must not be used for them.
func TestAVectorIsOfItsDocumentAlone(t *testing.T) {
	s := semantictest.New(t, 4)
	s.Serve(animals)
	h := pets()
	x := openIndex(t, Options{Semantic: semanticOf(t, s)})
	update(t, x, h)
	embedded(t, x)
	if got := paths(search(t, x, "kitten")); !slices.Contains(got, "feline.md") {
		t.Fatalf("kitten finds %v", got)
	}
	s.Hold() // the embeddings of earlier queries are cached
	h.commit(map[string][]byte{"feline.md": nil, "hound.md": []byte("# About hounds\n\nA hound.\n"), "de/cat.md": nil})
	if err := x.Rebuild(t.Context(), testSpace, h); err != nil {
		t.Fatal(err)
	}
	if got := paths(search(t, x, "kitten")); slices.Contains(got, "hound.md") {
		t.Errorf("kitten finds %v", got)
	}
}

func TestWithoutItsModelASearchGoesByWords(t *testing.T) {
	for name, fault := range map[string]semantictest.Fault{
		"dead": func(w http.ResponseWriter, _ *http.Request, _ []string) bool { w.WriteHeader(503); return true },
		"huge": func(w http.ResponseWriter, _ *http.Request, _ []string) bool {
			_, _ = w.Write([]byte(`{"data":[{"index":0,"embedding":[` + strings.Repeat("1,", 40_000) + `1]}]}`))
			return true
		},
		"of another length": func(w http.ResponseWriter, _ *http.Request, _ []string) bool {
			_, _ = w.Write([]byte(`{"data":[{"index":0,"embedding":[1,2]}]}`))
			return true
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := semantictest.New(t, 4)
			s.Serve(animals)
			h := pets()
			x, plain := openIndex(t, Options{Semantic: semanticOf(t, s)}), openIndex(t, Options{})
			update(t, x, h)
			update(t, plain, h)
			embedded(t, x)
			s.Break(fault)
			for _, query := range []string{"hound", "sleeps all day", "nothing of this"} {
				got, want := search(t, x, query), search(t, plain, query)
				if !slices.Equal(paths(got), paths(want)) || got.Total != want.Total {
					t.Errorf("%s finds %v, and words alone %v", query, paths(got), paths(want))
				}
				if !slices.ContainsFunc(got.Notes, func(n string) bool { return strings.HasPrefix(n, "The embedding model ") }) {
					t.Errorf("notes are %q", got.Notes)
				}
				for _, n := range got.Notes {
					if strings.Contains(n, s.Key) || strings.Contains(n, "127.0.0.1") {
						t.Errorf("a note says too much: %q", n)
					}
				}
			}
		})
	}
}

// TestASlowModelDelaysNoSearch holds every request to the model. The search must return
// while they are held.
func TestASlowModelDelaysNoSearch(t *testing.T) {
	s := semantictest.New(t, 4)
	s.Serve(animals)
	m := semanticOf(t, s)
	m.Vectors.QueryWait = time.Millisecond
	h := pets()
	x := openIndex(t, Options{Semantic: m})
	update(t, x, h)
	embedded(t, x)
	s.Hold()
	r := search(t, x, "hound")
	if got := paths(r); len(got) == 0 || got[0] != "hound.md" {
		t.Errorf("hound finds %v", got)
	}
	if !slices.Contains(r.Notes, "The embedding model did not answer in time, so this answer does not use it.") {
		t.Errorf("notes are %q", r.Notes)
	}
}

type fakeReranker func(query string, documents []string) ([]float64, error)

func (f fakeReranker) Rerank(_ context.Context, query string, documents []string) ([]float64, error) {
	return f(query, documents)
}

func TestRerank(t *testing.T) {
	h := newHistory()
	files := map[string][]byte{}
	for i := range 8 {
		files[fmt.Sprintf("p%d.md", i)] = []byte(fmt.Sprintf("# Page %d\n\n%s\n", i, strings.Repeat("turbine ", i+1)))
	}
	h.commit(files)
	var asked []string
	m := &rank.Semantic{RerankCount: 4, RerankChars: 20, RerankWeight: 1, Reranker: fakeReranker(func(query string, documents []string) ([]float64, error) {
		if query != "turbine" {
			t.Errorf("asked for %q", query)
		}
		asked = documents
		scores := make([]float64, len(documents))
		for i := range scores {
			scores[i] = float64(i) // the reverse order
		}
		return scores, nil
	})}
	x, plain := openIndex(t, Options{Semantic: m}), openIndex(t, Options{})
	update(t, x, h)
	update(t, plain, h)
	want := paths(search(t, plain, "turbine"))
	slices.Reverse(want[:4])
	if got := paths(search(t, x, "turbine path:*.md")); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if len(asked) != 4 || len(asked[0]) > 20 {
		t.Errorf("it was given %q", asked)
	}
	m.Reranker = fakeReranker(func(string, []string) ([]float64, error) { return nil, errors.New("secret detail") })
	x = openIndex(t, Options{Semantic: m})
	update(t, x, h)
	r := search(t, x, "turbine")
	slices.Reverse(want[:4])
	if got := paths(r); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if !slices.Contains(r.Notes, "The reranking model failed, so this answer does not use it.") {
		t.Errorf("notes are %q", r.Notes)
	}
}

type fakeExpander func(query string) ([]string, error)

func (f fakeExpander) Expand(_ context.Context, query string) ([]string, error) { return f(query) }

func TestExpandRemembers(t *testing.T) {
	n := 0
	x := openIndex(t, Options{Semantic: &rank.Semantic{ExpandCache: 1, Expander: fakeExpander(func(query string) ([]string, error) {
		n++
		if query == "fails" {
			return nil, errors.New("no")
		}
		return []string{query + "like"}, nil
	})}})
	h := newHistory()
	h.commit(map[string][]byte{"a.md": []byte("turbinelike")})
	update(t, x, h)
	for _, c := range []struct {
		query string
		asked int
		hits  int
	}{
		{"turbine", 1, 1},
		{"turbine", 1, 1},
		{"turbine path:*.md", 1, 1}, // qualifiers are not words
		{"other", 2, 0},
		{"turbine", 3, 1}, // the cache has dropped it
		{"fails", 4, 0},
	} {
		r := search(t, x, c.query)
		failed := slices.Contains(r.Notes, "The expansion model failed, so this answer does not use it.")
		if n != c.asked || len(r.Hits) != c.hits || failed != (c.query == "fails") {
			t.Errorf("%s: asked %d times, found %v, notes %q", c.query, n, paths(r), r.Notes)
		}
	}
}

// askedReranker and askedExpander are models that record how much time they get.
type (
	askedReranker func(ctx context.Context, documents []string) ([]float64, error)
	askedExpander func(ctx context.Context, query string) ([]string, error)
)

func (f askedReranker) Rerank(ctx context.Context, _ string, documents []string) ([]float64, error) {
	return f(ctx, documents)
}
func (f askedExpander) Expand(ctx context.Context, query string) ([]string, error) {
	return f(ctx, query)
}

// A search limits the total time for all its models. A model that had less than its own
// time has not failed.
func TestModelsShareTheTimeOfASearch(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	var takes time.Duration // the time that the expander takes
	judged, hangs := 0, false
	var had time.Duration
	h := newHistory()
	h.commit(map[string][]byte{"a.md": []byte("turbine one"), "b.md": []byte("turbine two")})
	x := openIndex(t, Options{Now: func() time.Time { return now }, maxTime: 24 * time.Hour, Semantic: &rank.Semantic{
		Wait: time.Hour, ExpandWait: time.Hour, RerankWait: 30 * time.Minute,
		Expander: askedExpander(func(context.Context, string) ([]string, error) {
			now = now.Add(takes)
			return nil, nil
		}),
		Reranker: askedReranker(func(ctx context.Context, documents []string) ([]float64, error) {
			judged++
			until, _ := ctx.Deadline()
			had = time.Until(until)
			if hangs && had < time.Minute {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return make([]float64, len(documents)), nil
		}),
	}})
	update(t, x, h)
	const outOfTime = "The reranking model was not called, because other models used up the search's time for models, so this answer does not use it."
	for _, c := range []struct {
		query string
		takes time.Duration
		most  time.Duration // the most time that is left for it; 0: it is not called
	}{
		{"turbine", 0, 30 * time.Minute},
		{"turbine one", 59 * time.Minute, time.Minute},
		{"turbine two", time.Hour, 0},
		{"turbine two", time.Hour, 30 * time.Minute}, // cached, so that the expander takes no time
		{"turbine one two", 2 * time.Hour, 0},
	} {
		takes, had, judged = c.takes, 0, 0
		r := search(t, x, c.query)
		if had > c.most || (judged == 1) != (c.most > 0) || slices.Contains(r.Notes, outOfTime) != (c.most == 0) || len(r.Hits) != 2 {
			t.Errorf("%s after %v: it had %v, asked %d times; notes %q", c.query, c.takes, had, judged, r.Notes)
		}
	}
	hangs, takes = true, time.Hour-time.Millisecond
	for i := range 2 * semantic.DefaultBreakAfter {
		search(t, x, fmt.Sprintf("turbine number%d", i))
	}
	hangs, judged = false, 0
	if r := search(t, x, "turbine"); judged != 1 {
		t.Errorf("it is left alone, though it never had its time: %q", r.Notes)
	}
}

// The log names the model that failed.
func TestTheLogNamesTheModel(t *testing.T) {
	s := semantictest.New(t, 4)
	m := semanticOf(t, s)
	m.Reranker = fakeReranker(func(string, []string) ([]float64, error) { return nil, errors.New("down") })
	m.Expander = fakeExpander(func(string) ([]string, error) { return nil, errors.New("down") })
	h := pets()
	var log bytes.Buffer
	x := openIndex(t, Options{Semantic: m, Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	update(t, x, h)
	embedded(t, x)
	s.Break(func(w http.ResponseWriter, _ *http.Request, _ []string) bool { w.WriteHeader(503); return true })
	log.Reset()
	for range semantic.DefaultBreakAfter + 1 {
		search(t, x, "hound feline")
	}
	for _, want := range []string{
		"results were not reranked\" error=\"reranking model: down", "results were not reranked\" error=\"reranking model: it failed recently",
		"a query was not expanded\" error=\"expansion model: down", "a query was not expanded\" error=\"expansion model: it failed recently",
		"a query's meaning was left out\" error=\"embedding model: model endpoint: status 503", "a query's meaning was left out\" error=\"embedding model: it failed recently",
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log has no %q:\n%s", want, log.String())
		}
	}
	for l := range strings.Lines(log.String()) {
		if strings.Contains(l, "recently") != strings.Contains(l, "level=DEBUG") {
			t.Errorf("at another level than is due: %s", l)
		}
	}
}
