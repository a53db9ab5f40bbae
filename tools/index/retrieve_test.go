package index

import (
	"fmt"
	"reflect"
	"testing"
)

// A second retrieval that only adds terms finds what one with all of them does.
func TestMoreTermsAreScoredOnce(t *testing.T) {
	files := map[string]string{}
	for i := range 40 {
		files[fmt.Sprintf("p%d.md", i)] = fmt.Sprintf("# Page %d\n\nalpha %s\n\n## Beta\n\nbeta gamma\n", i, []string{"beta", "gamma delta", "delta"}[i%3])
	}
	x, _ := indexOf(t, files)
	all := []term{}
	for _, w := range []string{"alpha", "beta", "gamma", "delta"} {
		all = append(all, term{text: w, weight: 1, telling: 1, df: 20})
	}
	find := func(first int) (best []candidate, docs int) {
		s := begin(t, x)
		defer s.end()
		sc := newScorer(all, sumStatistics([]state{s.state}))
		for _, n := range []int{first, len(all)} {
			var err error
			if best, docs, err = s.retrieve(t.Context(), retrieval{terms: all[:n], sc: sc, depth: 30, more: n > first}); err != nil {
				t.Fatal(err)
			}
		}
		return best, docs
	}
	want, total := find(len(all)) // the second one again
	if got, docs := find(2); !reflect.DeepEqual(got, want) || docs != total || len(want) != 30 {
		t.Errorf("%d documents with %v, not %d with %v", docs, got, total, want)
	}
}
