package postings

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"

	"satchel/tools/index/segment"
)

// View is the part of a database that is in memory, at one epoch: 12 bytes for each chunk and
// the first terms of the blocks of each dictionary. A View never changes. An update creates
// another View, which shares the segments.
type View struct {
	epoch int64
	Parts []Part // in the order in which they were written

	mu    sync.Mutex
	links []Links // see Snapshot.Links
	known bool    // links were read
}

// Part is a segment with the chunks that were deleted after it was written.
type Part struct {
	id      int64
	Segment *segment.Segment
	Dead    Bitmap // chunks of deleted documents
	Gone    int    // how many chunks are in Dead
}

// Bitmap is a set of small numbers. The nil set is empty.
type Bitmap []uint64

// NewBitmap returns an empty set for the numbers below n.
func NewBitmap(n int) Bitmap { return make(Bitmap, (n+63)/64) }

func (b Bitmap) Has(i int) bool { return i>>6 < len(b) && b[i>>6]&(1<<(i&63)) != 0 }
func (b Bitmap) Set(i int)      { b[i>>6] |= 1 << (i & 63) }

// without returns the part without a document, and whether the part contained the document. If
// shared is set, another View has the same Dead, so the method changes a copy of Dead.
func (p Part) without(doc int64, shared bool) (Part, bool) {
	chunk, n := p.Segment.Find(uint32(doc))
	if n == 0 || p.Dead.Has(chunk) {
		return p, false
	}
	switch {
	case p.Dead == nil:
		p.Dead = NewBitmap(len(p.Segment.Chunks))
	case shared:
		p.Dead = slices.Clone(p.Dead)
	}
	for i := range n {
		p.Dead.Set(chunk + i)
	}
	p.Gone += n
	return p, true
}

// without returns the parts without some documents. It does not change the argument parts.
func without(parts []Part, docs []int64) []Part {
	parts = slices.Clone(parts)
	shared := make([]bool, len(parts))
	for i := range shared {
		shared[i] = true
	}
	for _, doc := range docs {
		for i := range parts {
			p, had := parts[i].without(doc, shared[i])
			if had {
				parts[i], shared[i] = p, false
			}
		}
	}
	return parts
}

// loadView reads the View of a transaction.
func loadView(ctx context.Context, q queryer, st State) (*View, error) {
	v := &View{epoch: st.epoch}
	rows, err := q.QueryContext(ctx, `SELECT id, head FROM segments ORDER BY id`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var p Part
		var head sql.RawBytes
		if err := rows.Scan(&p.id, &head); err != nil {
			return nil, err
		}
		if p.Segment, err = segment.Open(head); err != nil {
			return nil, err
		}
		v.Parts = append(v.Parts, p)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return nil, err
	}
	if rows, err = q.QueryContext(ctx, `SELECT doc FROM dead`); err != nil {
		return nil, err
	}
	defer rows.Close()
	var dead []int64
	marks := int64(0)
	for rows.Next() {
		var doc int64
		if err := rows.Scan(&doc); err != nil {
			return nil, err
		}
		dead = append(dead, doc)
		marks += deadMark(doc)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if int64(len(v.Parts)) != st.segments || marks != st.dead || !inOrder(v.Parts) {
		return nil, fmt.Errorf("%w: segments or deleted documents", segment.ErrDamaged)
	}
	v.Parts = without(v.Parts, dead)
	return v, nil
}

// inOrder reports whether the segments are in the order in which they were written. In this order,
// the numbers of documents ascend.
func inOrder(parts []Part) bool {
	next := uint32(0)
	for i := range parts {
		chunks := parts[i].Segment.Chunks
		if len(chunks) == 0 {
			continue
		}
		if chunks[0].Doc < next {
			return false
		}
		next = chunks[len(chunks)-1].Doc + 1
	}
	return true
}

// missingRow turns the error for a missing row into one that wraps ErrDamaged.
func missingRow(err error, row int64) error {
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("%w: row %d is missing", segment.ErrDamaged, row)
	}
	return err
}
