package libraries_test

import (
	"maps"
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
	for name, floor := range map[string]float64{"all": .80, "heading": .955, "sentence": .67, "trouble": .59, "foreign": .62, "named": .96} {
		if got := by[name].NDCG; got < floor {
			t.Errorf("%s: nDCG@10 is %.4f, and at least %.3f is wanted", name, got, floor)
		}
	}
	if got := by["all"].Library; got < .91 {
		t.Errorf("the right library is first for %.3f of the questions, and for at least .91 is wanted", got)
	}
}

// TestCollection checks that the questions are what they claim to be.
func TestCollection(t *testing.T) {
	c, again := generate(t), generate(t)
	text := map[string]string{}
	for i, l := range c.Libraries {
		for k, d := range l.Documents {
			data, err := d.Read()
			if err != nil {
				t.Fatal(err)
			}
			text[d.ID] = string(data)
			if same, _ := again.Libraries[i].Documents[k].Read(); string(same) != string(data) {
				t.Fatalf("%s is different the second time", d.ID)
			}
		}
	}
	asked := map[string]map[libraries.Kind]int{}
	for i, q := range c.Questions {
		if q.Text != again.Questions[i].Text {
			t.Fatalf("question %d is different the second time", i)
		}
		if len(q.Answers) == 0 {
			t.Fatalf("%q has no answer", q.Text)
		}
		library := q.Answers[0].Library
		if asked[library] == nil {
			asked[library] = map[libraries.Kind]int{}
		}
		asked[library][q.Kind]++
		if named := strings.Contains(strings.ToLower(q.Text), library); named != (q.Kind == libraries.Named) {
			t.Errorf("%s question names %s: %q", q.Kind, library, q.Text)
		}
		for _, a := range q.Answers {
			page, ok := text[a.Page]
			if !ok || a.Lines[0] > a.Lines[1] && a.Lines[1] > 0 {
				t.Errorf("%q is answered by %s at %v", q.Text, a.Page, a.Lines)
			}
			if q.Kind == libraries.Sentence && strings.Contains(page, q.Text) {
				t.Errorf("%s still has %q", a.Page, q.Text)
			}
		}
	}
	for _, library := range []string{"astro", "flask", "nuxt", "shadcn"} {
		for _, kind := range []libraries.Kind{libraries.Heading, libraries.Sentence, libraries.Trouble, libraries.Named} {
			if asked[library][kind] < 1 {
				t.Errorf("no %s question about %s", kind, library)
			}
		}
	}
}
