package conversations_test

import (
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"unicode"

	"satchel/internal/testenv"
	"satchel/tools/index"
	"satchel/tools/index/evaluate"
	"satchel/tools/index/evaluate/conversations"
	"satchel/tools/index/language"
)

// depth is how many results a reader looks at.
const depth = 5

func open(t *testing.T) *conversations.Collection {
	t.Helper()
	pages := map[string][]byte{}
	for name, under := range map[string]string{"nuxt": "docs", "astro": "src/content/docs/en"} {
		some, err := evaluate.ReadPages(testenv.LargeData(t, "docs", name+".tar.gz"), under)
		if err != nil {
			t.Fatal(err)
		}
		for p, data := range some {
			pages[path.Join(name, p)] = data
		}
	}
	c, err := conversations.Generate(pages)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// words returns the different words of a text that are not stop words, in the form that change
// gives them.
func words(text string, change func(string) string) map[string]bool {
	all := map[string]bool{}
	for w := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if len(w) > 1 && !language.IsStop(w) {
			all[change(w)] = true
		}
	}
	return all
}

// shared returns the share of a question's words that the sessions say.
func shared(q conversations.Question, change func(string) string) float64 {
	asked, said := words(q.Text, change), words(strings.Join(q.Fact.Said, " "), change)
	both := 0
	for w := range asked {
		if said[w] {
			both++
		}
	}
	return float64(both) / float64(len(asked))
}

// tally counts the questions of a type and those whose sessions are found.
type tally struct {
	n, hits, first int
	words, stems   float64 // see shared
	missed         []string
}

func (c *tally) hitRate() float64 { return float64(c.hits) / float64(c.n) }

// TestRecall is the promise that a search without models finds what was said in conversations:
// of a fact in one session that session, of an updated fact the newest session, and of a fact in
// several sessions all of them, among the first five results.
func TestRecall(t *testing.T) {
	c := open(t)
	b, err := evaluate.Build(t.Context(), index.Options{}, c.Documents, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	by := map[string]*tally{}
	for _, q := range c.Questions {
		ids, _, err := b.Rank(t.Context(), q.Text, evaluate.TopDepth)
		if err != nil {
			t.Fatal(err)
		}
		top := ids[:min(depth, len(ids))]
		hit := true
		for id := range q.Grades {
			hit = hit && slices.Contains(top, id)
		}
		half := "tuned half"
		if q.HeldOut {
			half = "held-out half"
		}
		wording := "asked: "
		if q.Reworded {
			wording = "reworded: "
		}
		for _, name := range []string{wording + q.Fact.Type, wording + half, wording + "all"} {
			if by[name] == nil {
				by[name] = &tally{}
			}
			x := by[name]
			x.n++
			x.words += shared(q, func(w string) string { return w })
			x.stems += shared(q, language.Term)
			if len(ids) > 0 && q.Grades[ids[0]] > 0 {
				x.first++
			}
			if hit {
				x.hits++
			} else if name == wording+q.Fact.Type && !q.HeldOut {
				x.missed = append(x.missed, q.Text)
			}
		}
	}
	// The held-out misses are not shown, so that nobody tunes with them.
	for _, name := range slices.Sorted(maps.Keys(by)) {
		x := by[name]
		n := float64(x.n)
		t.Logf("%-35s %3d questions: hit@5 %.3f, hit@1 %.3f; of a question's words the sessions have %.2f, of its stems %.2f",
			name, x.n, x.hitRate(), float64(x.first)/n, x.words/n, x.stems/n)
		for _, q := range x.missed {
			t.Log("    missed:", q)
		}
	}
	for name, floor := range map[string]float64{"asked: all": .95, "reworded: all": .63} {
		if got := by[name].hitRate(); got < floor {
			t.Errorf("%s: hit@5 is %.3f, and at least %.3f is wanted", name, got, floor)
		}
	}
}

// TestCollection checks that the collection is what it claims to be.
func TestCollection(t *testing.T) {
	c, again := open(t), open(t)
	if len(c.Documents) != conversations.Sessions || len(c.Questions) < 100 {
		t.Fatalf("%d sessions, %d questions", len(c.Documents), len(c.Questions))
	}
	text := map[string]string{}
	for i, d := range c.Documents {
		data, err := d.Read()
		if err != nil {
			t.Fatal(err)
		}
		text[d.ID] = string(data)
		if same, _ := again.Documents[i].Read(); string(same) != string(data) {
			t.Fatalf("%s is different the second time", d.ID)
		}
		if n := strings.Count(string(data), "\n## User\n"); n < 4 {
			t.Errorf("%s has %d turns", d.ID, n)
		}
	}
	subjects := map[string]bool{}
	for _, q := range c.Questions {
		subjects[q.Fact.Subject] = true
		if len(q.Grades) == 0 {
			t.Errorf("%q has no session", q.Text)
		}
		if last := q.Fact.Said[len(q.Fact.Said)-1]; !strings.Contains(strings.ToLower(last), strings.ToLower(q.Fact.Answer)) {
			t.Errorf("%q: %q is not in %q", q.Text, q.Fact.Answer, last)
		}
		for id := range q.Grades {
			if !slices.ContainsFunc(q.Fact.Said, func(s string) bool { return strings.Contains(text[id], s) }) {
				t.Errorf("%s does not say what %q asks", id, q.Text)
			}
		}
	}
	if len(subjects) < 12 {
		t.Errorf("%d subjects", len(subjects))
	}
}
