package postings

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"satchel/tools/index/parse"
	"satchel/tools/index/segment"
)

// Tokens returns the words of a chunk.
func (s *Snapshot) Tokens(ctx context.Context, id int64) (parse.Tokens, error) {
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

// PrefetchTokens reads the words of chunks with one statement, so that [Snapshot.Tokens] does
// not have to read each of them. It ignores chunks that do not exist.
func (s *Snapshot) PrefetchTokens(ctx context.Context, ids []int64) (err error) {
	s.words, err = s.readTokens(ctx, ids)
	return err
}

// readTokens reads the words of those chunks that exist.
func (s *Snapshot) readTokens(ctx context.Context, ids []int64) (map[int64]parse.Tokens, error) {
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

// TermCount holds a term with its count in each field.
type TermCount struct {
	Term string
	N    segment.Counts
}

// Vector returns the terms of a chunk with their counts: those of its text, of the headings
// above it, and of its document's title and path.
func (s *Snapshot) Vector(ctx context.Context, a *parse.Analyzer, id int64) ([]TermCount, error) {
	ps, err := s.Passage(ctx, id)
	if err != nil {
		return nil, missingRow(err, id)
	}
	c := parse.Chunk{End: len(ps.Text)}
	if ps.Crumbs != "" {
		c.Crumbs = strings.Split(ps.Crumbs, "\n")
	}
	p := parse.Page{Chunks: []parse.Chunk{c}}
	p.Title = ps.Doc.Title
	terms := a.ChunkTerms(string(ps.Doc.Path), &p, []byte(ps.Text))[0]
	all := make([]TermCount, len(terms.Terms))
	for i, c := range terms.Terms {
		all[i] = TermCount{terms.Texts[c.ID], c.N}
	}
	return all, nil
}
