package merge

import (
	"context"
	"os"

	"github.com/go-git/go-git/v5/plumbing"

	"satchel/gitstore/packfile"
	"satchel/gitstore/trees"
	"satchel/internal/space"
)

// plain merges path by path, without renames. It sets the layer to our tree, merges the
// remote's changes into it, and returns the conflicts that remain.
func (x *merging) plain(ctx context.Context) ([]conflict, error) {
	x.layer = newLayer(x.r, x.o.Ours.Tree)
	return x.mergePaths(ctx, func(string) bool { return true })
}

// mergePaths merges the paths for which wanted returns true. The layer already has our versions of
// these paths. mergePaths adds the changes that only the remote made. If git can merge the lines of
// a file that both sides edited, the layer gets the result. mergePaths returns the conflicts that
// remain.
func (x *merging) mergePaths(ctx context.Context, wanted func(path string) bool) ([]conflict, error) {
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
	var fresh []placement // entries that only the remote changed
	var both []conflict
	for _, c := range theirs {
		if !wanted(c.Path) {
			continue
		}
		m, ok := changed[c.Path]
		switch {
		case ok && m.New.Mode == c.New.Mode && m.New.Hash == c.New.Hash:
			continue
		case ok:
			both = append(both, conflict{path: c.Path, base: c.Old, ours: m.New, theirs: c.New})
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

// replaceSeeds replaces files of ours that nobody has changed since the space was created. It
// adds the remote's versions to fresh, and returns both without these files. It applies only to
// histories without a common commit.
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

// mergeLines has git merge the contents of files that both sides edited, and appends
// the results to done. The merged commits hold only these files, so that git finds no
// renames. mergeLines returns the conflicts that remain.
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
		mixed, err := x.mixed(c, at.TreeEntry)
		if err != nil {
			return nil, err
		}
		if mixed {
			left = append(left, c)
			continue
		}
		*done = append(*done, placement{c.path, at.TreeEntry})
	}
	return left, nil
}

// mergeOf has git merge only the files of cs.
func (x *merging) mergeOf(ctx context.Context, cs []conflict) (*mergeOutput, error) {
	var sides [3]packfile.Hash
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
		var err error
		if sides[i], err = x.rewrite(packfile.Hash{}, es); err != nil {
			return nil, err
		}
	}
	return x.mergeTrees(ctx, sides)
}

// mergeTrees has git merge three trees: the base, ours and theirs.
func (x *merging) mergeTrees(ctx context.Context, sides [3]packfile.Hash) (*mergeOutput, error) {
	// The repository is temporary, so the pack needs no sync.
	w, err := packfile.NewWriter(packfile.Disk{Sync: func(*os.File) error { return nil }, Step: func(string) {}}, x.r.DB.PackDir())
	if err != nil {
		return nil, err
	}
	defer w.Abort() // removes the files that Finish has not renamed
	for h, obj := range x.r.DB.Pending {
		if err := w.AddNamed(h, obj.Kind, obj.Data); err != nil {
			return nil, err
		}
	}
	var parents []packfile.Hash
	var commits [3]packfile.Hash
	for i, tree := range sides {
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
