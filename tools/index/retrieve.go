package index

import (
	"cmp"
	"context"
	"math"
	"slices"

	"satchel/tools/index/parse"
	"satchel/tools/index/segment"
)

// counts is how often a term is in each field of a chunk.
type counts = segment.Counts

// retrieval is what the first stage of a search looks for in one database.
type retrieval struct {
	// Terms are scored. A chunk that holds any of them matches, unless there are
	// phrases.
	terms []term
	sc    *scorer // its terms are these
	// Phrases must all occur, without must not; each is a list of terms.
	phrases, without [][]string
	// docs are those that may match; nil: all.
	docs *docSet
	// depth is how many chunks are wanted; verify how many of the best are looked
	// into for phrases of several words, and more where fewer than depth have them.
	depth, verify int
	// heads are the bits that terms have in the heads of a chunk; more reports that
	// only some of the terms are new.
	heads []heads
	more  bool
}

// candidate is a chunk that matches.
type candidate struct {
	id    int64
	score float64
	terms uint64 // bit i: it holds terms[i], of the first 64
	lead  bool   // see leads
	heads heads
}

// leads reports whether a chunk is what a page with headings begins with.
func leads(chunks []segment.Chunk, c int) bool {
	if chunks[c].Part != 0 {
		return false
	}
	next := c + 1
	return chunks[c].Length[parse.FieldCrumb] > 0 || next < len(chunks) && chunks[next].Doc == chunks[c].Doc && chunks[next].Length[parse.FieldCrumb] > 0
}

// docSet is the documents that meet a filter.
type docSet struct{ ids bitmap }

func (d *docSet) has(doc uint32) bool { return d == nil || d.ids.has(int(doc)) }

// filterDocs returns the documents that meet a condition on docs; nil for none.
func (s *session) filterDocs(ctx context.Context, cond string, args []any) (*docSet, error) {
	if cond == "" {
		return nil, nil
	}
	rows, err := s.tx.QueryContext(ctx, `SELECT id FROM docs WHERE `+cond, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	d := &docSet{newBitmap(int(s.state.next) + 1)}
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		if id >= 0 && id <= s.state.next {
			d.ids.set(int(id))
		}
	}
	return d, rows.Err()
}

// scratch is the memory of a retrieval: of each chunk of all parts its score, the
// terms that it holds, and those of its headings.
type scratch struct {
	score []float32
	terms []uint64
	heads []heads
	buf   [512]segment.Posting
}

// heads reports which of the words that a heading may consist of a chunk's headings
// have; see inquiry.mayHead.
type heads uint8

func (m *scratch) reset(n int) {
	if cap(m.score) < n {
		m.score, m.terms, m.heads = make([]float32, n), make([]uint64, n), make([]heads, n)
		return
	}
	m.score, m.terms, m.heads = m.score[:n], m.terms[:n], m.heads[:n]
	clear(m.score)
	clear(m.terms)
	clear(m.heads)
}

// scratch returns the session's memory, which is its own until it ends.
func (s *session) scratch() *scratch {
	if s.memory == nil {
		if s.memory = s.db.scratch.get(); s.memory == nil {
			s.memory = &scratch{}
		}
	}
	return s.memory
}

// retrieve scores every chunk that matches, and returns the best of them, best
// first, and how many documents match. Where the first terms are those of the
// retrieval before, which r.more tells, their scores are not made again.
func (s *session) retrieve(ctx context.Context, r retrieval) (best []candidate, docs int, err error) {
	m := s.scratch()
	if !r.more {
		n := 0
		for i := range s.view.parts {
			n += len(s.view.parts[i].seg.Chunks)
		}
		m.reset(n)
		s.scored = 0
	}
	t := top{limit: r.depth, heap: make([]uint64, 0, min(r.depth, len(m.score)))}
	from := 0
	for i := range s.view.parts {
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
		n, err := s.retrievePart(ctx, i, &r, from, &t)
		if err != nil {
			return nil, 0, err
		}
		docs += n
		from += len(s.view.parts[i].seg.Chunks)
	}
	s.scored = len(r.terms)
	return s.candidates(t.sorted()), docs, nil
}

