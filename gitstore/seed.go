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

// StartingTree returns the files of a new space: a guide for people who open it, one
// instruction file, a context file to fill in, and a small skill.
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
		panic(err) // the files are embedded
	}
	return cs
}

// starters tells which files are still as they were when the space was created. A merge or
// an import may replace such a file, because nobody has worked on it. If the space has adopted
// a history, its first commit is foreign, and only the files of StartingTree count.
type starters struct {
	first packfile.Hash // the tree of the space's first commit; zero if that commit is foreign
	seed  map[string]packfile.TreeEntry
}

// startingTool is the tool in the trailers of spaces' first commits.
const startingTool = "satchel"

// startersOf returns the starters of a history. It follows first parents to the first commit.
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

// untouched reports whether an entry is still as it was when the space was created.
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

// seedEntries returns the files of StartingTree by path.
func seedEntries() map[string]packfile.TreeEntry {
	out := map[string]packfile.TreeEntry{}
	for _, c := range StartingTree().Changes {
		out[c.Path] = packfile.TreeEntry{Mode: packfile.TreeMode(c.Mode), Hash: plumbing.ComputeHash(plumbing.BlobObject, c.Content)}
	}
	return out
}

// replaceUntouchedSeeds lets the requests of an import replace the files that are still as
// they were when the space was created. It returns the paths of these files.
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
