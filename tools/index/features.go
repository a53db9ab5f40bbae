package index

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"satchel/tools/index/segment"
)

// tokens reads the words of a chunk.
func (s *session) tokens(ctx context.Context, id int64) (tokens, error) {
	if t := s.words[id]; t != nil {
		return t, nil
	}
	one, err := s.readTokens(ctx, []int64{id})
	if err != nil {
		return nil, err
	}
	if one[id] == nil {
		return nil, missingRow(sql.ErrNoRows, id)
	}
	return one[id], nil
}

// readTokens reads the words of chunks, of those that there are.
func (s *session) readTokens(ctx context.Context, ids []int64) (map[int64]tokens, error) {
	all := make(map[int64]tokens, len(ids))
	err := s.eachRow(ctx, s.db.stmts.tokens, func(rows *sql.Rows) error {
		var id int64
		var sealed []byte
		if err := rows.Scan(&id, &sealed); err != nil {
			return err
		}
		t, err := segment.Unseal(sealed, id)
		if err != nil {
			return fmt.Errorf("words of chunk %d: %w", id, err)
		}
		all[id] = t
		return all[id].check()
	}, jsonList(ids))
	return all, err
}

// textCount is a term with its count in each field, by its text.
type textCount struct {
	text string
	n    counts
}

// vector returns the terms of a chunk's text, of its document's title and of
// the headings above it, with their counts.
func (s *session) vector(ctx context.Context, a *analyzer, id int64) ([]textCount, error) {
	ps, d, err := s.passage(ctx, id)
	if err != nil {
		return nil, missingRow(err, id)
	}
	c := chunk{end: len(ps.text)}
	if ps.crumbs != "" {
		c.crumbs = strings.Split(ps.crumbs, "\n")
	}
	p := page{chunks: []chunk{c}}
	p.Title = d.title
	found := a.chunkTerms(string(d.path), &p, []byte(ps.text))[0]
	all := make([]textCount, len(found.terms))
	for i, c := range found.terms {
		all[i] = textCount{found.texts[c.id], c.n}
	}
	return all, nil
}
