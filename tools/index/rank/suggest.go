package rank

import (
	"context"
	"slices"

	"satchel/tools/index/parse"
)

// Limits for suggestions.
const (
	maxSuggestions = 5
	// suggestLetters is the length of the shortest word with suggestions. It is less than
	// slipLetters, because suggestions are not searched for.
	suggestLetters = 3
)

// Suggest returns words of the index, in their usual spelling, that are similar to words of
// the query that no document has.
func (u *Run) Suggest(ctx context.Context) ([]string, error) {
	var words []string
	looked := 0
	for _, text := range u.Words {
		var raw []string
		u.analyzer.Words(text, func(w parse.Word) { raw = append(raw, text[w.Start:w.End]) })
		for _, w := range raw {
			m := newSpeller(w, suggestLetters)
			if m == nil || isStop(w) || looked == MaxRespelled {
				continue
			}
			if known, err := u.known(ctx, u.analyzer.Fold(w)); err != nil {
				return nil, ctx.Err() // a failure must not replace the answer
			} else if known > 0 {
				continue
			}
			looked++
			near, err := respell(ctx, u.analyzer, u.sources, m, maxSuggestions)
			if err != nil {
				return nil, ctx.Err()
			}
			for _, r := range near {
				if !slices.Contains(words, r.Word) && len(words) < maxSuggestions {
					words = append(words, r.Word)
				}
			}
		}
	}
	return words, nil
}
