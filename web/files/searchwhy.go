package files

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"satchel/tools/index/rank"
	"satchel/web"
)

// reasons explains the place of a result to a reader: the words that it shares with the
// query, and what raised or lowered it.
type reasons struct {
	Words []reasonWord
	Steps []reasonStep
}

// reasonWord is a word of the query, or a related one, that a result contains.
type reasonWord struct {
	Word    string
	Related bool // related to a word of the query, but not typed
	Fields  []rank.FieldScore
	Share   int // in percent of the score of all words

	score, most float64
}

// reasonStep is a change of a result's score, such as "+12 %".
type reasonStep struct{ What, Change string }

// smallestStep is the smallest relative change of a score that the page shows.
const smallestStep = 0.005

// reasonsOf returns the reasons of an explanation, or nil if there is no explanation. The
// index has stems and parts of words. A reader sees the word that was typed.
func reasonsOf(e *rank.Explanation) *reasons {
	if e == nil {
		return nil
	}
	out := &reasons{}
	at, sum := map[string]int{}, 0.0
	for _, t := range e.Terms {
		name := cmp.Or(t.Typed, t.Term)
		i, ok := at[name]
		if !ok {
			i = len(out.Words)
			at[name] = i
			out.Words = append(out.Words, reasonWord{Word: web.Shorten(name, 60), Related: t.Typed == "" || t.Added})
		}
		w := &out.Words[i]
		if t.Score > w.most {
			w.most, w.Fields = t.Score, t.Fields
		}
		w.score += t.Score
		sum += t.Score
	}
	for i := range out.Words {
		if sum > 0 {
			out.Words[i].Share = int(math.Round(100 * out.Words[i].score / sum))
		}
	}
	slices.SortStableFunc(out.Words, func(a, b reasonWord) int { return cmp.Compare(b.score, a.score) })
	for i := 1; i < len(e.Steps); i++ {
		was, is := e.Steps[i-1].Score, e.Steps[i].Score
		if was <= 0 || math.Abs(is/was-1) < smallestStep || len(out.Words) == 1 && e.Steps[i].What == rank.AllWords {
			continue
		}
		out.Steps = append(out.Steps, reasonStep{strings.TrimSuffix(e.Steps[i].What, "."), percent(is/was - 1)})
	}
	return out
}

// percent returns a change of a score with its sign.
func percent(share float64) string {
	n := int(math.Round(100 * share))
	if n < 0 {
		return "−" + strconv.Itoa(-n) + "\u00a0%"
	}
	return "+" + strconv.Itoa(n) + "\u00a0%"
}
