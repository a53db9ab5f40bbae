package gitstore

import (
	"context"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

const (
	// replaySlack is how many commits the first parents of head may have before the
	// commits that are undone, besides those that history passes to find them.
	replaySlack = 1000
	// replaySteps bounds how many versions of others that follow each other are taken
	// in one by one; older ones are taken in at once.
	replaySteps = 32
)

// trail is a path's way through the history while it is made again without the
// commits that are undone. What the path becomes is in reverting.now.
type trail struct {
	at   treeEntry // what the history has there
	made treeEntry // what the newest of the commits made
	was  treeEntry // before run
	// run is the newest versions of others since, which are not taken in so far.
	run []treeEntry
	// others tells that others changed it since the commits did.
	others bool
}

// other notes another's version, where the path would be now without the commits. What
// came before it is as good as taken in where it is the same.
func (t *trail) other(d treeChange, now treeEntry) {
	t.at, t.others = d.new, true
	switch {
	case sameEntry(d.new, now):
		t.was, t.run = d.new, t.run[:0]
		return
	case len(t.run) == 0:
		t.was = d.old
	case len(t.run) == replaySteps:
		t.run = append(t.run[:0], t.run[1:]...)
	}
	t.run = append(t.run, d.new)
}

func sameEntry(a, b treeEntry) bool { return a.mode == b.mode && (a.mode == 0 || a.hash == b.hash) }

// step is a commit of the way along head's first parents.
type step struct {
	id           hash
	tree, parent hash // of the parent: its tree
	undone       bool
	void         bool
	ids          []string // of what it undoes whole, where it was made here for that
}

// replay makes what others did since the commits again without them, along the first
// parents of head: so whoever undid, deleted or wrote something since has the last
// word, also where they wrote what a commit had made before. It returns the commits
// that are not among the first parents.
func (v *reverting) replay(ctx context.Context, tool string) (others []rawAt, err error) {
	way, left, err := v.way(ctx, tool)
	if err != nil {
		return nil, err
	}
	paths := map[string]bool{}
	for _, l := range way {
		if !l.undone {
			continue
		}
		var changes []treeChange
		if err := v.r.diffTrees(ctx, l.parent, l.tree, &changes); err != nil {
			return nil, err
		}
		for _, d := range changes {
			paths[d.path] = true
		}
	}
	trails := map[string]*trail{}
	for i := len(way) - 1; i >= 0; i-- {
		l := way[i]
		var changes []treeChange
		if err := v.r.diffTrees(ctx, l.parent, l.tree, &changes); err != nil {
			return nil, err
		}
		for _, d := range changes {
			if !paths[d.path] {
				continue
			}
			t := trails[d.path]
			switch {
			case t == nil && !l.undone && !l.void:
				continue
			case t == nil:
				t = &trail{}
				trails[d.path] = t
				err = v.set(d.path, undone{treeEntry: d.old})
			case l.undone || l.void:
				err = v.takeIn(ctx, d.path, t)
			default:
				t.other(d, v.now[d.path].treeEntry)
			}
			if err != nil {
				return nil, err
			}
			t.at = d.new
			if l.undone {
				t.made, t.others = d.new, false
				v.without(d)
			}
		}
	}
	for path, t := range trails {
		if err := v.takeIn(ctx, path, t); err != nil {
			return nil, err
		}
		if u := v.now[path]; sameEntry(u.treeEntry, t.at) {
			v.drop(path)
			if t.others && sameEntry(t.at, t.made) {
				v.kept[path] = true // it looks as the commits made it, and is another's
			}
		}
	}
	for _, c := range v.commits {
		if left[c.id] {
			others = append(others, c)
		}
	}
	return others, nil
}

// way lists head's first parents, the newest first, down to the oldest that is left
// out: one of the commits, or one that was undone. left are the commits that
// are not among them.
func (v *reverting) way(ctx context.Context, tool string) (way []step, left map[hash]bool, err error) {
	left = make(map[hash]bool, len(v.commits))
	for _, c := range v.commits {
		left[c.id] = true
	}
	sought := map[string]bool{} // what undoings undid
	last := -1                  // the oldest of the commits
	h := v.head.id
	c, err := v.r.rawCommit(h)
	for n := 0; err == nil && len(left)+len(sought) > 0 && n <= v.passed+replaySlack; n++ {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		l := step{id: h, tree: c.tree, undone: left[h]}
		delete(sought, commitID(h).Short())
		if l.undone {
			delete(left, h)
			last = n
		} else if m := v.r.proven(c, h); tool != "" && m.Tool == tool {
			l.ids = undoneIn(m.Message)
			for _, id := range l.ids {
				sought[id] = true
			}
		}
		root := len(c.parents) == 0
		if !root {
			h = c.parents[0]
			if c, err = v.r.rawCommit(h); err != nil {
				return nil, nil, err
			}
			l.parent = c.tree
		}
		way = append(way, l)
		if root {
			break
		}
	}
	if err != nil {
		return nil, nil, err
	}
	return way[:voided(way, last)+1], left, nil
}

// voided marks what is as if it had never been: undoings, and what they undid. One is
// so only where all that it undid is on the way, and by that left out, too; any other is
// a version as others are. An undoing that was undone undid nothing. It returns the
// oldest that is left out, where last is the oldest of the commits.
func voided(way []step, last int) int {
	at := make(map[string]int, len(way))
	for n, l := range way {
		id := commitID(l.id).Short()
		if _, two := at[id]; two {
			n = -1 // it is not known which
		}
		at[id] = n
	}
	oldest := last
	for n := 0; n <= oldest; n++ {
		if way[n].void || len(way[n].ids) == 0 {
			continue
		}
		known := true
		for _, id := range way[n].ids {
			of, ok := at[id]
			known = known && ok && of > n
		}
		if !known {
			continue
		}
		way[n].void = true
		for _, id := range way[n].ids {
			way[at[id]].void = true
			oldest = max(oldest, at[id])
		}
	}
	return oldest
}

// undoneIn reads the short ids of what a revertMessage says is undone whole; none
// where it names not all.
func undoneIn(message string) (ids []string) {
	_, body, _ := strings.Cut(message, "\n\n")
	if one, ok := strings.CutPrefix(body, "This undoes the commit "); ok {
		id, _, _ := strings.Cut(one, ".")
		return []string{id}
	}
	many, ok := strings.CutPrefix(body, "This undoes the commits:\n\n")
	if !ok {
		return nil
	}
	for line := range strings.Lines(many) {
		id, _, _ := strings.Cut(line, " ")
		if strings.HasPrefix(line, "and ") {
			return nil
		}
		ids = append(ids, strings.TrimSpace(id))
	}
	return ids
}

// takeIn makes others' versions again on what the path became. Where that is not clear,
// what they had is the beginning: of what is undone only what came after is.
func (v *reverting) takeIn(ctx context.Context, path string, t *trail) error {
	if len(t.run) == 0 {
		return nil
	}
	u, base := v.now[path], t.was
	for _, x := range t.run {
		if err := ctx.Err(); err != nil {
			return err
		}
		merged, clean, err := v.merge(ctx, base, u, x)
		if err != nil {
			return err
		}
		if !clean {
			v.kept[path] = true
			delete(v.left, path)
			merged = undone{treeEntry: x}
		}
		u, base = merged, x
	}
	t.run = t.run[:0]
	return v.set(path, u)
}

// maxRevertedLines bounds, in bytes, a file of which single lines are undone.
const maxRevertedLines = 1 << 20

// merge makes of ours what theirs is of base. Where both changed the same, and by
// lines that is told, it takes theirs; clean is false then.
func (v *reverting) merge(ctx context.Context, base treeEntry, ours undone, theirs treeEntry) (_ undone, clean bool, err error) {
	switch {
	case sameEntry(ours.treeEntry, base), sameEntry(ours.treeEntry, theirs):
		return undone{treeEntry: theirs}, true, nil
	case sameEntry(base, theirs):
		return ours, true, nil
	}
	var texts [3]string
	for i, u := range []undone{{treeEntry: base}, ours, {treeEntry: theirs}} {
		text, ok, err := v.text(u)
		if err != nil || !ok {
			return undone{treeEntry: theirs}, false, err
		}
		texts[i] = text
	}
	v.r.s.o.probe("revert: lines merged")
	from, mine, to := texts[0], texts[1], texts[2]
	text, clean, err := v.r.s.mergeLines(ctx, from, mine, to)
	if err != nil {
		return undone{treeEntry: theirs}, false, err
	}
	mode := theirs.mode
	if base.mode == theirs.mode {
		mode = ours.mode
	}
	switch {
	case text == to && mode == theirs.mode:
		return undone{treeEntry: theirs}, clean, nil
	case text == mine && mode == ours.mode:
		return ours, clean, nil
	}
	return undone{treeEntry: treeEntry{name: theirs.name, mode: mode, hash: plumbing.ComputeHash(plumbing.BlobObject, []byte(text))}, data: []byte(text), merged: true}, clean, nil
}

// text returns a file that lines can be told of; ok is false for anything else.
func (v *reverting) text(u undone) (text string, ok bool, err error) {
	if u.merged {
		return string(u.data), true, nil
	}
	if !u.isPlain() {
		return "", false, nil
	}
	if n, err := v.r.db.size(u.hash); err != nil || n > maxRevertedLines {
		return "", false, err
	}
	b, err := v.r.db.blob(u.hash)
	return string(b), err == nil && !strings.Contains(string(b), "\x00"), err
}