// each calls f with the postings of a term in one part, in runs.
func (s *session) each(ctx context.Context, t string, part int, m *scratch, f func([]segment.Posting)) error {
	e, err := s.lookup(ctx, t)
	if err != nil {
		return err
	}
	l, err := s.view.parts[part].seg.List(s.readRow(ctx), e.parts[part].entry)
	if err != nil {
		return err
	}
	for n := l.Fill(m.buf[:]); n > 0; n = l.Fill(m.buf[:]) {
		f(m.buf[:n])
	}
	return l.Err()
}

// withAll returns the chunks of a part that hold all of some terms.
func (s *session) withAll(ctx context.Context, terms []string, part int, m *scratch) (bitmap, error) {
	var all bitmap
	for _, t := range terms {
		one := newBitmap(len(s.view.parts[part].seg.Chunks))
		if err := s.each(ctx, t, part, m, func(ps []segment.Posting) {
			for i := range ps {
				one.set(int(ps[i].Chunk))
			}
		}); err != nil {
			return nil, err
		}
		if all == nil {
			all = one
			continue
		}
		for i := range all {
			all[i] &= one[i]
		}
	}
	return all, nil
}

// retrievePart offers the chunks of one segment that match to the best, and
// returns how many documents they are of.
func (s *session) retrievePart(ctx context.Context, i int, r *retrieval, from int, t *top) (docs int, err error) {
	p, m := &s.view.parts[i], s.scratch()
	chunks := p.seg.Chunks
	to := from + len(chunks)
	scores, terms, headed := m.score[from:to], m.terms[from:to], m.heads[from:to]
	var need bitmap // chunks with all words of all phrases
	var suspect []bitmap
	var never bitmap
	verify := false
	for k, ph := range r.phrases {
		verify = verify || len(ph) > 1
		has, err := s.withAll(ctx, ph, i, m)
		if err != nil {
			return 0, err
		}
		if k == 0 {
			need = has
			continue
		}
		for j := range need {
			need[j] &= has[j]
		}
	}
	for _, ph := range r.without {
		has, err := s.withAll(ctx, ph, i, m)
		if err != nil {
			return 0, err
		}
		if len(ph) > 1 {
			suspect = append(suspect, has)
			continue
		}
		suspect = append(suspect, nil)
		if never == nil {
			never = newBitmap(len(chunks))
		}
		for j := range never {
			never[j] |= has[j]
		}
	}
	for k := s.scored; k < len(r.terms); k++ {
		bit, head := uint64(1)<<min(k, 63), heads(0)
		if k < len(r.heads) {
			head = r.heads[k]
		}
		if err := s.each(ctx, r.terms[k].text, i, m, func(ps []segment.Posting) {
			for j := range ps {
				p := &ps[j]
				c := p.Chunk
				scores[c] += r.sc.part(k, p.Counts, &chunks[c].Length)
				terms[c] |= bit
				if p.Counts[parse.FieldCrumb] > 0 {
					headed[c] |= head
				}
			}
		}); err != nil {
			return 0, err
		}
	}
	if len(r.without) > 0 {
		if never == nil {
			never = newBitmap(len(chunks))
		}
		matches := func(c int) bool {
			return !p.dead.has(c) && (need.has(c) || len(r.phrases) == 0 && terms[c] != 0)
		}
		if err := s.exclude(ctx, chunks, r.without, suspect, never, matches); err != nil {
			return 0, err
		}
	}
	last := int64(-1)
	accept := func(c int) {
		if doc := int64(chunks[c].Doc); doc != last {
			last = doc
			docs++
		}
		t.offer(ranked(scores[c], from+c))
	}
	var open []int
	for c := range chunks {
		if len(r.phrases) > 0 {
			if !need.has(c) {
				continue
			}
		} else if terms[c] == 0 {
			continue
		}
		if p.dead.has(c) || never.has(c) || !r.docs.has(chunks[c].Doc) {
			continue
		}
		if verify {
			open = append(open, c)
			continue
		}
		accept(c)
	}
	if !verify {
		return docs, nil
	}
	// The best are looked into first, so that what is left out, where a phrase
	// of frequent words is in more chunks than may be looked into, is the worst.
	slices.SortStableFunc(open, func(a, b int) int { return cmp.Compare(scores[b], scores[a]) })
	var kept []int
	for k, c := range open {
		if k >= r.verify && len(kept) >= r.depth {
			s.unread = true
			break
		}
		if k%256 == 0 && ctx.Err() != nil {
			return 0, ctx.Err()
		}
		ok, err := s.verified(ctx, chunkID(chunks[c]), r)
		if err != nil {
			return 0, err
		}
		if ok {
			kept = append(kept, c)
		}
	}
	slices.Sort(kept)
	for _, c := range kept {
		accept(c)
	}
	return docs, nil
}

