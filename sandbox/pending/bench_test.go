package pending_test

import (
	"bytes"
	"path/filepath"
	"testing"

	"satchel/sandbox/pending"
)

// BenchmarkStore measures what a start pays where nothing is held, and what a
// collection pays that holds a small file and a large one.
func BenchmarkStore(b *testing.B) {
	dir := b.TempDir()
	s, err := pending.Open(pending.Options{Dir: filepath.Join(dir, "held"), Seal: load(b, filepath.Join(dir, "key"))})
	if err != nil {
		b.Fatal(err)
	}
	b.Run("load nothing", func(b *testing.B) {
		for b.Loop() {
			if _, err := s.Load(b.Context(), user, id); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, c := range []struct {
		name string
		size int
	}{{"save 1 kB", 1000}, {"save 10 MB", 10_000_000}} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(c.size))
			content := bytes.Repeat([]byte("x"), c.size)
			for b.Loop() {
				content[0]++
				if _, err := s.Save(b.Context(), user, id, []pending.File{{Path: "f", Content: content}}, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
