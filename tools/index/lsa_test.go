package index

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"satchel/internal/testenv"
	"satchel/tools/index/parse"
	"satchel/tools/index/semantic/semantictest"
)

// lsa is latent semantic analysis (Deerwester and others, 1990): a second leg
// that needs no downloaded weights. It stands in for an embedding model where
// one cannot be had; a text's vector is the sum of its terms' vectors.
type lsa struct {
	vectors map[string][]float32
	dims    int
}

// terms are a text's stemmed words.
func lsaTerms(a *parse.Analyzer, text string) []string {
	var all []string
	a.Words(text, func(w parse.Word) {
		if !isStop(w.Term) {
			all = append(all, w.Term)
		}
	})
	return all
}

// newLSA takes the leading singular vectors of the matrix of terms and texts, by
// subspace iteration.
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

// orthonormal makes the columns of m orthonormal (Gram and Schmidt, modified).
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
	v[0] = 1e-6 // a text of unknown words has a direction too
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

// TestASecondLegDoesNotHurt holds the default weight against judged queries:
// with a sensible second leg, here latent semantic analysis served over the
// endpoint, quality must not fall below that of words alone.
func TestASecondLegDoesNotHurt(t *testing.T) {
	testenv.OnlySoak(t)
	dir := testenv.LargeData(t, "ir", "cranfield")
	files := map[string][]byte{}
	var texts []string
	jsonLines(t, filepath.Join(dir, "corpus.jsonl"), func(id, title, text string) {
		if title != "" {
			text = "# " + title + "\n\n" + text
		}
		files[id+".md"] = []byte(text)
		texts = append(texts, text)
	})
	model := newLSA(texts, 200)
	s := semantictest.New(t, model.dims)
	s.Serve(func(text string) []float32 { return model.embed(parse.NewAnalyzer(), text) })
	m := meaningOf(t, s)
	m.Vectors.Batch = 256
	h := newHistory()
	h.commit(files)
	words, both := openIndex(t, Options{}), openIndex(t, Options{Meaning: m})
	update(t, words, h)
	update(t, both, h)
	embedded(t, both)
	relevant := judgments(t, filepath.Join(dir, "qrels.tsv"))
	ask := func(x *Index) float64 {
		var q quality
		jsonLines(t, filepath.Join(dir, "queries.jsonl"), func(id, _, text string) {
			if relevant[id] != nil {
				q.ask(t, x, text, relevant[id])
			}
		})
		t.Log(&q)
		return q.meanNDCG()
	}
	alone := ask(words)
	if got := ask(both); got < alone {
		t.Errorf("with meaning nDCG@10 is %.4f, and %.4f with words alone", got, alone)
	}
}

func judgments(t *testing.T, file string) map[string]map[string]float64 {
	t.Helper()
	qrels, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	relevant := map[string]map[string]float64{}
	for i, l := range strings.Split(strings.TrimSpace(string(qrels)), "\n") {
		f := strings.Fields(l)
		if i == 0 || len(f) != 3 {
			continue
		}
		if relevant[f[0]] == nil {
			relevant[f[0]] = map[string]float64{}
		}
		grade := 0.0
		if f[2] != "0" && !strings.HasPrefix(f[2], "-") {
			grade = float64(f[2][0] - '0')
		}
		relevant[f[0]][f[1]+".md"] = grade
	}
	return relevant
}
