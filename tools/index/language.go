package index

import (
	"context"
	"slices"
	"strings"

	"satchel/tools/index/language"
	"satchel/tools/index/parse"
)

// Words meet across languages because every page has each of its words under
// language.Term, which depends on the script alone. A page in a language with a
// stemmer of its own has each of its words under that language's stem too (in
// the extra terms, which no length counts; see OwnTerm), so that a query in that
// language finds the word's other forms. A query that is not sure of its
// language so loses no page, and one that is finds more.

// tongue is the language that a query is asked in.
type tongue struct {
	language.Guess
	// held are the languages with stems of their own that the searched pages are
	// in, as many as matter, the most frequent first.
	held []string
}

// maxHeld bounds the languages that a query of unknown language is stemmed in.
const maxHeld = 6

// tongueOf guesses the language of a query over pages in the languages that
// held counts. A query whose words tell nothing is in the language that most
// pages are in, where most are in one.
func tongueOf(words []string, held map[string]int64) tongue {
	t := tongue{Guess: language.OfQuery(words)}
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

// reader is the language that the asker reads, "" where the query does not tell.
func (t tongue) reader() string {
	if len(t.Langs) > 0 && (t.Sure || len(t.Langs) == 1) {
		return t.Langs[0]
	}
	return ""
}

// isStop reports whether a word of a query carries no topic in its language. A
// Word that is one in English alone counts unless the query is surely in
// another language.
func (t tongue) isStop(word string) bool {
	word = strings.ToLower(word)
	if t.Sure {
		return language.IsStop(word, t.Langs[0])
	}
	return language.IsStop(word)
}

// isStop reports whether a word carries no topic in English or in any of the
// languages.
func isStop(word string, langs ...string) bool {
	word = strings.ToLower(word)
	return language.IsStop(word) || len(langs) > 0 && language.IsStop(word, langs...)
}

// stems returns the terms, besides its own, under which pages in the query's
// language have a word: of a query of unknown language, in each that pages are
// in.
func (t tongue) stems(raw string) []string {
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

// transliterated returns the stem of a German word typed without umlauts (ueber
// for über, as on other keyboards), "" where there is none.
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

// languages returns how many documents are in each language that the collections
// hold; "" is where it is not known.
func (x *Index) languages(ctx context.Context, sessions []*session) (map[string]int64, error) {
	all := map[string]int64{}
	for _, s := range sessions {
		langs, err := s.languages(ctx)
		if err != nil {
			return nil, x.failed(ctx, s, err)
		}
		for l, n := range langs {
			all[l] += n
		}
	}
	return all, nil
}

// languages counts the database's documents by language, once for each commit.
func (s *session) languages(ctx context.Context) (map[string]int64, error) {
	s.db.mu.Lock()
	langs, current := s.db.langs, s.db.state.commit == s.state.commit
	s.db.mu.Unlock()
	if langs != nil && current {
		return langs, nil
	}
	rows, err := s.tx.QueryContext(ctx, `SELECT lang, count(*) FROM docs GROUP BY lang`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	langs = map[string]int64{}
	for rows.Next() {
		var l string
		var n int64
		if err := rows.Scan(&l, &n); err != nil {
			return nil, err
		}
		langs[l] = n
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	s.db.mu.Lock()
	if s.db.state.commit == s.state.commit {
		s.db.langs = langs
	}
	s.db.mu.Unlock()
	return langs, nil
}
