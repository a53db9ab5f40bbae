package merge

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
	"satchel/gitstore/trees"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// mergeOutput is the parsed output of git merge-tree.
type mergeOutput struct {
	tree    packfile.Hash
	clean   bool
	cut     bool // git's list of conflicts exceeds the limit of a command's output
	stages  []stageEntry
	renames [][3]string // base, our and their path of a file that the sides renamed differently
	// sides are the commits that git merged. memory reports that they have our memory/, so the
	// remote's changes there are not merged yet.
	sides  [2]packfile.Hash
	memory bool
}

// stageEntry is one side of a conflicted path. Stage 1 is the base, 2 is ours, 3 is
// theirs.
type stageEntry struct {
	path  string
	stage int
	packfile.TreeEntry
}

// mergeConfig applies to every merge and overrides the operator's configuration.
var mergeConfig = []string{
	"merge.directoryRenames=false",
	"merge.renames=true",
	"merge.renameLimit=400", // for inexact renames, whose cost is quadratic
	"merge.renormalize=false",
	"merge.verifySignatures=false",
	"attr.tree=" + trees.Empty, // newer versions of git read attributes from HEAD by default
	"core.fsync=none",          // the pack writer makes the kept objects durable
}

// mergeTree runs git's three-way merge on two commits.
func (x *merging) mergeTree(ctx context.Context, ours, theirs packfile.Hash) (*mergeOutput, error) {
	out, err := x.o.Git(ctx, gitcmd.Cmd{Config: mergeConfig, Args: []string{
		"merge-tree", "--write-tree", "-z", "--messages", ours.String(), theirs.String()}})
	clean := err == nil
	if !clean {
		var g *gitcmd.Error
		if !errors.As(err, &g) || g.ExitCode() != 1 {
			return nil, err
		}
		if g.Cut {
			return &mergeOutput{cut: true}, nil
		}
		out = g.Stdout
	}
	m, err := parseMerge(out)
	if err != nil {
		return nil, err
	}
	m.clean, m.sides = clean, [2]packfile.Hash{ours, theirs}
	return m, nil
}

