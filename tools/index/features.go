package index

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"satchel/internal/space"
	"satchel/tools/index/segment"
)

// feature is what the ranking may look at in a chunk without its text.
type feature struct {
	id     int64 // the chunk's
	path   space.Path
	title  string
	crumbs string // the headings above its start, a line each
	lang   string
	date   int64
	// tokens are its words in order: in the crumb field the headings above it
	// and in it, tags and names follow one another, apart.
	tokens tokens
}

// features reads those of some chunks, in any order, with one statement.
func (s *session) features(ctx context.Context, ids []int64) ([]feature, error) {
	list, err := json.Marshal(ids)
	if err != nil {
		return nil, err
	}
	rows, err := s.tx.StmtContext(ctx, s.db.stmts.features).QueryContext(ctx, string(list))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := make([]feature, 0, len(ids))
	for rows.Next() {
		var f feature
		if err := rows.Scan(&f.id, &f.path, &f.title, &f.crumbs, &f.lang, &f.date, (*[]byte)(&f.tokens)); err != nil {
			return nil, err
		}
		if err := f.tokens.check(); err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if len(all) < len(ids) {
		return nil, fmt.Errorf("%w: %d of %d chunks are missing", segment.ErrDamaged, len(ids)-len(all), len(ids))
	}
	return all, nil
}

// tokens reads the words of a chunk.
func (s *session) tokens(ctx context.Context, id int64) (tokens, error) {
	var t tokens
	err := s.tx.StmtContext(ctx, s.db.stmts.tokens).QueryRowContext(ctx, id).Scan((*[]byte)(&t))
	if err != nil {
		return nil, missingRow(err, id)
	}
	return t, t.check()
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
