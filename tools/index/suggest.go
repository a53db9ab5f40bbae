package index

import (
	"context"
	"slices"
	"strings"
)

// Suggestions come of the vocabulary's neighbourhood, which bounds their cost.
const (
	maxSuggestions   = 5
	maxVocabularyRow = 2000 // terms looked at for each word
)

// suggest returns words of the index that are near to those of the query that
// no document holds.
func suggest(ctx context.Context, sessions []*session, p *plan) ([]string, error) {
	type near struct {
		term     string
		distance int
		docs     int64
	}
	var all []near
	for _, t := range p.terms {
		if t.df > 0 || len(t.text) < 3 {
			continue
		}
		prefix := clip(t.text, 2)
		for _, s := range sessions {
			rows, err := s.tx.QueryContext(ctx, `SELECT term, doc FROM vocab WHERE term >= ? AND term < ? LIMIT ?`, prefix, prefix+"\xff", maxVocabularyRow)
			if err != nil {
				return nil, s.ignore(ctx, err)
			}
			for rows.Next() {
				var n near
				if err := rows.Scan(&n.term, &n.docs); err != nil {
					break
				}
				limit := 1 + len(t.text)/5
				if n.distance = editDistance(t.text, n.term, limit); n.distance <= limit {
					all = append(all, n)
				}
			}
			err = rows.Err()
			rows.Close()
			if err != nil {
				return nil, s.ignore(ctx, err)
			}
		}
	}
	slices.SortFunc(all, func(a, b near) int {
		if a.distance != b.distance {
			return a.distance - b.distance
		}
		if a.docs != b.docs {
			return int(b.docs - a.docs)
		}
		return strings.Compare(a.term, b.term)
	})
	var words []string
	for _, n := range all {
		if !slices.Contains(words, n.term) && len(words) < maxSuggestions {
			words = append(words, n.term)
		}
	}
	return words, nil
}

// ignore drops an error of a nicety, unless the caller has gone.
func (s *session) ignore(ctx context.Context, _ error) error { return ctx.Err() }

// editDistance returns the Damerau-Levenshtein distance (optimal string
// alignment) of two terms in bytes, or limit+1 where it is more than limit.
func editDistance(a, b string, limit int) int {
	if len(a)-len(b) > limit || len(b)-len(a) > limit {
		return limit + 1
	}
	var older []int
	prev := make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		least := i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(prev[j]+1, row[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], older[j-2]+1)
			}
			least = min(least, row[j])
		}
		if least > limit {
			return limit + 1
		}
		older, prev = prev, row
	}
	return min(prev[len(b)], limit+1)
}
