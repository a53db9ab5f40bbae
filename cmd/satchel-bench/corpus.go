//go:build linux

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"satchel/internal/space"
)

// words is a vocabulary with the skew of a language: the frequency of word i is proportional to
// (i+4)^-1.15.
type words struct {
	r    *rand.Rand
	zipf *rand.Zipf
}

func newWords(seed uint64) *words {
	r := rand.New(rand.NewPCG(seed, 42))
	return &words{r: r, zipf: rand.NewZipf(r, 1.15, 4, 30_000)}
}

func (w *words) word() string { return spell(w.zipf.Uint64()) }

// spell returns a pronounceable word for a number.
func spell(n uint64) string {
	const consonants, vowels = "bcdfghklmnprstvz", "aeiou"
	var b strings.Builder
	for n += 40; n > 0; n /= 80 {
		b.WriteByte(consonants[n%16])
		b.WriteByte(vowels[n/16%5])
	}
	return b.String()
}

func (w *words) sentence(n int) string {
	s := make([]string, n)
	for i := range s {
		s[i] = w.word()
	}
	return strings.ToUpper(s[0][:1]) + strings.Join(s, " ")[1:] + "."
}

// page returns the text of page i, a Markdown page of about size bytes.
func (w *words) page(i, size int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "---\ntitle: %s %d\ndescription: %s\n---\n\n", w.word(), i, w.sentence(8))
	for b.Len() < size {
		fmt.Fprintf(&b, "## %s\n\n%s %s\n\n", w.sentence(3), w.sentence(20), w.sentence(25))
	}
	return b.String()
}

// pagePath returns the path of page i in a corpus.
func pagePath(i int) string { return fmt.Sprintf("knowledge/s%02d/page-%05d.md", i%50, i) }

// makeCorpus writes n pages of about size bytes under dir.
func makeCorpus(dir string, n, size int) error {
	w := newWords(1)
	for i := range n {
		p := filepath.Join(dir, filepath.FromSlash(pagePath(i)))
		if i < 50 {
			if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
				return err
			}
		}
		if err := os.WriteFile(p, []byte(w.page(i, size)), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// corpusChanges returns the corpus of makeCorpus as the first commit of a space.
func corpusChanges(n, size int) space.ChangeSet {
	w := newWords(1)
	var cs space.ChangeSet
	for i := range n {
		cs.Changes = append(cs.Changes, space.Change{Path: pagePath(i), Content: []byte(w.page(i, size))})
	}
	return cs
}

// corpusRepository makes a git repository of n pages of about size bytes.
func (b *bench) corpusRepository(ctx context.Context, name string, n, size int) (string, error) {
	dir := filepath.Join(b.dir, name)
	if err := makeCorpus(dir, n, size); err != nil {
		return "", err
	}
	return dir, commitAll(ctx, dir, true)
}
