package rank

import (
	"cmp"
	"context"
	"math"
	"slices"

	"satchel/tools/index/parse"
	"satchel/tools/index/postings"
	"satchel/tools/index/segment"
)

// retrieval is the input of the first stage of a search in one database.
type retrieval struct {
	// terms are scored. A chunk that contains any of them matches, unless there are phrases.
	terms []Term
	sc    *scorer // the scorer of the same terms
	// All of phrases must occur, and none of without. Each is a list of terms.
	phrases, without [][]string
	docs             *postings.DocSet // the documents that may match
	// depth is how many chunks are returned. verify is how many of the best are read for
	// phrases of several words. More are read if fewer than depth have them.
	depth, verify int
	// heads holds, for each term, the bits that a chunk gets if its headings have the term. more
	// says that the first terms are already scored.
	heads []heads
	more  bool
}

// chunkMatch is a chunk that matches the query.
type chunkMatch struct {
	id    int64
	score float64
	terms uint64 // bit i: the chunk contains terms[i]; bit 63 is for all terms from 63 on
	lead  bool   // see leads
	heads heads
}

// leads reports whether a chunk is the first of a page with headings. It looks for headings only
// in the first two chunks of the page.
func leads(chunks []segment.Chunk, c int) bool {
	if chunks[c].Part != 0 {
		return false
	}
	next := c + 1
	return chunks[c].Length[parse.FieldCrumb] > 0 || next < len(chunks) && chunks[next].Doc == chunks[c].Doc && chunks[next].Length[parse.FieldCrumb] > 0
}

// heads is the set of the query's words in the headings of a chunk. See Run.mayHead.
type heads = uint8

// retrieve scores every chunk that matches. It returns the best ones, best first, and how
// many documents match. If r.more, the first terms are those of the previous retrieval, and
// their scores are kept.
func (s *Source) retrieve(ctx context.Context, r retrieval) (best []chunkMatch, docs int, err error) {
	m := s.Scratch()
	if !r.more {
		n := 0
		for i := range s.View.Parts {
			n += len(s.View.Parts[i].Segment.Chunks)
		}
		m.Reset(n)
		s.scored = 0
	}
	t := top{limit: r.depth, heap: make([]uint64, 0, min(r.depth, len(m.Chunks)))}
	from := 0
	for i := range s.View.Parts {
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
		n, err := s.retrievePart(ctx, i, &r, from, &t)
		if err != nil {
			return nil, 0, err
		}
		docs += n
		from += len(s.View.Parts[i].Segment.Chunks)
	}
	s.scored = len(r.terms)
	return s.candidates(t.sorted()), docs, nil
}

