package gitstore

import (
	"context"
	"maps"
	"math"
	"sync"

	"satchel/gitstore/commits"
	"satchel/gitstore/packfile"
	"satchel/gitstore/trees"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// A tree may refer to one subtree many times (see package trees). The size of a
// remote's head is therefore added up from its distinct trees, before the space takes
// any of the remote's objects.

// maxLinkTarget is the size in bytes up to which a link's target is read. No system
// allows a longer target (PATH_MAX), and the rules for links allow less.
const maxLinkTarget = 4096

// load is the size of a tree with all trees below it. A subtree counts once for each of
// its paths. A sum that would overflow is the largest integer instead.
type load struct {
	totals
	dirs   int   // number of trees: the tree itself and the trees below it
	text   int64 // the length in bytes of all file paths together
	height int   // levels of directories below the tree
}

func plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

func times(a, b int64) int64 {
	if a != 0 && b > math.MaxInt64/a {
		return math.MaxInt64
	}
	return a * b
}

// scales computes the loads of trees, once for each distinct tree.
type scales struct {
	r *repo
	// sizes reports whether to add up the sizes of files, which costs a lookup for
	// each file.
	sizes bool
	// past makes unreadable objects count as empty. It is set for the content of head.
	past bool
	seen map[packfile.Hash]load
}

func newScales(r *repo, sizes bool) *scales {
	return &scales{r: r, sizes: sizes, seen: map[packfile.Hash]load{}}
}

// tree returns the load of a tree. Directories that are nested too deep are a
// fault.Invalid.
func (s *scales) tree(ctx context.Context, h packfile.Hash) (load, error) { return s.visit(ctx, h, 0) }

func (s *scales) visit(ctx context.Context, h packfile.Hash, depth int) (l load, err error) {
	l, known := s.seen[h]
	if depth+l.height > trees.MaxDepth {
		return l, trees.ErrTooDeep()
	}
	if known {
		return l, nil
	}
	if err := ctx.Err(); err != nil {
		return l, err
	}
	es, err := s.r.db.Tree(h)
	if err != nil && !(s.past && packfile.Unreadable(err)) {
		return l, err
	}
	l.dirs = 1
	for _, e := range es {
		switch {
		case e.IsDir():
			b, err := s.visit(ctx, e.Hash, depth+1)
			if err != nil {
				return l, err
			}
			l.files = int(plus(int64(l.files), int64(b.files)))
			l.bytes = plus(l.bytes, b.bytes)
			l.dirs = int(plus(int64(l.dirs), int64(b.dirs)))
			l.text = plus(l.text, plus(b.text, times(int64(b.files), int64(len(e.Name))+1)))
			l.height = max(l.height, b.height+1)
		default: // a submodule counts as a path too
			l.files = int(plus(int64(l.files), 1))
			l.text = plus(l.text, int64(len(e.Name)))
			if !s.sizes || !e.IsFile() {
				continue
			}
			n, err := s.r.db.Size(e.Hash)
			if err != nil && !(s.past && packfile.Unreadable(err)) {
				return l, err
			}
			l.bytes = plus(l.bytes, n)
		}
	}
	s.seen[h] = l
	return l, nil
}

// fitsWalk reports whether a walk over the whole tree stays within the budget.
func (l load) fitsWalk(b *trees.Budget) bool {
	return b.Fits(l.files, l.dirs, l.text)
}

// loads caches the loads of trees from earlier fetches, so that the next fetch looks only
// at new trees.
type loads struct {
	mu   sync.Mutex
	seen map[packfile.Hash]load
}

// weighTip returns an error if a foreign tree is too large to walk, or if it exceeds the
// limits of a space and is larger than head. from is the repository that has the tree.
func (r *repo) weighTip(ctx context.Context, from *repo, tree packfile.Hash) error {
	s := newScales(from, true)
	r.loads.mu.Lock()
	old := r.loads.seen
	r.loads.mu.Unlock()
	maps.Copy(s.seen, old) // a copy, because two fetches may run at once
	l, err := s.tree(ctx, tree)
	if err != nil {
		return err
	}
	lim := r.s.o.Limits
	if l.files > lim.Files || l.bytes > lim.Space || !l.fitsWalk(r.trees().Budget()) {
		// The limits may be lower now than when head was committed. If head exceeds them,
		// its remote may too.
		s := newScales(r, true)
		s.past = true
		own, err := s.tree(ctx, r.head.Load().tree)
		if err != nil {
			return err
		}
		if l.files > max(own.files, lim.Files) || l.bytes > max(own.bytes, lim.Space) || !l.fitsWalk(r.trees().Budget()) {
			return overLimits(l.totals, lim)
		}
	}
	if len(s.seen) > maxKeptLoads {
		s.seen = nil
	}
	r.loads.mu.Lock()
	r.loads.seen = s.seen
	r.loads.mu.Unlock()
	return nil
}

// maxKeptLoads limits the loads that a space caches.
const maxKeptLoads = 50_000

// mergesFrom reports whether the trees of the shared commits in p are small enough for git
// to merge from. An old commit may exceed the limits of a head.
func (r *repo) mergesFrom(ctx context.Context, p *painting) (bool, error) {
	s := newScales(r, false)
	for _, d := range p.found {
		if p.colour[d.h] != paintBoth {
			continue
		}
		l, err := s.tree(ctx, d.c.Tree)
		if fault.CodeOf(err) == fault.Invalid {
			return false, nil
		}
		if err != nil || !l.fitsWalk(r.trees().Budget()) {
			return false, err
		}
	}
	return true, nil
}

// linkTarget returns the target of a link. It checks the size first, because the blob
// may be as large as git allows. A target that is too long is a fault.Invalid.
func (r *repo) linkTarget(path string, h packfile.Hash) (string, error) {
	n, err := r.db.Size(h)
	if err != nil {
		return "", err
	}
	if n > maxLinkTarget {
		return "", errLongTarget(path)
	}
	target, err := r.db.Blob(h)
	return string(target), err
}

func errLongTarget(path string) error {
	return fault.New(fault.Invalid, "The link %q has a target of more than %d bytes.", commits.Cut(path, space.MaxPathBytes), maxLinkTarget)
}

// checkLink returns a fault if a link of the repository breaks the rules. Any other error
// means that the link could not be read.
func (r *repo) checkLink(p space.Path, h packfile.Hash) error {
	target, err := r.linkTarget(string(p), h)
	if err != nil {
		return err
	}
	return space.CheckSymlink(p, target)
}
