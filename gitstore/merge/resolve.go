package merge

import (
	"context"
	"maps"
	"path"
	"slices"
	"strings"

	"satchel/gitstore/packfile"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// settle puts both sides of every conflict into the layer. It first puts the remote's files, and
// moves aside whatever is in their way. Then it puts the files that only we have. Last it puts our
// side of the other conflicts beside the remote's. For a fact that the user stated on our side,
// the sides are exchanged.
func (x *merging) settle(ctx context.Context, cs []conflict) error {
	slices.SortFunc(cs, func(a, b conflict) int { return packfile.CompareStrings(a.path, b.path) })
	for i := range cs {
		stated, err := x.stated(cs[i])
		if err != nil {
			return err
		}
		if stated {
			cs[i].ours, cs[i].theirs, cs[i].swapped = cs[i].theirs, cs[i].ours, true
		}
	}
	for _, c := range cs {
		if c.theirs.Mode == 0 {
			continue
		}
		if c.theirs.Mode == c.base.Mode && c.theirs.IsPlain() && c.ours.IsPlain() {
			c.theirs.Mode = c.ours.Mode // only we can have changed the mode
		}
		if err := x.claim(ctx, c.path, c.theirs); err != nil {
			return err
		}
		if c.ours.Mode == 0 && c.base.Mode != 0 {
			x.report(c.path, "") // we deleted it
		}
	}
	for _, c := range cs {
		if c.theirs.Mode != 0 || c.ours.Mode == 0 {
			continue
		}
		at, err := x.layer.at(ctx, c.path)
		switch {
		case err != nil:
			return err
		case at.free():
			x.layer.put(c.path, c.ours)
			x.place(c.path, c.ours)
			if c.base.Mode != 0 {
				x.report(c.path, c.path)
			}
		case at.blocked != "":
			err = x.beside(ctx, c.path, at.blocked, strings.TrimPrefix(c.path, at.blocked), c.ours)
		default:
			err = x.beside(ctx, c.path, c.path, "", c.ours)
		}
		if err != nil {
			return err
		}
	}
	for _, c := range cs {
		if c.theirs.Mode == 0 || c.ours.Mode == 0 {
			continue
		}
		if c.ours.Hash == c.theirs.Hash && c.ours.IsLink() == c.theirs.IsLink() {
			continue // equal contents; the remote's mode stays
		}
		if err := x.beside(ctx, c.path, c.path, "", c.ours); err != nil {
			return err
		}
		x.reported[len(x.reported)-1].Remote = c.swapped
	}
	return nil
}

// claim puts the remote's file at its path and moves aside whatever is in the way.
func (x *merging) claim(ctx context.Context, p string, e packfile.TreeEntry) error {
	at, err := x.layer.at(ctx, p)
	if err != nil {
		return err
	}
	switch {
	case at.blocked != "" && x.isPlaced(at.blocked):
		// The file in the way is the remote's too. This happens if git reports e at the
		// path to which we renamed it.
		return x.beside(ctx, p, at.blocked, strings.TrimPrefix(p, at.blocked), e)
	case at.blocked != "":
		if err := x.aside(ctx, at.blocked, at.blocked, "", at.TreeEntry); err != nil {
			return err
		}
	case at.dir:
		files, err := x.layer.files(ctx, p)
		if err != nil {
			return err
		}
		for _, rest := range slices.Sorted(maps.Keys(files)) {
			if err := x.aside(ctx, p+rest, p, rest, files[rest]); err != nil {
				return err
			}
		}
	case at.Mode != 0 && at.TreeEntry.Hash != e.Hash:
		if err := x.aside(ctx, p, p, "", at.TreeEntry); err != nil {
			return err
		}
	}
	x.layer.put(p, e)
	x.place(p, e)
	return nil
}

// aside moves the file at p out of the remote's way. component is the part of p that is
// taken. rest is the part below component, with its slash.
func (x *merging) aside(ctx context.Context, p, component, rest string, e packfile.TreeEntry) error {
	if err := x.layer.remove(p); err != nil {
		return err
	}
	delete(x.placed, p)
	return x.beside(ctx, p, component, rest, e)
}

// beside keeps a file whose path p is taken, under another name. component is the part of
// p that is taken; rest is the part below component. If the layer has an equal copy,
// beside adds no other. It does not keep a submodule: the history has the link, and the
// files belong to another repository.
func (x *merging) beside(ctx context.Context, p, component, rest string, e packfile.TreeEntry) error {
	if !e.IsFile() {
		x.report(p, "")
		return nil
	}
	if rest == "" {
		if at, ok, err := x.kept(ctx, component, e); err != nil || ok {
			if ok {
				x.place(at, e)
				x.report(p, at)
			}
			return err
		}
	}
	component = originalOf(component)
	for n := 1; n <= maxCopies; n++ {
		name, ok := ConflictName(component, rest, packfile.CommitID(x.o.Theirs.ID), n)
		if !ok { // the path breaks the rules, as an imported one may
			component, rest = "unnamed", ""
			if name, ok = ConflictName(component, rest, packfile.CommitID(x.o.Theirs.ID), n); !ok {
				break
			}
		}
		at, err := x.layer.at(ctx, string(name))
		if err != nil {
			return err
		}
		if !at.free() && (at.Hash != e.Hash || at.Mode != e.Mode || at.blocked != "") {
			continue
		}
		if at.free() {
			x.layer.put(string(name), e)
		}
		x.place(string(name), e)
		x.report(p, string(name))
		return nil
	}
	return fault.New(fault.Conflict, "There is no free name for a copy of %.200q, which changed both here and at the remote. Rename or delete its older copies.", p)
}

// maxCopies limits the conflict copies of one file for one commit.
const maxCopies = 1000

// kept finds a conflict copy of a file with the same content and mode.
func (x *merging) kept(ctx context.Context, p string, e packfile.TreeEntry) (string, bool, error) {
	dir, name := path.Split(originalOf(p))
	copies, err := x.copiesIn(dir)
	if err != nil {
		return "", false, err
	}
	stem, ext := CopyStem(name)
	for _, name := range copies[copyOf{stem, e.Hash, e.Mode}] {
		at := dir + name
		if at == p || !strings.HasSuffix(name, ext) {
			continue
		}
		now, err := x.layer.at(ctx, at)
		if err != nil {
			return "", false, err
		}
		if now.Hash == e.Hash && now.Mode == e.Mode {
			return at, true, nil
		}
	}
	return "", false, nil
}

// copyOf is the stem of a conflict copy's name, and the copy's content.
type copyOf struct {
	stem string
	hash packfile.Hash
	mode uint32
}

// copiesIn returns the names of the conflict copies in a directory of the tree. dir is
// empty or ends in a slash.
func (x *merging) copiesIn(dir string) (map[copyOf][]string, error) {
	if copies, ok := x.copies[dir]; ok {
		return copies, nil
	}
	parent, err := x.r.Lookup(x.layer.tree, strings.TrimSuffix(dir, "/"))
	if err != nil {
		return nil, err
	}
	copies := map[copyOf][]string{}
	if parent.HasDir() {
		all, err := x.r.DB.Tree(parent.Hash)
		if err != nil {
			return nil, err
		}
		for _, e := range all {
			if !e.IsFile() || !space.IsConflictCopy(space.Path(e.Name)) {
				continue
			}
			for i := range e.Name { // the name of a copy of a copy has several marks
				if strings.HasPrefix(e.Name[i:], space.ConflictMark) {
					k := copyOf{e.Name[:i], e.Hash, e.Mode}
					copies[k] = append(copies[k], e.Name)
				}
			}
		}
	}
	if x.copies == nil {
		x.copies = map[string]map[copyOf][]string{}
	}
	x.copies[dir] = copies
	return copies, nil
}

// originalOf returns the path whose conflict copy p is, or p if p is not a conflict copy.
// So the name of a copy of a copy is not longer than the name of a copy.
func originalOf(p string) string {
	dir, name := path.Split(p)
	for {
		stem, ext := CopyStem(name)
		i := strings.LastIndex(stem, space.ConflictMark)
		if i <= 0 || !space.IsConflictCopy(space.Path(stem[i:])) {
			return dir + name
		}
		name = stem[:i] + ext
	}
}

func (x *merging) place(p string, e packfile.TreeEntry) {
	if e.IsFile() {
		if x.placed == nil {
			x.placed = map[string]packfile.TreeEntry{}
		}
		x.placed[p] = e
	}
}

func (x *merging) isPlaced(p string) bool {
	_, ok := x.placed[p]
	return ok
}

func (x *merging) report(p, kept string) {
	x.reported = append(x.reported, space.Conflict{Path: space.Path(p), Kept: space.Path(kept)})
}
