// Package indextest writes pages for the tests of the search index.
package indextest

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Generator writes Markdown that looks like documentation. The frequencies of its words follow
// Zipf's law, like those of a language. The same seed always gives the same text.
type Generator struct {
	rng   *rand.Rand
	zipf  *rand.Zipf
	Words []string // frequent ones first
}

// NewGenerator returns a generator with a seed.
func NewGenerator(seed uint64) *Generator {
	rng := rand.New(rand.NewPCG(seed, 1))
	g := &Generator{rng: rng, zipf: rand.NewZipf(rng, 1.07, 8, 29_999)}
	syllables := strings.Fields("ba co de fi gu ha in jo ka le mo nu or pa qui ra se ti un ve wo xa yo za bre cla dro fle gri plo sta tre")
	seen := map[string]bool{}
	for len(g.Words) < 30_000 {
		w := ""
		for range 2 + rng.IntN(3) {
			w += syllables[rng.IntN(len(syllables))]
		}
		if !seen[w] {
			seen[w] = true
			g.Words = append(g.Words, w)
		}
	}
	return g
}

// Word returns a word.
func (g *Generator) Word() string { return g.Words[g.zipf.Uint64()] }

// Sentence returns n words.
func (g *Generator) Sentence(n int) string {
	ws := make([]string, n)
	for i := range ws {
		ws[i] = g.Word()
	}
	return strings.Join(ws, " ")
}

// Page returns a page of about the given size.
func (g *Generator) Page(bytes int) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "---\ntitle: %s\ndescription: %s\n---\n\n# %s\n\n", g.Sentence(3), g.Sentence(10), g.Sentence(3))
	for b.Len() < bytes {
		fmt.Fprintf(&b, "## %s\n\n", g.Sentence(3))
		for range 3 {
			fmt.Fprintf(&b, "%s. %s. See [%s](https://example.org/%s).\n\n", g.Sentence(25), g.Sentence(20), g.Sentence(2), g.Word())
		}
		fmt.Fprintf(&b, "```ts\nconst %s = use%s(%q)\n```\n\n", g.Word(), strings.ToUpper(g.Word()[:1])+g.Word(), g.Word())
	}
	return []byte(b.String())
}

// Pages returns n pages of about the given size, by their paths.
func (g *Generator) Pages(n, bytes int) map[string][]byte {
	files := make(map[string][]byte, n)
	for i := range n {
		files[fmt.Sprintf("knowledge/%s/page-%d.md", g.Words[i%50], i)] = g.Page(bytes)
	}
	return files
}
