package index

import (
	"math"
	"testing"
)

// The parts of an explanation add up to the score, step by step, for a word, a sentence
// and words in several fields.
func TestExplanationsAddUpToTheScore(t *testing.T) {
	x, _ := indexOf(t, map[string]string{
		"knowledge/deploy.md":  "---\ntitle: Deploy checklist\n---\n# Deploy checklist\n\nBefore you deploy, run the tests.\n\n## Rollback\n\nDeploy the version before.\n",
		"knowledge/tests.md":   "# Tests\n\nRun all tests of the server before every deploy.\n",
		"knowledge/kitchen.md": "# Kitchen\n\nThe tea is in the second drawer.\n",
	})
	for _, query := range []string{"deploy", "deploy checklist", "how do I run the tests of a server before a deploy"} {
		for _, explain := range []bool{true, false} {
			r, err := x.Search(t.Context(), testCollections, Query{Text: query, Explain: explain})
			if err != nil || len(r.Hits) == 0 {
				t.Fatalf("%q: %d hits, %v", query, len(r.Hits), err)
			}
			for _, hit := range r.Hits {
				if !explain {
					if hit.Why != nil {
						t.Errorf("%q explains %s unasked", query, hit.Path)
					}
					continue
				}
				near(t, query+": the last step of "+hit.Path, hit.Why.Steps[len(hit.Why.Steps)-1].Score, hit.Score)
				terms := 0.0
				for _, term := range hit.Why.Terms {
					terms += term.Score
					fields := 0.0
					for _, f := range term.Fields {
						fields += f.Score
					}
					near(t, query+": the fields of "+term.Term, term.Weight*term.Rarity*fields, term.Score)
				}
				near(t, query+": the terms of "+hit.Path, terms, hit.Why.Steps[0].Score)
			}
		}
	}
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-4*math.Max(1, math.Abs(want)) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}
