package gitstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"satchel/gitstore/packfile"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// edit is one change to a tree: an entry set, or removed where mode is zero.
type edit struct {
	path string
	mode uint32
	hash packfile.Hash
}

// newObject is an object that a commit writes.
type newObject struct {
	kind packfile.Kind
	hash packfile.Hash
	data []byte
}

// rewrite returns the tree that the edits make of a tree. Only the touched
// trees are read and written; those that become empty are gone, as git has no
// empty directories. The edits must not contradict each other: no path is set
// twice, and none is both a file and a directory, but where one is removed.
func (r *repo) rewrite(tree packfile.Hash, edits []edit, out *[]newObject) (packfile.Hash, error) {
	es, err := r.db.Tree(tree)
	if err != nil {
		return packfile.Hash{}, err
	}
	type group struct {
		self  *edit
		below []edit
	}
	groups := map[string]*group{}
	for _, e := range edits {
		name, rest, nested := strings.Cut(e.path, "/")
		g := groups[name]
		if g == nil {
			g = &group{}
			groups[name] = g
		}
		if nested {
			g.below = append(g.below, edit{rest, e.mode, e.hash})
		} else {
			g.self = &edit{name, e.mode, e.hash}
		}
	}
	kept := make([]packfile.TreeEntry, 0, len(es)+len(groups))
	for _, e := range es {
		g := groups[e.Name]
		switch {
		case g == nil:
			kept = append(kept, e)
		case e.IsDir() && len(g.below) > 0:
			h, err := r.rewrite(e.Hash, g.below, out)
			if err != nil {
				return packfile.Hash{}, err
			}
			g.below = nil
			if !h.IsZero() {
				if g.self != nil && g.self.mode != 0 {
					return packfile.Hash{}, fmt.Errorf("%q would be both a file and a directory", e.Name)
				}
				kept = append(kept, packfile.TreeEntry{Name: e.Name, Mode: packfile.ModeDir, Hash: h})
			}
		case e.IsDir() && g.self != nil && g.self.mode == 0:
			kept = append(kept, e) // a removed file is not a directory
		case !e.IsDir() && g.self == nil && len(g.below) > 0:
			return packfile.Hash{}, fmt.Errorf("edit below the file %q", e.Name)
		}
	}
	for name, g := range groups {
		if g.self != nil && g.self.mode != 0 {
			kept = append(kept, packfile.TreeEntry{Name: name, Mode: g.self.mode, Hash: g.self.hash})
		}
		if len(g.below) > 0 {
			h, err := r.rewrite(packfile.Hash{}, g.below, out)
			if err != nil {
				return packfile.Hash{}, err
			}
			if !h.IsZero() {
				if g.self != nil && g.self.mode != 0 {
					return packfile.Hash{}, fmt.Errorf("%q would be both a file and a directory", name)
				}
				kept = append(kept, packfile.TreeEntry{Name: name, Mode: packfile.ModeDir, Hash: h})
			}
		}
	}
	if len(kept) == 0 {
		return packfile.Hash{}, nil
	}
	data := packfile.EncodeTree(kept)
	h := plumbing.ComputeHash(plumbing.TreeObject, data)
	if !r.db.Sound(h) {
		*out = append(*out, newObject{plumbing.TreeObject, h, data})
	}
	return h, nil
}

// place is what a tree has at a path.
type place struct {
	found bool
	packfile.TreeEntry
	// blocked is the proper ancestor of the path that is no directory; empty
	// where there is none. Its entry is then the TreeEntry.
	blocked string
}

func (p place) isFile() bool { return p.found && p.blocked == "" && p.TreeEntry.IsFile() }
func (p place) isDir() bool  { return p.found && p.blocked == "" && p.TreeEntry.IsDir() }

// lookup finds a path in a tree; "" is the tree itself.
func (r *repo) lookup(tree packfile.Hash, path string) (place, error) {
	return r.lookupBy(r.db.Entry, tree, path)
}

// lookupIn is lookup for whoever looks up thousands of paths.
func (r *repo) lookupIn(names packfile.NameIndex, tree packfile.Hash, path string) (place, error) {
	return r.lookupBy(func(tree packfile.Hash, name string) (packfile.TreeEntry, bool, error) {
		return r.db.EntryByName(names, tree, name)
	}, tree, path)
}

