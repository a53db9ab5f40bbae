package evaluate_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"satchel/tools/index/evaluate"
)

var update = flag.Bool("update", false, "write the baseline anew")

const baselineFile = "testdata/baseline.json"

// slack is how much a figure may be less than its baseline: about one query in a hundred that
// is answered a rank later.
const slack = 0.005

// manual writes a documentation tree that is always the same: the pages of an invented
// framework. Each page is about a few subjects that other pages mention too. It has an
// identifier as its subject, and descriptions with other forms of its words.
type manual struct {
	rng *rand.Rand
	ids []string // the subjects of earlier pages
}

// Verbs with their form in -ing, nouns with their plural, and adverbs and sentences about them.
var (
	verbs = strings.Fields(`load:loading fetch:fetching render:rendering cache:caching define:defining resolve:resolving
		validate:validating compress:compressing schedule:scheduling merge:merging watch:watching inject:injecting
		register:registering parse:parsing encrypt:encrypting batch:batching retry:retrying stream:streaming prune:pruning
		import:importing export:exporting mount:mounting observe:observing throttle:throttling convert:converting`)
	things = strings.Fields(`route:routes cookie:cookies header:headers plugin:plugins layout:layouts image:images query:queries
		session:sessions template:templates module:modules request:requests response:responses component:components
		middleware:middlewares token:tokens form:forms schema:schemas worker:workers bundle:bundles adapter:adapters
		locale:locales redirect:redirects snapshot:snapshots payload:payloads directive:directives cursor:cursors
		asset:assets font:fonts script:scripts style:styles sitemap:sitemaps feed:feeds draft:drafts collection:collections
		webhook:webhooks upload:uploads thumbnail:thumbnails migration:migrations prefetch:prefetches fallback:fallbacks`)
	manners = strings.Fields(`lazily safely twice globally locally automatically manually silently early late incrementally
		conditionally remotely atomically concurrently`)
	fillers = strings.Split(`You can change this in the configuration file.|The default works for most projects.|
		This option is experimental and may change.|It runs on the server and in the browser.|See the guide for a longer example.|
		Restart the development server after a change.|The value is read once when the application starts.|
		Nothing is done where the option is false.|An error is thrown when the argument is missing.|
		Most applications never need this.|It returns a promise that resolves when everything is done.`, "|\n\t\t")
)

func (m *manual) pick(words []string) (one, other string) {
	one, other, _ = strings.Cut(words[m.rng.IntN(len(words))], ":")
	return one, other
}

