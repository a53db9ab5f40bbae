package evaluate

import (
	"math"
	"slices"
	"time"
)

// The depths of the measures, in documents.
const (
	// Depth is how many documents of a ranking are judged. TREC runs have the same depth.
	Depth = 1000
	// TopDepth is the depth of nDCG and of the reciprocal rank.
	TopDepth = 10
	// RecallDepth is the depth of recall.
	RecallDepth = 100
)

// Grades are the judgments of one query: how relevant documents are, by id. Documents
// without a grade, or with a grade of 0 or less, are not relevant.
type Grades map[string]float64

// relevant returns how many documents are relevant.
func (g Grades) relevant() int {
	n := 0
	for _, grade := range g {
		if grade > 0 {
			n++
		}
	}
	return n
}

// NDCG returns the discounted gain of the first depth documents of a ranking, divided by the
// gain of the best possible ranking. 1 is the best value. NDCG returns 0 if no document is
// relevant. No document may be in the ranking twice.
func NDCG(ranking []string, g Grades, depth int) float64 {
	gain := 0.0
	for i, doc := range ranking[:min(depth, len(ranking))] {
		gain += discounted(g[doc], i)
	}
	grades := make([]float64, 0, len(g))
	for _, grade := range g {
		grades = append(grades, grade)
	}
	slices.Sort(grades)
	slices.Reverse(grades)
	ideal := 0.0
	for i, grade := range grades[:min(depth, len(grades))] {
		ideal += discounted(grade, i)
	}
	if ideal == 0 {
		return 0
	}
	return gain / ideal
}

func discounted(grade float64, i int) float64 { return max(0, grade) / math.Log2(float64(i)+2) }

// AveragePrecision returns the sum of the precisions at the ranks of the relevant documents in
// a ranking, divided by the number of all relevant documents, whether or not the ranking
// contains them.
func AveragePrecision(ranking []string, g Grades) float64 {
	all := g.relevant()
	if all == 0 {
		return 0
	}
	sum, found := 0.0, 0
	for i, doc := range ranking {
		if g[doc] > 0 {
			found++
			sum += float64(found) / float64(i+1)
		}
	}
	return sum / float64(all)
}

// ReciprocalRank returns 1 divided by the rank of the first relevant document, where ranks
// begin with 1. It returns 0 if no relevant document is among the first depth.
func ReciprocalRank(ranking []string, g Grades, depth int) float64 {
	for i, doc := range ranking[:min(depth, len(ranking))] {
		if g[doc] > 0 {
			return 1 / float64(i+1)
		}
	}
	return 0
}

// Recall returns the share of the relevant documents that is among the first depth of a
// ranking.
func Recall(ranking []string, g Grades, depth int) float64 {
	all := g.relevant()
	if all == 0 {
		return 0
	}
	found := 0
	for _, doc := range ranking[:min(depth, len(ranking))] {
		if g[doc] > 0 {
			found++
		}
	}
	return float64(found) / float64(all)
}

// Figures are the means of the measures over queries, and the times of the searches. The JSON
// form is what `satchel eval --json` prints.
type Figures struct {
	NDCG      float64 `json:"ndcg@10"`
	MAP       float64 `json:"map"`
	MRR       float64 `json:"mrr@10"`
	Recall    float64 `json:"recall@100"`
	Median    float64 `json:"p50_ms"` // the median time of a search, in milliseconds
	Queries   int     `json:"queries"`
	Slow      float64 `json:"-"` // the 95th percentile of the time of a search, in milliseconds
	FirstHits float64 `json:"-"` // the share of the queries whose first hit is relevant
}

// tally sums up the measures of queries.
type tally struct {
	sum  Figures
	took []time.Duration
}

// add judges one ranking. If a document is in the ranking twice, only the first place counts.
func (t *tally) add(ranking []string, g Grades, took time.Duration) {
	ranking = distinct(ranking)
	t.sum.Queries++
	t.sum.NDCG += NDCG(ranking, g, TopDepth)
	t.sum.MAP += AveragePrecision(ranking[:min(Depth, len(ranking))], g)
	t.sum.MRR += ReciprocalRank(ranking, g, TopDepth)
	t.sum.Recall += Recall(ranking, g, RecallDepth)
	t.sum.FirstHits += ReciprocalRank(ranking, g, 1)
	t.took = append(t.took, took)
}

func distinct(ranking []string) []string {
	seen := make(map[string]bool, len(ranking))
	out := make([]string, 0, len(ranking))
	for _, doc := range ranking {
		if !seen[doc] {
			seen[doc] = true
			out = append(out, doc)
		}
	}
	return out
}

// figures returns the means, or zeros if nothing was added.
func (t *tally) figures() Figures {
	if t.sum.Queries == 0 {
		return Figures{}
	}
	n := float64(t.sum.Queries)
	slices.Sort(t.took)
	return Figures{
		NDCG: rounded(t.sum.NDCG / n), MAP: rounded(t.sum.MAP / n), MRR: rounded(t.sum.MRR / n), Recall: rounded(t.sum.Recall / n), FirstHits: rounded(t.sum.FirstHits / n),
		Median: milliseconds(t.took[len(t.took)/2]), Slow: milliseconds(t.took[len(t.took)*95/100]),
		Queries: t.sum.Queries,
	}
}

func milliseconds(d time.Duration) float64 { return rounded(float64(d) / float64(time.Millisecond)) }

// rounded rounds to six decimals.
func rounded(v float64) float64 { return math.Round(v*1e6) / 1e6 }