func (r *repo) lookupBy(entry func(packfile.Hash, string) (packfile.TreeEntry, bool, error), tree packfile.Hash, path string) (place, error) {
	e := packfile.TreeEntry{Mode: packfile.ModeDir, Hash: tree}
	if path == "" {
		return place{found: true, TreeEntry: e}, nil
	}
	done := 0
	for seg := range strings.SplitSeq(path, "/") {
		if !e.IsDir() {
			return place{TreeEntry: e, blocked: path[:done-1]}, nil
		}
		var ok bool
		var err error
		if e, ok, err = entry(e.Hash, seg); err != nil {
			return place{}, packfile.DamagedIn(path[:done], err)
		}
		if !ok {
			return place{}, nil
		}
		done += len(seg) + 1
	}
	return place{found: true, TreeEntry: e}, nil
}

// walk calls visit for every entry below a tree that is no directory, in
// the order of git's index. prefix goes before each path. A tree that is over
// Limits.Walk is a fault.TooLarge.
func (r *repo) walk(ctx context.Context, tree packfile.Hash, prefix string, visit func(path string, e packfile.TreeEntry) error) error {
	return r.walkDepth(ctx, tree, prefix, visit, r.budget(), 0)
}

func (r *repo) walkDepth(ctx context.Context, tree packfile.Hash, prefix string, visit func(string, packfile.TreeEntry) error, b *budget, depth int) error {
	if depth > maxTreeDepth {
		return errTooDeep()
	}
	if err := errors.Join(ctx.Err(), b.dir()); err != nil {
		return err
	}
	es, err := r.db.Tree(tree)
	if b.passes(prefix, err) {
		return nil
	}
	if err != nil {
		return packfile.DamagedIn(prefix, err)
	}
	for _, e := range es {
		if e.IsDir() {
			err = r.walkDepth(ctx, e.Hash, prefix+e.Name+"/", visit, b, depth+1)
		} else if err = b.entry(prefix + e.Name); err == nil {
			err = visit(prefix+e.Name, e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// treeChange is a path whose entry, no directory, differs between two trees.
// A zero mode means that the path is not there.
type treeChange struct {
	path     string
	old, new packfile.TreeEntry
}

// diffTrees compares two trees without reading what they share. More changes
// than Limits.Walk are a fault.TooLarge.
func (r *repo) diffTrees(ctx context.Context, a, b packfile.Hash, out *[]treeChange) error {
	return r.diffDepth(ctx, a, b, "", out, r.budget(), 0)
}

func (r *repo) diffDepth(ctx context.Context, a, b packfile.Hash, prefix string, out *[]treeChange, left *budget, depth int) error {
	if a == b {
		return nil
	}
	if depth > maxTreeDepth {
		return errTooDeep()
	}
	if err := errors.Join(ctx.Err(), left.dir()); err != nil {
		return err
	}
	as, err := r.db.Tree(a)
	if err != nil {
		return packfile.DamagedIn(prefix, err)
	}
	bs, err := r.db.Tree(b)
	if err != nil && !left.passes(prefix, err) {
		return packfile.DamagedIn(prefix, err)
	}
	byName := func(x, y packfile.TreeEntry) int { return cmp.Compare(x.Name, y.Name) }
	slices.SortFunc(as, byName)
	slices.SortFunc(bs, byName)
	for i, j := 0, 0; i < len(as) || j < len(bs); {
		var x, y packfile.TreeEntry
		switch {
		case j == len(bs) || i < len(as) && as[i].Name < bs[j].Name:
			x = as[i]
			i++
		case i == len(as) || bs[j].Name < as[i].Name:
			y = bs[j]
			j++
		default:
			x, y = as[i], bs[j]
			i, j = i+1, j+1
		}
		if x.Mode == y.Mode && x.Hash == y.Hash {
			continue
		}
		name := cmp.Or(x.Name, y.Name)
		var dx, dy packfile.Hash
		if x.IsDir() {
			dx, x = x.Hash, packfile.TreeEntry{}
		}
		if y.IsDir() {
			dy, y = y.Hash, packfile.TreeEntry{}
		}
		if x.Mode != 0 || y.Mode != 0 {
			if err := left.entry(prefix + name); err != nil {
				return err
			}
			*out = append(*out, treeChange{prefix + name, x, y})
		}
		if err := r.diffDepth(ctx, dx, dy, prefix+name+"/", out, left, depth+1); err != nil {
			return err
		}
	}
	return nil
}
