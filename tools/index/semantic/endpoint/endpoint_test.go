package endpoint_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"satchel/tools/index/semantic"
	"satchel/tools/index/semantic/endpoint"
	"satchel/tools/index/semantic/semantictest"
)

func options(s *semantictest.Server) endpoint.Options {
	return endpoint.Options{URL: s.URL, Key: s.Key, Backoff: time.Millisecond, MaxWait: 2 * time.Millisecond, Tries: 3}
}

func embeddings(t *testing.T, o endpoint.EmbeddingOptions) *endpoint.Embeddings {
	t.Helper()
	e, err := endpoint.NewEmbeddings(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

func TestPrefixesAndDimensions(t *testing.T) {
	s := semantictest.New(t, 32)
	id := semantic.Identity{Model: "m", Dimensions: 16, QueryPrefix: "search_query: ", DocumentPrefix: "search_document: "}
	e := embeddings(t, endpoint.EmbeddingOptions{Options: options(s), Identity: id})
	for kind, want := range map[semantic.Kind]string{semantic.Search: "search_query: cats", semantic.Document: "search_document: cats"} {
		v, err := e.Embed(t.Context(), id, kind, []string{"cats"})
		if err != nil {
			t.Fatal(err)
		}
		if len(v) != 1 || !slices.Equal(v[0], semantictest.Trigrams(want, 16)) {
			t.Errorf("got %v", v)
		}
		if !slices.Contains(s.Texts(), want) {
			t.Errorf("it was given %q", s.Texts())
		}
	}
}

func TestNoIndexesMeansTheOrderOfTheTexts(t *testing.T) {
	s := semantictest.New(t, 8)
	s.Break(func(w http.ResponseWriter, _ *http.Request, texts []string) bool {
		semantictest.Answer(w, []map[string]any{{"embedding": []float32{1, 0}}, {"embedding": []float32{0, 1}}})
		return true
	})
	e := embeddings(t, endpoint.EmbeddingOptions{Options: options(s)})
	v, err := e.Embed(t.Context(), semantic.Identity{Model: "m"}, semantic.Document, []string{"a", "b"})
	if err != nil || v[0][0] != 1 || v[1][1] != 1 {
		t.Errorf("%v, %v", v, err)
	}
}

// TestTries counts how often each failure is retried.
func TestTries(t *testing.T) {
	for _, c := range []struct {
		status int
		kind   semantic.Kind
		want   int
		input  bool // ErrInput
	}{
		{429, semantic.Document, 3, false},
		{500, semantic.Document, 3, true}, // every time, so a text may be the cause
		{503, semantic.Document, 3, false},
		{429, semantic.Search, 1, false}, // a search does not wait
		{500, semantic.Search, 1, false},
		{400, semantic.Document, 1, true},
		{413, semantic.Document, 1, true},
		{422, semantic.Document, 1, true},
		{401, semantic.Document, 1, false},
		{403, semantic.Document, 1, false},
		{404, semantic.Document, 1, false},
		{302, semantic.Document, 1, false},
	} {
		t.Run(fmt.Sprint(c.status, " ", c.kind), func(t *testing.T) {
			s := semantictest.New(t, 8)
			s.Break(func(w http.ResponseWriter, r *http.Request, _ []string) bool {
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(c.status)
				return true
			})
			e := embeddings(t, endpoint.EmbeddingOptions{Options: options(s)})
			_, err := e.Embed(t.Context(), semantic.Identity{Model: "m"}, c.kind, []string{"a"})
			var failed *endpoint.Error
			if !errors.As(err, &failed) || failed.Status != c.status || errors.Is(err, semantic.ErrInput) != c.input {
				t.Errorf("error %v", err)
			}
			if n := s.Requests(); n != c.want {
				t.Errorf("%d requests, want %d", n, c.want)
			}
		})
	}
}

func TestRetryAfterIsHonoured(t *testing.T) {
	for header, least := range map[string]time.Duration{
		"0.05": 50 * time.Millisecond,
		"":     0,
		time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat): 0,
		"soon": 0, "-5": 0, "NaN": 0,
	} {
		s := semantictest.New(t, 8)
		var first atomic.Int64
		var gap atomic.Int64
		s.Break(func(w http.ResponseWriter, _ *http.Request, _ []string) bool {
			if first.CompareAndSwap(0, time.Now().UnixNano()) {
				w.Header().Set("Retry-After", header)
				w.WriteHeader(429)
				return true
			}
			gap.Store(time.Now().UnixNano() - first.Load())
			return false
		})
		o := options(s)
		o.MaxWait = time.Minute
		e := embeddings(t, endpoint.EmbeddingOptions{Options: o})
		if _, err := e.Embed(t.Context(), semantic.Identity{Model: "m"}, semantic.Document, []string{"a"}); err != nil {
			t.Fatal(err)
		}
		if got := time.Duration(gap.Load()); got < least {
			t.Errorf("Retry-After %q: tried again after %v", header, got)
		}
	}
}

// TestNothingSecretIsSaid has endpoints that repeat what they received.
func TestNothingSecretIsSaid(t *testing.T) {
	s := semantictest.New(t, 8)
	key := s.Key
	wrong := options(s)
	wrong.Key = "sk-wrong-0123456789-secret-tail"
	for name, c := range map[string]struct {
		o     endpoint.Options
		fault semantictest.Fault
	}{
		"a refused key": {wrong, nil},
		"a key cut short": {options(s), func(w http.ResponseWriter, _ *http.Request, _ []string) bool {
			w.WriteHeader(401)
			fmt.Fprintf(w, `{"error":"bad key %s…%s"}`, key[:8], key[len(key)-8:])
			return true
		}},
		"the text in a page": {options(s), func(w http.ResponseWriter, r *http.Request, texts []string) bool {
			w.WriteHeader(502)
			fmt.Fprintf(w, "<html>%s %s</html>", texts, r.Header.Get("Authorization"))
			return true
		}},
		"a long message in many lines": {options(s), func(w http.ResponseWriter, _ *http.Request, _ []string) bool {
			w.WriteHeader(400)
			fmt.Fprintf(w, `{"message":"a\nb\u001b[31m%s"}`, strings.Repeat("x", 5000))
			return true
		}},
		"nobody listens": {endpoint.Options{URL: "http://127.0.0.1:1/v1", Key: key, Tries: 1}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s.Break(c.fault)
			e := embeddings(t, endpoint.EmbeddingOptions{Options: c.o})
			_, err := e.Embed(t.Context(), semantic.Identity{Model: "m"}, semantic.Document, []string{"my private diary"})
			if err == nil {
				t.Fatal("no error")
			}
			said := err.Error()
			for _, secret := range []string{c.o.Key, c.o.Key[:8], c.o.Key[len(c.o.Key)-8:], "diary", "\n", "\x1b"} {
				if strings.Contains(said, secret) {
					t.Errorf("it says %q: %s", secret, said)
				}
			}
			if len(said) > 400 {
				t.Errorf("it says %d bytes", len(said))
			}
		})
	}
}

