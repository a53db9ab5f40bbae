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
		{&s.passage, `SELECT c.start, c.end, c.line0, c.line1, c.crumbs, c.anchors, c.sum, substr(t.text, c.start + 1, min(c.end - c.start, ?)),
			path, blob, title, description, kind, lang, version, date, lines, tags, files, d.sum
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

// asker is a database or a transaction.
type asker interface {
	QueryRowContext(ctx context.Context, q string, args ...any) *sql.Row
}

// readText reads the text of a document.
func readText(ctx context.Context, q asker, id int64) (text []byte, err error) {
	var sum int64
	if err := q.QueryRowContext(ctx, `SELECT sum, text FROM texts WHERE id = ?`, id).Scan(&sum, &text); err != nil {
		return nil, err
	}
	return text, textFields(id).check(sum, text, "text", id)
}

// readWhole reads all of a document.
func readWhole(ctx context.Context, q asker, id int64) (d docRow, text []byte, err error) {
	var tags, files string
	var sum, textSum int64
	err = q.QueryRowContext(ctx, `SELECT path, blob, title, description, kind, lang, version, date, lines, tags, files, d.sum, t.sum, text
		FROM docs d JOIN texts t USING(id) WHERE d.id = ?`, id).
		Scan(&d.path, &d.blob, &d.title, &d.description, &d.kind, &d.lang, &d.version, &d.date, &d.lines, &tags, &files, &sum, &textSum, &text)
	if err != nil {
		return d, nil, err
	}
	if err := docFields(id, &d, tags, files).check(sum, nil, "document", id); err != nil {
		return d, nil, err
	}
	return d, text, textFields(id).check(textSum, text, "text", id)
}
