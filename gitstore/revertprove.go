package gitstore

import (
	"context"
	"fmt"
	"strings"
)

// span is what commits that are undone, and follow each other, did to a path.
type span struct{ old, new treeEntry }

// without notes that what becomes of a path is without a change.
func (v *reverting) without(d treeChange) {
	spans := v.left[d.path]
	if n := len(spans); n > 0 && sameEntry(spans[n-1].new, d.old) {
		spans[n-1].new = d.new
		return
	}
	v.left[d.path] = append(spans, span{d.old, d.new})
}

// drop leaves a path to head.
func (v *reverting) drop(path string) {
	v.held -= int64(len(v.now[path].data))
	delete(v.now, path)
}

// prove leaves to head what would not be head's without what the commits did: however
// it was found, no line comes that they did not take, and none goes that they did not
// add. So nothing comes back that was undone before, and what others wrote stays.
func (v *reverting) prove(ctx context.Context) error {
	for path, u := range v.now {
		at, err := v.r.lookup(v.head.tree, path)
		if err != nil {
			return err
		}
		var head undone
		if at.found && at.blocked == "" && !at.isDir() {
			head.treeEntry = at.treeEntry
		}
		ok, err := v.proven(ctx, u, head, v.left[path])
		if err != nil {
			return err
		}
		if !ok {
			v.kept[path] = true
			v.drop(path)
		}
	}
	return nil
}

// proven tells whether what differs between what a path becomes and what head has is
// of the spans.
func (v *reverting) proven(ctx context.Context, u, head undone, spans []span) (bool, error) {
	if sameEntry(u.treeEntry, head.treeEntry) || len(spans) == 1 && sameEntry(u.treeEntry, spans[0].old) && sameEntry(head.treeEntry, spans[0].new) {
		return true, nil
	}
	open := map[string]int{} // lines, by how many more there are than in head
	if err := v.tally(ctx, u, open, 1, false); err != nil {
		return false, err
	}
	if err := v.tally(ctx, head, open, -1, false); err != nil {
		return false, err
	}
	for l, n := range open {
		if n == 0 {
			delete(open, l)
		}
	}
	for _, s := range spans {
		did := make(map[string]int, len(open))
		for l := range open {
			did[l] = 0
		}
		if err := v.tally(ctx, undone{treeEntry: s.old}, did, 1, true); err != nil {
			return false, err
		}
		if err := v.tally(ctx, undone{treeEntry: s.new}, did, -1, true); err != nil {
			return false, err
		}
		for l, n := range did {
			switch {
			case n > 0 && open[l] > 0:
				open[l] = max(0, open[l]-n)
			case n < 0 && open[l] < 0:
				open[l] = min(0, open[l]-n)
			}
		}
	}
	for _, n := range open {
		if n != 0 {
			return false, nil
		}
	}
	return true, nil
}

// tally counts a path's lines, only those that are counted already where only says so.
// What cannot be read by lines counts as one line.
func (v *reverting) tally(ctx context.Context, u undone, counts map[string]int, by int, only bool) error {
	if err := ctx.Err(); err != nil || u.mode == 0 {
		return err
	}
	text, ok, err := v.text(u)
	if err != nil {
		return err
	}
	count := func(l string) {
		if _, known := counts[l]; known || !only {
			counts[l] += by
		}
	}
	if !ok {
		count(fmt.Sprintf("\x00%o %s", u.mode, u.hash))
		return nil
	}
	for l := range strings.Lines(text) {
		count(strings.TrimSuffix(l, "\n"))
	}
	return nil
}
