package index

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"satchel/internal/space"
)

// writer writes documents within one transaction.
type writer struct {
	tx    *sql.Tx
	state state
	// The statements, prepared once: a build runs each of them 10⁵ times.
	doc, text, chunk, term *sql.Stmt
	next                   int64 // id of the next document
}

func newWriter(ctx context.Context, tx *sql.Tx, s state) (*writer, error) {
	w := &writer{tx: tx, state: s}
	for _, p := range []struct {
		into  **sql.Stmt
		query string
	}{
		{&w.doc, `INSERT INTO docs(id, path, blob, title, description, tags, files, kind, lang, version, date, lines) VALUES(?,?,?,?,?,?,?,?,?,?,?,?)`},
		{&w.text, `INSERT INTO texts(id, text) VALUES(?,?)`},
		{&w.chunk, `INSERT INTO chunks(id, start, end, line0, line1, crumbs, anchors, terms) VALUES(?,?,?,?,?,?,?,?)`},
		{&w.term, `INSERT INTO terms(rowid, title, crumb, body, extra) VALUES(?,?,?,?,?)`},
	} {
		var err error
		if *p.into, err = tx.PrepareContext(ctx, p.query); err != nil {
			return nil, err
		}
	}
	err := tx.QueryRowContext(ctx, `SELECT ifnull(max(id), 0) + 1 FROM docs`).Scan(&w.next)
	return w, err
}

func (w *writer) add(ctx context.Context, d document) error {
	id := w.next
	w.next++
	date := int64(0)
	if !d.page.Date.IsZero() {
		date = d.page.Date.Unix()
	}
	p := &d.page
	if _, err := w.doc.ExecContext(ctx, id, string(d.path), string(d.blob), p.Title, p.Description, strings.Join(p.Tags, "\n"),
		strings.Join(p.Files, "\n"), string(d.kind), p.Lang, p.Version, date, p.lines); err != nil {
		return fmt.Errorf("index document: %w", err)
	}
	text := d.text
	if text == nil {
		text = []byte{}
	}
	if _, err := w.text.ExecContext(ctx, id, text); err != nil {
		return fmt.Errorf("index text: %w", err)
	}
	for i, c := range p.chunks {
		row := id<<chunkBits | int64(i)
		t := &d.terms[i]
		if _, err := w.chunk.ExecContext(ctx, row, c.start, c.end, c.lines[0], c.lines[1], strings.Join(c.crumbs, "\n"), strings.Join(c.anchors, "\n"), t.packed); err != nil {
			return fmt.Errorf("index chunk: %w", err)
		}
		if _, err := w.term.ExecContext(ctx, row, t.title, t.crumb, t.body, t.extra); err != nil {
			return fmt.Errorf("index terms: %w", err)
		}
		w.count(t, 1)
	}
	w.state.docs++
	return nil
}

func (w *writer) count(t *chunkTerms, sign int64) {
	w.state.chunks += sign
	for f, n := range t.length {
		w.state.length[f] += sign * n
	}
}

// remove deletes a path's document, if there is one. FTS5 needs the very terms
// that were inserted, which come of analysing the stored text again.
func (w *writer) remove(ctx context.Context, a *analyzer, p space.Path, o Options) error {
	var id int64
	var title, tags, files string
	var text []byte
	err := w.tx.QueryRowContext(ctx, `SELECT d.id, d.title, d.tags, d.files, t.text FROM docs d JOIN texts t USING(id) WHERE path = ?`, string(p)).
		Scan(&id, &title, &tags, &files, &text)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("find document: %w", err)
	}
	d := a.analyse(space.FileChange{Path: p}, text, time.Time{}, o)
	for i := range d.page.chunks {
		row := id<<chunkBits | int64(i)
		t := &d.terms[i]
		if _, err := w.tx.ExecContext(ctx, `INSERT INTO terms(terms, rowid, title, crumb, body, extra) VALUES('delete',?,?,?,?,?)`,
			row, t.title, t.crumb, t.body, t.extra); err != nil {
			return fmt.Errorf("delete terms: %w", err)
		}
		w.count(t, -1)
	}
	for _, q := range []string{
		`DELETE FROM chunks WHERE id BETWEEN ?1 << 12 AND (?1 << 12) + 4095`,
		`DELETE FROM texts WHERE id = ?1`,
		`DELETE FROM docs WHERE id = ?1`,
	} {
		if _, err := w.tx.ExecContext(ctx, q, id); err != nil {
			return fmt.Errorf("delete document: %w", err)
		}
	}
	w.state.docs--
	return nil
}

// commit makes the database speak of the commit at, in the same transaction.
func (w *writer) commit(ctx context.Context, at space.CommitID, o Options) (state, error) {
	w.state.commit = at
	if err := storeState(ctx, w.tx, w.state, o); err != nil {
		return state{}, err
	}
	for _, s := range []*sql.Stmt{w.doc, w.text, w.chunk, w.term} {
		s.Close()
	}
	return w.state, w.tx.Commit()
}
