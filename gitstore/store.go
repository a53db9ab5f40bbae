package gitstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"

	"satchel/gitstore/commits"
	"satchel/gitstore/gitcmd"
	"satchel/gitstore/merge"
	"satchel/gitstore/packfile"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// Store keeps the spaces under one directory. Its methods are safe for
// concurrent use.
type Store struct {
	o     Options
	git   gitcmd.Runner
	lock  *Lock
	cache *packfile.Cache
	texts *merge.Texts

	// ctx ends when the store closes; work counts the background goroutines.
	ctx  context.Context
	stop context.CancelFunc
	work sync.WaitGroup

	mu     sync.Mutex
	open   map[space.SpaceID]*repo
	gone   map[space.SpaceID]bool // deleted since this process began
	closed bool
}

var (
	_ space.Committer = (*Store)(nil)
	_ space.Checkouts = (*Store)(nil)
)

// The names in the store's directory that are not spaces.
const (
	cacheDir      = ".cache"      // checkouts and git views; they can be made again
	quarantineDir = ".quarantine" // imports and transfers that have not been checked
	libraryDir    = ".library"
)

// Open opens a store and locks its directory. If another process holds the lock, the
// error is a fault.Conflict. The caller must call Close.
func Open(o Options) (*Store, error) {
	if o.Dir == "" {
		return nil, errors.New("gitstore: Options.Dir is empty")
	}
	o = o.withDefaults()
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, err
	}
	o.Dir = dir
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	lock, err := LockDir(dir)
	if err != nil {
		return nil, err
	}
	s := &Store{
		o:     o,
		git:   gitcmd.Runner{Program: o.Git, Timeout: o.GitTimeout, Memory: o.GitMemory},
		lock:  lock,
		cache: packfile.NewCache(o.CacheBytes),
		open:  map[space.SpaceID]*repo{},
		gone:  map[space.SpaceID]bool{},
	}
	s.texts = merge.NewTexts(s.git, filepath.Join(dir, cacheDir))
	if n := gitcmd.EndOrphans(dir); n > 0 {
		o.Logger.Warn("Processes of git that a killed server had left were ended.", "count", n)
	}
	if err := s.clean(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	return s, nil
}

// clean removes what an earlier process left, and creates the store's own directories. No
// sandbox of the earlier process can be alive, because this process holds the lock.
func (s *Store) clean() error {
	es, err := os.ReadDir(s.o.Dir)
	if err != nil {
		return err
	}
	for _, e := range es {
		switch name := e.Name(); {
		case name == cacheDir || name == quarantineDir, len(name) > 5 && name[:5] == ".new-":
			if err := removeTree(filepath.Join(s.o.Dir, name)); err != nil {
				return err
			}
		}
	}
	if s.o.LibraryDir == "" {
		s.o.LibraryDir = filepath.Join(s.o.Dir, libraryDir)
		if err := os.MkdirAll(s.o.LibraryDir, 0o755); err != nil {
			return err
		}
	}
	for _, d := range []string{cacheDir, quarantineDir} {
		if err := packfile.MkdirMode(filepath.Join(s.o.Dir, d), 0o700); err != nil {
			return err
		}
	}
	return nil
}

// removeTree removes a directory, even if directories in it are read-only.
func removeTree(dir string) error {
	err := os.RemoveAll(dir)
	if err == nil || !errors.Is(err, fs.ErrPermission) {
		return err
	}
	filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			os.Chmod(p, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}

// Close waits for background work, closes every space and releases the directory. All
// checkouts must have been released.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.mu.Unlock()
	s.stop()
	s.work.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, r := range s.open {
		r.db.Close()
		delete(s.open, id)
	}
	return s.lock.Close()
}

// background runs f in a goroutine that Close waits for. If the store is closed,
// background does nothing and returns false.
func (s *Store) background(f func(ctx context.Context)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.work.Go(func() { f(s.ctx) })
	return true
}

func (s *Store) repoDir(id space.SpaceID) string {
	return filepath.Join(s.o.Dir, string(id)+".git")
}

// acquire opens a space, or shares the open one. The caller must call release.
func (s *Store) acquire(ctx context.Context, id space.SpaceID) (r *repo, release func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	if _, err := space.ParseSpaceID(string(id)); err != nil {
		return nil, nil, err
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, nil, fault.New(fault.Unavailable, "The server is shutting down.")
	}
	if s.gone[id] {
		s.mu.Unlock()
		return nil, nil, errNoSpace()
	}
	r = s.open[id]
	if r == nil {
		s.evict()
		r = s.unopened(id)
		s.open[id] = r
		s.mu.Unlock()
		// Open without the lock, because recovery may take a while, and without the
		// caller's cancellation, because others may wait for the space too.
		err = r.openDisk(context.WithoutCancel(ctx))
		s.mu.Lock()
		if err != nil {
			r.openErr = err
			delete(s.open, id)
		}
		close(r.opened)
	}
	r.users++
	s.mu.Unlock()
	release = sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		r.users--
		r.free()
	})
	select {
	case <-r.opened:
		err = r.openErr
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		release()
		return nil, nil, err
	}
	return r, release, nil
}

