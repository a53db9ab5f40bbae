package present

import (
	"math/bits"
	"strings"
	"unicode/utf8"

	"satchel/tools/index/parse"
	"satchel/tools/index/rank"
)

// highlightTerms are the terms that a snippet should show.
type highlightTerms struct {
	bit    map[string]int
	weight []float64
	// begins marks the bytes with which the words, or parts of words, of the terms can begin.
	// any is set if a term does not begin like its words. Then begins is not used.
	begins [utf8.RuneSelf]bool
	any    bool
	// sketches marks the sketches of the terms. Most words that match no term have another
	// sketch, so they need no lookup in bit.
	sketches [256]bool
}

// sketch computes a byte from a term, which must not be empty.
func sketch(term string) byte { return term[0] ^ term[len(term)-1]<<3 ^ byte(len(term)) }

// maxHighlights limits the terms that are searched for in a passage. Each needs a bit.
const maxHighlights = 64

func newHighlightTerms(terms []rank.Term) highlightTerms {
	w := highlightTerms{bit: make(map[string]int, len(terms))}
	for _, t := range terms {
		w.add(t.Text, t.Weight/float64(1+t.DF))
	}
	return w
}

func (w *highlightTerms) add(term string, weight float64) {
	if _, ok := w.bit[term]; ok || term == "" || len(w.weight) >= maxHighlights {
		return
	}
	w.bit[term] = len(w.weight)
	w.sketches[sketch(term)] = true
	w.weight = append(w.weight, weight)
	if term[0] >= utf8.RuneSelf {
		return // the method each treats every byte from utf8.RuneSelf on as a beginning
	}
	w.begins[term[0]] = true
	if term[0] >= 'a' && term[0] <= 'z' {
		w.begins[term[0]-'a'+'A'] = true
	}
	// The term of .NET is dotnet. Stems in other languages, and versions, contain VersionDot.
	w.any = w.any || strings.HasPrefix(term, "dot") || strings.Contains(term, parse.VersionDot)
}

// in returns the terms that a word matches.
func (w *highlightTerms) in(o parse.Word) (mask uint64) {
	for _, t := range o.Parts {
		mask |= w.of(t)
	}
	return mask | w.of(o.Term) | w.of(o.Joined) | w.of(o.Own)
}

// of returns the bit of the term t, or 0 if t is not one of the terms to highlight.
func (w *highlightTerms) of(t string) uint64 {
	if t == "" || !w.sketches[sketch(t)] {
		return 0
	}
	if b, ok := w.bit[t]; ok {
		return 1 << b
	}
	return 0
}

// each calls yield with the position and the terms of each word of a text that matches
// terms. It analyses text between blanks only if a term can begin with one of its letters,
// because the stem of an ASCII word begins with the same letter. It analyses several such
// pieces of text in a row together.
func (w *highlightTerms) each(a *parse.Analyzer, text string, yield func(start int, mask uint64)) {
	from := 0 // the start of the text to analyse next
	found := func(o parse.Word) {
		if mask := w.in(o); mask != 0 {
			yield(from+o.Start, mask)
		}
	}
	if w.any {
		a.Words(text, found)
		return
	}
	analyse := func(to int) {
		if from < to {
			a.Words(text[from:to], found)
		}
	}
	for at := 0; at < len(text); {
		start, may, before := at, false, byte(' ')
		for at < len(text) && text[at] > ' ' {
			c := text[at]
			may = may || c >= utf8.RuneSelf || w.begins[c] && beginsWord(before, c)
			before = c
			at++
		}
		if !may {
			analyse(start)
			from = at + 1
		} else if at == len(text) || text[at] != ' ' {
			analyse(at)
			from = at + 1
		}
		at++
	}
	analyse(len(text))
}

// beginsWord reports whether a word, or a part of an identifier, may begin with the ASCII byte c
// that follows the byte before.
func beginsWord(before, c byte) bool {
	return !parse.IsWordByte(before) || parse.IsUpper(c) || parse.IsDigit(c) != parse.IsDigit(before)
}

func (w *highlightTerms) score(mask uint64) (sum float64) {
	for ; mask != 0; mask &= mask - 1 {
		sum += w.weight[bits.TrailingZeros64(mask)]
	}
	return sum
}
