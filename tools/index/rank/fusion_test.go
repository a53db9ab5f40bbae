package rank

import (
	"math"
	"slices"
	"testing"
)

func TestFuseScores(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		name          string
		first, second []float64
		weight        float64
		want          []float64
	}{
		{"nothing", nil, nil, .5, []float64{}},
		{"one document", []float64{7}, []float64{.8}, .5, []float64{1}},
		{"the mean of both", []float64{10, 5, 0}, []float64{.2, .4, .6}, .5, []float64{.5, .5, .5}},
		{"the first alone", []float64{10, 5, 0}, []float64{.2, .4, .6}, 0, []float64{1, .5, 0}},
		{"the second alone", []float64{10, 5, 0}, []float64{.2, .4, .6}, 1, []float64{0, .5, 1}},
		{"negative cosines", []float64{0, 0, 0}, []float64{-.2, 0, .2}, 1, []float64{0, .5, 1}},
		{"one that is not embedded yet", []float64{10, 5, 0}, []float64{.2, nan, .6}, .5, []float64{.5, .5, .5}},
		{"none is embedded", []float64{10, 5, 0}, []float64{nan, nan, nan}, .5, []float64{1, .5, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := fuseScores(c.first, c.second, c.weight)
			if !slices.EqualFunc(got, c.want, func(a, b float64) bool { return math.Abs(a-b) < 1e-9 }) {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}
