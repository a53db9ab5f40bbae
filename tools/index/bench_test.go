package index

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"satchel/internal/space"
	"satchel/tools/index/parse"
)

// generator writes documentation-like Markdown whose words are as unevenly
// frequent as those of a language (Zipf), from a fixed seed.
type generator struct {
	rng   *rand.Rand
	zipf  *rand.Zipf
	words []string
}

func newGenerator(seed uint64) *generator {
	rng := rand.New(rand.NewPCG(seed, 1))
	g := &generator{rng: rng, zipf: rand.NewZipf(rng, 1.07, 8, 29_999)}
	syllables := strings.Fields("ba co de fi gu ha in jo ka le mo nu or pa qui ra se ti un ve wo xa yo za bre cla dro fle gri plo sta tre")
	seen := map[string]bool{}
	for len(g.words) < 30_000 {
		w := ""
		for range 2 + rng.IntN(3) {
			w += syllables[rng.IntN(len(syllables))]
		}
		if !seen[w] {
			seen[w] = true
			g.words = append(g.words, w)
		}
	}
	return g
}

func (g *generator) word() string { return g.words[g.zipf.Uint64()] }

func (g *generator) sentence(n int) string {
	ws := make([]string, n)
	for i := range ws {
		ws[i] = g.word()
	}
	return strings.Join(ws, " ")
}

// Page returns a page of about so many bytes.
func (g *generator) page(bytes int) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "---\ntitle: %s\ndescription: %s\n---\n\n# %s\n\n", g.sentence(3), g.sentence(10), g.sentence(3))
	for b.Len() < bytes {
		fmt.Fprintf(&b, "## %s\n\n", g.sentence(3))
		for range 3 {
			fmt.Fprintf(&b, "%s. %s. See [%s](https://example.org/%s).\n\n", g.sentence(25), g.sentence(20), g.sentence(2), g.word())
		}
		fmt.Fprintf(&b, "```ts\nconst %s = use%s(%q)\n```\n\n", g.word(), strings.ToUpper(g.word()[:1])+g.word(), g.word())
	}
	return []byte(b.String())
}

func (g *generator) pages(n, bytes int) map[string][]byte {
	files := make(map[string][]byte, n)
	for i := range n {
		files[fmt.Sprintf("knowledge/%s/page-%d.md", g.words[i%50], i)] = g.page(bytes)
	}
	return files
}

func BenchmarkSearch10000Pages(b *testing.B) {
	g := newGenerator(1)
	h := newHistory()
	h.commit(g.pages(10_000, 4_500))
	x := openIndex(b, Options{})
	update(b, x, h)
	for _, words := range []int{1, 3, 10} {
		b.Run(fmt.Sprintf("words=%d", words), func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				q := g.sentence(words)
				start := time.Now()
				search(b, x, q)
				took = append(took, time.Since(start))
			}
			reportQuantiles(b, took)
		})
	}
}

// BenchmarkRetrieve is the first stage of a search alone: the words of a query
// looked up, all chunks that hold one scored, and the best 200 chosen.
func BenchmarkRetrieve(b *testing.B) {
	for _, chunks := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("chunks=%d", chunks), func(b *testing.B) {
			g := newGenerator(4)
			h := newHistory()
			h.commit(g.pages(chunks, 600)) // one chunk each
			x := openIndex(b, Options{})
			update(b, x, h)
			for _, words := range []int{1, 3, 10} {
				b.Run(fmt.Sprintf("words=%d", words), func(b *testing.B) {
					var took []time.Duration
					a := parse.NewAnalyzer()
					postings := int64(0)
					for b.Loop() {
						start := time.Now()
						s := begin(b, x)
						var terms []term
						a.Words(g.sentence(words), func(w parse.Word) {
							n, err := s.freq(b.Context(), w.Term)
							if err != nil {
								b.Fatal(err)
							}
							postings += n
							terms = append(terms, term{text: w.Term, weight: 1, telling: 1, df: n})
						})
						sc := newScorer(terms, sumStatistics([]state{s.state}))
						if _, _, err := s.retrieve(b.Context(), retrieval{terms: terms, sc: sc, depth: 200}); err != nil {
							b.Fatal(err)
						}
						s.end()
						took = append(took, time.Since(start))
					}
					reportQuantiles(b, took)
					b.ReportMetric(float64(postings)/float64(len(took)), "postings/op")
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

func BenchmarkUpdateOnePage(b *testing.B) {
	g := newGenerator(2)
	h := newHistory()
	h.commit(g.pages(10_000, 4_500))
	x := openIndex(b, Options{})
	update(b, x, h)
	var took []time.Duration
	for i := 0; b.Loop(); i++ {
		h.commit(map[string][]byte{fmt.Sprintf("knowledge/%s/page-%d.md", g.words[i%50], i%10_000): g.page(4_500)})
		start := time.Now()
		update(b, x, h)
		took = append(took, time.Since(start))
	}
	reportQuantiles(b, took)
}

func BenchmarkIndex50MB(b *testing.B) {
	g := newGenerator(3)
	h := newHistory()
	h.commit(g.pages(6_000, 8_000))
	size := int64(0)
	for _, data := range h.blobs {
		size += int64(len(data))
	}
	b.SetBytes(size)
	for b.Loop() {
		x := openIndex(b, Options{})
		if err := x.Update(b.Context(), space.SpaceID("bench"), h); err != nil {
			b.Fatal(err)
		}
	}
}
