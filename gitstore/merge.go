package gitstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"satchel/gitstore/gitcmd"
	"satchel/gitstore/packfile"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// How two histories become one. git merges them three ways ("merge-tree"), with
// renames, in a quarantine that borrows the space's objects; where it finds no
// conflict its result is taken. Conflicts are not left to it, as its markers in
// a file help nobody here:
//
//	both edited the same lines       the remote's version keeps the path, ours
//	(or a binary, or a link)         is beside it as name.conflict-<commit>.ext,
//	                                 with the remote's commit
//	both added it, differently       likewise; the same content once, with the
//	                                 remote's mode
//	one edited, one deleted          the edit stays, and it is told
//	one renamed, one deleted         the renamed file stays, and it is told
//	both renamed it, differently     both names stay, each with its own content
//	both renamed to one name         as if both had added it
//	a file here, a directory there   the remote's keeps the name; what is ours
//	                                 has a name, or a directory, marked so
//	a submodule on either side       the remote's; ours is in the history
//	ours as the space began, and     the remote's alone, and it is told (see
//	no commit in common              seed_replacement.go)
//
// Nothing in the trees runs: the quarantine has no configuration of theirs, and
// attributes are read from none of them.

// mergeOutput is what git says of a merge.
type mergeOutput struct {
	tree    packfile.Hash
	clean   bool
	cut     bool // there were more conflicts than fit into what a run may print
	stages  []stageEntry
	renames [][3]string // from, ours, theirs: renamed differently on both sides
}

// stageEntry is a side of a conflicted path: 1 is the base, 2 ours, 3 theirs.
type stageEntry struct {
	path  string
	stage int
	packfile.TreeEntry
}

// emptyTree is the name of the tree without entries, which git always has.
const emptyTree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

// mergeConfig holds for every merge, whatever an operator has configured.
var mergeConfig = []string{
	"merge.directoryRenames=false",
	"merge.renames=true",
	"merge.renameLimit=400", // of what only similarity can tell; it grows with the square
	"merge.renormalize=false",
	"merge.verifySignatures=false",
	"attr.tree=" + emptyTree, // newer versions take attributes from HEAD otherwise
	"core.fsync=none",        // what is kept of the result is made durable by the pack writer
}

// mergeTree merges two commits in a quarantine.
func (q *quarantine) mergeTree(ctx context.Context, ours, theirs packfile.Hash) (*mergeOutput, error) {
	out, err := q.git(ctx, gitcmd.Cmd{Config: mergeConfig, Args: []string{
		"merge-tree", "--write-tree", "-z", "--messages", ours.String(), theirs.String()}})
	if err == nil {
		m, err := parseMerge(out)
		if err == nil {
			m.clean = true
		}
		return m, err
	}
	var g *gitcmd.Error
	if !errors.As(err, &g) || g.ExitCode() != 1 {
		return nil, err
	}
	if g.Cut {
		return &mergeOutput{cut: true}, nil
	}
	return parseMerge(g.Stdout)
}

// parseMerge reads the output of merge-tree -z (git-merge-tree(1), "OUTPUT").
func parseMerge(out []byte) (*mergeOutput, error) {
	next := func() (string, bool) {
		field, rest, ok := bytes.Cut(out, []byte{0})
		out = rest
		return string(field), ok
	}
	bad := errors.New("the output of git merge-tree is not understood")
	m := &mergeOutput{}
	first, ok := next()
	var err error
	if m.tree, err = packfile.HashFrom(first); err != nil || !ok {
		return nil, errors.Join(bad, err)
	}
	for {
		field, ok := next()
		if !ok {
			return m, nil // a clean merge without messages
		}
		if field == "" {
			break
		}
		info, path, ok := strings.Cut(field, "\t")
		f := strings.Split(info, " ")
		if !ok || len(f) != 3 || path == "" {
			return nil, bad
		}
		e := stageEntry{path: path}
		mode, err1 := strconv.ParseUint(f[0], 8, 32)
		h, err2 := packfile.HashFrom(f[1])
		stage, err3 := strconv.Atoi(f[2])
		if errors.Join(err1, err2, err3) != nil || stage < 1 || stage > 3 || mode == 0 {
			return nil, bad
		}
		e.Mode, e.Hash, e.stage = uint32(mode), h, stage
		m.stages = append(m.stages, e)
	}
	for {
		count, ok := next()
		if !ok {
			return m, nil
		}
		n, err := strconv.Atoi(count)
		if err != nil || n < 0 || n > len(out) {
			return nil, bad
		}
		paths := make([]string, 0, min(n, 8))
		for range n {
			p, ok := next()
			if !ok {
				return nil, bad
			}
			paths = append(paths, p)
		}
		kind, ok1 := next()
		_, ok2 := next()
		if !ok1 || !ok2 {
			return nil, bad
		}
		if kind == "CONFLICT (rename/rename)" && n == 3 {
			m.renames = append(m.renames, [3]string(paths))
		}
	}
}

