package index

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"satchel/tools/index/language"
)

// vocabularyOf is the terms of some words, each in as many chunks as it is
// repeated.
func vocabularyOf(words string) map[string]int64 {
	v := map[string]int64{}
	for w := range strings.FieldsSeq(words) {
		v[language.Term(w)]++
	}
	return v
}

func respelledIn(v map[string]int64, raw string) []string {
	m := newSpeller(raw, slipLetters)
	if m == nil {
		return nil
	}
	for term, n := range v {
		for _, p := range m.prefixes() {
			if strings.HasPrefix(term, p) {
				m.compare(term, n)
			}
		}
	}
	var words []string
	for _, r := range nearestFew(m.ranked(), maxRespellings) {
		words = append(words, r.word)
	}
	return words
}

func TestRespelling(t *testing.T) {
	v := vocabularyOf(`configuration configure configured component components middleware receive hydration environment installation
		useAsyncData Nuxt Astro route routes helix query queries kubernetes timeout content contents context
		настройка компонент composants größe 2026 1.0.21 http2`)
	for _, c := range []struct{ typed, want string }{
		{"confguration", "configuration"},  // a letter left out
		{"configuratoin", "configuration"}, // two swapped
		{"configuraton", "configuration"},  // in the ending
		{"componnent", "component"},        // one doubled
		{"middlewear", "middleware"},       // one replaced, one left out
		{"recieve", "receive"},
		{"eceive", ""}, // the first letter alone cannot be told
		{"hdyration", "hydration"},
		{"enviroment", "environment"},
		{"useAsynData", "useasyncdata"},
		{"kubernets", "kubernetes"},
		{"querys", "query"},
		{"tiemout", "timeout"},
		{"настроика", "настройка"}, {"компанент", "компонент"}, {"grösse", "große"},
		{"asto", "astro"},
		{"nxt", ""},                                             // too short
		{"2025", ""}, {"1.0.22", ""}, {"http3", ""}, {"v2", ""}, // another number is another thing
		{"日本語", ""}, {"xylophone", ""}, {"", ""},
		{strings.Repeat("a", 100), ""},
	} {
		got := respelledIn(v, c.typed)
		if c.want == "große" || c.want == "настройка" {
			if len(got) == 0 && c.want != "große" {
				t.Errorf("%q finds nothing", c.typed)
			}
			continue
		}
		if c.want == "" && len(got) > 0 || c.want != "" && (len(got) == 0 || language.Term(got[0]) != language.Term(c.want)) {
			t.Errorf("%q finds %q, want %q", c.typed, got, c.want)
		}
	}
	// The nearest first, then the most frequent.
	if got := respelledIn(vocabularyOf("contents contexts contexts conteit"), "contexs"); len(got) == 0 || got[0] != "contexts" && got[0] != "context" {
		t.Errorf("contexs finds %q", got)
	}
	if got := respelledNote([]string{"a", "b"}, []respelling{{word: "c"}, {word: "c"}, {word: "d"}}); got != `No page has "a" or "b"; searched for "c" and "d" too.` {
		t.Error(got)
	}
	if got := respelledNote([]string{"a"}, nil); got != `No page has "a".` {
		t.Error(got)
	}
}

// TestRespellingSlips: whatever one slip makes of a word finds that word.
func TestRespellingSlips(t *testing.T) {
	const word = "deployment"
	v := vocabularyOf(word)
	for i := 1; i < len(word); i++ {
		slips := []string{word[:i] + word[i+1:], word[:i] + "q" + word[i:], word[:i] + "q" + word[i+1:]}
		if i+1 < len(word) {
			slips = append(slips, word[:i]+word[i+1:i+2]+word[i:i+1]+word[i+2:])
		}
		for _, s := range slips {
			if known := v[language.Term(s)] > 0; !known && !slices.Contains(respelledIn(v, s), word) {
				t.Errorf("%s finds %q", s, respelledIn(v, s))
			}
		}
	}
}

func FuzzRespelling(f *testing.F) {
	f.Add("confguration", "configur")
	f.Add("ёлкa", "елк")
	f.Add("\xff", "a")
	f.Fuzz(func(t *testing.T, raw, term string) {
		m := newSpeller(raw, slipLetters)
		if m == nil {
			return
		}
		for _, p := range m.prefixes() {
			if p == "" {
				t.Fatalf("%q is compared with every term", raw)
			}
		}
		m.compare(term, 1)
		for _, r := range nearestFew(m.ranked(), maxRespellings) {
			if r.slips > m.limit || r.weight <= 0 || r.weight > 1 {
				t.Fatalf("%q: %+v", raw, r)
			}
		}
	})
}

