package index

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"satchel/tools/index/segment"
)

// view is the index of a database at one epoch, as far as it is in memory: what
// is known of each chunk (12 bytes) and the first terms of the blocks of
// each dictionary. It never changes: an update makes another one, which shares
// the segments.
type view struct {
	epoch int64
	parts []part // in the order in which they were written

	mu    sync.Mutex
	pages []aboutFiles // see session.linkingPages
	known bool         // pages were read
}

// part is a segment with what has been deleted from it since it was written.
type part struct {
	id   int64
	seg  *segment.Segment
	dead bitmap // chunks of deleted documents
	gone int    // how many
}

// bitmap is a set of small numbers. The nil set is empty.
type bitmap []uint64

func newBitmap(n int) bitmap { return make(bitmap, (n+63)/64) }

func (b bitmap) has(i int) bool { return i>>6 < len(b) && b[i>>6]&(1<<(i&63)) != 0 }
func (b bitmap) set(i int)      { b[i>>6] |= 1 << (i & 63) }

// Without returns the part without a document, and whether it had it.
func (p part) without(doc int64, shared bool) (part, bool) {
	chunk, n := p.seg.Find(uint32(doc))
	if n == 0 || p.dead.has(chunk) {
		return p, false
	}
	switch {
	case p.dead == nil:
		p.dead = newBitmap(len(p.seg.Chunks))
	case shared:
		p.dead = slices.Clone(p.dead)
	}
	for i := range n {
		p.dead.set(chunk + i)
	}
	p.gone += n
	return p, true
}

// Without returns the parts without some documents; the argument is not changed.
func without(parts []part, docs []int64) []part {
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

// loadView reads the view of a transaction.
func loadView(ctx context.Context, q queryer, st state) (*view, error) {
	v := &view{epoch: st.epoch}
	rows, err := q.QueryContext(ctx, `SELECT id, head FROM segments ORDER BY id`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var p part
		var head sql.RawBytes
		if err := rows.Scan(&p.id, &head); err != nil {
			return nil, err
		}
		if p.seg, err = segment.Open(head); err != nil {
			return nil, err
		}
		v.parts = append(v.parts, p)
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
	if int64(len(v.parts)) != st.segments || marks != st.dead || !inOrder(v.parts) {
		return nil, fmt.Errorf("%w: segments or deleted documents", segment.ErrDamaged)
	}
	v.parts = without(v.parts, dead)
	return v, nil
}

// inOrder reports whether the segments are in the order in which they were
// written: a document's number is higher than all before.
func inOrder(parts []part) bool {
	next := uint32(0)
	for i := range parts {
		chunks := parts[i].seg.Chunks
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

// snapshot reads what the session's transaction sees: mostly what the database
// has in memory.
func (s *session) snapshot(ctx context.Context, o Options) error {
	var text string
	err := s.bound(ctx, s.db.stmts.epoch).QueryRowContext(ctx).Scan(&text)
	if err != nil {
		return err
	}
	epoch, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return err
	}
	if s.state, s.view = s.db.currentView(); s.view.epoch == epoch && s.state.epoch == epoch {
		return nil
	}
	// Between an update's commit and its announcement.
	if s.state, err = loadState(ctx, s.tx, o); err == nil {
		s.view, err = loadView(ctx, s.tx, s.state)
	}
	return err
}

// readRow reads a row of a segment within a transaction, through the cache.
func (s *session) readRow(ctx context.Context) segment.Reader {
	return func(row int64) ([]byte, error) {
		if b := s.db.cache.get(s.db, row); b != nil {
			return b, nil
		}
		var b []byte
		if err := s.bound(ctx, s.db.stmts.row).QueryRowContext(ctx, row).Scan(&b); err != nil {
			return nil, missingRow(err, row)
		}
		b, err := segment.Unseal(b, row)
		if err != nil {
			return nil, fmt.Errorf("row %d: %w", row, err)
		}
		s.db.cache.put(s.db, row, b)
		return b, nil
	}
}

// missingRow makes damage of a row that should be there.
func missingRow(err error, row int64) error {
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("%w: row %d is missing", segment.ErrDamaged, row)
	}
	return err
}

// rowCache keeps what was read last, up to a number of bytes: rows of segments,
// what a segment's dictionary says of a term, and what documents are called. None
// of these ever changes, and no number is given again to another one.
type rowCache struct {
	mu    sync.Mutex
	limit int
	size  int
	rows  *simplelru.LRU[rowKey, cachedRow]
}

// rowKey names a row, a document, or a term (row is 0, which no row has).
type rowKey struct {
	db   *database
	row  int64
	doc  bool
	term string
}

type cachedRow struct {
	key  rowKey
	data []byte
	term []segmentTerm // of the segments that hold it or were asked
	kin  *kin          // of a document
}

// segmentTerm is what is known of a term in one segment.
type segmentTerm struct {
	// rows are the segment's, by which it is known; only segments without any
	// may have the same, and these hold no term.
	rows  [2]int64
	entry segment.Entry
	// occurs is how often the bodies of the segment's chunks had the term when
	// gone of these were deleted; -1: not counted yet.
	occurs int64
	gone   int
}

// rowOverhead is about what the cache itself takes for each row.
const rowOverhead = 280

// segmentTermBytes is what a term takes for each segment.
const segmentTermBytes = 64

// kinOverhead is about what a document takes besides its names.
const kinOverhead = 120

func newRowCache(limit int) *rowCache {
	c := &rowCache{limit: limit}
	// Its own bound counts rows; ours are bytes.
	c.rows, _ = simplelru.NewLRU(math.MaxInt, func(_ rowKey, r cachedRow) { c.size -= r.size() })
	return c
}

func (c *rowCache) get(d *database, row int64) []byte {
	r, _ := c.find(rowKey{db: d, row: row})
	return r.data
}

func (c *rowCache) find(k rowKey) (cachedRow, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rows.Get(k)
}

// put keeps a row that is no larger than a 16th of the cache, so that one long
// list does not drive out everything else.
func (c *rowCache) put(d *database, row int64, data []byte) {
	c.keep(cachedRow{key: rowKey{db: d, row: row}, data: data})
}

func (c *rowCache) keep(r cachedRow) {
	if r.size() > c.limit/16 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rows.Remove(r.key)
	c.rows.Add(r.key, r)
	c.size += r.size()
	for c.size > c.limit {
		c.rows.RemoveOldest()
	}
}

func (r *cachedRow) size() int {
	n := len(r.data) + len(r.key.term) + segmentTermBytes*len(r.term) + rowOverhead
	if r.kin != nil {
		n += len(r.kin.path) + len(r.kin.title) + len(r.kin.family) + kinOverhead
	}
	return n
}

// forget drops what is kept of a database that is closed.
func (c *rowCache) forget(d *database) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.rows.Keys() {
		if k.db == d {
			c.rows.Remove(k)
		}
	}
}
