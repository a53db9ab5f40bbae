package index

import (
	"context"
	"database/sql"
)

// statements are the queries of every search, prepared once per database;
// database/sql prepares them again on each connection as needed.
type statements struct {
	row, tokens, passage *sql.Stmt
}

func prepare(ctx context.Context, db *sql.DB) (*statements, error) {
	s := &statements{}
	for _, p := range []struct {
		into  **sql.Stmt
		query string
	}{
		{&s.row, `SELECT data FROM blocks WHERE id = ?`},
		{&s.tokens, `SELECT tokens FROM chunks WHERE id = ?`},
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

func (s *statements) close() {
	if s == nil {
		return
	}
	for _, st := range []*sql.Stmt{s.row, s.tokens, s.passage} {
		if st != nil {
			st.Close()
		}
	}
}
