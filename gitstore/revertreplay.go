package gitstore

import (
	"context"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"satchel/internal/space"
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
	run  []version // of others since, which are not taken in so far
	// others tells that others changed it since the commits did.
	others bool
}

// version is what another commit made of a path.
type version struct {
	treeEntry
	was treeEntry
}

func sameEntry(a, b treeEntry) bool { return a.mode == b.mode && (a.mode == 0 || a.hash == b.hash) }

// replay makes what others did since the commits again without them, along the first
// parents of head: so whoever undid, deleted or wrote something since has the last
// word, also where they wrote what a commit had made before. It returns the commits
// that are not among the first parents.
func (v *reverting) replay(ctx context.Context, tool string) (others []rawAt, err error) {
	left := make(map[hash]bool, len(v.commits))
	for _, c := range v.commits {
		left[c.id] = true
	}
	type link struct {
		tree, parent hash // of the parent: its tree
		undone, void bool
	}
	var way []link
	undoings := voids{tool: tool, short: map[string]bool{}}
	last := -1 // the oldest of the commits
	h := v.head.id
	c, err := v.r.rawCommit(h)
	for n := 0; err == nil && len(left) > 0 && n <= v.passed+replaySlack; n++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		l := link{tree: c.tree, undone: left[h]}
		if l.undone {
			delete(left, h)
			last = n
		} else if l.void, err = undoings.void(v.r, c.commit(h)); err != nil {
			return nil, err
		}
		root := len(c.parents) == 0
		if !root {
			h = c.parents[0]
			if c, err = v.r.rawCommit(h); err != nil {
				return nil, err
			}
			l.parent = c.tree
		}
		way = append(way, l)
		if root {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	trails := map[string]*trail{}
	for i := last; i >= 0; i-- {
		l := way[i]
		var changes []treeChange
		if err := v.r.diffTrees(ctx, l.parent, l.tree, &changes); err != nil {
			return nil, err
		}
		for _, d := range changes {
			t := trails[d.path]
			switch {
			case t == nil && !l.undone:
			case t == nil:
				trails[d.path] = &trail{at: d.new, made: d.new}
				if err := v.set(d.path, undone{treeEntry: d.old}); err != nil {
					return nil, err
				}
			case l.undone:
				if err := v.takeIn(ctx, d.path, t); err != nil {
					return nil, err
				}
				t.at, t.made, t.others = d.new, d.new, false
			case l.void:
				if err := v.takeIn(ctx, d.path, t); err != nil {
					return nil, err
				}
				t.at = d.new
			default:
				t.run = append(t.run, version{d.new, d.old})
				t.at = d.new
				t.others = true
			}
		}
	}
	for path, t := range trails {
		if err := v.takeIn(ctx, path, t); err != nil {
			return nil, err
		}
		if u := v.now[path]; sameEntry(u.treeEntry, t.at) {
			v.held -= int64(len(u.data))
			delete(v.now, path)
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

// voids finds, from the newest commit on, what is as if it had never been: undoings
// that were made here by a tool, and what they undid.
type voids struct {
	tool  string
	short map[string]bool // what was undone, by short ids
	made  map[space.CommitID]bool
}

func (x *voids) void(r *repo, c space.Commit) (bool, error) {
	undone := x.short[c.ID.Short()]
	if undone || x.tool == "" || c.Tool != x.tool {
		return undone, nil // an undoing that was undone undid nothing
	}
	ids := undoneIn(c.Message)
	if len(ids) == 0 {
		return false, nil
	}
	if x.made == nil {
		var err error
		if x.made, err = r.made(func(space.CommitID) bool { return true }); err != nil {
			return false, err
		}
	}
	if !x.made[c.ID] {
		return false, nil // it says what it likes
	}
	for _, id := range ids {
		x.short[id] = true
	}
	return true, nil
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

// takeIn makes others' versions again on what the path became.
func (v *reverting) takeIn(ctx context.Context, path string, t *trail) error {
	run := t.run
	if len(run) == 0 {
		return nil
	}
	t.run = nil
	u := v.now[path]
	for i := len(run) - 1; i >= 0; i-- {
		if sameEntry(run[i].treeEntry, u.treeEntry) {
			// What is undone was undone then, and what came after is others' alone.
			return v.set(path, undone{treeEntry: run[len(run)-1].treeEntry})
		}
	}
	base := run[0].was
	for _, x := range run[max(0, len(run)-replaySteps):] {
		if err := ctx.Err(); err != nil {
			return err
		}
		merged, clean, err := v.merge(ctx, base, u, x.treeEntry)
		if err != nil {
			return err
		}
		if !clean {
			v.kept[path] = true
		}
		u, base = merged, x.treeEntry
	}
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
	if !ours.isPlain() || !base.isPlain() || !theirs.isPlain() {
		return undone{treeEntry: theirs}, false, nil
	}
	read := func(e treeEntry) (string, bool, error) {
		n, err := v.r.db.size(e.hash)
		if err != nil || n > maxRevertedLines {
			return "", false, err
		}
		b, err := v.r.db.blob(e.hash)
		return string(b), err == nil && !strings.Contains(string(b), "\x00"), err
	}
	from, ok, err := read(base)
	if err != nil || !ok {
		return undone{treeEntry: theirs}, false, err
	}
	to, ok, err := read(theirs)
	if err != nil || !ok {
		return undone{treeEntry: theirs}, false, err
	}
	mine := string(ours.data)
	if !ours.merged {
		if mine, ok, err = read(ours.treeEntry); err != nil || !ok {
			return undone{treeEntry: theirs}, false, err
		}
	}
	v.r.s.o.probe("revert: lines merged")
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
