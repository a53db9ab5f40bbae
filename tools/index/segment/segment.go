package segment

import (
	"encoding/binary"
	"math"
	"sort"
)

// Segment is the head of a segment. It is safe for concurrent use.
type Segment struct {
	// Chunks are the chunks of the segment, ascending by document.
	Chunks []Chunk
	// Docs is how many documents the chunks belong to.
	Docs int

	first, pages int64
	firsts       []string // the first term of each block
}

// Reader returns the content of a row, as [Unseal] returns it. The content may be shared, so
// nothing may write to it.
type Reader func(row int64) ([]byte, error)

// headNumber is the number with which heads are sealed. No row has this number, so a row is
// never taken for a head.
const headNumber = -1

// Open reads a head.
func Open(head []byte) (*Segment, error) {
	b, err := Unseal(head, headNumber)
	if err != nil {
		return nil, err
	}
	d := decoder{data: b}
	s := &Segment{first: int64(d.uvarint(math.MaxInt64)), pages: int64(d.uvarint(math.MaxInt32))}
	blocks := d.uvarint(uint64(len(d.data)))
	s.firsts = make([]string, 0, blocks)
	for range blocks {
		s.firsts = append(s.firsts, string(d.bytes(int(d.byte()))))
	}
	chunks := d.uvarint(uint64(len(d.data)))
	s.Chunks = make([]Chunk, 0, chunks)
	doc := uint64(0)
	for i := range chunks {
		step := d.uvarint(math.MaxUint32)
		doc += step
		if step > 0 || i == 0 {
			s.Docs++
		}
		part := d.uvarint(math.MaxUint16<<1 | 1)
		c := Chunk{Doc: uint32(doc), Part: uint16(part >> 1), Talk: part&1 == 1}
		for f := range c.Length {
			c.Length[f] = uint16(d.uvarint(math.MaxUint16))
		}
		s.Chunks = append(s.Chunks, c)
	}
	if d.bad || len(d.data) > 0 || doc > math.MaxUint32 {
		return nil, damaged("head")
	}
	return s, nil
}

// Rows returns the number of the segment's first row, and the number of its last row plus one.
func (s *Segment) Rows() (first, end int64) {
	return s.first, s.first + s.pages + int64(len(s.firsts))
}

// Find returns the first chunk of a document, and how many chunks the document has.
func (s *Segment) Find(doc uint32) (chunk, n int) {
	chunk = sort.Search(len(s.Chunks), func(i int) bool { return s.Chunks[i].Doc >= doc })
	for chunk+n < len(s.Chunks) && s.Chunks[chunk+n].Doc == doc {
		n++
	}
	return chunk, n
}

// Entry is a term in a dictionary.
type Entry struct {
	// Count is how many chunks of the segment contain the term, including deleted chunks.
	// DF is what the segment adds to the term's document frequency. Occurs is what it adds
	// to the number of the term's occurrences in bodies.
	Count  uint32
	DF     int64
	Occurs int64

	row      int64
	from, to int
}

// Lookup returns the entry of a term, or a zero Entry if the segment does not contain the
// term.
func (s *Segment) Lookup(read Reader, term string) (Entry, error) {
	i := sort.Search(len(s.firsts), func(i int) bool { return s.firsts[i] > term }) - 1
	if i < 0 {
		return Entry{}, nil
	}
	c := Cursor{seg: s, read: read, next: i}
	for c.nextIn(i) {
		if have := string(c.term); have >= term {
			if have == term {
				return c.entry, nil
			}
			break
		}
	}
	return Entry{}, c.err
}

// List returns the postings of an entry.
func (s *Segment) List(read Reader, e Entry) (List, error) {
	l := List{last: -1, chunks: int64(len(s.Chunks))}
	if e.Count == 0 {
		return l, nil
	}
	page, err := read(e.row)
	if err != nil {
		return l, err
	}
	if e.to > len(page) {
		return l, damaged("place of a list")
	}
	l.data = page[e.from:e.to]
	return l, nil
}