// withAll returns the chunks of a part that contain all of the terms.
func (s *Source) withAll(ctx context.Context, terms []string, part int) (postings.Bitmap, error) {
	var all postings.Bitmap
	for _, t := range terms {
		one := postings.NewBitmap(len(s.View.Parts[part].Segment.Chunks))
		if err := s.Each(ctx, t, part, func(ps []segment.Posting) {
			for i := range ps {
				one.Set(int(ps[i].Chunk))
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

// retrievePart adds the matching chunks of one segment to the best ones, and returns the
// number of their documents.
func (s *Source) retrievePart(ctx context.Context, i int, r *retrieval, from int, t *top) (docs int, err error) {
	p, m := &s.View.Parts[i], s.Scratch()
	chunks := p.Segment.Chunks
	to := from + len(chunks)
	found := m.Chunks[from:to]
	var need postings.Bitmap // chunks with all words of all phrases
	var suspect []postings.Bitmap
	var never postings.Bitmap
	verify := false
	for k, ph := range r.phrases {
		verify = verify || len(ph) > 1
		has, err := s.withAll(ctx, ph, i)
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
		has, err := s.withAll(ctx, ph, i)
		if err != nil {
			return 0, err
		}
		if len(ph) > 1 {
			suspect = append(suspect, has)
			continue
		}
		suspect = append(suspect, nil)
		if never == nil {
			never = postings.NewBitmap(len(chunks))
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
		if err := s.Each(ctx, r.terms[k].Text, i, func(ps []segment.Posting) {
			r.sc.add(k, ps, chunks, found, bit, head)
		}); err != nil {
			return 0, err
		}
	}
	if len(r.without) > 0 {
		if never == nil {
			never = postings.NewBitmap(len(chunks))
		}
		matches := func(c int) bool {
			return !p.Dead.Has(c) && (need.Has(c) || len(r.phrases) == 0 && found[c].Terms != 0)
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
		t.offer(ranked(found[c].Score, from+c))
	}
	var open []int
	for c := range chunks {
		if len(r.phrases) > 0 {
			if !need.Has(c) {
				continue
			}
		} else if found[c].Terms == 0 {
			continue
		}
		if p.Dead.Has(c) || never.Has(c) || !r.docs.Has(chunks[c].Doc) {
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
	// Read the best chunks first. If more chunks have the words of a phrase than may be read,
	// the worst are left out.
	slices.SortStableFunc(open, func(a, b int) int { return cmp.Compare(found[b].Score, found[a].Score) })
	var kept []int
	for k, c := range open {
		if k >= r.verify && len(kept) >= r.depth {
			s.unread = true
			break
		}
		if k%256 == 0 && ctx.Err() != nil {
			return 0, ctx.Err()
		}
		ok, err := s.verified(ctx, postings.ChunkID(chunks[c]), r)
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

// exclude adds chunks to the bitmap never: all chunks of each matching document that contains
// an excluded word or phrase in any chunk. never already has the chunks with an excluded word.
// suspect has the chunks with all words of an excluded phrase.
func (s *Source) exclude(ctx context.Context, chunks []segment.Chunk, without [][]string, suspect []postings.Bitmap, never postings.Bitmap, matches func(c int) bool) error {
	for from, to := 0, 0; from < len(chunks); from = to {
		match, banned := false, false
		for to = from; to < len(chunks) && chunks[to].Doc == chunks[from].Doc; to++ {
			match = match || matches(to)
			banned = banned || never.Has(to)
		}
		if !match {
			continue
		}
		for c := from; c < to && !banned; c++ {
			for k, ph := range without {
				if banned || !suspect[k].Has(c) {
					continue
				}
				if err := ctx.Err(); err != nil {
					return err
				}
				words, err := s.Tokens(ctx, postings.ChunkID(chunks[c]))
				if err != nil {
					return err
				}
				banned = words.Hold(ph)
			}
		}
		for c := from; banned && c < to; c++ {
			never.Set(c)
		}
	}
	return nil
}

// verified reports whether a chunk that has all words of the phrases has them one after
// another.
func (s *Source) verified(ctx context.Context, id int64, r *retrieval) (bool, error) {
	var words parse.Tokens
	for _, ph := range r.phrases {
		if len(ph) < 2 {
			continue
		}
		if words == nil {
			var err error
			if words, err = s.Tokens(ctx, id); err != nil {
				return false, err
			}
		}
		if !words.Hold(ph) {
			return false, nil
		}
	}
	return true, nil
}

// top keeps the best chunks as a heap whose first element is the worst.
type top struct {
	limit int
	heap  []uint64 // see ranked
}

// ranked combines a chunk's score, which is not negative, and its place in the scratch
// memory into one number. Better chunks have higher numbers. Of two chunks with equal scores,
// the earlier one is better.
func ranked(score float32, at int) uint64 {
	return uint64(math.Float32bits(score))<<32 | uint64(^uint32(at))
}

// place returns the place of a chunk from the result of ranked.
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

// sorted returns the chunks of the heap, best first.
func (t *top) sorted() []uint64 {
	slices.Sort(t.heap)
	slices.Reverse(t.heap)
	return t.heap
}

// candidates returns the chunks of all parts that chosen lists as results of ranked.
func (s *Source) candidates(chosen []uint64) []chunkMatch {
	m, all := s.Scratch(), make([]chunkMatch, 0, len(chosen))
	for _, r := range chosen {
		at := place(r)
		c, i := at, 0
		for c >= len(s.View.Parts[i].Segment.Chunks) {
			c -= len(s.View.Parts[i].Segment.Chunks)
			i++
		}
		chunks := s.View.Parts[i].Segment.Chunks
		match := chunkMatch{id: postings.ChunkID(chunks[c]), score: float64(m.Chunks[at].Score), terms: m.Chunks[at].Terms, lead: leads(chunks, c), heads: m.Chunks[at].Heads}
		if chunks[c].Talk {
			match.heads |= headsTalk
		}
		all = append(all, match)
	}
	return all
}
