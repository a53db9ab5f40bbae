package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"satchel/auth/store"
	"satchel/gitstore"
	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/tools/index"
	"satchel/tools/index/evaluate"
)

// withIndex calls f with the running server's search index. If no server runs, withIndex opens
// the index, and closes it after f.
func (s *Service) withIndex(f func(x *index.Index) error) (err error) {
	if s.running.Index != nil {
		return f(s.running.Index)
	}
	if s.o.OpenIndex == nil {
		return errNoIndex
	}
	x, err := s.o.OpenIndex()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, x.Close()) }()
	return f(x)
}

var errNoIndex = fault.New(fault.Unavailable, "There is no search index here.")

// catchUp brings the index of a collection to the collection's head.
func catchUp(ctx context.Context, x *index.Index, id space.SpaceID, src index.Source) error {
	there, err := x.AtHead(ctx, id, src)
	if err != nil || there {
		return err
	}
	return x.Update(ctx, id, src)
}

// catchUpLibrary updates the indexes of published sources, as a running server does in the
// background. It skips sources that fail. The search then reports that their index is behind.
func (s *Service) catchUpLibrary(ctx context.Context, x *index.Index, cols []index.Collection) error {
	for _, c := range cols {
		if c.Label == SpaceLabel {
			continue
		}
		if err := catchUp(ctx, x, c.ID, s.sources); ctx.Err() != nil {
			return err
		}
	}
	return nil
}

// purgeIndex rebuilds all indexes of a space after a purge, because free pages of the old
// indexes still contain the purged content.
func (s *Service) purgeIndex(ctx context.Context, x *index.Index, id space.SpaceID) error {
	rebuild := func(id space.SpaceID, src index.Source) error {
		err := x.Rebuild(ctx, id, src)
		if s.o.ForgetVectors != nil {
			err = errors.Join(err, s.o.ForgetVectors(ctx, x, id))
		}
		return err
	}
	errs := []error{rebuild(id, s.git)}
	collections, err := s.sources.Purged(ctx, id)
	for _, c := range collections {
		errs = append(errs, rebuild(c, s.sources))
	}
	return errors.Join(append(errs, err)...)
}

// ReindexInput selects spaces to index again.
type ReindexInput struct {
	// Space selects one space. The zero SpaceRef selects all spaces or, if Changed is set, only
	// the first space of the first administrator.
	Space SpaceRef `json:"space"`
	// Changed lists paths of one space to read again. If it is nil, the whole index is
	// rebuilt.
	Changed []string `json:"changed"`
}

// Reindexed describes the index of a space after an update.
type Reindexed struct {
	Space     space.SpaceID  `json:"space"`
	Owner     string         `json:"owner"`
	Commit    space.CommitID `json:"commit"`    // the commit that is indexed
	Documents int64          `json:"documents"` // number of documents in the index
	Read      int            `json:"read"`      // number of files that were read
	// Absent lists the paths of ReindexInput.Changed that do not exist, sorted.
	Absent  []space.Path `json:"absent,omitempty"`
	Seconds float64      `json:"seconds"`
}

