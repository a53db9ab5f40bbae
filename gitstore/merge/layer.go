package merge

import (
	"context"
	"errors"
	"strings"

	"satchel/gitstore/packfile"
	"satchel/gitstore/trees"
)

// layer is a tree with changes that are not written yet.
type layer struct {
	r     trees.Reader
	tree  packfile.Hash
	set   map[string]packfile.TreeEntry // by path; a zero mode removes the file
	below map[string]int                // how many files of set are in each directory
}

func newLayer(r trees.Reader, tree packfile.Hash) *layer {
	return &layer{r: r, tree: tree, set: map[string]packfile.TreeEntry{}, below: map[string]int{}}
}

// standing is the entry of a layer at a path: a file, a directory, or nothing. If an
// ancestor of the path is a file, blocked is the ancestor's path and TreeEntry its entry.
type standing struct {
	packfile.TreeEntry
	dir     bool
	blocked string
}

func (s standing) free() bool { return s.Mode == 0 && !s.dir }

func (l *layer) at(ctx context.Context, path string) (standing, error) {
	for i := range path {
		if path[i] == '/' {
			if e := l.set[path[:i]]; e.Mode != 0 {
				return standing{TreeEntry: e, blocked: path[:i]}, nil
			}
		}
	}
	e, changed := l.set[path]
	if e.Mode != 0 {
		return standing{TreeEntry: e}, nil
	}
	if l.below[path] > 0 {
		return standing{dir: true}, nil
	}
	at, err := l.r.Lookup(l.tree, path)
	switch {
	case err != nil:
		return standing{}, err
	case at.Blocked != "":
		if _, gone := l.set[at.Blocked]; gone {
			return standing{}, nil
		}
		return standing{TreeEntry: at.TreeEntry, blocked: at.Blocked}, nil
	case at.HasDir():
		some, err := l.some(ctx, path, at.Hash)
		return standing{dir: some}, err
	case !at.Found || changed:
		return standing{}, nil
	}
	return standing{TreeEntry: at.TreeEntry}, nil
}

var errStop = errors.New("stop")

// some reports whether any file of a directory of the tree remains.
func (l *layer) some(ctx context.Context, dir string, tree packfile.Hash) (bool, error) {
	err := l.r.Walk(ctx, tree, dir+"/", func(path string, _ packfile.TreeEntry) error {
		if e, changed := l.set[path]; changed && e.Mode == 0 {
			return nil
		}
		return errStop
	})
	if errors.Is(err, errStop) {
		return true, nil
	}
	return false, err
}

// files lists the files of a directory. The keys are paths relative to dir, with a
// leading slash.
func (l *layer) files(ctx context.Context, dir string) (map[string]packfile.TreeEntry, error) {
	out := map[string]packfile.TreeEntry{}
	at, err := l.r.Lookup(l.tree, dir)
	if err != nil {
		return nil, err
	}
	if at.HasDir() {
		if err := l.r.Walk(ctx, at.Hash, "/", func(rest string, e packfile.TreeEntry) error {
			if _, changed := l.set[dir+rest]; !changed {
				out[rest] = e
			}
			return nil
		}); err != nil {
			return nil, err
		}
	}
	if l.below[dir] > 0 {
		for path, e := range l.set {
			if rest, ok := strings.CutPrefix(path, dir); ok && e.Mode != 0 && strings.HasPrefix(rest, "/") {
				out[rest] = e
			}
		}
	}
	return out, nil
}

// put sets a file. The caller has removed whatever is in its way.
func (l *layer) put(path string, e packfile.TreeEntry) {
	l.count(path, 1)
	l.set[path] = e
}

// remove deletes a file.
func (l *layer) remove(path string) error {
	l.count(path, 0)
	at, err := l.r.Lookup(l.tree, path)
	if err != nil {
		return err
	}
	if at.Found && !at.HasDir() {
		l.set[path] = packfile.TreeEntry{}
	} else {
		delete(l.set, path)
	}
	return nil
}

// count updates the file counts of the directories above path. n is the new number of
// files at path, 0 or 1.
func (l *layer) count(path string, n int) {
	if l.set[path].Mode != 0 {
		n--
	}
	for i := strings.LastIndexByte(path, '/'); i > 0; i = strings.LastIndexByte(path[:i], '/') {
		l.below[path[:i]] += n
	}
}

func (l *layer) edits() []trees.Edit {
	es := make([]trees.Edit, 0, len(l.set))
	for path, e := range l.set {
		es = append(es, trees.Edit{Path: path, Mode: e.Mode, Hash: e.Hash})
	}
	return es
}
