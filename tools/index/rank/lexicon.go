package rank

import (
	"context"
	"slices"
	"strings"

	"satchel/tools/index/language"
	"satchel/tools/index/parse"
)

// lexicon holds what one search knows about words: the language of the query, and the terms
// of the databases.
type lexicon struct {
	ranker  *Ranker
	sources []*Source
	queryLanguage
	// behind means that the databases may lack pages, so a word that they lack may still be on a
	// page.
	behind bool
	// Respelled lists the corrections that the search used for words that no page has.
	Respelled []Respelling
}

// known returns how many chunks hold a term.
func (l *lexicon) known(ctx context.Context, term string) (sum int64, err error) {
	for _, s := range l.sources {
		n, err := s.Freq(ctx, term)
		if err != nil {
			return 0, s.Failed(err)
		}
		sum += n
	}
	return sum, nil
}

// form is a term under which a word of a query is looked up.
type form struct {
	term   string
	weight float64
}

// ownStemWeight is the weight of a stem in the page's own language. The word itself gets the
// rest.
const ownStemWeight = 0.5

// forms returns the terms under which one word of a query is looked up: its term and its stems in
// the query's language. If the word is a single character of a script without spaces, the terms
// include the pairs that begin with the character. missing is true if the word is of a script
// with spaces and no page has the word in any form. The terms then include likely corrections,
// unless the word is a stop word or the databases are behind.
func (l *lexicon) forms(ctx context.Context, raw string, w parse.Word) (all []form, missing bool, err error) {
	known, err := l.known(ctx, w.Term)
	if err != nil {
		return nil, false, err
	}
	all = []form{{w.Term, 1}}
	for _, s := range l.stems(raw) {
		n, err := l.known(ctx, s)
		if err != nil {
			return nil, false, err
		}
		if n > 0 && known == 0 && s == parse.OwnTerm("de", transliterated("de", raw)) {
			// transliterated turns cloudflaer into cloudflär, whose stem is that of Cloudflare.
			// Use such a stem only if pages spell the word with an umlaut.
			if ok, err := l.umlauted(ctx, s); err != nil {
				return nil, false, err
			} else if !ok {
				continue
			}
		}
		// If the language of the query is unknown, a stem is used only if at least as many chunks
		// have the stem as have the word itself.
		if n > 0 && (l.reader() != "" || n >= known) {
			all[0].weight = 1 - ownStemWeight
			all = append(all, form{s, ownStemWeight})
		}
	}
	pairs, err := l.oneCharacter(ctx, raw)
	if err != nil {
		return nil, false, err
	}
	for _, p := range pairs {
		all = append(all, form{p, 1 / float64(len(pairs))}) // the pairs together weigh as much as one word
	}
	if known > 0 || len(all) > 1 {
		return all, false, nil
	}
	if w.Joined != "" {
		if n, err := l.known(ctx, w.Joined); err != nil || n > 0 {
			return all, false, err
		}
	}
	// A name that no page has may consist of several words. It counts as found if pages
	// have all of them.
	inWords := len(w.Parts) > 0
	for _, t := range w.Parts {
		n, err := l.known(ctx, t)
		if err != nil {
			return nil, false, err
		}
		inWords = inWords && n > 0
	}
	if inWords {
		return all, false, nil
	}
	if !spaced(raw) {
		return all, false, nil
	}
	if !l.behind && len(l.Respelled) < MaxRespelled && !l.isStop(raw) {
		a := l.ranker.Analyzer()
		defer l.ranker.Release(a)
		near, err := respell(ctx, a, l.sources, newSpeller(raw, slipLetters), maxRespellings)
		if err != nil {
			return nil, false, err
		}
		for _, r := range near {
			all = append(all, form{r.term, r.weight})
			l.Respelled = append(l.Respelled, r)
		}
	}
	return all, true, nil
}

// umlauted reports whether pages write a German term with an umlaut. It reads at most maxPassages
// passages.
func (l *lexicon) umlauted(ctx context.Context, term string) (found bool, err error) {
	a := l.ranker.Analyzer()
	defer l.ranker.Release(a)
	left := maxPassages
	for _, s := range l.sources {
		ids, err := s.ChunksWith(ctx, term, left)
		if err != nil {
			return false, s.Failed(err)
		}
		for _, id := range ids {
			left--
			p, err := s.Passage(ctx, id)
			if err != nil {
				return false, s.Failed(err)
			}
			for _, text := range []string{p.Doc.Title, p.Crumbs, p.Text} {
				a.Words(text, func(w parse.Word) {
					raw := text[w.Start:w.End]
					found = found || strings.ContainsAny(raw, "äöüÄÖÜ\u0308") && parse.OwnTerm("de", language.Stem("de", raw)) == term
				})
			}
			if found {
				return true, nil
			}
		}
	}
	return false, nil
}

// RespelledWords returns at most maxSuggestions corrected words.
func (l *lexicon) RespelledWords() (words []string) {
	for _, r := range l.Respelled {
		if !slices.Contains(words, r.Word) && len(words) < maxSuggestions {
			words = append(words, r.Word)
		}
	}
	return words
}
