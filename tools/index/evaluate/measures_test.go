package evaluate

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

// These values were computed by hand, with log2(3) = 1.5849625 and log2(5) = 2.3219281.
func TestMeasures(t *testing.T) {
	graded := Grades{"a": 3, "b": 2, "c": 0, "d": -1}
	for _, c := range []struct {
		name               string
		ranking            string // words
		grades             Grades
		ndcg, ap, rr, half float64 // half: recall at 2
	}{
		{"the best ranking", "a b c d", graded, 1, 1, 1, 1},
		// 2/1 + 0 + 3/log2(4) = 3.5 of 3 + 2/log2(3) = 4.2618595
		{"the better one late", "b x a", graded, 0.8212378, (1.0 + 2.0/3) / 2, 1, 0.5},
		{"not relevant first", "c d a b", graded, (3/2.0 + 2/2.3219281) / 4.2618595, (1.0/3 + 2.0/4) / 2, 1.0 / 3, 0},
		{"one is not found", "a", graded, 3 / 4.2618595, 0.5, 1, 0.5},
		{"nothing is found", "", graded, 0, 0, 0, 0},
		{"nothing relevant is found", "x y c d", graded, 0, 0, 0, 0},
		{"nothing is relevant", "a b", Grades{"a": 0, "b": -1}, 0, 0, 0, 0},
		{"no judgments", "a b", Grades{}, 0, 0, 0, 0},
		{"equal grades", "x a y b", Grades{"a": 1, "b": 1}, (1/1.5849625 + 1/2.3219281) / (1 + 1/1.5849625), (1.0/2 + 2.0/4) / 2, 0.5, 0.5},
	} {
		t.Run(c.name, func(t *testing.T) {
			ranking := strings.Fields(c.ranking)
			near(t, "nDCG@10", NDCG(ranking, c.grades, 10), c.ndcg)
			near(t, "average precision", AveragePrecision(ranking, c.grades), c.ap)
			near(t, "reciprocal rank", ReciprocalRank(ranking, c.grades, 10), c.rr)
			near(t, "recall at 2", Recall(ranking, c.grades, 2), c.half)
		})
	}
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-6 {
		t.Errorf("%s is %.7f, want %.7f", what, got, want)
	}
}

// Documents below the depth of a measure don't count, neither in the ranking nor in the ideal
// ranking.
func TestDepths(t *testing.T) {
	var ranking []string
	grades := Grades{}
	for i := range 20 {
		ranking = append(ranking, string(rune('A'+i)))
		grades[ranking[i]] = 1
	}
	near(t, "nDCG@10 of more relevant documents than ten", NDCG(ranking, grades, 10), 1)
	near(t, "recall at 10", Recall(ranking, grades, 10), 0.5)
	late := append(make([]string, 10), "a")
	near(t, "reciprocal rank of the eleventh", ReciprocalRank(late, Grades{"a": 1}, 10), 0)
	near(t, "nDCG@10 of the eleventh", NDCG(late, Grades{"a": 1}, 10), 0)
	near(t, "average precision of the eleventh", AveragePrecision(late, Grades{"a": 1}), 1.0/11)
}

// ranker answers from a table.
type ranker map[string]string

func (r ranker) Rank(_ context.Context, query string, _ int) ([]string, time.Duration, error) {
	ids, ok := r[query]
	if !ok {
		return nil, 0, errors.New("no such query")
	}
	return strings.Fields(ids), time.Duration(len(ids)) * time.Millisecond, nil
}

func TestRunTakesMeans(t *testing.T) {
	queries := []Query{
		{Text: "first", Grades: Grades{"a": 1}},
		{Text: "second", Grades: Grades{"b": 1}},
		{Text: "third", Grades: Grades{"a": 1}},
		{Text: "fourth", Grades: Grades{"a": 2, "b": 1}},
	}
	steps := 0
	f, err := Run(t.Context(), ranker{"first": "a", "second": "a b", "third": "", "fourth": "a a b"}, queries, Depth, func(done int) { steps = done })
	if err != nil {
		t.Fatal(err)
	}
	// The second occurrence of a in the last ranking does not count.
	want := Figures{Queries: 4, NDCG: (1 + 1/1.5849625 + 0 + 1) / 4, MAP: (1 + 0.5 + 0 + 1) / 4, MRR: (1 + 0.5 + 0 + 1) / 4, Recall: 3.0 / 4, FirstHits: 2.0 / 4, Median: 3, Slow: 5}
	near(t, "nDCG@10", f.NDCG, want.NDCG)
	f.NDCG = want.NDCG
	if f != want || steps != 4 {
		t.Errorf("%+v after %d steps, want %+v", f, steps, want)
	}
	if _, err := Run(t.Context(), ranker{}, queries, Depth, nil); err == nil {
		t.Error("a ranker's error is lost")
	}
	if f, err := Run(t.Context(), ranker{}, nil, Depth, nil); err != nil || f != (Figures{}) {
		t.Errorf("no queries: %+v, %v", f, err)
	}
}