// merged is a merge that is computed, and not yet the space's.
type merged struct {
	tree      packfile.Hash
	objs      []newObject // of the tree, that the space has not
	conflicts []space.Conflict
	replaced  []space.Path // ours that gave way: see seed_replacement.go
	weight
}

// merge computes what becomes of two commits. It takes no lock and changes
// nothing.
func (r *repo) merge(ctx context.Context, ours, theirs *headState, base packfile.Hash) (*merged, error) {
	q, err := r.borrower("a merge")
	if err != nil {
		return nil, err
	}
	defer q.Close()
	out := &mergeOutput{} // without a common commit there is nothing to be merged three ways
	if !base.IsZero() {
		if out, err = q.mergeTree(ctx, ours.id, theirs.id); err != nil {
			return nil, err
		}
	}
	if err := q.open(r.db); err != nil {
		return nil, err
	}
	q.r.db.ByName = packfile.NameIndex{}
	x := &merging{q: q, r: q.r, ours: ours, theirs: theirs, base: base}
	m := &merged{tree: out.tree}
	if !out.clean {
		if m.tree, err = x.resolve(ctx, out); err != nil {
			return nil, fmt.Errorf("resolve conflicts with %s: %w", theirs.id, err)
		}
		m.conflicts, m.replaced = x.told, x.replaced
	}
	if m.objs, err = q.r.missing(ctx, r.db, m.tree); err != nil {
		return nil, err
	}
	m.weight, err = q.r.weigh(ctx, ours.tree, m.tree)
	return m, err
}

// merging is a merge with conflicts that is being resolved.
type merging struct {
	q            *quarantine
	r            *repo // the quarantine's
	ours, theirs *headState
	base         packfile.Hash // a commit that both have; zero if there is none

	layer  *layer
	copies map[string]map[copyOf][]string // conflict copies by directory: see copiesIn
	told   []space.Conflict
	// replaced are files that were as the space began, and gave way to the remote's.
	replaced []space.Path
	// placed is what must not be lost, by the path where it is.
	placed map[string]packfile.TreeEntry
}

type placement struct {
	path string
	packfile.TreeEntry
}

// conflict is a path on which the sides do not agree. A zero mode stands for
// nothing there.
type conflict struct {
	path               string
	base, ours, theirs packfile.TreeEntry
}

// resolve returns the tree in which every conflict has its outcome, after a
// check that no side of one is lost.
func (x *merging) resolve(ctx context.Context, out *mergeOutput) (packfile.Hash, error) {
	conflicts, raw, err := x.conflicts(out)
	if err != nil {
		return packfile.Hash{}, err
	}
	original := false
	if !x.base.IsZero() && !out.cut {
		if original, err = x.original(ctx, conflicts); err != nil {
			return packfile.Hash{}, err
		}
	}
	if original {
		x.layer = newLayer(x.r, out.tree)
		for _, path := range raw {
			if err := x.layer.remove(path); err != nil {
				return packfile.Hash{}, err
			}
		}
	} else {
		// git followed renames on both sides, and what it calls a side is its own
		// mixture of both; without renames there is none. Or it has said nothing.
		if conflicts, err = x.plain(ctx); err != nil {
			return packfile.Hash{}, err
		}
	}
	if err := x.bearable(len(conflicts)); err != nil {
		return packfile.Hash{}, err
	}
	if err := x.settle(ctx, conflicts); err != nil {
		return packfile.Hash{}, err
	}
	x.tellRenames(out.renames)
	if err := x.bearable(len(x.told)); err != nil {
		return packfile.Hash{}, err
	}
	slices.SortFunc(x.told, func(a, b space.Conflict) int {
		if c := packfile.CompareStrings(string(a.Path), string(b.Path)); c != 0 {
			return c
		}
		return packfile.CompareStrings(string(a.Kept), string(b.Kept))
	})
	tree, err := x.rewrite(x.layer.tree, x.layer.edits())
	if err != nil {
		return packfile.Hash{}, err
	}
	return tree, x.prove(conflicts, tree)
}

// bearable reports why a merge with so many conflicts is not made: nobody would
// look through the copies, and a remote that rewrites its history again and
// again would fill the space with them.
func (x *merging) bearable(conflicts int) error {
	if limit := x.r.s.o.Limits.Conflicts; conflicts > limit {
		return fault.New(fault.TooLarge, "More than %d files were changed both here and in the remote's repository, too many to keep both versions of each. Nothing was changed. If the remote's history was rewritten, undo that there, or follow it.", limit)
	}
	return nil
}

// rewrite makes a tree of the quarantine's.
func (x *merging) rewrite(tree packfile.Hash, edits []edit) (packfile.Hash, error) {
	var objs []newObject
	tree, err := x.r.rewrite(tree, edits, &objs)
	if err == nil && tree.IsZero() {
		tree, err = packfile.HashFrom(emptyTree)
		objs = append(objs, newObject{kind: plumbing.TreeObject, hash: tree})
	}
	if x.r.db.Pending == nil {
		x.r.db.Pending = map[packfile.Hash]packfile.Object{}
	}
	for _, o := range objs {
		x.r.db.Pending[o.hash] = packfile.Object{Kind: o.kind, Data: o.data}
	}
	return tree, err
}

