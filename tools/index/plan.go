package index

import (
	"context"
	"slices"
	"strings"
	"unicode"
)

// term is one thing that a query looks for in the index.
type term struct {
	text   string
	weight float64 // how often the query has it, less for parts of identifiers
	df     int64   // chunks that hold it, over all databases
	word   int     // the query's word that it comes from, for snippets and proximity
}

// plan is a query as the index sees it.
type plan struct {
	terms   []term
	phrases [][]string // terms that must occur one after another
	without [][]string // and that must not
	// sequence is the query's words as terms, in order, without stop words;
	// name is what they make in one identifier.
	sequence []string
	name     string
	// missing is the query's words, as typed, that no document has in any form.
	missing []string
}

// maxMissingTold is how many words an answer says are on no page.
const maxMissingTold = 5

// What a part of an identifier, and an identifier made of separate words,
// weigh against a word that was typed.
const (
	partWeight     = 0.3
	compoundWeight = 1.0
	maxCompound    = 4 // words
)

// makePlan turns a query's words into terms. Compounds that nobody wrote are left
// out.
func makePlan(ctx context.Context, a *analyzer, q *parsedQuery, o Options, lex *lexicon) (*plan, error) {
	known := func(t string) (int64, error) { return lex.known(ctx, t) }
	p := &plan{}
	weights := map[string]float64{}
	var order []string
	add := func(t string, w float64) {
		if t == "" || len(t) > maxTermBytes {
			return
		}
		if _, ok := weights[t]; !ok {
			order = append(order, t)
		}
		weights[t] += w
	}
	type piece struct {
		raw  string
		word word
	}
	var pieces []piece
	for _, text := range q.words {
		from := len(pieces)
		a.words(text, func(w word) { pieces = append(pieces, piece{text[w.start:w.end], w}) })
		// The numbers of a version that somebody wrote mean nothing alone.
		if last := len(pieces) - 1; last > from && strings.Contains(pieces[last].word.joined, versionDot) {
			n, err := known(pieces[last].word.joined)
			if err != nil {
				return nil, err
			}
			if n > 0 {
				pieces = append(pieces[:from], piece{text, word{term: pieces[last].word.joined}})
			}
		}
	}
	stop := true
	for _, pc := range pieces {
		stop = stop && lex.isStop(pc.raw)
	}
	for _, pc := range pieces {
		if !stop && lex.isStop(pc.raw) {
			continue
		}
		p.sequence = append(p.sequence, pc.word.term)
		forms, missing, err := lex.forms(ctx, pc.raw, pc.word)
		if err != nil {
			return nil, err
		}
		if missing && !stop && len(p.missing) < maxMissingTold && !slices.Contains(p.missing, pc.raw) {
			p.missing = append(p.missing, pc.raw)
		}
		for _, f := range forms {
			add(f.term, f.weight)
		}
		for _, part := range pc.word.parts {
			add(part, partWeight)
		}
		add(pc.word.joined, compoundWeight)
	}
	// "use async data" is also useAsyncData, if somebody wrote that.
	if len(pieces) <= o.MaxQueryTerms {
		for i := range pieces {
			raw := pieces[i].raw
			for j := i + 1; j < len(pieces) && j < i+maxCompound; j++ {
				raw += pieces[j].raw
				t := a.join([]string{raw}, false)
				if t == "" || weights[t] > 0 {
					continue
				}
				if n, err := known(t); err != nil {
					return nil, err
				} else if n > 0 {
					add(t, compoundWeight)
				}
			}
		}
	}
	var whole strings.Builder
	for _, pc := range pieces {
		whole.WriteString(pc.raw)
	}
	p.name = a.join([]string{whole.String()}, false)
	for _, t := range order {
		n, err := known(t)
		if err != nil {
			return nil, err
		}
		p.terms = append(p.terms, term{text: t, weight: weights[t], df: n})
	}
	if len(p.terms) > o.MaxQueryTerms { // the rarest say most; those that nobody wrote say nothing
		slices.SortStableFunc(p.terms, func(a, b term) int {
			if (a.df == 0) != (b.df == 0) {
				return map[bool]int{true: 1, false: -1}[a.df == 0]
			}
			return int(a.df - b.df)
		})
		p.terms = p.terms[:o.MaxQueryTerms]
	}
	for _, ph := range q.phrases {
		if s := a.phrase(ph); len(s) > 0 {
			p.phrases = append(p.phrases, s)
		}
	}
	for _, ph := range q.without {
		if s := a.phrase(ph); len(s) > 0 {
			p.without = append(p.without, s)
		}
	}
	return p, nil
}

// spaced tells whether a word is of a script that puts blanks between words: of
// another one, what the analyzer takes for a word is none to a reader.
func spaced(w string) bool {
	return !strings.ContainsFunc(w, func(r rune) bool {
		return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
	})
}

// maxPhrase is how many words of a phrase are looked for.
const maxPhrase = 32

// phrase returns the terms of a text's words.
func (a *analyzer) phrase(text string) []string {
	words, _ := a.terms(text, nil, nil)
	return words[:min(len(words), maxPhrase)]
}
