package evaluate_test

import (
	"path/filepath"
	"testing"

	"satchel/internal/testenv"
	"satchel/tools/index"
	"satchel/tools/index/evaluate"
)

func build(t testing.TB, docs []evaluate.Document) *evaluate.Built {
	t.Helper()
	b, err := evaluate.Build(t.Context(), index.Options{}, docs, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func measure(t testing.TB, what string, r evaluate.Ranker, queries []evaluate.Query, depth int) evaluate.Figures {
	t.Helper()
	f, err := evaluate.Run(t.Context(), r, queries, depth, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%-24s %4d queries: nDCG@10 %.4f, MAP %.4f, MRR@10 %.4f, hit@1 %.3f, recall@100 %.3f, p50 %.1f ms, p95 %.1f ms",
		what, f.Queries, f.NDCG, f.MAP, f.MRR, f.FirstHits, f.Recall, f.Median, f.Slow)
	return f
}

// atLeast fails if a figure is less than its bar.
func atLeast(t testing.TB, what string, got, bar float64) {
	t.Helper()
	if got < bar {
		t.Errorf("%s is %.4f, and at least %.3f is wanted", what, got, bar)
	}
}

// TestJudgedCollections compares the ranking of research collections with bars.
func TestJudgedCollections(t *testing.T) {
	for _, c := range []struct {
		name       string
		ndcg, mean float64
	}{{"cranfield", .39, .335}, {"vaswani", .44, .29}} {
		t.Run(c.name, func(t *testing.T) {
			col, err := evaluate.OpenBEIR(testenv.LargeData(t, "ir", c.name))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { col.Close() })
			f := measure(t, c.name, build(t, col.Documents), col.Queries, evaluate.Depth)
			atLeast(t, "nDCG@10", f.NDCG, c.ndcg)
			atLeast(t, "MAP", f.MAP, c.mean)
		})
	}
}

// TestDocumentation compares the ranking of real documentation with bars.
func TestDocumentation(t *testing.T) {
	pages := map[string][]byte{}
	for name, under := range map[string]string{"nuxt": "docs", "astro": "src/content/docs/en"} {
		some, err := evaluate.ReadPages(testenv.LargeData(t, "docs", name+".tar.gz"), under)
		if err != nil {
			t.Fatal(err)
		}
		for p, data := range some {
			pages[filepath.ToSlash(filepath.Join(name, p))] = data
		}
	}
	docs, err := evaluate.FromDocs(pages, 6)
	if err != nil {
		t.Fatal(err)
	}
	b := build(t, docs.Documents)
	t.Log(len(pages), "pages")
	check := func(what string, queries []evaluate.Query, bar float64) {
		t.Helper()
		atLeast(t, what+", MRR@10", measure(t, what, b, queries, evaluate.TopDepth).MRR, bar)
	}
	check("description -> page", docs.Descriptions, .87)
	check("words -> identifier", docs.Words, .98)
	check("identifier", docs.Identifiers, .99)
	// Only identifiers that are the subject of a page, not of a paragraph.
	if docs, err = evaluate.FromDocs(pages, 3); err != nil {
		t.Fatal(err)
	}
	check("words, to level 3", docs.Words, .98)
	check("identifier, to level 3", docs.Identifiers, .985)
}