// conflicts groups git's stages by the path that they are about, and lists the
// paths that its tree has for them.
func (x *merging) conflicts(out *mergeOutput) (cs []conflict, raw []string, err error) {
	at := map[string]int{}
	for _, e := range out.stages {
		path, err := x.unmangle(e.path)
		if err != nil {
			return nil, nil, err
		}
		raw = append(raw, e.path)
		i, ok := at[path]
		if !ok {
			i = len(cs)
			at[path] = i
			cs = append(cs, conflict{path: path})
		}
		*[...]*packfile.TreeEntry{&cs[i].base, &cs[i].ours, &cs[i].theirs}[e.stage-1] = e.TreeEntry
	}
	slices.Sort(raw)
	return cs, slices.Compact(raw), nil
}

// unmangle returns the path for which git used another name: where a file's own
// is taken, it adds ~ and the commit of the file's side, and _ and a number
// where that is taken too.
func (x *merging) unmangle(path string) (string, error) {
	i := strings.LastIndexByte(path, '~')
	if i <= 0 {
		return path, nil
	}
	commit, number, numbered := strings.Cut(path[i+1:], "_")
	if commit != x.ours.id.String() && commit != x.theirs.id.String() || numbered && strings.Trim(number, "0123456789") != "" {
		return path, nil
	}
	for _, side := range []*headState{x.ours, x.theirs} {
		if at, err := x.r.lookup(side.tree, path); err != nil || at.found {
			return path, err // a side does call it so
		}
	}
	return path[:i], nil
}

// original reports whether what git calls a side of a conflict is a file that
// this side has, wherever, and not what git made of several.
func (x *merging) original(ctx context.Context, cs []conflict) (bool, error) {
	for _, s := range []struct {
		tree  packfile.Hash
		entry func(conflict) packfile.TreeEntry
	}{
		{x.ours.tree, func(c conflict) packfile.TreeEntry { return c.ours }},
		{x.theirs.tree, func(c conflict) packfile.TreeEntry { return c.theirs }},
	} {
		var has map[packfile.Hash]bool
		for _, c := range cs {
			e := s.entry(c)
			if !e.IsFile() {
				continue
			}
			at, err := x.r.lookup(s.tree, c.path)
			if err != nil {
				return false, err
			}
			if at.isFile() && at.Hash == e.Hash {
				continue
			}
			if has == nil {
				has = map[packfile.Hash]bool{}
				if err := x.r.walk(ctx, s.tree, "", func(_ string, e packfile.TreeEntry) error {
					has[e.Hash] = true
					return nil
				}); err != nil {
					return false, err
				}
			}
			if !has[e.Hash] {
				return false, nil
			}
		}
	}
	return true, nil
}

// tellRenames tells once of a file that both sides renamed.
func (x *merging) tellRenames(renames [][3]string) {
	about := map[space.Conflict]bool{}
	for _, n := range renames {
		ours, theirs := space.Path(n[1]), space.Path(n[2])
		about[space.Conflict{Path: ours, Kept: ours}] = true
		about[space.Conflict{Path: theirs}] = true
	}
	x.told = slices.DeleteFunc(x.told, func(c space.Conflict) bool { return about[c] })
	for _, n := range renames {
		x.tell(n[2], n[1])
	}
}

// prove checks that both sides of every conflict are in the result, whatever
// the code before it did.
func (x *merging) prove(cs []conflict, tree packfile.Hash) error {
	there := make(map[packfile.Hash]bool, len(x.placed))
	for path, p := range x.placed {
		at, err := x.r.lookup(tree, path)
		if err != nil {
			return err
		}
		if !at.isFile() || at.Hash != p.Hash || at.IsLink() != p.IsLink() {
			return fmt.Errorf("the merge lost %s, which was to be at %q", p.Hash, path)
		}
		there[p.Hash] = true
	}
	for _, c := range cs {
		for _, side := range []packfile.TreeEntry{c.ours, c.theirs} {
			if side.IsFile() && !there[side.Hash] {
				return fmt.Errorf("the merge lost %s of %q", side.Hash, c.path)
			}
		}
	}
	return nil
}

// missing lists the objects of a tree that another database has not.
func (r *repo) missing(ctx context.Context, other *packfile.DB, tree packfile.Hash) ([]newObject, error) {
	var out []newObject
	seen := map[packfile.Hash]bool{}
	var visit func(h packfile.Hash, k packfile.Kind, depth int) error
	visit = func(h packfile.Hash, k packfile.Kind, depth int) error {
		if seen[h] || other.Has(h) {
			return nil
		}
		if depth > maxTreeDepth {
			return errTooDeep()
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		seen[h] = true
		o, err := r.db.Read(h)
		if err != nil {
			return err
		}
		if o.Kind != k {
			return fmt.Errorf("object %s is a %s, not a %s", h, o.Kind, k)
		}
		out = append(out, newObject{o.Kind, h, o.Data})
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
