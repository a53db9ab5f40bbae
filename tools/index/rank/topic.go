package rank

import (
	"math"
	"slices"

	"satchel/tools/index/parse"
)

// opened returns two shares of the query's weight, from 0 to 1: that of the words among the first
// openingWords of a page with headings, and that among the first beginningWords. Both are 0 if
// the two passages have no headings. lead is the first passage of the page, best its best one.
func (e *evidence) opened(lead, best parse.Tokens) (opening, beginning float64) {
	if e.total == 0 || len(lead.Field(parse.FieldCrumb)) == 0 && len(best.Field(parse.FieldCrumb)) == 0 {
		return 0, 0
	}
	first := lead.Field(parse.FieldBody)
	t := e.newTally()
	t.count(first, 0, beginningWords)
	beginning = t.sum
	t.count(first, beginningWords, openingWords)
	return t.sum / e.total, beginning / e.total
}

// inHeads returns the share of the query's weight in the title and the headings of a passage.
func (e *evidence) inHeads(words parse.Tokens) float64 {
	if e.total == 0 {
		return 0
	}
	t := e.newTally()
	for _, f := range []int{parse.FieldTitle, parse.FieldCrumb} {
		t.count(words.Field(f), 0, math.MaxInt)
	}
	return t.sum / e.total
}

// tally adds up the weights of the query's words, each once.
type tally struct {
	weights map[uint32]float64
	seen    []uint32
	sum     float64
}

func (e *evidence) newTally() *tally {
	return &tally{weights: e.hashes, seen: make([]uint32, 0, len(e.hashes))}
}

// count adds the words of text[from:to].
func (t *tally) count(text parse.Words, from, to int) {
	for i := from; i < min(text.Len(), to); i++ {
		w := text.At(i)
		if weight := t.weights[w]; weight > 0 && !slices.Contains(t.seen, w) {
			t.seen = append(t.seen, w)
			t.sum += weight
		}
	}
}
