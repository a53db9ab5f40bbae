package postings

import (
	"context"
	"slices"
	"strings"

	"satchel/tools/index/segment"
)

// termEntry is a term in the dictionaries of a view.
type termEntry struct {
	df     int64         // how many live chunks contain the term
	occurs int64         // how often the bodies of these chunks contain the term
	parts  []segmentTerm // one for each part of the view
}

// lookup finds a term in every segment of the Snapshot's view.
func (s *Snapshot) lookup(ctx context.Context, t string) (*termEntry, error) {
	if e, ok := s.terms[t]; ok {
		return e, nil
	}
	read := s.readRow(ctx)
	e := &termEntry{parts: make([]segmentTerm, len(s.View.Parts))}
	known, _ := s.db.cache.find(s.termKey(t))
	fresh := t != "" && len(known.term) != len(e.parts)
	for i, p := range s.View.Parts {
		in := &e.parts[i]
		first, end := p.Segment.Rows()
		rows := [2]int64{first, end}
		if k := slices.IndexFunc(known.term, func(one segmentTerm) bool { return one.rows == rows }); k >= 0 {
			*in = known.term[k]
		} else {
			entry, err := p.Segment.Lookup(read, t)
			if err != nil {
				return nil, err
			}
			*in, fresh = segmentTerm{rows: rows, entry: entry}, t != ""
		}
		e.df += in.entry.DF
		e.occurs += in.entry.Occurs
	}
	if fresh {
		s.db.cache.keep(cachedRow{key: s.termKey(t), term: e.parts})
	}
	s.terms[t] = e
	return e, nil
}

// termKey is the key of a term in the cache.
func (s *Snapshot) termKey(t string) rowKey { return rowKey{db: s.db, term: t} }

// Freq returns how many chunks of the database contain a term.
func (s *Snapshot) Freq(ctx context.Context, t string) (int64, error) {
	e, err := s.lookup(ctx, t)
	if err != nil {
		return 0, err
	}
	return e.df, nil
}

// Occurrences returns how often the bodies of all live chunks contain a term.
func (s *Snapshot) Occurrences(ctx context.Context, t string) (int64, error) {
	e, err := s.lookup(ctx, t)
	if err != nil {
		return 0, err
	}
	return e.occurs, nil
}

// EachTerm calls yield with every term that begins with prefix, in order, and with the number of
// chunks that contain the term. It stops when yield returns false.
func (s *Snapshot) EachTerm(ctx context.Context, prefix string, yield func(term string, df int64) bool) error {
	read := s.readRow(ctx)
	var cursors []*segment.Cursor
	next := func(c *segment.Cursor) bool {
		return c.Next() && strings.HasPrefix(string(c.Term()), prefix)
	}
	for _, p := range s.View.Parts {
		c := p.Segment.Seek(read, prefix)
		for c.Next() {
			if string(c.Term()) >= prefix {
				break
			}
		}
		if c.Err() != nil {
			return c.Err()
		}
		if c.Valid() && strings.HasPrefix(string(c.Term()), prefix) {
			cursors = append(cursors, c)
		}
	}
	for len(cursors) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		term := string(cursors[0].Term())
		for _, c := range cursors[1:] {
			if t := string(c.Term()); t < term {
				term = t
			}
		}
		df := int64(0)
		rest := cursors[:0]
		for _, c := range cursors {
			if string(c.Term()) == term {
				df += c.Entry().DF
				if !next(c) {
					if c.Err() != nil {
						return c.Err()
					}
					continue
				}
			}
			rest = append(rest, c)
		}
		cursors = rest
		if df > 0 && !yield(term, df) {
			return nil
		}
	}
	return nil
}

// ChunksWith returns ids of chunks that contain a term. most is the maximum number of ids.
func (s *Snapshot) ChunksWith(ctx context.Context, t string, most int) (ids []int64, err error) {
	for i, p := range s.View.Parts {
		if len(ids) >= most {
			break
		}
		if err := s.Each(ctx, t, i, func(ps []segment.Posting) {
			for j := 0; j < len(ps) && len(ids) < most; j++ {
				if c := ps[j].Chunk; !p.Dead.Has(int(c)) {
					ids = append(ids, ChunkID(p.Segment.Chunks[c]))
				}
			}
		}); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// Each calls f with the postings of a term in one part, several at a time. f must not call
// Each.
func (s *Snapshot) Each(ctx context.Context, t string, part int, f func([]segment.Posting)) error {
	e, err := s.lookup(ctx, t)
	if err != nil {
		return err
	}
	l, err := s.View.Parts[part].Segment.List(s.readRow(ctx), e.parts[part].entry)
	if err != nil {
		return err
	}
	buf := s.Scratch().buf[:]
	for n := l.Fill(buf); n > 0; n = l.Fill(buf) {
		f(buf[:n])
	}
	return l.Err()
}

// ChunkID returns the id of a chunk.
func ChunkID(c segment.Chunk) int64 { return int64(c.Doc)<<ChunkBits | int64(c.Part) }
