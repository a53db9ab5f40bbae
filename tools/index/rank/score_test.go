package rank

import (
	"math"
	"testing"
)

func TestResidualIDF(t *testing.T) {
	if got := residualIDF(1000, 50, 50); got < 1 || got > 1.05 {
		t.Errorf("a word that comes singly tells %.3f", got)
	}
	if often, seldom := residualIDF(1000, 50, 400), residualIDF(1000, 50, 100); often <= seldom || seldom <= 1 {
		t.Errorf("a word that comes in bursts tells %.3f and %.3f", often, seldom)
	}
	for _, c := range [][3]int64{{0, 0, 0}, {10, 0, 0}, {10, 20, 30}, {1, 1, 0}} {
		if got := residualIDF(c[0], c[1], c[2]); math.IsNaN(got) || math.IsInf(got, 0) || got < 1 {
			t.Errorf("%v: %v", c, got)
		}
	}
}

func TestCoverage(t *testing.T) {
	st := statistics{chunks: 100}
	c := newCoverage([]Term{{Weight: 1, residualIDF: 1, DF: 10}, {Weight: 1, residualIDF: 1}, {Weight: 1, residualIDF: 1, DF: 10}}, st)
	for terms, want := range map[uint64]float64{0: 0, 1: .5, 4: .5, 5: 1, 2: 0, 7: 1} {
		if got := c.of(terms); math.Abs(got-want) > 1e-9 {
			t.Errorf("%b: %.3f, want %.3f", terms, got, want)
		}
	}
	if got := newCoverage(nil, st).of(3); got != 0 {
		t.Errorf("no terms: %v", got)
	}
}