func title(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// page writes page i and returns its path.
func (m *manual) page(i int, seen map[string]bool) (path string, text []byte) {
	var verb, doing, thing, things1, second, seconds string
	for {
		verb, doing = m.pick(verbs)
		thing, things1 = m.pick(things)
		if second, seconds = m.pick(things); second != thing && !seen[verb+thing+second] {
			break
		}
	}
	seen[verb+thing+second] = true
	manner, _ := m.pick(manners)
	id := "use" + title(verb) + title(thing)
	if i%3 == 1 {
		id = verb + title(thing) + title(second)
	}
	name := strings.ReplaceAll(evaluate.SplitIdentifier(id), " ", "-")
	var b strings.Builder
	heading := id
	if i%2 == 1 {
		heading = title(doing) + " " + things1
	}
	fmt.Fprintf(&b, "---\ntitle: %s\ndescription: %s\n---\n\n", heading, []string{
		fmt.Sprintf("What to do with %s when you %s them.", things1, verb), fmt.Sprintf("How %s a %s affects your %s.", doing, thing, seconds),
		fmt.Sprintf("Make your %s safe for %s, %s.", seconds, things1, manner),
	}[m.rng.IntN(3)])
	mention := func() string {
		v, ing := m.pick(verbs)
		t, ts := m.pick(things)
		return []string{
			fmt.Sprintf("Before you %s a %s, look at the %s.", v, t, things1), fmt.Sprintf("%s %s is another page.", title(ing), ts),
			fmt.Sprintf("Use `use%s%s` where the %s has to %s.", title(v), title(t), second, v), fmt.Sprintf("The %s of a %s may differ.", ts, thing),
		}[m.rng.IntN(4)]
	}
	paragraph := func(about string) {
		fmt.Fprintf(&b, "%s %s %s\n\n", about, fillers[m.rng.IntN(len(fillers))], mention())
	}
	paragraph(fmt.Sprintf("`%s` is for %s %s.", id, doing, things1))
	fmt.Fprintf(&b, "## Usage\n\n")
	paragraph(fmt.Sprintf("It works %s, also with %s.", manner, seconds))
	fmt.Fprintf(&b, "```ts\nconst %s = await %s(%s)\n```\n\n", thing, id, second)
	fmt.Fprintf(&b, "## Options\n\n### `%s`\n\n", second+title(manner))
	paragraph(fmt.Sprintf("Each %s is handled %s.", second, manner))
	if i%2 == 1 {
		fmt.Fprintf(&b, "## `%s`\n\n", id)
		paragraph("The function itself.")
	}
	m.ids = append(m.ids, id)
	for range 2 {
		used := m.ids[m.rng.IntN(len(m.ids))]
		fmt.Fprintf(&b, "### With `%s` and %s\n\nCall `%s` first.\n\n```ts\nconst %s = %s(%s)\n%s.%s(%s)\n```\n\n", used, things1, used, second, used, thing, second, verb, used)
	}
	v, _ := m.pick(verbs)
	t, _ := m.pick(things)
	fmt.Fprintf(&b, "## Migrating from `use%s%s`\n\n", title(v), title(t))
	paragraph(fmt.Sprintf("There is no `use%s%s` any more; you %s each %s yourself.", title(v), title(t), v, t))
	fmt.Fprintf(&b, "## See also\n\n%s\n\n%s\n", mention(), mention())
	return fmt.Sprintf("docs/%d.%s/%s-%d.md", i%7, []string{"guide", "api", "recipes"}[i%3], name, i), []byte(b.String())
}

func generated(pages int) map[string][]byte {
	m := &manual{rng: rand.New(rand.NewPCG(11, 7))}
	all, seen := map[string][]byte{}, map[string]bool{}
	for i := range pages {
		path, text := m.page(i, seen)
		all[path] = text
	}
	return all
}

// TestBaseline fails if the ranking of a generated documentation tree is worse than the
// baseline. The flag -update records a better ranking.
func TestBaseline(t *testing.T) {
	docs, err := evaluate.FromDocs(generated(600), 6)
	if err != nil {
		t.Fatal(err)
	}
	b := build(t, docs.Documents)
	got := map[string]float64{}
	for _, c := range []struct {
		name    string
		queries []evaluate.Query
	}{{"description", docs.Descriptions}, {"words", docs.Words}, {"identifier", docs.Identifiers}} {
		f := measure(t, c.name, b, c.queries[:min(300, len(c.queries))], evaluate.TopDepth)
		got[c.name+" mrr@10"], got[c.name+" ndcg@10"] = f.MRR, f.NDCG
	}
	if *update {
		text, err := json.MarshalIndent(got, "", "\t")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(baselineFile, append(text, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(baselineFile)
	if err != nil {
		t.Fatal(err)
	}
	baseline := map[string]float64{}
	if err := json.Unmarshal(text, &baseline); err != nil || len(baseline) != len(got) {
		t.Fatalf("%s has %d figures: %v", baselineFile, len(baseline), err)
	}
	for name, was := range baseline {
		if got[name] < was-slack {
			t.Errorf("%s is %.4f, and was %.4f: the ranking got worse", name, got[name], was)
		}
		if got[name] > was+slack {
			t.Logf("%s is %.4f, and was %.4f: write it down with -update", name, got[name], was)
		}
	}
}
