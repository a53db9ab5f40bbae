package libraries_test

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"satchel/internal/testenv"
	"satchel/tools/index"
	"satchel/tools/index/evaluate"
	"satchel/tools/index/evaluate/libraries"
)

func generate(t *testing.T) *libraries.Collection {
	t.Helper()
	var all []libraries.Library
	for _, l := range []struct{ name, under string }{{"astro", "src/content/docs"}, {"flask", "docs"}, {"nuxt", "docs"}, {"shadcn", "apps/v4/content/docs"}} {
		pages, err := evaluate.ReadPages(testenv.LargeData(t, "docs", l.name+".tar.gz"), l.under)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, libraries.Library{Name: l.name, Pages: pages})
	}
	c, err := libraries.Generate(all)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestMixedLibraries is the promise that a question finds its page among all libraries although
// it does not name the library.
func TestMixedLibraries(t *testing.T) {
	c := generate(t)
	b, err := evaluate.BuildLibraries(t.Context(), index.Options{}, c.Libraries, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	by, err := c.Measure(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(by)) {
		f := by[name]
		t.Logf("%-15s %4d questions: nDCG@10 %.4f, hit@1 %.3f, hit@5 %.3f, right library first %.3f, right section %.3f",
			name, f.Questions, f.NDCG, f.First, f.Five, f.Library, f.Section)
	}
	if os.Getenv("SHOW") != "" {
		for _, name := range strings.Split(os.Getenv("SHOW"), ",") {
			for _, q := range by[name].Misplaced {
				t.Log(name, "misplaced:", q)
			}
		}
	}
}