// unopened returns a space that is not open: only its files can be used.
func (s *Store) unopened(id space.SpaceID) *repo {
	return &repo{s: s, id: id, dir: s.repoDir(id), opened: make(chan struct{}), freed: make(chan struct{}, 1), reverts: make(chan struct{}, 1)}
}

// evict closes spaces that nobody uses if too many are open.
func (s *Store) evict() {
	for id, r := range s.open {
		if len(s.open) < s.o.OpenSpaces {
			return
		}
		select {
		case <-r.opened:
		default:
			continue
		}
		if r.users == 0 && !r.seeds.inUse() {
			r.forgetSeeds()
			r.db.Close()
			delete(s.open, id)
		}
	}
}

// Exists reports whether a space exists.
func (s *Store) Exists(id space.SpaceID) bool {
	if _, err := space.ParseSpaceID(string(id)); err != nil {
		return false
	}
	s.mu.Lock()
	gone := s.gone[id]
	s.mu.Unlock()
	if gone {
		return false
	}
	_, err := os.Stat(filepath.Join(s.repoDir(id), "HEAD"))
	return err == nil
}

// Create creates a space with its first commit, and returns once both are durable.
// initial may be empty; [StartingTree] returns the usual files. A space that exists is
// a fault.Conflict. A refused entry fails the whole call, because the caller is the
// server itself.
func (s *Store) Create(ctx context.Context, id space.SpaceID, initial space.ChangeSet, m space.Meta) (space.Commit, error) {
	c, err := s.create(ctx, id, initial, m)
	return c, explainDisk(err)
}

func (s *Store) create(ctx context.Context, id space.SpaceID, initial space.ChangeSet, m space.Meta) (space.Commit, error) {
	if _, err := space.ParseSpaceID(string(id)); err != nil {
		return space.Commit{}, err
	}
	s.mu.Lock()
	gone := s.gone[id]
	s.mu.Unlock()
	if gone || s.Exists(id) {
		return space.Commit{}, fault.New(fault.Conflict, "There is or was a space %s already.", id)
	}
	tmp, err := os.MkdirTemp(s.o.Dir, ".new-")
	if err != nil {
		return space.Commit{}, err
	}
	defer os.RemoveAll(tmp)
	dir := filepath.Join(tmp, "repo")
	if err := initBare(dir); err != nil {
		return space.Commit{}, err
	}
	c, err := s.firstCommit(ctx, id, dir, initial, m)
	if err != nil {
		return space.Commit{}, err
	}
	if err := s.syncTree(dir); err != nil {
		return space.Commit{}, err
	}
	s.mu.Lock()
	err = os.Rename(dir, s.repoDir(id))
	s.mu.Unlock()
	if errors.Is(err, fs.ErrExist) {
		return space.Commit{}, fault.New(fault.Conflict, "The space %s exists already.", id)
	}
	if err != nil {
		return space.Commit{}, err
	}
	if err := s.o.disk.SyncDir(s.o.Dir); err != nil {
		return space.Commit{}, err
	}
	s.publish(id, c)
	return c, nil
}

func (s *Store) firstCommit(ctx context.Context, id space.SpaceID, dir string, initial space.ChangeSet, m space.Meta) (space.Commit, error) {
	db, err := packfile.Open(filepath.Join(dir, "objects"), s.cache)
	if err != nil {
		return space.Commit{}, err
	}
	defer db.Close()
	r := &repo{s: s, id: id, dir: dir, db: db, reverts: make(chan struct{}, 1)}
	r.head.Store(&headState{})
	if m.Message == "" {
		m.Message = "Start the space"
	}
	reqs, refused, err := r.validate(ctx, initial)
	if err != nil {
		return space.Commit{}, err
	}
	r.commitMu.Lock()
	defer r.commitMu.Unlock()
	c, err := r.commit(ctx, reqs, refused, initial.Policy, m)
	if err != nil {
		return space.Commit{}, err
	}
	if len(c.Rejected) > 0 {
		return space.Commit{}, c.Rejected[0].Err
	}
	return c, nil
}

// syncTree makes a new repository durable, including its directories.
func (s *Store) syncTree(dir string) error {
	return filepath.WalkDir(dir, func(p string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return s.o.disk.SyncDir(p) // SyncDir works for files too
	})
}

func (s *Store) publish(id space.SpaceID, c space.Commit) {
	if s.o.Events != nil {
		s.o.Events.Publish(space.Event{Space: id, Commit: c})
	}
}

// notFoundPath returns the error for a path that a commit does not have.
func notFoundPath(p space.Path, c space.CommitID) error {
	return fault.New(fault.NotFound, "There is no file %q at commit %s.", string(p), c.Short())
}

// logger returns the store's logger with the space's id.
func (r *repo) logger() *slog.Logger { return r.s.o.Logger.With("space", string(r.id)) }

// internalf wraps an internal error. A full disk becomes a fault, because the operator
// can act on it.
func (r *repo) internalf(err error, what string) error {
	return explainDisk(fmt.Errorf("space %s: %s: %w", r.id, what, err))
}

// isCommit reports whether h names a commit that the space has.
func (r *repo) isCommit(h packfile.Hash) bool {
	o, _, err := r.db.ReadStart(h, commits.MaxStart)
	return err == nil && o.Kind == plumbing.CommitObject
}
