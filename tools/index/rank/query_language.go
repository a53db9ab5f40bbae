package rank

import (
	"slices"
	"strings"

	"satchel/tools/index/language"
	"satchel/tools/index/parse"
)

// Every word of a page is indexed as its language.Term, which depends only on the script, so
// words match across languages. If the page's language has a stemmer, the word is also indexed
// as its stem in that language (see parse.OwnTerm), so a query in that language finds the
// other forms of a word. These stems do not count in the length of a field. A query of unknown
// language misses no page, because it contains the words' language.Term.

// queryLanguage is the language of a query.
type queryLanguage struct {
	language.Guess
	// held lists the most frequent languages of the searched pages that have stemmers, at
	// most maxHeld, the most frequent first.
	held []string
}

// maxHeld is how many languages are used to stem a query of unknown language.
const maxHeld = 6

// queryLanguageOf guesses the language of a query. held counts the pages in each language. If
// the words do not show the language, the guess is the language of more than half of the pages,
// provided that language.Stems is true for this language.
func queryLanguageOf(words []string, held map[string]int64) queryLanguage {
	t := queryLanguage{Guess: language.OfQuery(words)}
	total := int64(0)
	counts := map[string]int64{}
	for l, n := range held {
		total += n
		counts[language.Base(l)] += n
	}
	delete(counts, "")
	for len(t.held) < maxHeld {
		best := ""
		for l, n := range counts {
			if language.Stems(l) && n*50 >= total && (best == "" || n > counts[best] || n == counts[best] && l < best) {
				best = l
			}
		}
		if best == "" {
			break
		}
		if len(t.Langs) == 0 && 2*counts[best] > total {
			t.Langs = []string{best}
		}
		t.held = append(t.held, best)
		delete(counts, best)
	}
	return t
}

// reader returns the language that the user reads, or "" if the query does not show it.
func (t queryLanguage) reader() string {
	if len(t.Langs) > 0 && (t.Sure || len(t.Langs) == 1) {
		return t.Langs[0]
	}
	return ""
}

// isStop reports whether a word of a query is a stop word: of the query's language if that is
// sure, or else of English.
func (t queryLanguage) isStop(word string) bool {
	word = strings.ToLower(word)
	if t.Sure {
		return language.IsStop(word, t.Langs[0])
	}
	return language.IsStop(word)
}

// isStop reports whether a word is a stop word of English or of one of the languages.
func isStop(word string, langs ...string) bool {
	word = strings.ToLower(word)
	return language.IsStop(word) || len(langs) > 0 && language.IsStop(word, langs...)
}

// stems returns further terms under which a word is indexed on pages in the query's language.
// For a query of unknown language, they come from the languages in held.
func (t queryLanguage) stems(raw string) []string {
	langs := t.held
	if r := t.reader(); r != "" {
		langs = []string{r}
		if !language.Stems(r) {
			return nil
		}
	}
	var all []string
	for _, l := range langs {
		for _, s := range []string{language.Stem(l, raw), transliterated(l, raw)} {
			if s = parse.OwnTerm(l, s); s != "" && !slices.Contains(all, s) {
				all = append(all, s)
			}
		}
	}
	return all
}

// transliterated returns the stem of a German word typed without umlauts (ueber for über),
// or "" if there is none.
func transliterated(lang, raw string) string {
	if lang != "de" {
		return ""
	}
	low := strings.ToLower(raw)
	with := strings.NewReplacer("ae", "ä", "oe", "ö", "ue", "ü").Replace(low)
	if with == low {
		return ""
	}
	return language.Stem(lang, with)
}
