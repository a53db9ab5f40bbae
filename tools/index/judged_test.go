package index

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"
	"time"
)

// quality is the mean of the usual measures over queries.
type quality struct {
	queries            int
	ndcg, mrr, hit1, n float64
	took               []time.Duration
}

func (q *quality) add(ranked []string, relevant map[string]float64, took time.Duration) {
	q.queries++
	q.took = append(q.took, took)
	var dcg, best float64
	for i, p := range ranked[:min(10, len(ranked))] {
		if g := relevant[p]; g > 0 {
			dcg += g / math.Log2(float64(i)+2)
			if best == 0 {
				best = 1 / float64(i+1)
			}
		}
	}
	var gains []float64
	for _, g := range relevant {
		gains = append(gains, g)
	}
	slices.Sort(gains)
	slices.Reverse(gains)
	ideal := 0.0
	for i, g := range gains[:min(10, len(gains))] {
		ideal += g / math.Log2(float64(i)+2)
	}
	if ideal > 0 {
		q.ndcg += dcg / ideal
	}
	q.mrr += best
	if best == 1 {
		q.hit1++
	}
}

func (q *quality) String() string {
	n := float64(max(1, q.queries))
	slices.Sort(q.took)
	return fmt.Sprintf("%d queries: nDCG@10 %.3f, MRR@10 %.3f, hit@1 %.3f, p50 %v, p95 %v", q.queries, q.ndcg/n, q.mrr/n, q.hit1/n,
		q.took[len(q.took)/2].Round(10*time.Microsecond), q.took[len(q.took)*95/100].Round(10*time.Microsecond))
}

func (q *quality) meanNDCG() float64 { return q.ndcg / float64(max(1, q.queries)) }

func (q *quality) ask(t *testing.T, x *Index, text string, relevant map[string]float64) {
	t.Helper()
	start := time.Now()
	r, err := x.Search(t.Context(), testCollections, Query{Text: text})
	if err != nil {
		t.Fatal(err)
	}
	q.add(paths(r), relevant, time.Since(start))
}

// jsonLines reads a BEIR file.
func jsonLines(t *testing.T, file string, each func(id, title, text string)) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		var d struct {
			ID    string `json:"_id"`
			Title string `json:"title"`
			Text  string `json:"text"`
		}
		if err := json.Unmarshal(sc.Bytes(), &d); err != nil {
			t.Fatal(err)
		}
		each(d.ID, d.Title, d.Text)
	}
	if err := sc.Err(); err != nil {
		t.Fatal(err)
	}
}
