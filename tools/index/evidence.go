package index

import (
	"context"
	"math"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"satchel/internal/space"
)

// What is not in the postings, and what it adds to a document's score, as a part
// of it where nothing else is said.
const (
	// namedBoost is for a document whose title or file name is the query's words
	// in one, exactBoost for one that has them letter by letter, and titledBoost
	// for one whose title consists of the query's words in any order.
	namedBoost  = 0.6
	exactBoost  = 0.1
	titledBoost = 0.2
	// headedBoost is for a passage with a heading that is the query's words,
	// definedBoost for one with a heading that is the identifier which they make.
	headedBoost  = 0.6
	definedBoost = 1.3
	// headedChunks is how many passages of a document are looked at for that.
	headedChunks = 3
	// coveredBoost is for a title all of whose words are in the query, and falls
	// with the third power of the share that is: a short title that a sentence
	// has whole is most often what the sentence is about.
	coveredBoost = 0.2
	coveredPower = 3
	// adjacentBoost is for the share of the query's neighbouring words that are
	// neighbours in the passage too, phraseBoost for all of them.
	adjacentBoost = 0.2
	phraseBoost   = 0.2
	// openedBoost is for the part of a sentence's weight that is among the first
	// openingWords of a page with headings, which say what it is about. The best
	// openedDocs are looked at for that.
	openedBoost  = 0.7
	openingWords = 100
	openedDocs   = 20
	// placeWeight is what a query's word counts that names a directory above the
	// document, of what it counts once in a text.
	placeWeight = 0.3
)

// weighEvidence adds to the documents' scores what their names say, and how near
// the query's words are to one another in their best passages.
func (u *inquiry) weighEvidence(ctx context.Context, docs []*found) error {
	heads, err := u.readHeads(ctx, docs)
	if err != nil {
		return err
	}
	e := newEvidence(u)
	if err := u.readEvidence(ctx, docs); err != nil {
		return err
	}
	for i, f := range docs {
		if len(f.chunks) == 0 {
			continue
		}
		var words tokens
		if u.looksInto(f, 0) {
			if words, err = f.session.tokens(ctx, f.chunks[0].id); err != nil {
				return u.x.failed(ctx, f.session, err)
			}
		}
		f.path = heads[f].path
		headed := e.headed(words)
		// Another of its passages may be the one under the heading.
		for i := 1; i < min(len(f.chunks), headedChunks) && headed == 0 && len(e.sequence) <= maxCompound; i++ {
			if !u.mayHead(f.chunks[i].heads) {
				continue
			}
			other, err := f.session.tokens(ctx, f.chunks[i].id)
			if err != nil {
				return u.x.failed(ctx, f.session, err)
			}
			if headed = e.headed(other); headed > 0 {
				words = other
				f.chunks[0], f.chunks[i] = f.chunks[i], f.chunks[0]
			}
		}
		e.weigh(f, heads[f], words, headed)
		if i < openedDocs && u.sentence() {
			lead := words
			if id := f.id << chunkBits; id != f.chunks[0].id {
				if lead, err = f.session.tokens(ctx, id); err != nil {
					return u.x.failed(ctx, f.session, err)
				}
			}
			f.score *= 1 + openedBoost*e.opened(lead, words)
		}
	}
	return nil
}

// evidence weighs documents for one query.
type evidence struct {
	a        *analyzer
	p        *plan
	weight   map[string]float64 // of the query's terms
	sequence []uint32           // hashes of the plan's
	name     uint32
}

func newEvidence(u *inquiry) *evidence {
	e := &evidence{a: u.a, p: u.plan, weight: map[string]float64{}, name: termHash(u.plan.name)}
	for _, t := range u.plan.terms {
		e.weight[t.text] += t.weight * t.telling * idf(u.stats.chunks, t.df)
	}
	for _, t := range u.plan.sequence {
		e.sequence = append(e.sequence, termHash(t))
	}
	return e
}

// weigh changes the score of a document. words are those of its best passage,
// headed the boost of that for its headings.
func (e *evidence) weigh(f *found, h head, words tokens, headed float64) {
	f.score += placeWeight * e.place(h.path)
	title := e.titleTerms(h.title)
	share := 0.0
	for _, t := range title {
		if e.weight[t] > 0 {
			share++
		}
	}
	if len(title) > 0 {
		f.score *= 1 + coveredBoost*math.Pow(share/float64(len(title)), coveredPower)
	}
	boost := max(e.named(h, title), headed)
	if len(e.sequence) > 1 {
		near := adjacency(words.field(fieldBody), e.sequence)
		boost += adjacentBoost * near
		if near == 1 {
			boost += phraseBoost
		}
	}
	f.score *= 1 + boost
}

