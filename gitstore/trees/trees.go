package trees

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"satchel/gitstore/packfile"
)

// Reader reads the trees of one repository and computes new ones.
type Reader struct {
	DB       *packfile.DB
	MaxPaths int // the maximum number of paths in one walk or comparison
}

// Empty is the name of the tree without entries, which git always has.
const Empty = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

// Edit sets an entry of a tree, or removes it if Mode is zero.
type Edit struct {
	Path string
	Mode uint32
	Hash packfile.Hash
}

// Object is an object to be written.
type Object struct {
	Kind packfile.Kind
	Hash packfile.Hash
	Data []byte
}

// Rewrite applies edits to a tree and returns the new tree, or the zero hash if it is
// empty. It appends the new tree objects to out. It reads and writes only the trees that
// the edits touch, and drops trees that become empty, because git has no empty
// directories. The edits must not contradict each other: they set no path twice, and no
// path is both a file and a directory unless one of the two is removed.
func (r Reader) Rewrite(tree packfile.Hash, edits []Edit, out *[]Object) (packfile.Hash, error) {
	es, err := r.DB.Tree(tree)
	if err != nil {
		return packfile.Hash{}, err
	}
	type group struct {
		self  *Edit
		below []Edit
	}
	groups := map[string]*group{}
	for _, e := range edits {
		name, rest, nested := strings.Cut(e.Path, "/")
		g := groups[name]
		if g == nil {
			g = &group{}
			groups[name] = g
		}
		if nested {
			g.below = append(g.below, Edit{rest, e.Mode, e.Hash})
		} else {
			g.self = &Edit{name, e.Mode, e.Hash}
		}
	}
	kept := make([]packfile.TreeEntry, 0, len(es)+len(groups))
	for _, e := range es {
		g := groups[e.Name]
		switch {
		case g == nil:
			kept = append(kept, e)
		case e.IsDir() && len(g.below) > 0:
			h, err := r.Rewrite(e.Hash, g.below, out)
			if err != nil {
				return packfile.Hash{}, err
			}
			g.below = nil
			if !h.IsZero() {
				if g.self != nil && g.self.Mode != 0 {
					return packfile.Hash{}, fmt.Errorf("%q would be both a file and a directory", e.Name)
				}
				kept = append(kept, packfile.TreeEntry{Name: e.Name, Mode: packfile.ModeDir, Hash: h})
			}
		case e.IsDir() && g.self != nil && g.self.Mode == 0:
			kept = append(kept, e) // the edit removes a file, not a directory
		case !e.IsDir() && g.self == nil && len(g.below) > 0:
			return packfile.Hash{}, fmt.Errorf("edit below the file %q", e.Name)
		}
	}
	for name, g := range groups {
		if g.self != nil && g.self.Mode != 0 {
			kept = append(kept, packfile.TreeEntry{Name: name, Mode: g.self.Mode, Hash: g.self.Hash})
		}
		if len(g.below) > 0 {
			h, err := r.Rewrite(packfile.Hash{}, g.below, out)
			if err != nil {
				return packfile.Hash{}, err
			}
			if !h.IsZero() {
				if g.self != nil && g.self.Mode != 0 {
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
	if !r.DB.Sound(h) {
		*out = append(*out, Object{plumbing.TreeObject, h, data})
	}
	return h, nil
}

// Place is the entry of a tree at a path.
type Place struct {
	Found bool
	packfile.TreeEntry
	// Blocked is the ancestor of the path that is not a directory, or empty. If it is
	// set, TreeEntry is the entry of that ancestor.
	Blocked string
}

// HasFile reports whether the path is a file or a link.
func (p Place) HasFile() bool { return p.Found && p.Blocked == "" && p.TreeEntry.IsFile() }

// HasDir reports whether the path is a directory.
func (p Place) HasDir() bool { return p.Found && p.Blocked == "" && p.TreeEntry.IsDir() }

// Lookup finds a path in a tree. The empty path is the tree itself.
func (r Reader) Lookup(tree packfile.Hash, path string) (Place, error) {
	return r.lookupBy(r.DB.Entry, tree, path)
}

// LookupIn is like Lookup, with an index that makes lookups of thousands of paths fast.
func (r Reader) LookupIn(names packfile.NameIndex, tree packfile.Hash, path string) (Place, error) {
	return r.lookupBy(func(tree packfile.Hash, name string) (packfile.TreeEntry, bool, error) {
		return r.DB.EntryByName(names, tree, name)
	}, tree, path)
}

func (r Reader) lookupBy(entry func(packfile.Hash, string) (packfile.TreeEntry, bool, error), tree packfile.Hash, path string) (Place, error) {
	e := packfile.TreeEntry{Mode: packfile.ModeDir, Hash: tree}
	if path == "" {
		return Place{Found: true, TreeEntry: e}, nil
	}
	done := 0
	for seg := range strings.SplitSeq(path, "/") {
		if !e.IsDir() {
			return Place{TreeEntry: e, Blocked: path[:done-1]}, nil
		}
		var ok bool
		var err error
		if e, ok, err = entry(e.Hash, seg); err != nil {
			return Place{}, packfile.DamagedIn(path[:done], err)
		}
		if !ok {
			return Place{}, nil
		}
		done += len(seg) + 1
	}
	return Place{Found: true, TreeEntry: e}, nil
}

// Walk calls visit for every entry below a tree, except directories, in the order of git's index.
// The path that visit gets begins with prefix. A tree with more than MaxPaths paths is a
// fault.TooLarge. A tree that is nested deeper than MaxDepth is a fault.Invalid.
func (r Reader) Walk(ctx context.Context, tree packfile.Hash, prefix string, visit func(path string, e packfile.TreeEntry) error) error {
	return r.WalkWithin(ctx, r.Budget(), tree, prefix, visit)
}

// WalkWithin is like Walk, with the caller's budget.
func (r Reader) WalkWithin(ctx context.Context, b *Budget, tree packfile.Hash, prefix string, visit func(path string, e packfile.TreeEntry) error) error {
	return r.walk(ctx, tree, prefix, visit, b, 0)
}

func (r Reader) walk(ctx context.Context, tree packfile.Hash, prefix string, visit func(string, packfile.TreeEntry) error, b *Budget, depth int) error {
	if depth > MaxDepth {
		return ErrTooDeep()
	}
	if err := errors.Join(ctx.Err(), b.dir()); err != nil {
		return err
	}
	es, err := r.DB.Tree(tree)
	if b.passes(prefix, err) {
		return nil
	}
	if err != nil {
		return packfile.DamagedIn(prefix, err)
	}
	for _, e := range es {
		if e.IsDir() {
			err = r.walk(ctx, e.Hash, prefix+e.Name+"/", visit, b, depth+1)
		} else if err = b.entry(prefix + e.Name); err == nil {
			err = visit(prefix+e.Name, e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Change is a path whose entry differs between two trees. Directories are not reported.
// A zero mode means that the tree does not have the path.
type Change struct {
	Path     string
	Old, New packfile.TreeEntry
}

// Diff appends the differences between two trees to out. It does not read subtrees that
// both trees share. More than MaxPaths changes are a fault.TooLarge.
func (r Reader) Diff(ctx context.Context, a, b packfile.Hash, out *[]Change) error {
	return r.DiffWithin(ctx, r.Budget(), a, b, out)
}

// DiffWithin is like Diff, with the caller's budget.
func (r Reader) DiffWithin(ctx context.Context, budget *Budget, a, b packfile.Hash, out *[]Change) error {
	return r.diff(ctx, a, b, "", out, budget, 0)
}

func (r Reader) diff(ctx context.Context, a, b packfile.Hash, prefix string, out *[]Change, left *Budget, depth int) error {
	if a == b {
		return nil
	}
	if depth > MaxDepth {
		return ErrTooDeep()
	}
	if err := errors.Join(ctx.Err(), left.dir()); err != nil {
		return err
	}
	as, err := r.DB.Tree(a)
	if err != nil {
		return packfile.DamagedIn(prefix, err)
	}
	bs, err := r.DB.Tree(b)
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
			*out = append(*out, Change{prefix + name, x, y})
		}
		if err := r.diff(ctx, dx, dy, prefix+name+"/", out, left, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// Missing returns the objects of a tree that another database lacks. It assumes that a
// tree in other is complete there.
func (r Reader) Missing(ctx context.Context, other *packfile.DB, tree packfile.Hash) ([]Object, error) {
	var out []Object
	seen := map[packfile.Hash]bool{}
	var visit func(h packfile.Hash, k packfile.Kind, depth int) error
	visit = func(h packfile.Hash, k packfile.Kind, depth int) error {
		if seen[h] || other.Has(h) {
			return nil
		}
		if depth > MaxDepth {
			return ErrTooDeep()
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		seen[h] = true
		o, err := r.DB.Read(h)
		if err != nil {
			return err
		}
		if o.Kind != k {
			return fmt.Errorf("object %s is a %s, not a %s", h, o.Kind, k)
		}
		out = append(out, Object{o.Kind, h, o.Data})
		if k != plumbing.TreeObject {
			return nil
		}
		es, err := packfile.ParseTree(o.Data)
		if err != nil {
			return err
		}
		for _, e := range es {
			switch {
			case e.IsDir():
				err = visit(e.Hash, plumbing.TreeObject, depth+1)
			case e.IsFile():
				err = visit(e.Hash, plumbing.BlobObject, depth+1)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	return out, visit(tree, plumbing.TreeObject, 0)
}
