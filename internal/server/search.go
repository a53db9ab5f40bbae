package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"satchel/auth/store"
	"satchel/gitstore"
	"satchel/internal/config"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/tools/index"
	"satchel/tools/index/evaluate"
)

// finder searches for the command line: over the index of a running server, or
// one that it opened itself.
type finder struct {
	core    *Core
	git     *gitstore.Store
	index   *index.Index
	service *service.Service
	lib     library
	own     bool // the index is to be closed
}

var _ service.Finder = (*finder)(nil)

// newFinder makes a finder. It gives the service an index of its own.
func (c *Core) newFinder(x *index.Index, own bool) *finder {
	if own {
		c.Service.Attach(service.Running{Index: x})
	}
	return &finder{core: c, git: c.Git, index: x, service: c.Service, lib: c.library(), own: own}
}

// openFinder is for a data directory on which no server works.
func (c *Core) openFinder(context.Context) (service.Finder, error) {
	x, err := openIndex(c.Config, c.Log)
	if err != nil {
		return nil, err
	}
	return c.newFinder(x, true), nil
}

// searchLimits are what the configuration says about searches.
func searchLimits(cfg *config.Config) service.SearchLimits {
	return service.SearchLimits{Wait: cmp.Or(cfg.Search.Wait, -1)}
}

// Close implements service.Finder.
func (f *finder) Close() error {
	if !f.own {
		return nil
	}
	return f.index.Close()
}

// Search implements service.Finder.
func (f *finder) Search(ctx context.Context, u store.User, m store.Membership, args json.RawMessage, explain bool, progress func(string)) (json.RawMessage, error) {
	src := f.source(progress)
	// Command-line searches wait for the index to catch up, but not for a rebuild.
	if err := f.catchUp(ctx, m.ID, src); err != nil {
		return nil, err
	}
	if f.own {
		if err := f.catchUpLibrary(ctx, u.ID); err != nil {
			return nil, err
		}
	}
	var in service.SearchInput
	if err := json.Unmarshal(args, &in); err != nil {
		return nil, fault.Wrap(err, fault.Invalid, "The arguments of the search are malformed.")
	}
	in.Space, in.Explain = service.SpaceRef{ID: m.ID}, explain
	var res service.SearchResults
	err := f.index.Sound(ctx, m.ID, src, func() (err error) {
		res, err = f.service.Search(ctx, service.Person(u), in)
		return err
	})
	if err != nil {
		return nil, err
	}
	if explain {
		return json.Marshal(res)
	}
	encoded, _ := res.Encoded()
	return encoded, nil
}

// catchUp brings the index of a collection to its head.
func (f *finder) catchUp(ctx context.Context, id space.SpaceID, src index.Source) error {
	there, err := f.index.AtHead(ctx, id, src)
	if err != nil || there {
		return err
	}
	return f.index.Update(ctx, id, src)
}

// catchUpLibrary brings the indexes of published sources up to their snapshots, as a
// server does by itself. It skips a source that fails; the answer then says that its
// index is behind.
func (f *finder) catchUpLibrary(ctx context.Context, user space.UserID) error {
	all, err := f.lib.Sources(ctx, user)
	if err != nil {
		return err
	}
	for _, s := range all {
		if s.Commit == "" {
			continue // it has no snapshot yet
		}
		if err := f.catchUp(ctx, s.Collection, f.lib.Manager); ctx.Err() != nil {
			return err
		}
	}
	return nil
}

// Rebuild implements service.Finder.
func (f *finder) Rebuild(ctx context.Context, id space.SpaceID, progress func(string)) (service.Reindexed, error) {
	src := f.source(progress)
	if err := f.index.Rebuild(ctx, id, src); err != nil {
		return service.Reindexed{}, err
	}
	return f.reindexed(ctx, id, src)
}

// Purged implements service.Finder. What was purged would stay in the free pages of the
// old index.
func (f *finder) Purged(ctx context.Context, id space.SpaceID) error {
	rebuild := func(ctx context.Context, id space.SpaceID, src index.Source) error {
		return errors.Join(f.index.Rebuild(ctx, id, src), forgetVectors(ctx, f.core.Config, f.index, id))
	}
	shared := func(ctx context.Context, collection space.SpaceID) error {
		return rebuild(ctx, collection, f.lib.Manager)
	}
	return errors.Join(rebuild(ctx, id, f.git), f.core.purgedSources(ctx, id, shared))
}

// Reread implements service.Finder.
func (f *finder) Reread(ctx context.Context, id space.SpaceID, paths []space.Path, progress func(string)) (service.Reindexed, error) {
	src := f.source(progress)
	absent, err := f.index.Reread(ctx, id, src, paths)
	if err != nil {
		return service.Reindexed{}, err
	}
	done, err := f.reindexed(ctx, id, src)
	done.Absent = absent
	return done, err
}

func (f *finder) reindexed(ctx context.Context, id space.SpaceID, src *countingStore) (service.Reindexed, error) {
	st, err := f.index.Status(ctx, id)
	if err != nil {
		return service.Reindexed{}, err
	}
	return service.Reindexed{Commit: st.Commit, Documents: st.Docs, Read: src.reads()}, nil
}

// Rank implements service.Finder.
func (f *finder) Rank(ctx context.Context, id space.SpaceID, query string, depth int) (service.Ranking, error) {
	var r service.Ranking
	// A ranking over a part of the index would be measured as if it were one.
	err := f.index.Sound(ctx, id, f.source(func(string) {}), func() (err error) {
		r.Paths, r.Took, err = evaluate.RankPaths(ctx, f.index, []index.Collection{{ID: id, Label: "space"}}, query, depth)
		return err
	})
	return r, err
}

// source is the store of spaces, which tells what an index reads from it.
func (f *finder) source(progress func(string)) *countingStore {
	return &countingStore{Store: f.git, progress: progress}
}

// reportInterval is how often progress is reported.
const reportInterval = 100 * time.Millisecond

// countingStore is a store that tells how much of it was read.
type countingStore struct {
	*gitstore.Store
	progress func(string)

	mu          sync.Mutex
	done, total int
	reported    time.Time
}

// Files implements index.Source.
func (s *countingStore) Files(ctx context.Context, id space.SpaceID, at space.CommitID, under space.Path) ([]space.Entry, error) {
	files, err := s.Store.Files(ctx, id, at, under)
	s.expect(len(files))
	return files, err
}

// Diff implements index.Source.
func (s *countingStore) Diff(ctx context.Context, id space.SpaceID, from, to space.CommitID) ([]space.FileChange, error) {
	files, err := s.Store.Diff(ctx, id, from, to)
	s.expect(len(files))
	return files, err
}

func (s *countingStore) expect(files int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total = s.done + files
}

// ReadBlob implements index.Source.
func (s *countingStore) ReadBlob(ctx context.Context, id space.SpaceID, b space.BlobID) ([]byte, error) {
	s.mu.Lock()
	s.done++
	if now := time.Now(); s.total > 1 && now.Sub(s.reported) >= reportInterval {
		s.reported = now
		s.progress(fmt.Sprintf("Indexing file %d of %d", s.done, s.total))
	}
	s.mu.Unlock()
	return s.Store.ReadBlob(ctx, id, b)
}

func (s *countingStore) reads() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.done
}

func indexDir(cfg *config.Config) string { return filepath.Join(cfg.DataDir, "index") }
