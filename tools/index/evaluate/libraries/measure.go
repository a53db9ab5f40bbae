package libraries

import (
	"context"
	"math"
	"strings"

	"satchel/internal/space"
	"satchel/tools/index/evaluate"
	"satchel/tools/index/present"
)

// Figures are means over questions. Only the first right page counts, because the other right pages
// are its variants.
type Figures struct {
	Questions int
	NDCG      float64  // the NDCG of the first ten results
	First     float64  // the share of questions with a right page first
	Five      float64  // the share with a right page among the first five
	Library   float64  // the share with the right library first
	Section   float64  // the share with a right page among the first five, at the right section
	Misplaced []string // the questions of the tuned half without a right page first
	sums      [5]float64
}

func (f *Figures) add(q Question, hits []present.Hit) {
	f.Questions++
	right := func(h present.Hit, fits func(Answer) bool) bool {
		for _, a := range q.Answers {
			if fits(a) && h.Path == a.Page {
				return true
			}
		}
		return false
	}
	whole := func(Answer) bool { return true }
	rank := 0
	for i, h := range hits[:min(len(hits), evaluate.TopDepth)] {
		if right(h, whole) {
			rank = i + 1
			break
		}
	}
	if rank > 0 {
		f.sums[0] += 1 / math.Log2(float64(rank)+1)
		h := hits[rank-1]
		if rank <= 5 {
			f.sums[2]++
			if right(h, func(a Answer) bool { return h.SnippetLines[0] <= a.Lines[1] && a.Lines[0] <= h.SnippetLines[1] }) {
				f.sums[4]++
			}
		}
	}
	if rank == 1 {
		f.sums[1]++
	}
	if len(hits) > 0 {
		for _, a := range q.Answers {
			if strings.HasPrefix(hits[0].Path, space.SourcesMount+a.Library+"/") {
				f.sums[3]++
				break
			}
		}
	}
	n := float64(f.Questions)
	f.NDCG, f.First, f.Five, f.Library, f.Section = f.sums[0]/n, f.sums[1]/n, f.sums[2]/n, f.sums[3]/n, f.sums[4]/n
	if rank != 1 && !q.HeldOut {
		f.Misplaced = append(f.Misplaced, q.Text)
	}
}

// Measure asks the questions. It returns figures for each kind of question, for the half with
// which the ranking is tuned ("tuned half"), for the other half ("held-out half"), for all
// ("all"), and for each library ("of NAME"). Only the figures for a kind include questions that
// name their library and questions in other languages than English.
func (c *Collection) Measure(ctx context.Context, b *evaluate.Built) (map[string]*Figures, error) {
	by := map[string]*Figures{}
	for _, q := range c.Questions {
		found, err := b.Search(ctx, q.Text)
		if err != nil {
			return nil, err
		}
		names := []string{string(q.Kind)}
		if q.Kind != Named && q.Kind != Foreign {
			half := "tuned half"
			if q.HeldOut {
				half = "held-out half"
			}
			names = append(names, half, "all", "of "+q.Answers[0].Library)
		}
		for _, name := range names {
			if by[name] == nil {
				by[name] = &Figures{}
			}
			by[name].add(q, found.Hits)
		}
	}
	return by, nil
}