// Cursor walks through a dictionary in order.
type Cursor struct {
	seg   *Segment
	read  Reader
	next  int // the block to read next
	d     decoder
	page  int64
	at    int // offset of the next list in page
	term  []byte
	entry Entry
	err   error
	valid bool
}

// Seek returns a cursor from which Next reaches all terms that are not less than from. The
// first terms of the cursor may be less.
func (s *Segment) Seek(read Reader, from string) *Cursor {
	i := sort.Search(len(s.firsts), func(i int) bool { return s.firsts[i] > from }) - 1
	c := &Cursor{seg: s, read: read, next: max(i, 0)}
	return c
}

// Next moves to the next term and reports whether there is one.
func (c *Cursor) Next() bool { return c.nextIn(len(c.seg.firsts) - 1) }

// nextIn is like Next, but reads no block after the block last.
func (c *Cursor) nextIn(last int) bool {
	c.valid = false
	for c.err == nil && len(c.d.data) == 0 {
		if c.next > last {
			return false
		}
		b, err := c.read(c.seg.first + c.seg.pages + int64(c.next))
		if err != nil {
			c.err = err
			return false
		}
		c.d = decoder{data: b}
		c.page, c.at = int64(c.d.uvarint(math.MaxInt32)), int(c.d.uvarint(math.MaxInt32))
		c.term = c.term[:0]
		c.next++
	}
	if c.err != nil {
		return false
	}
	shared, size := int(c.d.byte()), int(c.d.byte())
	if shared > len(c.term) {
		c.d.bad = true
		shared = 0
	}
	c.term = append(c.term[:shared], c.d.bytes(size)...)
	n := c.d.uvarint(math.MaxUint32)
	c.entry = Entry{Count: uint32(n >> 1), DF: int64(n >> 1)}
	if n&1 == 1 {
		c.entry.DF = c.d.varint()
	}
	c.entry.Occurs = int64(n>>1) + c.d.varint()
	if c.entry.Count > 0 {
		place := c.d.uvarint(math.MaxInt32)
		if place&1 == 1 {
			c.page, c.at = c.page+1, 0
		}
		c.entry.row, c.entry.from, c.entry.to = c.seg.first+c.page, c.at, c.at+int(place>>1)
		c.at = c.entry.to
		if c.page >= c.seg.pages {
			c.d.bad = true
		}
	}
	if c.d.bad {
		c.err = damaged("dictionary")
		return false
	}
	c.valid = true
	return true
}

// Valid reports whether the cursor is at a term.
func (c *Cursor) Valid() bool { return c.err == nil && c.valid }

// Term returns the current term, which is valid until Next is called.
func (c *Cursor) Term() []byte { return c.term }

// Entry returns the entry of the current term.
func (c *Cursor) Entry() Entry { return c.entry }

// Err returns the error that stopped the walk before its end, or nil.
func (c *Cursor) Err() error { return c.err }

// decoder reads data that may be damaged: once bad is set, it returns zeros.
type decoder struct {
	data []byte
	bad  bool
}

func (d *decoder) byte() byte {
	if len(d.data) == 0 {
		d.bad = true
		return 0
	}
	b := d.data[0]
	d.data = d.data[1:]
	return b
}

func (d *decoder) bytes(n int) []byte {
	if n > len(d.data) {
		d.bad = true
		d.data = nil
		return nil
	}
	b := d.data[:n]
	d.data = d.data[n:]
	return b
}

func (d *decoder) uvarint(limit uint64) uint64 {
	v, n := binary.Uvarint(d.data)
	if n <= 0 || v > limit {
		d.bad, d.data = true, nil
		return 0
	}
	d.data = d.data[n:]
	return v
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.data)
	if n <= 0 {
		d.bad, d.data = true, nil
		return 0
	}
	d.data = d.data[n:]
	return v
}
