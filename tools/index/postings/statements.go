package postings

import (
	"context"
	"database/sql"
	"strconv"
)

// statements holds the queries of searches, prepared once for each database. A query that
// reads rows by id takes a list of ids as JSON, because running a statement costs as much as
// reading many rows.
type statements struct {
	row, epoch, tokens, passage, header *sql.Stmt
}

func (s *statements) all() []**sql.Stmt {
	return []**sql.Stmt{&s.row, &s.epoch, &s.tokens, &s.passage, &s.header}
}

func prepare(ctx context.Context, db *sql.DB) (*statements, error) {
	s := &statements{}
	queries := []string{
		`SELECT data FROM blocks WHERE id = ?`,
		`SELECT value FROM meta WHERE key = 'epoch'`,
		`SELECT c.id, tokens FROM json_each(?) list CROSS JOIN chunks c ON c.id = list.value`,
		`SELECT c.id, c.start, c.end, c.line0, c.line1, c.crumbs, c.anchors, c.sum, length(t.text),
			CASE WHEN length(t.text) <= ?1 THEN t.text ELSE substr(t.text, c.start + 1, min(c.end - c.start, ?2)) END, t.sum,
			d.path, blob, title, description, url, kind, lang, version, date, lines, tags, files, d.sum
			FROM json_each(?3) list CROSS JOIN chunks c ON c.id = list.value JOIN docs d ON d.id = c.id >> 12 JOIN texts t ON t.id = d.id`,
		`SELECT d.id, d.path, title, lang, version, date, head FROM json_each(?) list CROSS JOIN docs d ON d.id = list.value`,
	}
	for i, into := range s.all() {
		var err error
		if *into, err = db.PrepareContext(ctx, queries[i]); err != nil {
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
	for _, st := range s.all() {
		if *st != nil {
			(*st).Close()
		}
	}
}

// bound returns a statement of the database within the Snapshot's transaction.
func (s *Snapshot) bound(ctx context.Context, st *sql.Stmt) *sql.Stmt {
	b := s.stmts[st]
	if b == nil {
		b = s.tx.StmtContext(ctx, st)
		if s.stmts == nil {
			s.stmts = map[*sql.Stmt]*sql.Stmt{}
		}
		s.stmts[st] = b
	}
	return b
}

// eachRow calls scan with each row that a statement returns. The statement is short and cannot be
// cancelled, because SQLite's driver starts a goroutine for each statement that can be cancelled.
func (s *Snapshot) eachRow(ctx context.Context, st *sql.Stmt, scan func(*sql.Rows) error, args ...any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	rows, err := s.bound(ctx, st).QueryContext(context.WithoutCancel(ctx), args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
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
func readWhole(ctx context.Context, q asker, id int64) (d Document, text []byte, err error) {
	var tags, files string
	var sum, textSum int64
	err = q.QueryRowContext(ctx, `SELECT path, blob, title, description, url, kind, lang, version, date, lines, tags, files, d.sum, t.sum, text
		FROM docs d JOIN texts t USING(id) WHERE d.id = ?`, id).
		Scan(&d.Path, &d.Blob, &d.Title, &d.Description, &d.URL, &d.Kind, &d.Lang, &d.Version, &d.Date, &d.Lines, &tags, &files, &sum, &textSum, &text)
	if err != nil {
		return d, nil, err
	}
	if err := docFields(id, &d, tags, files).check(sum, nil, "document", id); err != nil {
		return d, nil, err
	}
	return d, text, textFields(id).check(textSum, text, "text", id)
}

// jsonList writes numbers as a list that json_each reads.
func jsonList(ids []int64) string {
	b := append(make([]byte, 0, 12*len(ids)+2), '[')
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, id, 10)
	}
	return string(append(b, ']'))
}
