package segment

import (
	"encoding/binary"
	"slices"
	"strings"
)

// Writer gathers the chunks of a new segment in memory.
type Writer struct {
	chunks []Chunk
	index  map[string]uint32 // the numbers of lists, by term
	lists  []list
	terms  []string // the term of each list
	size   int
}

type list struct {
	data   []byte
	next   uint32 // the number of the last chunk in the list plus one
	count  uint32 // the number of postings
	df     int32
	occurs int32
}

// NewWriter returns an empty writer.
func NewWriter() *Writer { return &Writer{index: map[string]uint32{}} }

// Chunk begins the next chunk. Documents must come in ascending order, and the chunks of a
// document one after another.
func (w *Writer) Chunk(c Chunk) {
	w.chunks = append(w.chunks, c)
	w.size += 16
}

// Term adds a term to the current chunk. It must be called at most once for each term of a
// chunk.
func (w *Writer) Term(term string, n Counts) {
	if i := w.List(term); i >= 0 {
		w.Add(i, n)
	}
}

// List returns the number of a term's list, for Add. The number is valid until Write is
// called. It is negative for a term that is empty or too long, which is left out.
func (w *Writer) List(term string) int {
	if term == "" || len(term) > MaxTerm {
		return -1
	}
	i, ok := w.index[term]
	if !ok {
		i = uint32(len(w.lists))
		term = strings.Clone(term) // so that the text that contains the term is not kept in memory
		w.index[term] = i
		w.lists, w.terms = append(w.lists, list{}), append(w.terms, term)
		w.size += 120 + len(term)
	}
	return int(i)
}

// Add is like Term, for callers that keep the numbers of lists.
func (w *Writer) Add(number int, n Counts) {
	if n == (Counts{}) {
		return
	}
	l := &w.lists[number]
	chunk := uint32(len(w.chunks)) // the number of the chunk plus one
	before := len(l.data)
	l.data = appendPosting(l.data, chunk-l.next, n)
	w.size += len(l.data) - before
	l.next = chunk
	l.count++
	l.df++
	l.occurs += int32(n[body])
}

// Forget lowers the frequencies of a term of a chunk that is deleted from
// another segment.
func (w *Writer) Forget(term string, n Counts) {
	if i := w.List(term); i >= 0 {
		w.lists[i].df--
		w.lists[i].occurs -= int32(n[body])
	}
}

// Size returns about how many bytes of memory the writer takes.
func (w *Writer) Size() int { return w.size }

// Empty reports whether there is nothing to write.
func (w *Writer) Empty() bool { return len(w.chunks) == 0 && len(w.lists) == 0 }

// Write passes the rows of the segment to put, in order. put must store them under
// consecutive numbers, beginning with first, and may keep the slices. Write returns the head
// and the number of rows. The writer is empty afterwards.
func (w *Writer) Write(first int64, put func(row []byte) error) (head []byte, rows int64, err error) {
	order := make([]uint32, len(w.terms))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int { return strings.Compare(w.terms[a], w.terms[b]) })
	e := emitter{put: put, first: first}
	for _, i := range order {
		l := &w.lists[i]
		if l.count == 0 && l.df == 0 && l.occurs == 0 {
			continue
		}
		if err := e.add(w.terms[i], Entry{Count: l.count, DF: int64(l.df), Occurs: int64(l.occurs)}, l.data); err != nil {
			return nil, 0, err
		}
	}
	head, err = e.finish(w.chunks)
	rows = e.pages + int64(len(e.blocks))
	*w = Writer{index: map[string]uint32{}}
	return head, rows, err
}

// emitter writes terms in order: pages as they fill, the blocks at the end.
type emitter struct {
	put    func([]byte) error
	first  int64 // the number of the first row
	page   []byte
	pages  int64
	blocks [][]byte
	firsts []string
	block  []byte
	prev   string
}

// add writes a term with its frequencies and its list.
func (e *emitter) add(term string, n Entry, data []byte) error {
	turned := false
	if len(data) > 0 && len(e.page) > 0 && len(e.page)+len(data) > pageSize {
		if err := e.flush(); err != nil {
			return err
		}
		turned = true
	}
	if len(e.block) > blockSize {
		e.closeBlock()
	}
	if len(e.block) == 0 {
		// A block begins with the place of its first list: the page of the list, counted from
		// the segment's first row, and the offset in the page.
		e.firsts = append(e.firsts, term)
		e.prev, turned = "", false
		e.block = binary.AppendUvarint(e.block, uint64(e.pages))
		e.block = binary.AppendUvarint(e.block, uint64(len(e.page)))
	}
	shared := 0
	for shared < len(term) && shared < len(e.prev) && term[shared] == e.prev[shared] {
		shared++
	}
	e.block = append(e.block, byte(shared), byte(len(term)-shared))
	e.block = append(e.block, term[shared:]...)
	e.prev = term
	other := uint64(0) // 1 if DF is not the number of postings
	if n.DF != int64(n.Count) {
		other = 1
	}
	e.block = binary.AppendUvarint(e.block, uint64(n.Count)<<1|other)
	if other == 1 {
		e.block = binary.AppendVarint(e.block, n.DF)
	}
	e.block = binary.AppendVarint(e.block, n.Occurs-int64(n.Count))
	if n.Count > 0 {
		place := uint64(len(data)) << 1
		if turned {
			place |= 1
		}
		e.block = binary.AppendUvarint(e.block, place)
		e.page = append(e.page, data...)
	}
	return nil
}

func (e *emitter) flush() error {
	if len(e.page) == 0 {
		return nil
	}
	err := e.put(Seal(e.page, e.first+e.pages))
	e.page = make([]byte, 0, pageSize+sumSize)
	e.pages++
	return err
}

func (e *emitter) closeBlock() {
	if len(e.block) > 0 {
		e.blocks = append(e.blocks, e.block)
		e.block = make([]byte, 0, blockSize+512)
	}
}

// finish writes the last page and all blocks, and returns the head.
func (e *emitter) finish(chunks []Chunk) ([]byte, error) {
	if err := e.flush(); err != nil {
		return nil, err
	}
	e.closeBlock()
	for i, b := range e.blocks {
		if err := e.put(Seal(b, e.first+e.pages+int64(i))); err != nil {
			return nil, err
		}
	}
	h := binary.AppendUvarint(nil, uint64(e.first))
	h = binary.AppendUvarint(h, uint64(e.pages))
	h = binary.AppendUvarint(h, uint64(len(e.firsts)))
	for _, t := range e.firsts {
		h = append(h, byte(len(t)))
		h = append(h, t...)
	}
	h = binary.AppendUvarint(h, uint64(len(chunks)))
	doc := uint32(0)
	for _, c := range chunks {
		h = binary.AppendUvarint(h, uint64(c.Doc-doc))
		doc = c.Doc
		part := uint64(c.Part) << 1
		if c.Talk {
			part |= 1
		}
		h = binary.AppendUvarint(h, part)
		for _, n := range c.Length {
			h = binary.AppendUvarint(h, uint64(n))
		}
	}
	return Seal(h, headNumber), nil
}
