package index

import (
	"slices"
	"strings"
	"unicode"
)

// term is one thing that a query looks for in the index.
type term struct {
	text   string
	hash   uint32
	weight float64 // how often the query has it, less for parts of identifiers
	df     int64   // chunks that hold it, over all databases
	word   int     // the query's word that it comes from, for snippets and proximity
}

// plan is a query as the index sees it.
type plan struct {
	terms   []term   // sorted by hash
	hashes  []uint32 // of terms
	phrases []string // FTS5 phrases that must match
	without []string // FTS5 phrases that must not
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

// makePlan turns a query's words into terms. known tells how many chunks hold a
// term: compounds that nobody wrote are left out.
func makePlan(a *analyzer, q *parsedQuery, o Options, known func(string) (int64, error)) (*plan, error) {
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
		stop = stop && stopWords[strings.ToLower(pc.raw)]
	}
	for _, pc := range pieces {
		if !stop && stopWords[strings.ToLower(pc.raw)] {
			continue
		}
		p.sequence = append(p.sequence, pc.word.term)
		if nowhere, err := pc.word.nowhere(known); err != nil {
			return nil, err
		} else if nowhere && !stop && spaced(pc.raw) && len(p.missing) < maxMissingTold && !slices.Contains(p.missing, pc.raw) {
			p.missing = append(p.missing, pc.raw)
		}
		add(pc.word.term, 1)
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
		p.terms = append(p.terms, term{text: t, hash: termHash(t), weight: weights[t], df: n})
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
	slices.SortFunc(p.terms, func(a, b term) int { return int(a.hash) - int(b.hash) })
	for _, t := range p.terms {
		p.hashes = append(p.hashes, t.hash)
	}
	for _, ph := range q.phrases {
		if s := a.phrase(ph); s != "" {
			p.phrases = append(p.phrases, s)
		}
	}
	for _, ph := range q.without {
		if s := a.phrase(ph); s != "" {
			p.without = append(p.without, s)
		}
	}
	return p, nil
}

// nowhere tells whether no chunk holds a word, nor a part of it, nor the
// identifier that it makes.
func (w word) nowhere(known func(string) (int64, error)) (bool, error) {
	for _, t := range append([]string{w.term, w.joined}, w.parts...) {
		if t == "" {
			continue
		}
		if n, err := known(t); err != nil || n > 0 {
			return false, err
		}
	}
	return true, nil
}

// spaced tells whether a word is of a script that puts blanks between words: of
// another one, what the analyzer takes for a word is none to a reader.
func spaced(w string) bool {
	return !strings.ContainsFunc(w, func(r rune) bool {
		return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
	})
}

// phrase returns the FTS5 phrase of a text's words, "" where it has none. Terms
// hold no quotes, so that nothing can break out of it.
func (a *analyzer) phrase(text string) string {
	words, _ := a.terms(text, nil, nil)
	if len(words) == 0 {
		return ""
	}
	return `"` + strings.Join(words[:min(len(words), 32)], " ") + `"`
}

// match returns the FTS5 query for one database: the rarest terms, as many as
// stay within maxRows rows there, any of which may match; all phrases; and
// none of what must not be. Where even the rarest is in more rows, only those
// that have it in the title or the breadcrumb are read, which rank first anyway:
// narrowed tells that there may be others.
func (p *plan) match(freq func(term string) int64, maxRows int) (query string, narrowed bool) {
	type candidate struct {
		text string
		rows int64
	}
	var found []candidate
	for _, t := range p.terms {
		if n := freq(t.text); n > 0 {
			found = append(found, candidate{t.text, n})
		}
	}
	slices.SortFunc(found, func(a, b candidate) int {
		if a.rows != b.rows {
			return int(a.rows - b.rows)
		}
		return strings.Compare(a.text, b.text)
	})
	var any []string
	rows := int64(0)
	for i, c := range found {
		rows += c.rows
		if i > 0 && rows > int64(maxRows) {
			break
		}
		any = append(any, `"`+c.text+`"`)
	}
	if len(p.phrases) == 0 && len(found) > 0 && found[0].rows > int64(maxRows) {
		any[0], narrowed = "{title crumb} : "+any[0], true
	}
	var all []string
	if len(any) > 0 && len(p.phrases) == 0 {
		all = append(all, "("+strings.Join(any, " OR ")+")")
	}
	all = append(all, p.phrases...)
	if len(all) == 0 {
		return "", false
	}
	query = strings.Join(all, " AND ")
	if len(p.without) > 0 {
		query = "(" + query + ") NOT (" + strings.Join(p.without, " OR ") + ")"
	}
	return query, narrowed
}