func TestTheKeyGoesNowhereElse(t *testing.T) {
	var got atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { got.Add(1) }))
	defer other.Close()
	s := semantictest.New(t, 8)
	s.Break(func(w http.ResponseWriter, r *http.Request, _ []string) bool {
		http.Redirect(w, r, other.URL, http.StatusPermanentRedirect)
		return true
	})
	e := embeddings(t, endpoint.EmbeddingOptions{Options: options(s)})
	_, err := e.Embed(t.Context(), semantic.Identity{Model: "m"}, semantic.Document, []string{"a"})
	if err == nil || !strings.Contains(err.Error(), "redirects") || got.Load() != 0 {
		t.Errorf("%v; the other host was asked %d times", err, got.Load())
	}
}

func TestAHugeAnswerIsCut(t *testing.T) {
	s := semantictest.New(t, 8)
	s.Break(func(w http.ResponseWriter, _ *http.Request, _ []string) bool {
		fmt.Fprint(w, `{"data":[{"index":0,"embedding":[`)
		for range 100 { // until the reader stops
			if _, err := fmt.Fprint(w, strings.Repeat("1,", 10_000)); err != nil {
				return true
			}
		}
		return true
	})
	o := options(s)
	o.MaxAnswer = 100_000
	e := embeddings(t, endpoint.EmbeddingOptions{Options: o})
	_, err := e.Embed(t.Context(), semantic.Identity{Model: "m"}, semantic.Document, []string{"a"})
	if err == nil || !strings.Contains(err.Error(), "more than 100000 bytes") {
		t.Errorf("got %v", err)
	}
}

