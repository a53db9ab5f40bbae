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

// What a remote's head would hold is added up from each distinct tree before any of it
// is taken, since a tree may name one subtree many times (see package trees).

// maxLinkTarget is how many bytes of a link's target are read at most: what is
// longer is no target on any system (PATH_MAX), and a rule refuses it sooner.
const maxLinkTarget = 4096

// load is what a tree holds with all below it, each path counted. Sums that
// would overflow stay at the largest number.
type load struct {
	totals
	dirs   int   // the tree and those below it
	text   int64 // bytes of all paths
	height int   // of the directories below it
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

// scales weigh trees, each distinct one once.
type scales struct {
	r *repo
	// sizes reports whether the files' sizes are added up, which costs a look at
	// each.
	sizes bool
	// past counts unreadable objects as empty. It is for what head already has.
	past bool
	seen map[packfile.Hash]load
}

func newScales(r *repo, sizes bool) *scales {
	return &scales{r: r, sizes: sizes, seen: map[packfile.Hash]load{}}
}

// Tree weighs a tree. Directories that are nested too deep are a fault.Invalid.
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
		default: // a submodule is a path as well
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

// fitsWalk reports whether a walk over the whole tree stays in its budget.
func (l load) fitsWalk(b *trees.Budget) bool {
	return b.Fits(l.files, l.dirs, l.text)
}

// loads keeps what the trees of the last fetch weighed, so that the next one
// looks at those that are new.
type loads struct {
	mu   sync.Mutex
	seen map[packfile.Hash]load
}

// weighTip reports why a tree that came from elsewhere must not be taken: it
// alone is over the limits of a space, and over what head holds. from reads it.
func (r *repo) weighTip(ctx context.Context, from *repo, tree packfile.Hash) error {
	s := newScales(from, true)
	r.loads.mu.Lock()
	old := r.loads.seen
	r.loads.mu.Unlock()
	maps.Copy(s.seen, old) // two fetches may run at once
	l, err := s.tree(ctx, tree)
	if err != nil {
		return err
	}
	lim := r.s.o.Limits
	if l.files > lim.Files || l.bytes > lim.Space || !l.fitsWalk(r.trees().Budget()) {
		// A space may hold more than the limits of today: then its remote may too.
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

// maxKeptLoads bounds how many trees' loads a space keeps.
const maxKeptLoads = 50_000

// mergesFrom reports whether git may merge from what two histories have in
// common: an old commit may hold what no head may.
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

// linkTarget returns the target of a link, which nobody else should read: the
// blob may be as large as git allows. One that is too long is a fault.Invalid.
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

// checkLink reports why a link of the repository breaks the rules; an error of
// another kind than a fault is the repository's.
func (r *repo) checkLink(p space.Path, h packfile.Hash) error {
	target, err := r.linkTarget(string(p), h)
	if err != nil {
		return err
	}
	return space.CheckSymlink(p, target)
}
