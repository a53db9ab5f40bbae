package postings

import (
	"context"
	"database/sql"
	"fmt"
	"math/bits"

	"satchel/tools/index/segment"
)

// Segments are merged by level. A segment of one level has up to mergeFactor times as many
// chunks as a segment of the level below, and mergeFactor neighbours of a level are merged
// into a segment of the next level. So a chunk is written once for each level, and a term is
// looked up in only a few segments. If more than 1/deadShare of a segment's chunks are
// deleted, the segment is written again without them.
const (
	mergeFactor = 4
	deadShare   = 3
)

// level returns the logarithm of a segment's size to the base mergeFactor.
func (p *Part) level() int { return (bits.Len(uint(len(p.Segment.Chunks))) - 1) / 2 }

// chooseMerge returns the range of the neighbours to merge next, or of one segment to write
// again. If from == to, there is nothing to do.
func chooseMerge(parts []Part) (from, to int) {
	for i := range parts {
		if p := &parts[i]; p.Gone > 0 && p.Gone*deadShare > len(p.Segment.Chunks) {
			return i, i + 1
		}
	}
	for level := 0; ; level++ {
		at := 0 // how many segments are of the level
		for from = len(parts); from > 0 && parts[from-1].level() <= level; from-- {
			if parts[from-1].level() == level {
				at++
			}
		}
		if at >= mergeFactor {
			return from, len(parts)
		}
		if from == 0 {
			return 0, 0
		}
	}
}

// put returns a function that stores a row of a segment under the next number.
func (w *Writer) put(ctx context.Context) func(row []byte) error {
	at := w.state.rows
	return func(row []byte) error {
		_, err := w.row.ExecContext(ctx, at, row)
		at++
		return err
	}
}

// flush writes the gathered postings as a new segment.
func (w *Writer) flush(ctx context.Context) error {
	if w.seg.Empty() {
		return nil
	}
	head, rows, err := w.seg.Write(w.state.rows, w.put(ctx))
	clear(w.lists)
	if err != nil {
		return fmt.Errorf("write segment: %w", err)
	}
	id := int64(1)
	if n := len(w.parts); n > 0 {
		id = w.parts[n-1].id + 1
	}
	p, err := w.install(ctx, id, head, rows)
	if err != nil {
		return err
	}
	w.parts = append(w.parts, p)
	return nil
}

// install stores the head of a segment whose rows have been written.
func (w *Writer) install(ctx context.Context, id int64, head []byte, rows int64) (Part, error) {
	w.state.rows += rows
	if _, err := w.tx.ExecContext(ctx, `INSERT OR REPLACE INTO segments(id, head) VALUES(?,?)`, id, head); err != nil {
		return Part{}, fmt.Errorf("write segment: %w", err)
	}
	seg, err := segment.Open(head)
	return Part{id: id, Segment: seg}, err
}

// merge merges segments until there are few enough.
func (w *Writer) merge(ctx context.Context) error {
	for {
		from, to := chooseMerge(w.parts)
		if from == to {
			return nil
		}
		if err := w.mergeParts(ctx, from, to); err != nil {
			return fmt.Errorf("merge segments: %w", err)
		}
	}
}

func (w *Writer) mergeParts(ctx context.Context, from, to int) error {
	old := w.parts[from:to]
	stmt, err := w.tx.PrepareContext(ctx, `SELECT data FROM blocks WHERE id = ?`)
	if err != nil {
		return err
	}
	defer stmt.Close()
	// Each part is read in order, and many lists share a row, so keep the last row.
	reader := func() segment.Reader {
		last, data := int64(-1), []byte(nil)
		return func(row int64) ([]byte, error) {
			if row == last {
				return data, nil
			}
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			var b []byte
			if err := stmt.QueryRowContext(ctx, row).Scan(&b); err != nil {
				return nil, missingRow(err, row)
			}
			b, err := segment.Unseal(b, row)
			if err == nil {
				last, data = row, b
			}
			return b, err
		}
	}
	var parts []segment.Part
	for i := range old {
		parts = append(parts, segment.Part{Segment: old[i].Segment, Read: reader(), Dead: old[i].Dead.Has})
	}
	head, rows, err := segment.Merge(parts, w.state.rows, w.put(ctx))
	if err != nil {
		return err
	}
	for i := range old {
		first, end := old[i].Segment.Rows()
		for _, q := range []struct {
			sql  string
			args []any
		}{
			{`DELETE FROM blocks WHERE id >= ? AND id < ?`, []any{first, end}},
			{`DELETE FROM segments WHERE id = ?`, []any{old[i].id}},
		} {
			if _, err := w.tx.ExecContext(ctx, q.sql, q.args...); err != nil {
				return err
			}
		}
		if err := w.bury(ctx, &old[i]); err != nil {
			return err
		}
	}
	merged, err := w.install(ctx, old[0].id, head, rows)
	if err != nil {
		return err
	}
	w.parts = append(append(append([]Part(nil), w.parts[:from]...), merged), w.parts[to:]...)
	return nil
}

// bury removes the deleted documents of a merged segment from the table dead.
func (w *Writer) bury(ctx context.Context, p *Part) error {
	if p.Gone == 0 {
		return nil
	}
	var stmt *sql.Stmt
	stmt, err := w.tx.PrepareContext(ctx, `DELETE FROM dead WHERE doc = ?`)
	if err != nil {
		return err
	}
	defer stmt.Close()
	last := int64(-1)
	for i, c := range p.Segment.Chunks {
		if doc := int64(c.Doc); p.Dead.Has(i) && doc != last {
			last = doc
			w.state.dead -= deadMark(doc)
			if _, err := stmt.ExecContext(ctx, doc); err != nil {
				return err
			}
		}
	}
	return nil
}