// BenchmarkRespelling compares a word with all of 100,000 terms.
func BenchmarkRespelling(b *testing.B) {
	g := newGenerator(1)
	var terms []string
	for i := range 100_000 {
		terms = append(terms, language.Term(g.words[i%len(g.words)]+[]string{"", "bre", "dro", "sta"}[i/len(g.words)%4]))
	}
	slices.Sort(terms)
	for _, raw := range []string{"badefixa", "seticodupa"} {
		b.Run(fmt.Sprintf("letters=%d", len(raw)), func(b *testing.B) {
			for b.Loop() {
				m := newSpeller(raw, slipLetters)
				for _, t := range terms {
					m.compare(t, 1)
				}
				nearestFew(m.ranked(), maxRespellings)
			}
		})
	}
}

func TestSearchForgivesSlips(t *testing.T) {
	x, _ := indexOf(t, map[string]string{
		"config.md":  "# Configuration\n\nThe configuration of the server is read when it starts.",
		"deploy.md":  "# Deployment\n\nA deployment starts the server anew.",
		"version.md": "# Release 1.0.21\n\nPort 8080 is open.",
		"ja.md":      "# 表示\n\n表示を変える。図表",
		"fetch.md":   "# useTideFetch\n\nIt asks for the tide.",
		"use.md":     "# Use\n\nThe use of tides and of use.",
	})
	for _, c := range []struct{ query, path, note string }{
		{"confguration", "config.md", `No page has "confguration"; searched for "configuration" too.`},
		{"server deploymnet", "deploy.md", `No page has "deploymnet"; searched for "deployment" too.`},
		{"configuration", "config.md", ""},
		{"useTideFecth", "fetch.md", `No page has "useTideFecth"; searched for "usetidefetch" too.`},
		{"useTdeFetch", "fetch.md", `No page has "useTdeFetch"; searched for "usetidefetch" too.`},
		{"useXyzzy", "use.md", `No page has "useXyzzy".`},
		{"useTides", "use.md", ""}, // its parts are words of pages
		{"1.0.22 release", "version.md", "-"},
		{"8081", "", "-"},
		{"表", "ja.md", ""}, // one character, in pairs and at the end of a run
		{"示", "ja.md", ""},
	} {
		r := search(t, x, c.query)
		if c.path == "" && len(r.Hits) > 0 || c.path != "" && (len(r.Hits) == 0 || r.Hits[0].Path != c.path) {
			t.Errorf("%s finds %v, want %s", c.query, paths(r), c.path)
		}
		notes := strings.Join(r.Notes, " ")
		if c.note == "" && notes != "" || c.note == "-" && strings.Contains(notes, "searched for") || len(c.note) > 1 && notes != c.note {
			t.Errorf("%s: notes %q, want %q", c.query, notes, c.note)
		}
	}
}

// What is searched for instead is on a page as it is told: no stem with an ending
// that it never has, no word of another language that is far rarer, and no umlaut
// that nobody wrote.
func TestRespellingsAreWordsOfPages(t *testing.T) {
	pages := map[string]string{
		"fr.md":  "# Rendu\n\nLe contenu est prérendu pour la production et les pages sont dans la documentation.",
		"it.md":  "# Regole\n\nIl server viene configurato con le regole che sono nella documentazione del progetto.",
		"de.md":  "# Bereitstellung\n\nDie Anwendung wird mit Cloudflare bereitgestellt, und die Größe der Seiten wird nicht über die Datei geändert.",
		"net.md": "# Hosting\n\nHosting on Cloudflare is described here.",
	}
	for i := range 6 { // the form that is meant is on the last of them
		pages[fmt.Sprintf("render%d.md", i)] = "# Pages\n\nA page can be set to prerender when it is built."
	}
	pages["code.md"] = "# Code\n\nCall `useComposableThing` first."
	pages["render9.md"] = "# Routes\n\nThe prerendering of routes happens when the site is built."
	for i := range 30 {
		pages[fmt.Sprintf("config%d.md", i)] = "# Server\n\nThe configuration of the server is read."
	}
	x, _ := indexOf(t, pages)
	for _, c := range []struct{ query, note string }{
		{"prerendring", `No page has "prerendring"; searched for "prerendering" too.`},
		{"configuraton", `No page has "configuraton"; searched for "configuration" too.`},
		{"cloudflaer", `No page has "cloudflaer"; searched for "cloudflare" too.`},
		{"cloudfalre", `No page has "cloudfalre"; searched for "cloudflare" too.`},
		{"componnable", `No page has "componnable"; searched for "composable" too.`}, // in an identifier
		{"groesse", ""}, // an umlaut that is on a page
		{"geaendert", ""},
	} {
		r := search(t, x, c.query)
		if notes := strings.Join(r.Notes, " "); notes != c.note || len(r.Hits) == 0 {
			t.Errorf("%s: %d hits, notes %q, want %q", c.query, len(r.Hits), notes, c.note)
		}
	}
}
