package merge

import (
	"context"
	"os"

	"github.com/go-git/go-git/v5/plumbing"

	"satchel/gitstore/packfile"
	"satchel/gitstore/trees"
	"satchel/internal/space"
)

// plain merges path by path, without renames: the layer becomes our tree with
// what only the remote changed, and what both changed is returned. Lines of a
// file that both edited are merged where they allow it.
func (x *merging) plain(ctx context.Context) ([]conflict, error) {
	var mine, theirs []trees.Change
	if err := x.r.Diff(ctx, x.o.Base.Tree, x.o.Ours.Tree, &mine); err != nil {
		return nil, err
	}
	if err := x.r.Diff(ctx, x.o.Base.Tree, x.o.Theirs.Tree, &theirs); err != nil {
		return nil, err
	}
	changed := make(map[string]trees.Change, len(mine))
	for _, c := range mine {
		changed[c.Path] = c
	}
	x.layer = newLayer(x.r, x.o.Ours.Tree)
	var fresh []placement // what only the remote has changed
	var both []conflict
	for _, c := range theirs {
		m, ok := changed[c.Path]
		switch {
		case ok && m.New.Mode == c.New.Mode && m.New.Hash == c.New.Hash:
			continue
		case ok:
			both = append(both, conflict{c.Path, c.Old, m.New, c.New})
		case c.New.Mode != 0:
			fresh = append(fresh, placement{c.Path, c.New})
		}
		if err := x.layer.remove(c.Path); err != nil {
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

// replaceSeeds takes out of what both sides have those files of ours that are as the
// space began: theirs replace them. It is for histories without a common commit.
func (x *merging) replaceSeeds(ctx context.Context, both []conflict, fresh *[]placement) ([]conflict, error) {
	if !x.o.Base.ID.IsZero() || len(both) == 0 {
		return both, nil
	}
	untouched, err := x.o.Untouched(ctx)
	if err != nil {
		return nil, err
	}
	left := both[:0:0]
	for _, c := range both {
		ok, err := untouched(c.path, c.ours)
		if err != nil {
			return nil, err
		}
		if !ok || !c.theirs.IsFile() {
			left = append(left, c)
			continue
		}
		if c.ours.Hash != c.theirs.Hash {
			x.replaced = append(x.replaced, space.Path(c.path))
		}
		*fresh = append(*fresh, placement{c.path, c.theirs})
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
		at, err := x.r.Lookup(out.tree, c.path)
		if err != nil {
			return nil, err
		}
		if out.cut || conflict[c.path] || !at.HasFile() {
			left = append(left, c)
			continue
		}
		*done = append(*done, placement{c.path, at.TreeEntry})
	}
	return left, nil
}

// mergeOf runs a merge of these files alone.
func (x *merging) mergeOf(ctx context.Context, cs []conflict) (*mergeOutput, error) {
	// The repository is removed in a moment.
	w, err := packfile.NewWriter(packfile.Disk{Sync: func(*os.File) error { return nil }, Step: func(string) {}}, x.r.DB.PackDir())
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
		var es []trees.Edit
		for _, c := range cs {
			e := side(c)
			es = append(es, trees.Edit{Path: c.path, Mode: e.Mode, Hash: e.Hash})
		}
		tree, err := x.rewrite(packfile.Hash{}, es)
		if err != nil {
			return nil, err
		}
		for h, obj := range x.r.DB.Pending {
			if err := w.AddNamed(h, obj.Kind, obj.Data); err != nil {
				return nil, err
			}
		}
		data := x.o.EncodeCommit(tree, parents)
		if commits[i], err = w.Add(plumbing.CommitObject, data); err != nil {
			return nil, err
		}
		parents = commits[:1]
	}
	p, err := w.Finish()
	if err != nil {
		return nil, err
	}
	x.r.DB.Add(p)
	return x.mergeTree(ctx, commits[1], commits[2])
}
