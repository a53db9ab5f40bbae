package merge

import (
	"context"

	"satchel/gitstore/packfile"
	"satchel/gitstore/trees"
	"satchel/internal/facts"
)

// Facts are short and alike. If one side removes a fact and adds another, git takes the second
// for the renamed first, and merges the other side's edits into the wrong fact. So if both sides
// changed files under memory/, these files are merged path by path.

// maxFact limits the bytes of a file that is read as a fact.
const maxFact = 256 << 10

// isMemory reports whether a path is memory/ or below it.
func isMemory(path string) bool { return path == facts.Dir || facts.Under(path) }

// memoryChanges returns the changes under memory/ between the trees from and to.
func (x *merging) memoryChanges(ctx context.Context, from, to packfile.Hash) ([]trees.Change, error) {
	var all, out []trees.Change
	err := x.r.Diff(ctx, from, to, &all)
	for _, c := range all {
		if isMemory(c.Path) {
			out = append(out, c)
		}
	}
	return out, err
}

// mergeRest has git merge everything but memory/, if both sides changed files there. The result
// has our memory/. ok is false if only one side changed files there, or neither did.
func (x *merging) mergeRest(ctx context.Context) (out *mergeOutput, ok bool, err error) {
	mine, err := x.memoryChanges(ctx, x.o.Base.Tree, x.o.Ours.Tree)
	if err != nil || len(mine) == 0 {
		return nil, false, err
	}
	theirs, err := x.memoryChanges(ctx, x.o.Base.Tree, x.o.Theirs.Tree)
	if err != nil || len(theirs) == 0 {
		return nil, false, err
	}
	same := [3]packfile.Hash{x.o.Base.Tree, x.o.Ours.Tree, x.o.Theirs.Tree} // with our memory/
	for i, tree := range same {
		diff, err := x.memoryChanges(ctx, tree, x.o.Ours.Tree)
		if err != nil {
			return nil, false, err
		}
		edits := make([]trees.Edit, len(diff))
		for k, c := range diff {
			edits[k] = trees.Edit{Path: c.Path, Mode: c.New.Mode, Hash: c.New.Hash}
		}
		if len(edits) > 0 {
			if same[i], err = x.rewrite(tree, edits); err != nil {
				return nil, false, err
			}
		}
	}
	out, err = x.mergeTrees(ctx, same)
	return out, true, err
}

// mergeMemory adds the remote's changes under memory/ to the layer, which has our memory/, and
// returns the conflicts.
func (x *merging) mergeMemory(ctx context.Context) ([]conflict, error) {
	return x.mergePaths(ctx, isMemory)
}

// mixed reports whether git's merge of a fact must not be used: the sides changed the statement
// in different ways, or the merged file does not have the statement of the side that changed it.
// If neither side changed the statement, the merged file must have the old one. Git merges lines,
// so it can take a value from one side, and its source or its day of expiry from the other.
func (x *merging) mixed(c conflict, merged packfile.TreeEntry) (bool, error) {
	if _, _, ok := facts.Place(c.path); !ok {
		return false, nil
	}
	var says [4]statement
	for i, e := range []packfile.TreeEntry{c.base, c.ours, c.theirs, merged} {
		var err error
		if says[i], err = x.statement(e); err != nil {
			return false, err
		}
	}
	base, ours, theirs := says[0], says[1], says[2]
	if ours == base {
		ours = theirs
	} else if theirs != base && theirs != ours {
		return true, nil
	}
	return says[3] != ours, nil
}

// stated reports whether the user said the fact on our side, and an AI or an import wrote the
// fact on the other side.
func (x *merging) stated(c conflict) (bool, error) {
	if _, _, ok := facts.Place(c.path); !ok || !c.ours.IsPlain() || !c.theirs.IsPlain() {
		return false, nil
	}
	ours, err := x.statement(c.ours)
	if err != nil || !ours.stated {
		return false, err
	}
	theirs, err := x.statement(c.theirs)
	return !theirs.stated, err
}

// statement is what the file of a fact says. It includes the origin, so that a value of one side
// does not get the origin of the other.
type statement struct {
	value, expires, source, client, tool string
	stated                               bool // by the user; false if the file is not a fact
}

func (x *merging) statement(e packfile.TreeEntry) (statement, error) {
	obj, size, err := x.r.DB.ReadStart(e.Hash, maxFact)
	if err != nil || size > maxFact {
		return statement{}, err
	}
	f := facts.Read(obj.Data)
	return statement{facts.Whole(obj.Data), f.Expires, f.Source, f.Client, f.Tool, f.Problem == "" && f.Stated()}, nil
}