// The answer of a search is small, so its limit is low. Otherwise, each search could read a
// large answer.
func TestAnAnswerHasNoMoreThanWasAskedFor(t *testing.T) {
	passages := []string{strings.Repeat("é\"<", 50_000), "two"}
	again, err := json.Marshal(passages[0])
	if err != nil {
		t.Fatal(err)
	}
	vector := strings.TrimSuffix(strings.Repeat("-0.12345678901234567890, ", semantic.MaxDimensions), ", ")
	for _, c := range []struct {
		name  string
		pad   int   // bytes besides the requested data
		spare int64 // 0: the default
		fits  bool
	}{
		{"as asked", 0, 0, true},
		{"a little more", 60_000, 0, true},
		{"much more", 2 << 20, 0, false},
		{"much more, as configured", 2 << 20, 3 << 20, true},
	} {
		s := semantictest.New(t, semantic.MaxDimensions)
		o := options(s)
		o.Spare = c.spare
		e := embeddings(t, endpoint.EmbeddingOptions{Options: o})
		r, err := endpoint.NewReranker("", o)
		if err != nil {
			t.Fatal(err)
		}
		s.Break(func(w http.ResponseWriter, r *http.Request, _ []string) bool {
			_, _ = fmt.Fprintf(w, `{"pad":%q,`, strings.Repeat("x", c.pad))
			if strings.HasSuffix(r.URL.Path, "/rerank") {
				_, _ = fmt.Fprintf(w, `"results":[{"index":0,"relevance_score":1,"document":{"text":%s}},{"index":1,"relevance_score":2}]}`, again)
			} else {
				_, _ = fmt.Fprintf(w, `"data":[{"index":0,"embedding":[%s]}]}`, vector)
			}
			return true
		})
		_, embedded := e.Embed(t.Context(), semantic.Identity{Model: "m"}, semantic.Search, []string{"cats"})
		if (embedded == nil) != c.fits {
			t.Errorf("%s: a vector: %v", c.name, embedded)
		}
		if _, err := r.Rerank(t.Context(), "cats", passages); (err == nil) != c.fits {
			t.Errorf("%s: judgments: %v", c.name, err)
		}
	}
}

func TestASocketServesAModel(t *testing.T) {
	s := semantictest.New(t, 8)
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/embeddings" {
			t.Errorf("path %s", r.URL.Path)
		}
		semantictest.Answer(w, []map[string]any{{"index": 0, "embedding": []float32{1}}})
	})}
	go func() { _ = srv.Serve(l) }()
	defer srv.Close()
	o := options(s)
	o.URL = "unix:" + path
	e := embeddings(t, endpoint.EmbeddingOptions{Options: o})
	if v, err := e.Embed(t.Context(), semantic.Identity{Model: "m"}, semantic.Search, []string{"a"}); err != nil || len(v) != 1 {
		t.Errorf("%v, %v", v, err)
	}
}

func TestBadURLs(t *testing.T) {
	for _, u := range []string{"", "ftp://h/v1", "http://", "http://u:p@h/v1", "http://h/v1?key=x", "http://h/v1#x", "::"} {
		if _, err := endpoint.NewEmbeddings(endpoint.EmbeddingOptions{Options: endpoint.Options{URL: u}}); err == nil {
			t.Errorf("%q was taken", u)
		} else if strings.Contains(err.Error(), "u:p") {
			t.Errorf("it says the password: %v", err)
		}
	}
}

