package gitstore

import (
	"context"
	"os"

	"github.com/go-git/go-git/v5/plumbing"

	"satchel/gitstore/packfile"
	"satchel/internal/space"
)

// plain merges path by path, without renames: the layer becomes our tree with
// what only the remote changed, and what both changed is returned. Lines of a
// file that both edited are merged where they allow it.
func (x *merging) plain(ctx context.Context) ([]conflict, error) {
	var base packfile.Hash
	if !x.base.IsZero() {
		st, err := x.r.state(x.base)
		if err != nil {
			return nil, err
		}
		base = st.tree
	}
	var mine, theirs []treeChange
	if err := x.r.diffTrees(ctx, base, x.ours.tree, &mine); err != nil {
		return nil, err
	}
	if err := x.r.diffTrees(ctx, base, x.theirs.tree, &theirs); err != nil {
		return nil, err
	}
	changed := make(map[string]treeChange, len(mine))
	for _, c := range mine {
		changed[c.path] = c
	}
	x.layer = newLayer(x.r, x.ours.tree)
	var fresh []placement // what only the remote has changed
	var both []conflict
	for _, c := range theirs {
		m, ok := changed[c.path]
		switch {
		case ok && m.new.Mode == c.new.Mode && m.new.Hash == c.new.Hash:
			continue
		case ok:
			both = append(both, conflict{c.path, c.old, m.new, c.new})
		case c.new.Mode != 0:
			fresh = append(fresh, placement{c.path, c.new})
		}
		if err := x.layer.remove(c.path); err != nil {
			return nil, err
		}
	}
	both, err := x.replaceSeeds(ctx, both, &fresh)
	if err != nil {
		return nil, err
	}
	left, err := x.mergeLines(ctx, both, &fresh)
	if err != nil {
		return nil, err
	}
	for _, f := range fresh {
		if err := x.claim(ctx, f.path, f.TreeEntry); err != nil {
			return nil, err
		}
	}
	return left, nil
}

// mergeLines lets git merge the contents of files that both sides have edited,
// in commits that hold nothing else, so that there is nothing to be renamed. It
// returns what cannot be merged.
func (x *merging) mergeLines(ctx context.Context, both []conflict, done *[]placement) ([]conflict, error) {
	var left, try []conflict
	for _, c := range both {
		if c.base.IsPlain() && c.ours.IsPlain() && c.theirs.IsPlain() {
			try = append(try, c)
		} else {
			left = append(left, c)
		}
	}
	if len(try) == 0 {
		return left, nil
	}
	out, err := x.mergeOf(ctx, try)
	if err != nil {
		return nil, err
	}
	conflict := map[string]bool{}
	for _, e := range out.stages {
		conflict[e.path] = true
	}
	for _, c := range try {
		at, err := x.r.lookup(out.tree, c.path)
		if err != nil {
			return nil, err
		}
		if out.cut || conflict[c.path] || !at.isFile() {
			left = append(left, c)
			continue
		}
		*done = append(*done, placement{c.path, at.TreeEntry})
	}
	return left, nil
}

// mergeOf runs a merge of these files alone.
func (x *merging) mergeOf(ctx context.Context, cs []conflict) (*mergeOutput, error) {
	// The quarantine is removed in a moment.
	w, err := packfile.NewWriter(packfile.Disk{Sync: func(*os.File) error { return nil }, Step: func(string) {}}, x.r.db.PackDir())
	if err != nil {
		return nil, err
	}
	defer w.Abort() // of what finish has not renamed
	var parents []packfile.Hash
	var commits [3]packfile.Hash
	for i, side := range []func(conflict) packfile.TreeEntry{
		func(c conflict) packfile.TreeEntry { return c.base },
		func(c conflict) packfile.TreeEntry { return c.ours },
		func(c conflict) packfile.TreeEntry { return c.theirs },
	} {
		var es []edit
		for _, c := range cs {
			e := side(c)
			es = append(es, edit{c.path, e.Mode, e.Hash})
		}
		tree, err := x.rewrite(packfile.Hash{}, es)
		if err != nil {
			return nil, err
		}
		for h, obj := range x.r.db.Pending {
			if err := w.AddNamed(h, obj.Kind, obj.Data); err != nil {
				return nil, err
			}
		}
		data := x.q.s.o.encodeCommit(tree, parents, space.Meta{}, "Files that both sides edited")
		if commits[i], err = w.Add(plumbing.CommitObject, data); err != nil {
			return nil, err
		}
		parents = commits[:1]
	}
	p, err := w.Finish()
	if err != nil {
		return nil, err
	}
	x.r.db.Add(p)
	return x.q.mergeTree(ctx, commits[1], commits[2])
}
