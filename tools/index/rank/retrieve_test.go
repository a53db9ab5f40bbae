package rank

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"satchel/internal/space"
	"satchel/tools/index/indextest"
	"satchel/tools/index/parse"
	"satchel/tools/index/postings"
)

// databaseOf returns a database of files.
func databaseOf(t testing.TB, files map[string][]byte) *postings.Database {
	t.Helper()
	file := filepath.Join(t.TempDir(), "a.1.db")
	o := postings.Options{}.WithDefaults()
	a := parse.NewBuilder()
	err := postings.Build(t.Context(), file, o, "c1", func(w *postings.Writer) error {
		for p, data := range files {
			doc := a.Analyse(space.FileChange{Path: space.Path(p), New: "b"}, data, time.Time{}, postings.MaxChunks)
			if err := w.Add(t.Context(), doc); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	d, err := postings.Open(t.Context(), file, o, postings.NewCache(o.CacheBytes))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		d.Retire(false)
		<-d.Closed()
	})
	return d
}

func begin(t testing.TB, d *postings.Database) *Source {
	t.Helper()
	d.Acquire()
	s, err := d.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return &Source{Snapshot: s, ID: "s_test"}
}

// A second retrieval that adds terms returns the same as one with all terms.
func TestMoreTermsAreScoredOnce(t *testing.T) {
	files := map[string][]byte{}
	for i := range 40 {
		files[fmt.Sprintf("p%d.md", i)] = fmt.Appendf(nil, "# Page %d\n\nalpha %s\n\n## Beta\n\nbeta gamma\n", i, []string{"beta", "gamma delta", "delta"}[i%3])
	}
	d := databaseOf(t, files)
	all := []Term{}
	for _, w := range []string{"alpha", "beta", "gamma", "delta"} {
		all = append(all, Term{Text: w, Weight: 1, residualIDF: 1, DF: 20})
	}
	find := func(first int) (best []chunkMatch, docs int) {
		s := begin(t, d)
		defer s.End()
		stats := sumStatistics([]postings.State{s.State})
		sc := newScorer(all, stats, newNorms(stats))
		for _, n := range []int{first, len(all)} {
			var err error
			if best, docs, err = s.retrieve(t.Context(), retrieval{terms: all[:n], sc: sc, depth: 30, more: n > first}); err != nil {
				t.Fatal(err)
			}
		}
		return best, docs
	}
	want, total := find(len(all)) // the second call scores all terms at once
	if got, docs := find(2); !reflect.DeepEqual(got, want) || docs != total || len(want) != 30 {
		t.Errorf("%d documents with %v, not %d with %v", docs, got, total, want)
	}
}

// BenchmarkRetrieve measures only the first stage of a search: it looks up the words of a
// query, scores all chunks that hold one of them, and picks the best 200.
func BenchmarkRetrieve(b *testing.B) {
	for _, chunks := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("chunks=%d", chunks), func(b *testing.B) {
			g := indextest.NewGenerator(4)
			d := databaseOf(b, g.Pages(chunks, 600)) // each page is one chunk
			for _, words := range []int{1, 3, 10} {
				b.Run(fmt.Sprintf("words=%d", words), func(b *testing.B) {
					var took []time.Duration
					a := parse.NewAnalyzer()
					found := int64(0)
					for b.Loop() {
						start := time.Now()
						s := begin(b, d)
						var terms []Term
						a.Words(g.Sentence(words), func(w parse.Word) {
							n, err := s.Freq(b.Context(), w.Term)
							if err != nil {
								b.Fatal(err)
							}
							found += n
							terms = append(terms, Term{Text: w.Term, Weight: 1, residualIDF: 1, DF: n})
						})
						stats := sumStatistics([]postings.State{s.State})
						sc := newScorer(terms, stats, newNorms(stats))
						if _, _, err := s.retrieve(b.Context(), retrieval{terms: terms, sc: sc, depth: 200}); err != nil {
							b.Fatal(err)
						}
						s.End()
						took = append(took, time.Since(start))
					}
					reportQuantiles(b, took)
					b.ReportMetric(float64(found)/float64(len(took)), "postings/op")
				})
			}
		})
	}
}

func reportQuantiles(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, "p95-ms")
	b.ReportMetric(0, "ns/op")
}