// titleTerms returns the words of a title but for stop words, each once.
func (e *evidence) titleTerms(title string) (terms []string) {
	e.a.words(title, func(w word) {
		if !isStop(title[w.start:w.end]) && !slices.Contains(terms, w.term) {
			terms = append(terms, w.term)
		}
	})
	return terms
}

// named returns the boost of a document for what it is called.
func (e *evidence) named(h head, title []string) float64 {
	if len(e.p.sequence) == 0 {
		return 0
	}
	base := path.Base(string(h.path))
	base = strings.TrimLeft(strings.TrimSuffix(base, path.Ext(base)), "0123456789.")
	if e.a.isWhole(h.title, e.p.name) || e.a.isWhole(base, e.p.name) {
		if squeeze(h.title) == e.p.letters || squeeze(base) == e.p.letters {
			return namedBoost + exactBoost
		}
		return namedBoost
	}
	if sameWords(title, e.p.sequence) {
		return titledBoost
	}
	return 0
}

// sameWords tells whether two lists hold the same words, in any order.
func sameWords(title, sequence []string) bool {
	for _, t := range title {
		if !slices.Contains(sequence, t) {
			return false
		}
	}
	for _, s := range sequence {
		if !slices.Contains(title, s) {
			return false
		}
	}
	return len(title) > 0
}

// headed returns the boost of a passage for its headings.
func (e *evidence) headed(words tokens) float64 {
	if e.p.name == "" {
		return 0
	}
	boost := 0.0
	headings := words.field(fieldCrumb)
	for from := 0; from < len(headings); {
		to := from
		for to < len(headings) && headings[to] != tokenBreak {
			to++
		}
		switch h := headings[from:to]; {
		case len(h) == 1 && h[0] == e.name:
			return definedBoost
		case len(h) > 0 && slices.Equal(h, e.sequence):
			boost = headedBoost
		}
		from = to + 1
	}
	return boost
}

// opened returns the share of the query's weight that the first words of a page
// with headings have, from 0 to 1. lead is what the page begins with, best its
// best passage.
func (e *evidence) opened(lead, best tokens) float64 {
	if len(lead.field(fieldCrumb)) == 0 && len(best.field(fieldCrumb)) == 0 {
		return 0
	}
	total := 0.0
	hashes := make(map[uint32]float64, len(e.weight))
	for t, w := range e.weight {
		hashes[termHash(t)] += w
		total += w
	}
	if total == 0 {
		return 0
	}
	opening := lead.field(fieldBody)
	sum := 0.0
	for _, w := range opening[:min(len(opening), openingWords)] {
		sum += hashes[w]
		delete(hashes, w)
	}
	return sum / total
}

// place returns what the query's words that name a directory above the document
// weigh.
func (e *evidence) place(p space.Path) float64 {
	sum := 0.0
	var seen []string
	dir := path.Dir(string(p))
	e.a.words(dir, func(w word) {
		if weight := e.weight[w.term]; weight > 0 && !slices.Contains(seen, w.term) {
			seen = append(seen, w.term)
			sum += weight
		}
	})
	return sum
}

// isWhole tells whether a text's words make one identifier.
func (a *analyzer) isWhole(text, identifier string) bool {
	// Mostly the first letter tells, which no stemmer changes.
	if identifier == "" || text != "" && isWordByte(text[0]) && identifier[0] < utf8.RuneSelf && text[0]|0x20 != identifier[0]|0x20 {
		return false
	}
	var b strings.Builder
	a.words(text, func(w word) { b.WriteString(text[w.start:w.end]) })
	return a.join([]string{b.String()}, false) == identifier
}

// squeeze returns the letters and digits of a text in lower case.
func squeeze(text string) string {
	return strings.Map(func(r rune) rune {
		if isWordRune(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, text)
}

// adjacency returns how many of the neighbouring pairs of the query's words are
// neighbours in the text, in the same order with at most one word between:
// from 0 to 1.
func adjacency(text, sequence []uint32) float64 {
	at := make(map[uint32][]int, len(sequence))
	for i, t := range sequence {
		at[t] = append(at[t], i)
	}
	seen := make([]bool, len(sequence))
	const never = math.MinInt / 2
	last := make([]int, len(sequence))
	for i := range last {
		last[i] = never
	}
	for pos, w := range text {
		places := at[w]
		for _, i := range places {
			if i > 0 && pos-last[i-1] <= 2 {
				seen[i] = true
			}
		}
		for _, i := range places {
			last[i] = pos
		}
	}
	n := 0
	for _, s := range seen {
		if s {
			n++
		}
	}
	return float64(n) / float64(len(sequence)-1)
}
