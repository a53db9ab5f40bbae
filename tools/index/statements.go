package index

import (
	"context"
	"database/sql"
)

// statements are the queries of every search, prepared once per database;
// database/sql prepares them again on each connection as needed.
type statements struct {
	freq, candidates, passage *sql.Stmt
}

// FTS5 adds up a term's weighted counts over the columns, in the order title,
// crumb, body, extra.
const ftsRank = `bm25(terms, 4.0, 2.0, 1.0, 1.0)`

func prepare(ctx context.Context, db *sql.DB) (*statements, error) {
	s := &statements{}
	for _, p := range []struct {
		into  **sql.Stmt
		query string
	}{
		{&s.freq, `SELECT doc FROM vocab WHERE term = ?`},
		{&s.candidates, candidateQuery("")},
		{&s.passage, `SELECT c.start, c.end, c.line0, c.line1, c.crumbs, c.anchors, substr(t.text, c.start + 1, min(c.end - c.start, ?)),
			path, blob, title, description, kind, lang, version, date, lines
			FROM chunks c JOIN docs d ON d.id = c.id >> 12 JOIN texts t ON t.id = d.id WHERE c.id = ?`},
	} {
		var err error
		if *p.into, err = db.PrepareContext(ctx, p.query); err != nil {
			s.close()
			return nil, err
		}
	}
	return s, nil
}

// candidateQuery picks the best chunks of the documents that meet a condition.
func candidateQuery(cond string) string {
	filter := ""
	if cond != "" {
		filter = ` AND (rowid >> 12) IN (SELECT id FROM docs WHERE ` + cond + `)`
	}
	return `SELECT f.id, c.terms FROM (SELECT rowid AS id, ` + ftsRank + ` AS rank FROM terms WHERE terms MATCH ?` + filter +
		` ORDER BY rank LIMIT ?) f JOIN chunks c ON c.id = f.id`
}

func (s *statements) close() {
	if s == nil {
		return
	}
	for _, st := range []*sql.Stmt{s.freq, s.candidates, s.passage} {
		if st != nil {
			st.Close()
		}
	}
}
