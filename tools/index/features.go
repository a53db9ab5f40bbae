package index

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"satchel/tools/index/parse"
	"satchel/tools/index/segment"
)

// Tokens reads the words of a chunk.
func (s *session) tokens(ctx context.Context, id int64) (parse.Tokens, error) {
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
func (s *session) readTokens(ctx context.Context, ids []int64) (map[int64]parse.Tokens, error) {
	all := make(map[int64]parse.Tokens, len(ids))
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
		return all[id].Check()
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
func (s *session) vector(ctx context.Context, a *parse.Analyzer, id int64) ([]textCount, error) {
	ps, d, err := s.passage(ctx, id)
	if err != nil {
		return nil, missingRow(err, id)
	}
	c := parse.Chunk{End: len(ps.text)}
	if ps.crumbs != "" {
		c.Crumbs = strings.Split(ps.crumbs, "\n")
	}
	p := parse.Page{Chunks: []parse.Chunk{c}}
	p.Title = d.title
	found := a.ChunkTerms(string(d.path), &p, []byte(ps.text))[0]
	all := make([]textCount, len(found.Terms))
	for i, c := range found.Terms {
		all[i] = textCount{found.Texts[c.ID], c.N}
	}
	return all, nil
}
