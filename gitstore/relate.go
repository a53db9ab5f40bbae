package gitstore

import (
	"container/heap"
	"context"
	"errors"

	"satchel/gitstore/commits"
	"satchel/gitstore/packfile"
)

// paintA and paintB say from which of two commits another is reached.
const (
	paintA = 1 << iota
	paintB
	paintBoth = paintA | paintB
)

// painting holds the commits around two others, each with the colours of those
// that reach it. What both reach is followed no further than needed.
type painting struct {
	colour map[packfile.Hash]int
	found  []datedCommit // in the order of their visit: newest first
}

// paint follows two histories back, the newest commit first, until all that is
// left to follow is in both. A zero b has no history. It costs what the
// histories do not share.
func (r *repo) paint(ctx context.Context, a, b packfile.Hash) (*painting, error) {
	p := &painting{colour: map[packfile.Hash]int{}}
	q := &byTime{}
	open := 0 // commits in the queue that are not known to be in both
	queued := map[packfile.Hash]bool{}
	read := map[packfile.Hash]commits.Raw{}
	add := func(h packfile.Hash, colour int) error {
		was := p.colour[h]
		now := was | colour
		if h.IsZero() || now == was {
			return nil
		}
		p.colour[h] = now
		if queued[h] {
			if now == paintBoth {
				open--
			}
			return nil
		}
		c, ok := read[h]
		if !ok {
			var err error
			if c, err = commits.Get(r.db, h); err != nil {
				return err
			}
			read[h] = c
			p.found = append(p.found, datedCommit{h, c, len(read)})
		}
		queued[h] = true
		if now != paintBoth {
			open++
		}
		heap.Push(q, datedCommit{h, c, len(read)})
		return nil
	}
	if err := errors.Join(add(a, paintA), add(b, paintB)); err != nil {
		return nil, err
	}
	for q.Len() > 0 && open > 0 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		d := heap.Pop(q).(datedCommit)
		queued[d.h] = false
		colour := p.colour[d.h]
		if colour != paintBoth {
			open--
		}
		for _, parent := range d.c.Parents {
			if err := add(parent, colour); err != nil {
				return nil, err
			}
		}
	}
	return p, nil
}

// only lists the commits of one colour alone, newest first.
func (p *painting) only(colour int) []datedCommit {
	q := byTime{}
	for _, d := range p.found {
		if p.colour[d.h] == colour {
			q = append(q, d)
		}
	}
	heap.Init(&q)
	out := make([]datedCommit, 0, len(q))
	for len(q) > 0 {
		out = append(out, heap.Pop(&q).(datedCommit))
	}
	return out
}

// Base returns a newest commit that both histories have; the zero hash where
// there is none.
func (p *painting) base() packfile.Hash {
	var best *datedCommit
	for i, d := range p.found {
		if p.colour[d.h] == paintBoth && (best == nil || d.c.Time.After(best.c.Time)) {
			best = &p.found[i]
		}
	}
	if best == nil {
		return packfile.Hash{}
	}
	return best.h
}
