package semantic

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// randomMatrix writes n clustered vectors, three chunks for each document, and opens the file.
func randomMatrix(t testing.TB, n, dims int) (*matrix, [][]float32) {
	t.Helper()
	r := rand.New(rand.NewPCG(7, uint64(n)))
	centres := make([][]float32, max(1, n/100))
	for i := range centres {
		centres[i] = randomVector(r, dims)
	}
	entries, rows, exact := make([]entry, n), make([]row, n), make([][]float32, n)
	for i := range n {
		v := randomVector(r, dims)
		for k, x := range centres[r.IntN(len(centres))] {
			v[k] += x
		}
		if err := normalise(v); err != nil {
			t.Fatal(err)
		}
		exact[i], rows[i] = v, quantise(v)
		entries[i] = entry{id: int64(i/3+1)<<ChunkBits | int64(i%3), key: uint64(i / 3)}
	}
	file := filepath.Join(t.TempDir(), "m.vec")
	err := writeMatrix(file, header{Identity: Identity{Model: "m"}, Dims: dims, Fingerprint: "1", Commit: "c"}, entries, func(i int) (row, error) { return rows[i], nil })
	if err != nil {
		t.Fatal(err)
	}
	m, err := openMatrix(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.retire(false) })
	return m, exact
}

// TestFindsTheTrueNeighbours compares the two passes over bytes with a plain sum of floats.
func TestFindsTheTrueNeighbours(t *testing.T) {
	for _, dims := range []int{64, 384} {
		m, exact := randomMatrix(t, 6000, dims)
		r := rand.New(rand.NewPCG(8, 8))
		const k, queries = 10, 40
		hits := 0
		for range queries {
			q := slices.Clone(exact[r.IntN(len(exact))])
			for i, x := range randomVector(r, dims) {
				q[i] += x / 20
			}
			if err := normalise(q); err != nil {
				t.Fatal(err)
			}
			best := map[int64]float64{}
			for i, v := range exact {
				best[docOf(m.ids[i])] = max(best[docOf(m.ids[i])], dot(q, v))
			}
			var docs []int64
			for d := range best {
				docs = append(docs, d)
			}
			slices.SortFunc(docs, func(a, b int64) int {
				if best[a] > best[b] {
					return -1
				}
				return 1
			})
			for _, n := range m.nearest(prepare(q), nil, k) {
				if slices.Contains(docs[:k], n.Doc) {
					hits++
				}
			}
		}
		recall := float64(hits) / (k * queries)
		t.Logf("%d dimensions: recall@%d %.4f", dims, k, recall)
		if recall < 0.97 {
			t.Errorf("%d dimensions: recall@%d is %.3f", dims, k, recall)
		}
	}
}

func TestNearestWithinDocuments(t *testing.T) {
	m, exact := randomMatrix(t, 900, 32)
	q := prepare(exact[450]) // a vector of document 151
	if n := m.nearest(q, nil, 5); n[0].Doc != 151 || n[0].Chunk != 151<<ChunkBits || n[0].Key != 150 || n[0].Cosine < 0.99 {
		t.Errorf("nearest is %+v", n[0])
	}
	for _, docs := range [][]int64{{1}, {300}, {1, 2, 300}, {150, 152}, {0, 7, 999}} {
		for _, n := range m.nearest(q, docs, 10) {
			if !slices.Contains(docs, n.Doc) {
				t.Errorf("%v lets %d through", docs, n.Doc)
			}
		}
	}
	if n := m.nearest(q, []int64{0, 999}, 10); len(n) != 0 {
		t.Errorf("got %v", n)
	}
	if first, last := m.rows(151); first != 450 || last != 453 {
		t.Errorf("rows %d to %d", first, last)
	}
	if first, last := m.rows(5000); first != last {
		t.Errorf("rows %d to %d", first, last)
	}
}

func TestAnEmptyMatrix(t *testing.T) {
	file := filepath.Join(t.TempDir(), "m.vec")
	if err := writeMatrix(file, header{Dims: 1}, nil, nil); err != nil {
		t.Fatal(err)
	}
	m, err := openMatrix(file)
	if err != nil {
		t.Fatal(err)
	}
	defer m.retire(true)
	if n := m.nearest(prepare([]float32{1}), nil, 3); len(n) != 0 {
		t.Errorf("got %v", n)
	}
}

// FuzzOpenMatrix opens arbitrary files. Each must be refused, or be valid.
func FuzzOpenMatrix(f *testing.F) {
	m, _ := randomMatrix(f, 7, 9)
	good, err := os.ReadFile(m.file)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(fileMagic))
	f.Add([]byte(fileMagic + "\xff\xff\xff\xff{}"))
	f.Add(good[:len(good)/2])
	file := filepath.Join(f.TempDir(), "m.vec")
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := openMatrix(file)
		if err != nil {
			return
		}
		defer m.retire(false)
		m.nearest(prepare(make([]float32, m.Dims)), nil, 3)
	})
}

// BenchmarkNearest measures a whole search over the vectors of a large collection.
func BenchmarkNearest(b *testing.B) {
	for _, n := range []int{10_000, 92_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			m, exact := randomMatrix(b, n, 384)
			q := prepare(exact[n/2])
			b.SetBytes(int64(len(m.packed)))
			for b.Loop() {
				m.nearest(q, nil, 100)
			}
		})
	}
}
