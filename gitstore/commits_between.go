package gitstore

import (
	"context"

	"satchel/gitstore/commits"
	"satchel/gitstore/packfile"
	"satchel/gitstore/trees"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// CommitBetween is a commit on the way between two that changed what was asked for.
type CommitBetween struct {
	ID      space.CommitID
	Parents []space.CommitID
	// ClaimedTools are the tools that the message names in trailers of ours, anywhere:
	// also where git or a host of git copied them from other commits.
	ClaimedTools []string
	// Whole reports that every commit of the way up to here, and where it began, is
	// in this one's history, so that a further way may begin here.
	Whole bool
}

// CommitsBetween lists the commits that are in the history of to ("" is head) and not in
// that of from ("" is nothing), of which a file at or under one of the paths
// differs from some parent, each after its parents, and tells how many it passed.
// So there is none only where the paths have in to what they have in from: a merge
// that drops what one side changed is there too. It costs what the histories do not share. ok is false if from is not in the
// history of to: a purge made another.
func (s *Store) CommitsBetween(ctx context.Context, id space.SpaceID, from, to space.CommitID, under []space.Path) (steps []CommitBetween, passed int, ok bool, err error) {
	r, st, release, err := s.at(ctx, id, to)
	if err != nil {
		return nil, 0, false, err
	}
	defer release()
	open := map[packfile.Hash]bool{} // without a child so far
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

// parentsFirst lists the commits of one colour alone, oldest first, and each after
// its parents whatever the clocks said.
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
