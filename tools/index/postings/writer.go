package postings

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"satchel/internal/space"
	"satchel/tools/index/parse"
	"satchel/tools/index/segment"
)

// Writer writes documents within one transaction.
type Writer struct {
	tx    *sql.Tx
	state State
	parts []Part // the old parts, then the segments that were written
	// The statements are prepared once, because a build runs each of them 10⁵ times.
	doc, text, chunk, row *sql.Stmt

	seg     *segment.Writer // collects the postings of the next segment
	limit   int             // how many bytes of memory the segment may take before it is written
	lists   map[*parse.VocabularyID][]int32
	removed []int64 // the removed documents
}

// maxVocabularies is the number of vocabularies for which the Writer remembers lists. The lists
// of a vocabulary take half a megabyte. The limit leaves room for the vocabularies of several
// goroutines, and for the vocabularies that replace them.
const maxVocabularies = 16

// postings adds the terms of a chunk to the segment. It looks up the list of a term once for
// each vocabulary: a lookup for every chunk would take longer than appending to the list.
func (w *Writer) postings(t *parse.ChunkTerms) {
	lists := w.lists[t.Known]
	for i := range t.Terms {
		c := &t.Terms[i]
		for int(c.ID) >= len(lists) {
			lists = append(lists, 0)
		}
		if lists[c.ID] == 0 { // not looked up yet; other values are the list's number plus one
			lists[c.ID] = int32(w.seg.List(t.Texts[c.ID])) + 1
		}
		if n := lists[c.ID]; n > 0 {
			w.seg.Add(int(n-1), c.N)
		}
	}
	if len(w.lists) >= maxVocabularies {
		clear(w.lists)
	}
	w.lists[t.Known] = lists
}