// parseMerge reads the output of merge-tree -z (git-merge-tree(1), "OUTPUT").
func parseMerge(out []byte) (*mergeOutput, error) {
	next := func() (string, bool) {
		field, rest, ok := bytes.Cut(out, []byte{0})
		out = rest
		return string(field), ok
	}
	bad := errors.New("cannot parse the output of git merge-tree")
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

// Commit is a commit with its tree.
type Commit struct{ ID, Tree packfile.Hash }

// Options are the parameters of [Commits].
type Options struct {
	// Trees reads a repository that has both commits. Commits writes to the repository, so it
	// must be a temporary one that borrows the objects of another.
	Trees trees.Reader
	// Git runs git in the repository of Trees.
	Git          func(ctx context.Context, c gitcmd.Cmd) ([]byte, error)
	Ours, Theirs Commit
	Base         Commit // the merge base; zero if there is none
	// MaxConflicts is the largest number of conflicts that Commits resolves.
	MaxConflicts int
	// EncodeCommit encodes a commit object, for git to merge.
	EncodeCommit func(tree packfile.Hash, parents []packfile.Hash) []byte
	// Untouched returns a function that reports whether nobody has changed an entry of
	// ours since the space was created. Commits calls Untouched at most once, and only if
	// there is no Base.
	Untouched func(ctx context.Context) (func(path string, e packfile.TreeEntry) (bool, error), error)
}

// Result is the outcome of a merge. Its tree is in the repository of Options.Trees.
type Result struct {
	Tree      packfile.Hash
	Conflicts []space.Conflict // sorted by path
	// Replaced lists the files of ours that nobody had changed since the space was
	// created, and that theirs replaced.
	Replaced []space.Path
}

// Commits merges two commits. More than MaxConflicts conflicts are a fault.TooLarge.
func Commits(ctx context.Context, o Options) (Result, error) {
	x := &merging{o: o, r: o.Trees}
	out := &mergeOutput{} // stays empty without a common commit, which a three-way merge needs
	if !o.Base.ID.IsZero() {
		rest, ok, err := x.mergeRest(ctx)
		switch {
		case err != nil:
			return Result{}, err
		case ok:
			rest.memory = true
			out = rest
		default:
			if out, err = x.mergeTree(ctx, o.Ours.ID, o.Theirs.ID); err != nil {
				return Result{}, err
			}
		}
	}
	if out.clean && !out.memory {
		return Result{Tree: out.tree}, nil
	}
	tree, err := x.resolve(ctx, out)
	if err != nil {
		return Result{}, fmt.Errorf("resolve conflicts with %s: %w", o.Theirs.ID, err)
	}
	return Result{Tree: tree, Conflicts: x.reported, Replaced: x.replaced}, nil
}

// merging is the state of a merge.
type merging struct {
	o Options
	r trees.Reader

	layer    *layer
	copies   map[string]map[copyOf][]string // by directory; see copiesIn
	reported []space.Conflict
	replaced []space.Path
	// placed has the files that the result must hold, by their paths in the result.
	placed map[string]packfile.TreeEntry
}

type placement struct {
	path string
	packfile.TreeEntry
}

// conflict is a path on which the sides disagree. A zero mode means that a side has no entry at
// the path.
type conflict struct {
	path               string
	base, ours, theirs packfile.TreeEntry
	// swapped means that ours and theirs are exchanged, because our side keeps the path.
	swapped bool
}

// resolve returns a tree in which every conflict is resolved. It checks that the tree
// has both sides of every conflict.
func (x *merging) resolve(ctx context.Context, out *mergeOutput) (packfile.Hash, error) {
	conflicts, raw, err := x.conflicts(out)
	if err != nil {
		return packfile.Hash{}, err
	}
	original := false
	if !x.o.Base.ID.IsZero() && !out.cut {
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
		if out.memory {
			memory, err := x.mergeMemory(ctx)
			if err != nil {
				return packfile.Hash{}, err
			}
			conflicts = append(conflicts, memory...)
		}
	} else {
		// Git follows renames on both sides, so what it reports as one side may be a
		// mixture of both. Its output may also be cut, or there is no base. In these
		// cases, merge again without renames, which gives no mixtures.
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
	x.reportRenames(out.renames)
	if err := x.bearable(len(x.reported)); err != nil {
		return packfile.Hash{}, err
	}
	slices.SortFunc(x.reported, func(a, b space.Conflict) int {
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

// bearable returns a fault.TooLarge for more than MaxConflicts conflicts. Nobody would
// review so many copies, and a remote that rewrites its history repeatedly would fill
// the space with them.
func (x *merging) bearable(conflicts int) error {
	if limit := x.o.MaxConflicts; conflicts > limit {
		return fault.New(fault.TooLarge, "More than %d files were changed both here and in the remote's repository, which is too many to keep both versions of each. Nothing was changed. If the remote's history was rewritten, undo that there, or follow it.", limit)
	}
	return nil
}

// rewrite applies edits to a tree and adds the new objects to the pending ones.
func (x *merging) rewrite(tree packfile.Hash, edits []trees.Edit) (packfile.Hash, error) {
	var objs []trees.Object
	tree, err := x.r.Rewrite(tree, edits, &objs)
	if err == nil && tree.IsZero() {
		tree, err = packfile.HashFrom(trees.Empty)
		objs = append(objs, trees.Object{Kind: plumbing.TreeObject, Hash: tree})
	}
	if x.r.DB.Pending == nil {
		x.r.DB.Pending = map[packfile.Hash]packfile.Object{}
	}
	for _, o := range objs {
		x.r.DB.Pending[o.Hash] = packfile.Object{Kind: o.Kind, Data: o.Data}
	}
	return tree, err
}

// conflicts groups git's stages by path. raw lists the paths that git's tree has for
// the conflicts.
func (x *merging) conflicts(out *mergeOutput) (cs []conflict, raw []string, err error) {
	at := map[string]int{}
	for _, e := range out.stages {
		path, err := x.unmangle(e.path, out.sides)
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

// unmangle returns the original of a path that git changed. If the path of a file is
// taken, git appends ~ and the commit of the file's side. If that path is taken too,
// git appends _ and a number.
func (x *merging) unmangle(path string, sides [2]packfile.Hash) (string, error) {
	i := strings.LastIndexByte(path, '~')
	if i <= 0 {
		return path, nil
	}
	commit, number, numbered := strings.Cut(path[i+1:], "_")
	if commit != sides[0].String() && commit != sides[1].String() || numbered && strings.Trim(number, "0123456789") != "" {
		return path, nil
	}
	for _, side := range []Commit{x.o.Ours, x.o.Theirs} {
		if at, err := x.r.Lookup(side.Tree, path); err != nil || at.Found {
			return path, err // a side has a file of that name
		}
	}
	return path[:i], nil
}

// original reports whether each side of every conflict is a file that this side has at
// some path, and not a blob that git merged from several.
func (x *merging) original(ctx context.Context, cs []conflict) (bool, error) {
	for _, s := range []struct {
		tree  packfile.Hash
		entry func(conflict) packfile.TreeEntry
	}{
		{x.o.Ours.Tree, func(c conflict) packfile.TreeEntry { return c.ours }},
		{x.o.Theirs.Tree, func(c conflict) packfile.TreeEntry { return c.theirs }},
	} {
		var has map[packfile.Hash]bool
		for _, c := range cs {
			e := s.entry(c)
			if !e.IsFile() {
				continue
			}
			at, err := x.r.Lookup(s.tree, c.path)
			if err != nil {
				return false, err
			}
			if at.HasFile() && at.Hash == e.Hash {
				continue
			}
			if has == nil {
				has = map[packfile.Hash]bool{}
				if err := x.r.Walk(ctx, s.tree, "", func(_ string, e packfile.TreeEntry) error {
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

// reportRenames reports a file that the sides renamed differently as one conflict.
func (x *merging) reportRenames(renames [][3]string) {
	about := map[space.Conflict]bool{}
	for _, n := range renames {
		ours, theirs := space.Path(n[1]), space.Path(n[2])
		about[space.Conflict{Path: ours, Kept: ours}] = true
		about[space.Conflict{Path: theirs}] = true
	}
	x.reported = slices.DeleteFunc(x.reported, func(c space.Conflict) bool { return about[c] })
	for _, n := range renames {
		x.report(n[2], n[1])
	}
}

// prove checks that the result has both sides of every conflict. It does not rely on
// the code that resolved them.
func (x *merging) prove(cs []conflict, tree packfile.Hash) error {
	there := make(map[packfile.Hash]bool, len(x.placed))
	for path, p := range x.placed {
		at, err := x.r.Lookup(tree, path)
		if err != nil {
			return err
		}
		if !at.HasFile() || at.Hash != p.Hash || at.IsLink() != p.IsLink() {
			return fmt.Errorf("the merge lost %s, which must be at %q", p.Hash, path)
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
