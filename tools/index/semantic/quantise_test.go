package semantic

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func randomVector(r *rand.Rand, dims int) []float32 {
	v := make([]float32, dims)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	return v
}

func dot(a, b []float32) float64 {
	s := 0.0
	for i := range a {
		s += float64(a[i]) * float64(b[i])
	}
	return s
}

// TestProductsAreExact compares the packed loop with a plain loop, at the extremes where a lane
// could carry into the next.
func TestProductsAreExact(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, dims := range []int{1, 2, 7, 8, 9, 15, 16, 17, 24, 384, 1023, 1536} {
		for _, extreme := range []bool{false, true} {
			codes, words, want := make([]byte, stride(dims)), make([]uint64, stride(dims)/4), uint64(0)
			for i := range dims {
				c, q := byte(r.IntN(256)), byte(r.IntN(64))
				if extreme {
					c, q = maxCode, maxQuery
				}
				codes[i] = c
				words[i/lanes*2+i%2] |= uint64(q) << (16 * (3 - i%lanes/2))
				want += uint64(c) * uint64(q)
			}
			if got := products(codes, words); got != want {
				t.Errorf("%d dimensions: %d, want %d", dims, got, want)
			}
		}
	}
}

func TestQuantisedCosinesAreClose(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, dims := range []int{1, 3, 64, 384, 1536} {
		worst, worstCoarse := 0.0, 0.0
		for range 200 {
			a, b := randomVector(r, dims), randomVector(r, dims)
			a[0] *= 8 // in some models, one number is much larger than the others
			for _, v := range [][]float32{a, b} {
				if err := normalise(v); err != nil {
					t.Fatal(err)
				}
			}
			q, d := prepare(b), quantise(a)
			want := dot(a, b)
			worst = max(worst, math.Abs(want-float64(q.fine(d))))
			worstCoarse = max(worstCoarse, math.Abs(want-float64(q.coarse(d))))
		}
		if worst > 0.005 || worstCoarse > 0.05 {
			t.Errorf("%d dimensions: off by up to %.4f, coarsely %.4f", dims, worst, worstCoarse)
		}
	}
}

func TestNormaliseRefusesWhatHasNoDirection(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, v := range [][]float32{{0, 0, 0}, {nan, 1}, {inf, 1}, {}} {
		if err := normalise(slices.Clone(v)); err == nil {
			t.Errorf("%v was taken", v)
		}
	}
	v := []float32{3, 4}
	if err := normalise(v); err != nil || math.Abs(float64(v[0])-.6) > 1e-6 {
		t.Errorf("%v, %v", v, err)
	}
}

// BenchmarkScan measures the first pass, in bytes of packed vectors.
func BenchmarkScan(b *testing.B) {
	for _, dims := range []int{384, 1024} {
		b.Run(fmt.Sprint(dims), func(b *testing.B) {
			r := rand.New(rand.NewPCG(5, 6))
			const n = 92_000
			codes := make([]byte, n*stride(dims))
			for i := range codes {
				codes[i] = byte(r.Uint32())
			}
			q := prepare(randomVector(r, dims))
			b.SetBytes(int64(len(codes)))
			var best float32
			for b.Loop() {
				for i := range n {
					best = max(best, q.coarse(row{-.1, .001, 1000, codes[i*stride(dims) : (i+1)*stride(dims)]}))
				}
			}
			_ = best
		})
	}
}