// exclude adds to never all chunks of each document that has, in any chunk, what
// the query excludes: a word (never has these chunks already) or a phrase, whose
// words the chunks in suspect hold. It looks only at documents that match.
func (s *session) exclude(ctx context.Context, chunks []segment.Chunk, without [][]string, suspect []bitmap, never bitmap, matches func(c int) bool) error {
	for from, to := 0, 0; from < len(chunks); from = to {
		match, banned := false, false
		for to = from; to < len(chunks) && chunks[to].Doc == chunks[from].Doc; to++ {
			match = match || matches(to)
			banned = banned || never.has(to)
		}
		if !match {
			continue
		}
		for c := from; c < to && !banned; c++ {
			for k, ph := range without {
				if banned || !suspect[k].has(c) {
					continue
				}
				if err := ctx.Err(); err != nil {
					return err
				}
				words, err := s.tokens(ctx, chunkID(chunks[c]))
				if err != nil {
					return err
				}
				banned = words.Hold(ph)
			}
		}
		for c := from; banned && c < to; c++ {
			never.set(c)
		}
	}
	return nil
}

// verified reports whether a chunk that holds the words of the phrases has them
// as phrases.
func (s *session) verified(ctx context.Context, id int64, r *retrieval) (bool, error) {
	var words parse.Tokens
	for _, ph := range r.phrases {
		if len(ph) < 2 {
			continue
		}
		if words == nil {
			var err error
			if words, err = s.tokens(ctx, id); err != nil {
				return false, err
			}
		}
		if !words.Hold(ph) {
			return false, nil
		}
	}
	return true, nil
}

func chunkID(c segment.Chunk) int64 { return int64(c.Doc)<<chunkBits | int64(c.Part) }

// top keeps the best chunks as a heap with the worst of them first.
type top struct {
	limit int
	heap  []uint64 // see ranked
}

// ranked is a chunk, by its place in the scratch, with its score, which is not
// negative, as a number that is the higher the better it is: of equal ones the
// later is worse.
func ranked(score float32, at int) uint64 {
	return uint64(math.Float32bits(score))<<32 | uint64(^uint32(at))
}

// place returns the place of what ranked made.
func place(r uint64) int { return int(^uint32(r)) }

func (t *top) offer(r uint64) {
	h := t.heap
	if len(h) < t.limit {
		h = append(h, r)
		for i := len(h) - 1; i > 0; {
			up := (i - 1) / 2
			if h[i] >= h[up] {
				break
			}
			h[i], h[up] = h[up], h[i]
			i = up
		}
		t.heap = h
		return
	}
	if t.limit <= 0 || r <= h[0] {
		return
	}
	i := 0
	for {
		down := 2*i + 1
		if down >= len(h) {
			break
		}
		if down+1 < len(h) && h[down+1] < h[down] {
			down++
		}
		if h[down] >= r {
			break
		}
		h[i] = h[down]
		i = down
	}
	h[i] = r
}

// sorted returns what was kept, best first.
func (t *top) sorted() []uint64 {
	slices.Sort(t.heap)
	slices.Reverse(t.heap)
	return t.heap
}

// candidates returns chunks of all parts.
func (s *session) candidates(chosen []uint64) []candidate {
	m, all := s.scratch(), make([]candidate, 0, len(chosen))
	for _, r := range chosen {
		at := place(r)
		c, i := at, 0
		for c >= len(s.view.parts[i].seg.Chunks) {
			c -= len(s.view.parts[i].seg.Chunks)
			i++
		}
		chunks := s.view.parts[i].seg.Chunks
		all = append(all, candidate{id: chunkID(chunks[c]), score: float64(m.score[at]), terms: m.terms[at], lead: leads(chunks, c), heads: m.heads[at]})
	}
	return all
}