func TestRerank(t *testing.T) {
	s := semantictest.New(t, 8)
	r, err := endpoint.NewReranker("m", options(s))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	got, err := r.Rerank(t.Context(), "cat", []string{"dog", "cat cat", "cat"})
	if err != nil || !slices.Equal(got, []float64{0, 2, 1}) {
		t.Errorf("%v, %v", got, err)
	}
	for _, answer := range []string{
		`{}`, `{"results":[{"index":0,"relevance_score":1}]}`,
		`{"results":[{"index":0,"relevance_score":1},{"index":0,"relevance_score":1},{"index":1,"relevance_score":1}]}`,
		`{"results":[{"index":0,"relevance_score":1},{"index":7,"relevance_score":1},{"index":1,"relevance_score":1}]}`,
		`{"results":[{"index":0},{"index":2,"relevance_score":1},{"index":1,"relevance_score":1}]}`,
		`{"results":[{"relevance_score":1},{"index":2,"relevance_score":1},{"index":1,"relevance_score":1}]}`,
		`{"results":"none"}`, `]`,
	} {
		s.Break(func(w http.ResponseWriter, _ *http.Request, _ []string) bool { fmt.Fprint(w, answer); return true })
		before := s.Requests()
		if _, err := r.Rerank(t.Context(), "cat", []string{"a", "b", "c"}); err == nil {
			t.Errorf("%s was taken", answer)
		}
		if n := s.Requests() - before; n != 1 {
			t.Errorf("%d requests", n)
		}
	}
}

func TestExpand(t *testing.T) {
	s := semantictest.New(t, 8)
	c, err := endpoint.NewChat("m", options(s))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for reply, want := range map[string][]string{
		"feline\nkitten": {"feline", "kitten"},
		"1. `useFetch`\n2. **data fetching**\n- cat":                                                {"useFetch", "data fetching"}, // "cat" is the query
		"<think>hm\nfeline?</think>\nkitten":                                                        {"kitten"},
		"Sure! Here are some words that you may want to use in your search for this topic:\nkitten": {"kitten"},
		"a\nb\nc\nd\ne\nf\ng\nh\ni\nj":                                                              {"a", "b", "c", "d", "e", "f", "g", "h"},
		"kitten, feline; Kitten":                                                                    {"kitten", "feline"},
		"":                                                                                          nil,
	} {
		s.Reply(reply)
		got, err := c.Expand(t.Context(), "cat")
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %q, %v; want %q", reply, got, err, want)
		}
	}
	s.Break(func(w http.ResponseWriter, _ *http.Request, _ []string) bool {
		fmt.Fprint(w, `{"choices":[]}`)
		return true
	})
	if _, err := c.Expand(t.Context(), "cat"); err == nil {
		t.Error("an answer without a choice was taken")
	}
}

// FuzzAnswers gives every client arbitrary answers. Each client must return an error or a valid
// result.
func FuzzAnswers(f *testing.F) {
	for _, s := range []string{
		`{"data":[{"index":0,"embedding":[1,2]},{"index":1,"embedding":[1,2]}]}`, `{"data":[{"embedding":"AACAPwAAAAA="},{"embedding":"AACAPwAAAAA="}]}`,
		`{"results":[{"index":1,"relevance_score":0.5},{"index":0,"relevance_score":1e308}]}`, `{"choices":[{"message":{"content":"a\nb"}}]}`,
		`{"data":[{"index":-1,"embedding":[]},null]}`, `{"data":null}`, `[]`, `null`, `{"data":[{"embedding":"AAA"}]}`, `{"data":[{"embedding":"AADAfw=="},{"embedding":"AADAfw=="}]}`,
	} {
		f.Add(s)
	}
	var body atomic.Value
	body.Store("")
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body.Load()) }))
	f.Cleanup(srv.Close)
	o := endpoint.Options{URL: srv.URL, Tries: 1}
	e, _ := endpoint.NewEmbeddings(endpoint.EmbeddingOptions{Options: o})
	r, _ := endpoint.NewReranker("m", o)
	c, _ := endpoint.NewChat("m", o)
	f.Fuzz(func(t *testing.T, answer string) {
		body.Store(answer)
		v, err := e.Embed(t.Context(), semantic.Identity{}, semantic.Document, []string{"a", "b"})
		if err == nil && (len(v) != 2 || len(v[0]) == 0 || len(v[0]) != len(v[1])) {
			t.Errorf("vectors %v", v)
		}
		if scores, err := r.Rerank(t.Context(), "q", []string{"a", "b"}); err == nil && len(scores) != 2 {
			t.Errorf("scores %v", scores)
		}
		words, err := c.Expand(t.Context(), "q")
		if err == nil && len(words) > endpoint.MaxExpansions {
			t.Errorf("words %q", words)
		}
	})
}
