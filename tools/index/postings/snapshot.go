package postings

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"

	"satchel/tools/index/parse"
	"satchel/tools/index/segment"
)

// Snapshot is a database as one search reads it. It is a transaction, so everything is from
// one commit. Only one goroutine may use it.
type Snapshot struct {
	State State
	View  *View

	db     *Database
	tx     *sql.Tx
	terms  map[string]*termEntry   // terms that were looked up
	stmts  map[*sql.Stmt]*sql.Stmt // see bound
	words  map[int64]parse.Tokens  // see PrefetchTokens
	read   map[int64]*Passage      // passages that were read
	memory *Scratch
}

// Snapshot begins to read the database, which the caller has acquired. [Snapshot.End]
// releases the database. If Snapshot fails, it releases the database itself.
func (d *Database) Snapshot(ctx context.Context) (_ *Snapshot, err error) {
	s := &Snapshot{db: d, terms: map[string]*termEntry{}, read: map[int64]*Passage{}}
	defer func() {
		if err != nil {
			s.End()
		}
	}()
	if s.tx, err = d.read.BeginTx(ctx, nil); err != nil {
		return nil, err
	}
	var text string
	if err := s.bound(ctx, d.stmts.epoch).QueryRowContext(context.WithoutCancel(ctx)).Scan(&text); err != nil {
		return nil, err
	}
	epoch, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil, err
	}
	// Usually the transaction is at the epoch of the state in memory.
	if s.State, s.View = d.current(); s.View.epoch == epoch && s.State.epoch == epoch {
		return s, nil
	}
	// An update has committed, but has not yet replaced the state in memory.
	if s.State, err = loadState(ctx, s.tx); err == nil {
		s.View, err = loadView(ctx, s.tx, s.State)
	}
	return s, err
}

// End ends the snapshot and releases its database.
func (s *Snapshot) End() {
	s.db.scratch.Put(s.memory)
	if s.tx != nil {
		s.tx.Rollback()
	}
	s.db.Release()
}

// Scratch is memory that the searches of a database reuse.
type Scratch struct {
	Chunks []ChunkScore // the chunks of all parts
	buf    [512]segment.Posting
}

// ChunkScore holds what a search found in a chunk: its score, the query's terms that it
// contains, and the terms that its headings contain.
type ChunkScore struct {
	Terms uint64
	Score float32
	Heads uint8
}

// Reset makes Chunks a slice of n zero values.
func (m *Scratch) Reset(n int) {
	if cap(m.Chunks) < n {
		m.Chunks = make([]ChunkScore, n)
		return
	}
	m.Chunks = m.Chunks[:n]
	clear(m.Chunks)
}

// Scratch returns memory that belongs to the snapshot until it ends.
func (s *Snapshot) Scratch() *Scratch {
	if s.memory == nil {
		if s.memory = s.db.scratch.Get(); s.memory == nil {
			s.memory = &Scratch{}
		}
	}
	return s.memory
}

// readRow returns a reader of rows of segments that uses the cache.
func (s *Snapshot) readRow(ctx context.Context) segment.Reader {
	return func(row int64) ([]byte, error) {
		if b := s.db.cache.get(s.db, row); b != nil {
			return b, nil
		}
		var b []byte
		if err := s.eachRow(ctx, s.db.stmts.row, func(rows *sql.Rows) error { return rows.Scan(&b) }, row); err != nil {
			return nil, err
		}
		if b == nil {
			return nil, missingRow(sql.ErrNoRows, row)
		}
		b, err := segment.Unseal(b, row)
		if err != nil {
			return nil, fmt.Errorf("row %d: %w", row, err)
		}
		s.db.cache.put(s.db, row, b)
		return b, nil
	}
}
