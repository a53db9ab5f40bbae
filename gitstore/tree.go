package gitstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// edit is one change to a tree: an entry set, or removed where mode is zero.
type edit struct {
	path string
	mode uint32
	hash hash
}

// newObject is an object that a commit writes.
type newObject struct {
	kind kind
	hash hash
	data []byte
}

// rewrite returns the tree that the edits make of a tree. Only the touched
// trees are read and written; those that become empty are gone, as git has no
// empty directories. The edits must not contradict each other: no path is set
// twice, and none is both a file and a directory, but where one is removed.
func (r *repo) rewrite(tree hash, edits []edit, out *[]newObject) (hash, error) {
	es, err := r.db.tree(tree)
	if err != nil {
		return hash{}, err
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
	kept := make([]treeEntry, 0, len(es)+len(groups))
	for _, e := range es {
		g := groups[e.name]
		switch {
		case g == nil:
			kept = append(kept, e)
		case e.isDir() && len(g.below) > 0:
			h, err := r.rewrite(e.hash, g.below, out)
			if err != nil {
				return hash{}, err
			}
			g.below = nil
			if !h.IsZero() {
				if g.self != nil && g.self.mode != 0 {
					return hash{}, fmt.Errorf("%q would be both a file and a directory", e.name)
				}
				kept = append(kept, treeEntry{e.name, modeDir, h})
			}
		case e.isDir() && g.self != nil && g.self.mode == 0:
			kept = append(kept, e) // a removed file is not a directory
		case !e.isDir() && g.self == nil && len(g.below) > 0:
			return hash{}, fmt.Errorf("edit below the file %q", e.name)
		}
	}
	for name, g := range groups {
		if g.self != nil && g.self.mode != 0 {
			kept = append(kept, treeEntry{name, g.self.mode, g.self.hash})
		}
		if len(g.below) > 0 {
			h, err := r.rewrite(hash{}, g.below, out)
			if err != nil {
				return hash{}, err
			}
			if !h.IsZero() {
				if g.self != nil && g.self.mode != 0 {
					return hash{}, fmt.Errorf("%q would be both a file and a directory", name)
				}
				kept = append(kept, treeEntry{name, modeDir, h})
			}
		}
	}
	if len(kept) == 0 {
		return hash{}, nil
	}
	data := encodeTree(kept)
	h := plumbing.ComputeHash(plumbing.TreeObject, data)
	if !r.db.sound(h) {
		*out = append(*out, newObject{plumbing.TreeObject, h, data})
	}
	return h, nil
}

// place is what a tree has at a path.
type place struct {
	found bool
	treeEntry
	// blocked is the proper ancestor of the path that is no directory; empty
	// where there is none. Its entry is then the treeEntry.
	blocked string
}

func (p place) isFile() bool { return p.found && p.blocked == "" && p.treeEntry.isFile() }
func (p place) isDir() bool  { return p.found && p.blocked == "" && p.treeEntry.isDir() }

// lookup finds a path in a tree; "" is the tree itself.
func (r *repo) lookup(tree hash, path string) (place, error) {
	return r.lookupBy(r.db.entry, tree, path)
}

// lookupIn is lookup for whoever looks up thousands of paths.
func (r *repo) lookupIn(names nameIndex, tree hash, path string) (place, error) {
	return r.lookupBy(func(tree hash, name string) (treeEntry, bool, error) {
		return r.db.entryByName(names, tree, name)
	}, tree, path)
}

func (r *repo) lookupBy(entry func(hash, string) (treeEntry, bool, error), tree hash, path string) (place, error) {
	e := treeEntry{mode: modeDir, hash: tree}
	if path == "" {
		return place{found: true, treeEntry: e}, nil
	}
	done := 0
	for seg := range strings.SplitSeq(path, "/") {
		if !e.isDir() {
			return place{treeEntry: e, blocked: path[:done-1]}, nil
		}
		var ok bool
		var err error
		if e, ok, err = entry(e.hash, seg); err != nil {
			return place{}, damagedIn(path[:done], err)
		}
		if !ok {
			return place{}, nil
		}
		done += len(seg) + 1
	}
	return place{found: true, treeEntry: e}, nil
}

// walk calls visit for every entry below a tree that is no directory, in
// the order of git's index. prefix goes before each path. A tree that is over
// Limits.Walk is a fault.TooLarge.
func (r *repo) walk(ctx context.Context, tree hash, prefix string, visit func(path string, e treeEntry) error) error {
	return r.walkDepth(ctx, tree, prefix, visit, r.budget(), 0)
}

func (r *repo) walkDepth(ctx context.Context, tree hash, prefix string, visit func(string, treeEntry) error, b *budget, depth int) error {
	if depth > maxTreeDepth {
		return errTooDeep()
	}
	if err := errors.Join(ctx.Err(), b.dir()); err != nil {
		return err
	}
	es, err := r.db.tree(tree)
	if b.passes(prefix, err) {
		return nil
	}
	if err != nil {
		return damagedIn(prefix, err)
	}
	for _, e := range es {
		if e.isDir() {
			err = r.walkDepth(ctx, e.hash, prefix+e.name+"/", visit, b, depth+1)
		} else if err = b.entry(prefix + e.name); err == nil {
			err = visit(prefix+e.name, e)
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
	old, new treeEntry
}

// diffTrees compares two trees without reading what they share. More changes
// than Limits.Walk are a fault.TooLarge.
func (r *repo) diffTrees(ctx context.Context, a, b hash, out *[]treeChange) error {
	return r.diffDepth(ctx, a, b, "", out, r.budget(), 0)
}

func (r *repo) diffDepth(ctx context.Context, a, b hash, prefix string, out *[]treeChange, left *budget, depth int) error {
	if a == b {
		return nil
	}
	if depth > maxTreeDepth {
		return errTooDeep()
	}
	if err := errors.Join(ctx.Err(), left.dir()); err != nil {
		return err
	}
	as, err := r.db.tree(a)
	if err != nil {
		return damagedIn(prefix, err)
	}
	bs, err := r.db.tree(b)
	if err != nil && !left.passes(prefix, err) {
		return damagedIn(prefix, err)
	}
	byName := func(x, y treeEntry) int { return cmp.Compare(x.name, y.name) }
	slices.SortFunc(as, byName)
	slices.SortFunc(bs, byName)
	for i, j := 0, 0; i < len(as) || j < len(bs); {
		var x, y treeEntry
		switch {
		case j == len(bs) || i < len(as) && as[i].name < bs[j].name:
			x = as[i]
			i++
		case i == len(as) || bs[j].name < as[i].name:
			y = bs[j]
			j++
		default:
			x, y = as[i], bs[j]
			i, j = i+1, j+1
		}
		if x.mode == y.mode && x.hash == y.hash {
			continue
		}
		name := cmp.Or(x.name, y.name)
		var dx, dy hash
		if x.isDir() {
			dx, x = x.hash, treeEntry{}
		}
		if y.isDir() {
			dy, y = y.hash, treeEntry{}
		}
		if x.mode != 0 || y.mode != 0 {
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
