package semantic_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"satchel/tools/index/semantic"
	"satchel/tools/index/semantic/semantictest"
)

// TestFaultsHeal makes the endpoint fail in every way, and then work again. All vectors must
// then be complete, and each text embedded.
func TestFaultsHeal(t *testing.T) {
	times := func(n int, f semantictest.Fault) semantictest.Fault {
		var mu sync.Mutex
		return func(w http.ResponseWriter, r *http.Request, texts []string) bool {
			mu.Lock()
			n--
			left := n
			mu.Unlock()
			return left >= 0 && f(w, r, texts)
		}
	}
	data := func(texts []string, vec func(i int) any) (all []map[string]any) {
		for i := range texts {
			all = append(all, map[string]any{"index": i, "embedding": vec(i)})
		}
		return all
	}
	status := func(code int) semantictest.Fault {
		return func(w http.ResponseWriter, _ *http.Request, _ []string) bool { w.WriteHeader(code); return true }
	}
	for name, fault := range map[string]semantictest.Fault{
		"429 with Retry-After": func(w http.ResponseWriter, _ *http.Request, _ []string) bool {
			w.Header().Set("Retry-After", "3600") // as long as MaxWait allows
			w.WriteHeader(http.StatusTooManyRequests)
			return true
		},
		"500": status(500), "503": status(503), "401": status(401), "404": status(404),
		"cut connection": func(w http.ResponseWriter, _ *http.Request, _ []string) bool { panic(http.ErrAbortHandler) },
		"cut answer": func(w http.ResponseWriter, _ *http.Request, _ []string) bool {
			fmt.Fprint(w, `{"data":[{"index":0,"embedding":[1,2`)
			return true
		},
		"not JSON": func(w http.ResponseWriter, _ *http.Request, _ []string) bool {
			fmt.Fprint(w, `<html>welcome</html>`)
			return true
		},
		"NaN": func(w http.ResponseWriter, _ *http.Request, _ []string) bool {
			fmt.Fprint(w, `{"data":[{"index":0,"embedding":[NaN]}]}`)
			return true
		},
		"too large a number": func(w http.ResponseWriter, _ *http.Request, texts []string) bool {
			semantictest.Answer(w, data(texts, func(int) any { return []float64{1e300} }))
			return true
		},
		"wrong count": func(w http.ResponseWriter, _ *http.Request, texts []string) bool {
			semantictest.Answer(w, data(texts[1:], func(int) any { return []float32{1} }))
			return true
		},
		"one index twice": func(w http.ResponseWriter, _ *http.Request, texts []string) bool {
			d := data(append(texts, ""), func(int) any { return []float32{1} })[:len(texts)]
			d[0]["index"] = len(texts) + 3
			semantictest.Answer(w, d)
			return true
		},
		"zero vectors": func(w http.ResponseWriter, _ *http.Request, texts []string) bool {
			semantictest.Answer(w, data(texts, func(int) any { return make([]float32, 64) }))
			return true
		},
		"empty vectors": func(w http.ResponseWriter, _ *http.Request, texts []string) bool {
			semantictest.Answer(w, data(texts, func(int) any { return []float32{} }))
			return true
		},
		"redirect": func(w http.ResponseWriter, r *http.Request, _ []string) bool {
			http.Redirect(w, r, "http://127.0.0.1:1/elsewhere", http.StatusTemporaryRedirect)
			return true
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.o.RetryAfter = time.Millisecond
			f.shelf.put("c1", pages(10))
			f.server.Break(times(25, fault))
			f.open().Changed("space")
			s := f.at("c1")
			if s.Refused != 0 || s.Err != nil {
				t.Errorf("status %+v", s)
			}
			for i := range 10 {
				if got := f.nearest(fmt.Sprintf("animal%d lives in forest%d", i, i), nil, 1); got[0] != int64(i+1) {
					t.Errorf("nearest to animal %d is %v", i, got)
				}
			}
		})
	}
}

func TestWrongOrderIsPutRight(t *testing.T) {
	f := newFixture(t)
	f.shelf.put("c1", pages(10))
	f.server.Break(func(w http.ResponseWriter, _ *http.Request, texts []string) bool {
		var all []map[string]any
		for i, text := range texts {
			all = append(all, map[string]any{"index": i, "embedding": semantictest.Trigrams(text, 64)})
		}
		slices.Reverse(all)
		semantictest.Answer(w, all)
		return true
	})
	f.open().Changed("space")
	f.at("c1")
	if got := f.nearest("animal3 lives in forest3", nil, 1); got[0] != 4 {
		t.Errorf("nearest is %v", got)
	}
}

// TestOneRefusedTextHoldsNothingUp has a model that refuses texts with a certain word, as a
// model refuses an input that is too long.
func TestOneRefusedTextHoldsNothingUp(t *testing.T) {
	f := newFixture(t)
	docs := pages(20)
	docs[3] = "poison"
	f.shelf.put("c1", docs)
	f.server.Break(func(w http.ResponseWriter, _ *http.Request, texts []string) bool {
		if slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(s, "poison") }) {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"error":{"message":"input too long: poison"}}`)
			return true
		}
		return false
	})
	f.open().Changed("space")
	if s := f.at("c1"); s.Refused != 1 || s.Err != nil {
		t.Errorf("status %+v", s)
	}
	if got := f.nearest("animal7 lives in forest7", nil, 100); got[0] != 8 || len(got) != 19 {
		t.Errorf("nearest are %v", got)
	}
}

func TestAModelThatRefusesEverythingIsBroken(t *testing.T) {
	f := newFixture(t)
	f.shelf.put("c1", pages(40))
	f.server.Break(func(w http.ResponseWriter, _ *http.Request, _ []string) bool {
		w.WriteHeader(http.StatusBadRequest)
		return true
	})
	f.open().Changed("space")
	if s := f.until("failed", func(s semantic.Status) bool { return s.Err != nil }); s.Answering != "" {
		t.Errorf("status %+v", s)
	}
}