// Reindex rebuilds or updates the search index of spaces.
func (s *Service) Reindex(ctx context.Context, a Actor, in ReindexInput) ([]Reindexed, error) {
	if err := s.authorize(a, "Reindex"); err != nil {
		return nil, err
	}
	var paths []space.Path
	for _, c := range in.Changed {
		p, err := space.ParsePath(c)
		if err != nil {
			return nil, err
		}
		paths = append(paths, p)
	}
	slices.Sort(paths)
	paths = slices.Compact(paths)
	names, err := s.accounts.UserNames(ctx)
	if err != nil {
		return nil, err
	}
	spaces, err := s.accounts.Spaces(ctx)
	if in.Space != (SpaceRef{}) || in.Changed != nil {
		m, merr := s.authorizeSpace(ctx, a, "Reindex", in.Space)
		spaces, err = []store.Space{m.Space}, merr
	}
	if err != nil {
		return nil, err
	}
	out := []Reindexed{}
	err = s.withIndex(func(x *index.Index) error {
		for i, sp := range spaces {
			progress := Progress(ctx)
			if len(spaces) > 1 {
				progress = func(text string) { Progress(ctx)(fmt.Sprintf("%d of %d spaces: %s", i+1, len(spaces), text)) }
			}
			began, src := time.Now(), &countingStore{Store: s.git, progress: progress}
			done := Reindexed{Space: sp.ID, Owner: ownerLabel(names[sp.Owner])}
			var err error
			if in.Changed != nil {
				done.Absent, err = x.Reread(ctx, sp.ID, src, paths)
			} else {
				err = x.Rebuild(ctx, sp.ID, src)
			}
			if err != nil {
				return err
			}
			st, err := x.Status(ctx, sp.ID)
			if err != nil {
				return err
			}
			done.Commit, done.Documents, done.Read, done.Seconds = st.Commit, st.Docs, src.reads(), time.Since(began).Seconds()
			out = append(out, done)
		}
		return nil
	})
	return out, err
}

// ownerLabel returns a text for people that names an owner, even if the owner was removed.
func ownerLabel(n store.UserName) string {
	if n.Removed {
		return store.OwnerLabel("", n.Name)
	}
	return n.Name
}

// RankPagesInput holds queries to run in a space.
type RankPagesInput struct {
	Space   SpaceRef     `json:"space"`
	Queries []string     `json:"queries"`
	Depth   int          `json:"depth"` // maximum number of documents in a ranking
	Paths   []space.Path `json:"paths"` // paths whose existence to check
}

// RankResult holds the rankings in the order of the queries.
type RankResult struct {
	Rankings []Ranking    `json:"rankings"`
	Absent   []space.Path `json:"absent"` // the paths of RankPagesInput.Paths that are not files
}

// Ranking is the result of one query.
type Ranking struct {
	Paths []space.Path `json:"paths"` // best first
	// Took is how long a user would wait for the search.
	Took time.Duration `json:"took"`
}

// RankPages returns the results of queries, to measure the quality of search.
func (s *Service) RankPages(ctx context.Context, a Actor, in RankPagesInput) (RankResult, error) {
	m, err := s.authorizeSpace(ctx, a, "RankPages", in.Space)
	if err != nil {
		return RankResult{}, err
	}
	out := RankResult{Rankings: []Ranking{}, Absent: []space.Path{}}
	head, err := s.git.Head(ctx, m.ID)
	if err != nil {
		return RankResult{}, err
	}
	for _, p := range in.Paths {
		if e, err := s.git.Lookup(ctx, m.ID, head, p); e.Dir || fault.CodeOf(err) == fault.NotFound {
			out.Absent = append(out.Absent, p)
		} else if err != nil {
			return RankResult{}, err
		}
	}
	progress := Progress(ctx)
	err = s.withIndex(func(x *index.Index) error {
		src := &countingStore{Store: s.git, progress: progress}
		if err := x.Update(ctx, m.ID, src); err != nil {
			return err
		}
		for i, q := range in.Queries {
			var ranking Ranking
			// Sound ensures that no damaged index is measured.
			err := x.Sound(ctx, m.ID, src, func() (err error) {
				ranking.Paths, ranking.Took, err = evaluate.RankPaths(ctx, x, []index.Collection{{ID: m.ID, Label: SpaceLabel}}, q, in.Depth)
				return err
			})
			if err != nil {
				return err
			}
			out.Rankings = append(out.Rankings, ranking)
			progress(fmt.Sprintf("Asked %d of %d queries", i+1, len(in.Queries)))
		}
		return nil
	})
	return out, err
}

// reportInterval is the minimum time between two reports of progress.
const reportInterval = 100 * time.Millisecond

// countingStore is a store that counts the files that the index reads, and reports the progress.
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
