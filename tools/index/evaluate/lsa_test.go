package evaluate_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"satchel/internal/testenv"
	"satchel/tools/index"
	"satchel/tools/index/evaluate"
	"satchel/tools/index/language"
	"satchel/tools/index/parse"
	"satchel/tools/index/rank"
	"satchel/tools/index/semantic"
	"satchel/tools/index/semantic/endpoint"
	"satchel/tools/index/semantic/semantictest"
)

// lsa is latent semantic analysis (Deerwester and others, 1990). It replaces an embedding
// model, because it needs no downloaded weights. The vector of a text is the sum of the vectors
// of its terms.
type lsa struct {
	vectors map[string][]float32
	dims    int
}

// lsaTerms returns the stemmed words of a text, without stop words.
func lsaTerms(a *parse.Analyzer, text string) []string {
	var all []string
	a.Words(text, func(w parse.Word) {
		if !language.IsStop(w.Term) {
			all = append(all, w.Term)
		}
	})
	return all
}

// newLSA computes the leading singular vectors of the matrix of terms and texts by subspace
// iteration.
func newLSA(texts []string, dims int) *lsa {
	a := parse.NewAnalyzer()
	type cell struct {
		term   int
		weight float64
	}
	index, df := map[string]int{}, []float64{}
	docs := make([][]cell, len(texts))
	for i, text := range texts {
		counts := map[int]float64{}
		for _, t := range lsaTerms(a, text) {
			n, ok := index[t]
			if !ok {
				n = len(df)
				index[t] = n
				df = append(df, 0)
			}
			if counts[n] == 0 {
				df[n]++
			}
			counts[n]++
		}
		for n, c := range counts {
			docs[i] = append(docs[i], cell{n, 1 + math.Log(c)})
		}
	}
	idf := make([]float64, len(df))
	for n := range df {
		idf[n] = math.Log(float64(len(texts)) / df[n])
	}
	for _, d := range docs {
		norm := 0.0
		for k := range d {
			d[k].weight *= idf[d[k].term]
			norm += d[k].weight * d[k].weight
		}
		for k := range d {
			d[k].weight /= math.Sqrt(norm)
		}
	}
	r := rand.New(rand.NewPCG(1, 1))
	basis := make([][]float64, len(df)) // a row for each term
	for n := range basis {
		basis[n] = make([]float64, dims)
		for k := range basis[n] {
			basis[n][k] = r.NormFloat64()
		}
	}
	sum := make([]float64, dims)
	for range 8 {
		orthonormal(basis, dims)
		next := make([][]float64, len(df))
		for n := range next {
			next[n] = make([]float64, dims)
		}
		for _, d := range docs { // next = A Aᵀ basis
			clear(sum)
			for _, c := range d {
				for k, x := range basis[c.term] {
					sum[k] += c.weight * x
				}
			}
			for _, c := range d {
				row := next[c.term]
				for k, x := range sum {
					row[k] += c.weight * x
				}
			}
		}
		basis = next
	}
	orthonormal(basis, dims)
	l := &lsa{vectors: map[string][]float32{}, dims: dims}
	for t, n := range index {
		v := make([]float32, dims)
		for k := range v {
			v[k] = float32(idf[n] * basis[n][k])
		}
		l.vectors[t] = v
	}
	return l
}

// orthonormal makes the columns of m orthonormal (modified Gram-Schmidt).
func orthonormal(m [][]float64, dims int) {
	for k := range dims {
		for j := range k {
			p := 0.0
			for _, row := range m {
				p += row[j] * row[k]
			}
			for _, row := range m {
				row[k] -= p * row[j]
			}
		}
		norm := 0.0
		for _, row := range m {
			norm += row[k] * row[k]
		}
		norm = math.Sqrt(max(norm, 1e-30))
		for _, row := range m {
			row[k] /= norm
		}
	}
}

func (l *lsa) embed(a *parse.Analyzer, text string) []float32 {
	v := make([]float32, l.dims)
	v[0] = 1e-6 // so that a text of unknown words also has a direction
	counts := map[string]int{}
	for _, t := range lsaTerms(a, text) {
		counts[t]++
	}
	for t, c := range counts {
		w := float32(1 + math.Log(float64(c)))
		for k, x := range l.vectors[t] {
			v[k] += w * x
		}
	}
	return v
}

// TestSemanticSearchDoesNotHurt checks the default weight with judged queries. With reasonable
// vectors, which the endpoint computes by latent semantic analysis, the results must not be
// worse than with words alone.
func TestSemanticSearchDoesNotHurt(t *testing.T) {
	testenv.OnlySoak(t)
	b, err := evaluate.OpenBEIR(testenv.LargeData(t, "ir", "cranfield"))
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	var texts []string
	for _, d := range b.Documents {
		text, err := d.Read()
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	model := newLSA(texts, 200)
	s := semantictest.New(t, model.dims)
	s.Serve(func(text string) []float32 { return model.embed(parse.NewAnalyzer(), text) })
	e, err := endpoint.NewEmbeddings(endpoint.EmbeddingOptions{
		Identity: semantic.Identity{Model: "m", MaxChars: 6000},
		Options:  endpoint.Options{URL: s.URL, Key: s.Key},
	})
	if err != nil {
		t.Fatal(err)
	}
	ndcg := func(o index.Options) float64 {
		built, err := evaluate.Build(t.Context(), o, b.Documents, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer built.Close()
		if err := built.Wait(t.Context(), func(int, int) {}); err != nil {
			t.Fatal(err)
		}
		return measure(t, "cranfield", built, b.Queries, evaluate.TopDepth).NDCG
	}
	alone := ndcg(index.Options{})
	both := ndcg(index.Options{Semantic: &rank.Semantic{
		Vectors: &semantic.Options{Dir: t.TempDir(), Embedder: e, QueryWait: time.Hour, Batch: 256}, Close: e.Close,
	}})
	if both < alone {
		t.Errorf("with vectors nDCG@10 is %.4f, and %.4f with words alone", both, alone)
	}
}
