package index

import (
	"context"
	"slices"
	"strings"

	"satchel/internal/editdistance"
)

// Bounds of looking for suggestions, which only an empty answer does.
const (
	maxSuggestions   = 5
	maxMissing       = 3    // words of the query
	maxTypoBytes     = 24   // of a word whose typos are tried
	maxVocabularyRow = 2000 // terms looked at for each word
)

// suggest returns words of the index that are near to those of the query that
// no document holds: first those that one slip of a key makes of them, then
// those whose stems are near.
func suggest(ctx context.Context, a *analyzer, sessions []*session, q *parsedQuery) ([]string, error) {
	var words []string
	missing := 0
	for _, text := range q.words {
		var raw []string
		a.words(text, func(w word) { raw = append(raw, strings.ToLower(text[w.start:w.end])) })
		for _, w := range raw {
			known, err := knownTo(ctx, sessions, a.fold(w))
			if err != nil {
				return nil, ctx.Err() // a suggestion is a nicety: only the caller's going ends the search
			}
			if known > 0 || len(w) < 3 || stopWords[w] {
				continue
			}
			if missing++; missing > maxMissing {
				return words, nil
			}
			near, err := oneSlip(ctx, a, sessions, w)
			if err == nil && len(near) == 0 {
				near, err = nearStems(ctx, a, sessions, a.fold(w))
			}
			if err != nil {
				return words, ctx.Err()
			}
			for _, n := range near {
				if len(words) < maxSuggestions && !slices.Contains(words, n) {
					words = append(words, n)
				}
			}
		}
	}
	return words, nil
}

func knownTo(ctx context.Context, sessions []*session, t string) (sum int64, err error) {
	for _, s := range sessions {
		n, err := s.freq(ctx, t)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

type nearWord struct {
	word     string
	distance int
	docs     int64
}

// nearest returns the n nearest, the more frequent first.
func nearest(near []nearWord, n int) []nearWord {
	slices.SortFunc(near, func(a, b nearWord) int {
		if a.distance != b.distance {
			return a.distance - b.distance
		}
		if a.docs != b.docs {
			return int(b.docs - a.docs)
		}
		return strings.Compare(a.word, b.word)
	})
	return near[:min(len(near), n)]
}

func spelled(near []nearWord) []string {
	var words []string
	for _, n := range nearest(near, maxSuggestions) {
		words = append(words, n.word)
	}
	return words
}

// oneSlip tries every word that is one deleted, swapped, replaced or inserted
// letter away.
func oneSlip(ctx context.Context, a *analyzer, sessions []*session, w string) ([]string, error) {
	if len(w) > maxTypoBytes || strings.ContainsFunc(w, func(r rune) bool { return r > 'z' }) {
		return nil, nil
	}
	tried := map[string]bool{}
	var near []nearWord
	try := func(s string) error {
		t := a.fold(s)
		if tried[t] {
			return nil
		}
		tried[t] = true
		n, err := knownTo(ctx, sessions, t)
		if n > 0 {
			near = append(near, nearWord{word: s, docs: n})
		}
		return err
	}
	const letters = "abcdefghijklmnopqrstuvwxyz"
	for i := range len(w) + 1 {
		head, tail := w[:i], w[i:]
		var tries []string
		if len(tail) > 1 {
			tries = append(tries, head+tail[1:2]+tail[:1]+tail[2:])
		}
		if len(tail) > 0 {
			tries = append(tries, head+tail[1:])
		}
		for j := range len(letters) {
			tries = append(tries, head+letters[j:j+1]+tail)
			if len(tail) > 0 {
				tries = append(tries, head+letters[j:j+1]+tail[1:])
			}
		}
		for _, s := range tries {
			if err := try(s); err != nil {
				return nil, err
			}
		}
	}
	return spelled(near), nil
}

// nearStems looks through the terms that begin alike.
func nearStems(ctx context.Context, a *analyzer, sessions []*session, t string) ([]string, error) {
	prefix := clip(t, 2)
	limit := 1 + len(t)/5
	var near []nearWord
	for _, s := range sessions {
		rows, err := s.tx.QueryContext(ctx, `SELECT term, doc FROM vocab WHERE term >= ? AND term < ? LIMIT ?`, prefix, prefix+"\xff", maxVocabularyRow)
		if err != nil {
			return nil, err
		}
		var here []nearWord
		for rows.Next() {
			var n nearWord
			if err := rows.Scan(&n.word, &n.docs); err != nil {
				break
			}
			if n.distance = editdistance.Within(t, n.word, limit); n.distance <= limit {
				here = append(here, n)
			}
		}
		err = rows.Err()
		rows.Close()
		if err != nil {
			return nil, err
		}
		here = nearest(here, 2*maxSuggestions)
		for i := range here {
			if here[i].word, err = s.spelling(ctx, a, here[i].word); err != nil {
				return nil, err
			}
		}
		near = append(near, here...)
	}
	return spelled(near), nil
}

// spelling returns a word of some page that has the stem t.
func (s *session) spelling(ctx context.Context, a *analyzer, t string) (string, error) {
	var id int64
	if err := s.tx.QueryRowContext(ctx, `SELECT rowid FROM terms WHERE terms MATCH ? LIMIT 1`, `"`+t+`"`).Scan(&id); err != nil {
		return "", err
	}
	p, _, err := s.passage(ctx, id)
	if err != nil {
		return "", err
	}
	found := t
	a.words(p.text, func(w word) {
		if w.term == t {
			found = strings.ToLower(p.text[w.start:w.end])
		}
	})
	return found, nil
}
