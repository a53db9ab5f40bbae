package index

import (
	"context"
	"satchel/tools/index/parse"
	"satchel/tools/index/query"
	"slices"
)

// Bounds of looking for suggestions, which only an empty answer does.
const (
	maxSuggestions = 5
	// suggestLetters is the shortest word that another is suggested for: a
	// suggestion is not searched for, so that shorter words may be guessed at
	// than are respelled.
	suggestLetters = 3
)

// suggest returns words of the index that are near to those of the query that
// no document holds, spelled as one would write them.
func suggest(ctx context.Context, a *parse.Analyzer, sessions []*session, q *query.Parsed) ([]string, error) {
	var words []string
	looked := 0
	for _, text := range q.Words {
		var raw []string
		a.Words(text, func(w parse.Word) { raw = append(raw, text[w.Start:w.End]) })
		for _, w := range raw {
			m := newSpeller(w, suggestLetters)
			if m == nil || isStop(w) || looked == maxRespelled {
				continue
			}
			known, err := knownTo(ctx, sessions, a.Fold(w))
			if err != nil {
				return nil, ctx.Err() // a suggestion is a nicety: only the caller's going ends the search
			}
			if known > 0 {
				continue
			}
			looked++
			near, err := respell(ctx, a, sessions, m, maxSuggestions)
			if err != nil {
				return nil, ctx.Err()
			}
			for _, r := range near {
				if !slices.Contains(words, r.word) && len(words) < maxSuggestions {
					words = append(words, r.word)
				}
			}
		}
	}
	return words, nil
}

// knownTo returns how many chunks of all databases hold a term.
func knownTo(ctx context.Context, sessions []*session, term string) (sum int64, err error) {
	for _, s := range sessions {
		n, err := s.freq(ctx, term)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}