func newWriter(ctx context.Context, tx *sql.Tx, s State, v *View, o Options) (*Writer, error) {
	w := &Writer{tx: tx, state: s, seg: segment.NewWriter(), lists: map[*parse.VocabularyID][]int32{}, limit: o.BuildBytes}
	w.state.next, w.state.rows = max(s.next, 1), max(s.rows, 1)
	if v != nil {
		w.parts = v.Parts
	}
	for _, p := range []struct {
		into  **sql.Stmt
		query string
	}{
		{&w.doc, `INSERT INTO docs(id, path, blob, title, description, url, tags, files, kind, lang, version, date, lines, head, link, sum) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)`},
		{&w.text, `INSERT INTO texts(id, sum, text) VALUES(?,?,?)`},
		{&w.chunk, `INSERT INTO chunks(id, start, end, line0, line1, crumbs, anchors, sum, tokens) VALUES(?,?,?,?,?,?,?,?,?)`},
		{&w.row, `INSERT INTO blocks(id, data) VALUES(?,?)`},
	} {
		var err error
		if *p.into, err = tx.PrepareContext(ctx, p.query); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// Add adds a document.
func (w *Writer) Add(ctx context.Context, d parse.Document) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if w.seg.Size() > w.limit {
		if err := w.flush(ctx); err != nil {
			return err
		}
	}
	id := w.state.next
	if id > math.MaxUint32 {
		return fmt.Errorf("index document: %w: its ids are used up", errSchema) // a rebuild starts with new ids
	}
	w.state.next++
	date := int64(0)
	if !d.Page.Date.IsZero() {
		date = d.Page.Date.Unix()
	}
	p := &d.Page
	tags, files := strings.Join(p.Tags, "\n"), strings.Join(p.Files, "\n")
	doc := Document{
		Path: d.Path, Blob: d.Blob, Title: p.Title, Description: p.Description, URL: p.URL, Kind: d.Kind,
		Lang: p.Lang, Version: p.Version, Date: date, Lines: p.Lines,
	}
	// SQLite's driver starts a goroutine for each statement that can be cancelled.
	ctx = context.WithoutCancel(ctx)
	if _, err := w.doc.ExecContext(ctx, id, string(d.Path), string(d.Blob), p.Title, p.Description, p.URL, tags, files,
		string(d.Kind), p.Lang, p.Version, date, p.Lines, headFields(id, string(d.Path), p.Title, p.Lang, p.Version, date).sum(nil),
		linkFields(id, string(d.Path), files).sum(nil), docFields(id, &doc, tags, files).sum(nil)); err != nil {
		return fmt.Errorf("index document: %w", err)
	}
	text := d.Text
	if text == nil {
		text = []byte{}
	}
	if _, err := w.text.ExecContext(ctx, id, textFields(id).sum(text), text); err != nil {
		return fmt.Errorf("index text: %w", err)
	}
	for i, c := range p.Chunks {
		row := id<<ChunkBits | int64(i)
		t := &d.Terms[i]
		crumbs, anchors := strings.Join(c.Crumbs, "\n"), strings.Join(c.Anchors, "\n")
		sum := chunkFields(row, c.Start, c.End, c.Lines, crumbs, anchors).sum(text[c.Start:min(c.End, c.Start+maxPassageBytes)])
		if _, err := w.chunk.ExecContext(ctx, row, c.Start, c.End, c.Lines[0], c.Lines[1], crumbs, anchors, sum, segment.Seal(t.Tokens, row)); err != nil {
			return fmt.Errorf("index chunk: %w", err)
		}
		sc := segment.Chunk{Doc: uint32(id), Part: uint16(i), Talk: p.Conversation}
		for f, n := range t.Length {
			sc.Length[f] = uint16(min(n, math.MaxUint16))
		}
		w.seg.Chunk(sc)
		w.postings(t)
		w.count(t, 1)
	}
	w.state.Docs++
	if d.Blob == "" {
		w.state.Unread++
	}
	return nil
}

func (w *Writer) count(t *parse.ChunkTerms, sign int64) {
	w.state.Chunks += sign
	for f, n := range t.Length {
		w.state.Length[f] += sign * n
	}
}

// Remove deletes the document of a path, and reports whether there was one. It analyses the
// stored text again to find the terms whose frequencies decrease.
func (w *Writer) Remove(ctx context.Context, a *parse.Analyzer, p space.Path) (had bool, err error) {
	var id int64
	err = w.tx.QueryRowContext(ctx, `SELECT id FROM docs WHERE path = ?`, string(p)).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("find document: %w", err)
	}
	have, text, err := readWhole(ctx, w.tx, id)
	if err == nil && have.Path != p {
		err = fmt.Errorf("%w: %s is found for another name", segment.ErrDamaged, p)
	}
	if err != nil {
		return false, fmt.Errorf("find document: %w", err)
	}
	d := a.Analyse(space.FileChange{Path: p}, text, time.Time{}, MaxChunks)
	for i := range d.Page.Chunks {
		t := &d.Terms[i]
		for k := range t.Terms {
			w.seg.Forget(t.Texts[t.Terms[k].ID], t.Terms[k].N)
		}
		w.count(t, -1)
	}
	w.removed = append(w.removed, id)
	for _, q := range []string{
		`DELETE FROM chunks WHERE id BETWEEN ?1 << 12 AND (?1 << 12) + 4095`,
		`DELETE FROM texts WHERE id = ?1`,
		`DELETE FROM docs WHERE id = ?1`,
		`INSERT OR IGNORE INTO dead(doc) VALUES(?1)`,
	} {
		if _, err := w.tx.ExecContext(ctx, q, id); err != nil {
			return false, fmt.Errorf("delete document: %w", err)
		}
	}
	w.state.Docs--
	if have.Blob == "" {
		w.state.Unread--
	}
	w.state.dead += deadMark(id)
	return true, nil
}

// commit records the commit of the content and ends the transaction.
func (w *Writer) commit(ctx context.Context, at space.CommitID) (State, *View, error) {
	if err := w.flush(ctx); err != nil {
		return State{}, nil, err
	}
	w.parts = without(w.parts, w.removed)
	if err := w.merge(ctx); err != nil {
		return State{}, nil, err
	}
	w.state.Commit = at
	w.state.epoch++
	w.state.segments = int64(len(w.parts))
	if err := storeState(ctx, w.tx, w.state); err != nil {
		return State{}, nil, err
	}
	for _, s := range []*sql.Stmt{w.doc, w.text, w.chunk, w.row} {
		s.Close()
	}
	return w.state, &View{epoch: w.state.epoch, Parts: w.parts}, w.tx.Commit()
}
