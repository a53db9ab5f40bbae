package index

import (
	"context"
	"fmt"
	"strings"

	"satchel/tools/index/segment"
)

// tokens reads the words of a chunk.
func (s *session) tokens(ctx context.Context, id int64) (tokens, error) {
	var sealed []byte
	if err := s.tx.StmtContext(ctx, s.db.stmts.tokens).QueryRowContext(ctx, id).Scan(&sealed); err != nil {
		return nil, missingRow(err, id)
	}
	t, err := segment.Unseal(sealed, id)
	if err != nil {
		return nil, fmt.Errorf("words of chunk %d: %w", id, err)
	}
	return t, tokens(t).check()
}

// vector returns the terms of a chunk's text, of its document's title and of
// the headings above it, with their counts.
func (s *session) vector(ctx context.Context, a *analyzer, id int64) ([]termCount, error) {
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
	return a.chunkTerms(string(d.path), &p, []byte(ps.text))[0].terms, nil
}
