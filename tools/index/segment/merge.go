package segment

import "bytes"

// Part is a segment to merge.
type Part struct {
	*Segment
	Read Reader
	// Dead reports whether a chunk is deleted, so that Merge leaves it out.
	Dead func(chunk int) bool
}

// Merge merges neighbouring segments, given in the order in which they were written, into
// one. It passes the rows of the new segment to put as Writer.Write does. It needs memory
// for the dictionary and the chunks, but not for the postings.
func Merge(parts []Part, first int64, put func(row []byte) error) (head []byte, rows int64, err error) {
	const gone = ^uint32(0)
	var chunks []Chunk
	moved := make([][]uint32, len(parts)) // the new number of each chunk
	cursors := make([]*Cursor, len(parts))
	live := make([]bool, len(parts)) // the cursor is at a term
	for i, p := range parts {
		moved[i] = make([]uint32, len(p.Chunks))
		for j, c := range p.Chunks {
			if p.Dead(j) {
				moved[i][j] = gone
				continue
			}
			moved[i][j] = uint32(len(chunks))
			chunks = append(chunks, c)
		}
		cursors[i] = p.Seek(p.Read, "")
		live[i] = cursors[i].Next()
	}
	e := emitter{put: put, first: first}
	var term, data []byte
	buf := make([]Posting, 512)
	for {
		found := false
		for i, c := range cursors {
			if live[i] && (!found || bytes.Compare(c.Term(), term) < 0) {
				found = true
				term = append(term[:0], c.Term()...)
			}
		}
		if !found {
			break
		}
		data = data[:0]
		sum, next := Entry{}, uint32(0)
		for i, c := range cursors {
			if !live[i] || !bytes.Equal(c.Term(), term) {
				continue
			}
			sum.DF += c.Entry().DF
			sum.Occurs += c.Entry().Occurs
			l, err := parts[i].List(parts[i].Read, c.Entry())
			if err != nil {
				return nil, 0, err
			}
			for n := l.Fill(buf); n > 0; n = l.Fill(buf) {
				for _, p := range buf[:n] {
					if to := moved[i][p.Chunk]; to != gone {
						data = appendPosting(data, to+1-next, p.Counts)
						next = to + 1
						sum.Count++
					}
				}
			}
			if l.Err() != nil {
				return nil, 0, l.Err()
			}
			live[i] = c.Next()
		}
		if sum.Count > 0 || sum.DF != 0 || sum.Occurs != 0 {
			if err := e.add(string(term), sum, data); err != nil {
				return nil, 0, err
			}
		}
	}
	for _, c := range cursors {
		if c.Err() != nil {
			return nil, 0, c.Err()
		}
	}
	head, err = e.finish(chunks)
	return head, e.pages + int64(len(e.blocks)), err
}
