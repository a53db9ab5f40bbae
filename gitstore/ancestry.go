package gitstore

import (
	"container/heap"
	"context"
	"errors"

	"satchel/gitstore/commits"
	"satchel/gitstore/packfile"
	"satchel/gitstore/trees"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// paintA marks the first of two commits and its ancestors. paintB marks the second commit
// and its ancestors.
const (
	paintA = 1 << iota
	paintB
	paintBoth = paintA | paintB
)

// painting holds the commits that a walk back from two commits visits. The colour of a
// commit says in which of the two histories it is. The walk stops at commits that are in
// both.
type painting struct {
	colour map[packfile.Hash]int
	found  []datedCommit // in the order of discovery
}

// paint walks the histories of a and b back, newest commit first, until every commit that
// is left to visit is in both. If b is zero, its history is empty. The cost grows with the
// commits that the histories do not share.
func (r *repo) paint(ctx context.Context, a, b packfile.Hash) (*painting, error) {
	p := &painting{colour: map[packfile.Hash]int{}}
	q := &byTime{}
	open := 0 // queued commits that are not known to be in both histories
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

// only returns the commits that have exactly the given colour, newest first.
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

// base returns one of the newest commits that both histories contain, or the zero hash if there
// is none.
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

// Contains reports whether commit is tip or an ancestor of it. A commit that the space
// does not have is a fault.NotFound.
func (s *Store) Contains(ctx context.Context, id space.SpaceID, tip, commit space.CommitID) (bool, error) {
	r, newer, release, err := s.at(ctx, id, tip)
	if err != nil {
		return false, err
	}
	defer release()
	older, err := r.resolve(string(commit))
	if err != nil {
		return false, err
	}
	p, err := r.paint(ctx, newer.id, older.id)
	if err != nil {
		return false, r.internalf(err, "compare histories")
	}
	return p.colour[older.id] == paintBoth, nil
}

// CommitBetween is a commit that CommitsBetween found. It changes at least one of the paths.
type CommitBetween struct {
	ID      space.CommitID
	Parents []space.CommitID
	// ClaimedTools lists the tools that Satchel's trailers in the message name. Git or a
	// git host may have copied such trailers from other commits.
	ClaimedTools []string
	// Whole reports whether this commit's history contains the start of the walk and
	// every commit visited so far, so that a later walk may start here.
	Whole bool
}

// CommitsBetween lists the commits that are in the history of the commit "to" but not of "from",
// and that differ from some parent in a file at or under one of the paths. An empty to is head; an
// empty from has no history. Parents come before children. A merge that drops the change of one
// side is listed too, so the list is empty only if the paths are the same in from and to.
// passed is the number of commits visited. The cost grows with the commits that the histories do
// not share. ok is false if from is not in the history of to, as after a purge.
func (s *Store) CommitsBetween(ctx context.Context, id space.SpaceID, from, to space.CommitID, under []space.Path) (steps []CommitBetween, passed int, ok bool, err error) {
	r, st, release, err := s.at(ctx, id, to)
	if err != nil {
		return nil, 0, false, err
	}
	defer release()
	open := map[packfile.Hash]bool{} // commits without a child so far
	var begin packfile.Hash
	if from != "" {
		f, err := r.resolve(string(from))
		if fault.CodeOf(err) == fault.NotFound {
			return nil, 0, false, nil
		}
		if err != nil {
			return nil, 0, false, err
		}
		begin = f.id
		open[begin] = true
	}
	p, err := r.paint(ctx, st.id, begin)
	if err != nil {
		return nil, 0, false, r.internalf(err, "way")
	}
	if from != "" && p.colour[begin] != paintBoth {
		return nil, 0, false, nil
	}
	seen := map[packfile.Hash][]trees.Place{}
	look := func(h packfile.Hash, tree packfile.Hash) ([]trees.Place, error) {
		if l, ok := seen[h]; ok {
			return l, nil
		}
		if tree.IsZero() {
			c, err := commits.Get(r.db, h)
			if err != nil {
				return nil, err
			}
			tree = c.Tree
		}
		l := make([]trees.Place, len(under))
		for i, u := range under {
			var err error
			if l[i], err = r.trees().Lookup(tree, string(u)); err != nil {
				return nil, err
			}
		}
		seen[h] = l
		return l, nil
	}
	for _, d := range p.parentsFirst(paintA) {
		if err := ctx.Err(); err != nil {
			return nil, 0, false, err
		}
		passed++
		mine, err := look(d.h, d.c.Tree)
		if err != nil {
			return nil, 0, false, r.internalf(err, "way")
		}
		touches := len(d.c.Parents) == 0 && differs(mine, make([]trees.Place, len(mine)))
		step := CommitBetween{ID: packfile.CommitID(d.h), ClaimedTools: commits.ClaimedTools(d.c.Message)}
		for _, q := range d.c.Parents {
			theirs, err := look(q, packfile.Hash{})
			if err != nil {
				return nil, 0, false, r.internalf(err, "way")
			}
			touches = touches || differs(mine, theirs)
			step.Parents = append(step.Parents, packfile.CommitID(q))
			delete(open, q)
		}
		open[d.h] = true
		if touches {
			step.Whole = len(open) == 1
			steps = append(steps, step)
		}
	}
	return steps, passed, true, nil
}

func differs(a, b []trees.Place) bool {
	for i := range a {
		if a[i].Found != b[i].Found || a[i].Found && (a[i].Hash != b[i].Hash || a[i].Mode != b[i].Mode) {
			return true
		}
	}
	return false
}

// parentsFirst returns the commits that have exactly the given colour, oldest first. Each
// comes after its parents, whatever the dates say.
func (p *painting) parentsFirst(colour int) []datedCommit {
	newest := p.only(colour)
	at := make(map[packfile.Hash]datedCommit, len(newest))
	for _, d := range newest {
		at[d.h] = d
	}
	out := make([]datedCommit, 0, len(newest))
	done := make(map[packfile.Hash]bool, len(newest))
	for i := len(newest) - 1; i >= 0; i-- {
		stack := []datedCommit{newest[i]}
		for len(stack) > 0 {
			d := stack[len(stack)-1]
			ready := true
			for _, q := range d.c.Parents {
				if x, ok := at[q]; ok && !done[q] {
					stack, ready = append(stack, x), false
				}
			}
			if ready {
				stack = stack[:len(stack)-1]
				if !done[d.h] {
					done[d.h] = true
					out = append(out, d)
				}
			}
		}
	}
	return out
}
