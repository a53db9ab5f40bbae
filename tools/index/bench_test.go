package index

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"satchel/internal/space"
	"satchel/tools/index/indextest"
)

func BenchmarkSearch10000Pages(b *testing.B) {
	g := indextest.NewGenerator(1)
	h := newHistory()
	h.commit(g.Pages(10_000, 4_500))
	x := openIndex(b, Options{})
	update(b, x, h)
	for _, words := range []int{1, 3, 10} {
		b.Run(fmt.Sprintf("words=%d", words), func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				q := g.Sentence(words)
				start := time.Now()
				search(b, x, q)
				took = append(took, time.Since(start))
			}
			reportQuantiles(b, took)
		})
	}
}

func reportQuantiles(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, "p95-ms")
	b.ReportMetric(0, "ns/op")
}

func BenchmarkUpdateOnePage(b *testing.B) {
	g := indextest.NewGenerator(2)
	h := newHistory()
	h.commit(g.Pages(10_000, 4_500))
	x := openIndex(b, Options{})
	update(b, x, h)
	var took []time.Duration
	for i := 0; b.Loop(); i++ {
		h.commit(map[string][]byte{fmt.Sprintf("knowledge/%s/page-%d.md", g.Words[i%50], i%10_000): g.Page(4_500)})
		start := time.Now()
		update(b, x, h)
		took = append(took, time.Since(start))
	}
	reportQuantiles(b, took)
}

func BenchmarkIndex50MB(b *testing.B) {
	g := indextest.NewGenerator(3)
	h := newHistory()
	h.commit(g.Pages(6_000, 8_000))
	size := int64(0)
	for _, data := range h.blobs {
		size += int64(len(data))
	}
	b.SetBytes(size)
	for b.Loop() {
		x := openIndex(b, Options{})
		if err := x.Update(b.Context(), space.SpaceID("bench"), h); err != nil {
			b.Fatal(err)
		}
	}
}
