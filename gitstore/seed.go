package gitstore

import (
	"context"
	"embed"
	"io/fs"

	"github.com/go-git/go-git/v5/plumbing"

	"satchel/gitstore/commits"
	"satchel/gitstore/packfile"
	"satchel/internal/space"
)

//go:embed all:seed
var startingFiles embed.FS

// StartingTree returns what a new space holds: a guide for whoever opens it,
// one instruction file, a context file to fill in, and a small skill.
func StartingTree() space.ChangeSet {
	var cs space.ChangeSet
	root, err := fs.Sub(startingFiles, "seed")
	if err == nil {
		err = fs.WalkDir(root, ".", func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			data, err := fs.ReadFile(root, p)
			cs.Changes = append(cs.Changes, space.Change{Path: p, Content: data})
			return err
		})
	}
	if err != nil {
		panic(err) // the files are in the binary
	}
	return cs
}

// starters reports which files of a space are still as it began: what a history or
// an import from elsewhere has at such a path takes it, as no word of anybody's
// is lost by that. Of a space whose first commit is not its first any more (it
// has adopted a history) only what new spaces begin with counts.
type starters struct {
	first packfile.Hash // the tree of the space's first commit; zero if it is another's
	seed  map[string]packfile.TreeEntry
}

// startingTool is the tool that the first commits of spaces name; see admin and
// the pages.
const startingTool = "satchel"

// startersOf follows a history to its beginning.
func (r *repo) startersOf(ctx context.Context, head *headState) (starters, error) {
	s := starters{seed: seedEntries()}
	for at := head.id; ; {
		if err := ctx.Err(); err != nil {
			return s, err
		}
		c, err := commits.Get(r.db, at)
		if err != nil {
			return s, err
		}
		if len(c.Parents) > 0 {
			at = c.Parents[0]
			continue
		}
		if _, claimed, _ := c.Read(at); claimed == startingTool {
			s.first = c.Tree
		}
		return s, nil
	}
}

// untouched reports whether an entry is what the space began with at its path.
func (s starters) untouched(r *repo, path string, e packfile.TreeEntry) (bool, error) {
	if !e.IsFile() {
		return false, nil
	}
	if was, ok := s.seed[path]; ok && was.Hash == e.Hash && was.Mode == e.Mode {
		return true, nil
	}
	if s.first.IsZero() {
		return false, nil
	}
	was, err := r.trees().Lookup(s.first, path)
	return err == nil && was.HasFile() && was.Hash == e.Hash && was.Mode == e.Mode, err
}

// seedEntries are the files of StartingTree.
func seedEntries() map[string]packfile.TreeEntry {
	out := map[string]packfile.TreeEntry{}
	for _, c := range StartingTree().Changes {
		out[c.Path] = packfile.TreeEntry{Mode: packfile.TreeMode(c.Mode), Hash: plumbing.ComputeHash(plumbing.BlobObject, c.Content)}
	}
	return out
}

// replaceUntouchedSeeds lets requests of an import replace files that are as the space began,
// and lists their paths.
func (r *repo) replaceUntouchedSeeds(ctx context.Context, head *headState, reqs []request) (replaced []space.Path, err error) {
	var s *starters
	names := packfile.NameIndex{}
	for i, q := range reqs {
		at, err := r.trees().LookupIn(names, head.tree, string(q.path))
		if err != nil {
			return nil, err
		}
		if !at.HasFile() || at.Hash == q.hash {
			continue
		}
		if s == nil {
			found, err := r.startersOf(ctx, head)
			if err != nil {
				return nil, err
			}
			s = &found
		}
		ok, err := s.untouched(r, string(q.path), at.TreeEntry)
		if err != nil {
			return nil, err
		}
		if ok {
			reqs[i].base, reqs[i].baseMode = packfile.BlobID(at.Hash), at.FileMode()
			replaced = append(replaced, q.path)
		}
	}
	return replaced, nil
}
