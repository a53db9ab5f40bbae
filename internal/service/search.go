package service

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// Finder searches spaces and keeps their indexes. It is an interface because the search
// tool is in package tools, which this package may not import. Its methods may be called
// concurrently.
type Finder interface {
	// Search calls the search tool for a person, after the index has caught up.
	Search(ctx context.Context, u store.User, m store.Membership, args json.RawMessage, explain bool, progress func(string)) (json.RawMessage, error)
	// Rebuild rebuilds the index of a space.
	Rebuild(ctx context.Context, id space.SpaceID, progress func(string)) (Reindexed, error)
	// Reread updates the index of a space and reads these files again, even if they
	// have not changed.
	Reread(ctx context.Context, id space.SpaceID, paths []space.Path, progress func(string)) (Reindexed, error)
	// Purged rebuilds everything that is derived from a space after a purge: pages of
	// the old index would still hold what was purged.
	Purged(ctx context.Context, id space.SpaceID) error
	// Rank ranks the files of a space.
	Rank(ctx context.Context, id space.SpaceID, query string, depth int) (Ranking, error)
	// Close releases the Finder.
	Close() error
}

// withFinder calls f with the running server's Finder, or with one that it opens.
func (s *Service) withFinder(ctx context.Context, f func(Finder) error) (err error) {
	if s.running.Finder != nil {
		return f(s.running.Finder)
	}
	if s.o.OpenFinder == nil {
		return fault.New(fault.Unavailable, "There is no search index here.")
	}
	finder, err := s.o.OpenFinder(ctx)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := finder.Close(); err == nil {
			err = cerr
		}
	}()
	return f(finder)
}

// SearchSpaceInput is a search in a person's space.
type SearchSpaceInput struct {
	Space SpaceRef `json:"space"`
	// Arguments are those of the search tool.
	Arguments SearchArguments `json:"arguments"`
	// Explain adds to each result the reasons for its rank, as "why".
	Explain bool `json:"explain,omitempty"`
}

// SearchArguments are arguments of the search tool, which has defaults for absent ones.
type SearchArguments struct {
	Query     string `json:"query"`
	Limit     int    `json:"limit,omitempty"`
	Source    string `json:"source,omitempty"`
	Since     string `json:"since,omitempty"`
	MaxTokens int    `json:"max_tokens,omitempty"`
}

// SearchSpace returns what the search tool answers to the person's AI.
func (s *Service) SearchSpace(ctx context.Context, a Actor, in SearchSpaceInput) (answer json.RawMessage, err error) {
	m, err := s.authorizeSpace(ctx, a, "SearchSpace", in.Space)
	if err != nil {
		return nil, err
	}
	who, err := s.onBehalf(ctx, a, in.Space)
	if err != nil {
		return nil, err
	}
	u, err := s.accounts.User(ctx, who.user)
	if err != nil {
		return nil, err
	}
	args, err := json.Marshal(in.Arguments)
	if err != nil {
		return nil, err
	}
	err = s.withFinder(ctx, func(f Finder) error {
		answer, err = f.Search(ctx, u, m, args, in.Explain, Progress(ctx))
		return err
	})
	return answer, err
}

// ReindexInput selects the spaces to index again.
type ReindexInput struct {
	// Space is the only one; the zero SpaceRef selects all, but with Changed the first
	// administrator's.
	Space SpaceRef `json:"space"`
	// Changed selects these paths of one space: its index is updated and they are read
	// again. Nil rebuilds the index.
	Changed []string `json:"changed"`
}

// Reindexed describes the index of a space after it was made or updated.
type Reindexed struct {
	Space     space.SpaceID  `json:"space"`
	Owner     string         `json:"owner"`
	Commit    space.CommitID `json:"commit"`    // that the index shows now
	Documents int64          `json:"documents"` // that it holds
	Read      int            `json:"read"`      // files that were read
	// Absent are the paths of the input that the space does not have, sorted.
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
	err = s.withFinder(ctx, func(f Finder) error {
		for i, sp := range spaces {
			progress := Progress(ctx)
			if len(spaces) > 1 {
				progress = func(text string) { Progress(ctx)(fmt.Sprintf("%d of %d spaces: %s", i+1, len(spaces), text)) }
			}
			began := time.Now()
			var done Reindexed
			var err error
			if in.Changed != nil {
				done, err = f.Reread(ctx, sp.ID, paths, progress)
			} else {
				done, err = f.Rebuild(ctx, sp.ID, progress)
			}
			if err != nil {
				return err
			}
			done.Space, done.Owner, done.Seconds = sp.ID, ownerLabel(names[sp.Owner]), time.Since(began).Seconds()
			out = append(out, done)
		}
		return nil
	})
	return out, err
}

// ownerLabel names the owner of a space for people, even if the owner was removed.
func ownerLabel(n store.UserName) string {
	if n.Removed {
		return store.OwnerLabel("", n.Name)
	}
	return n.Name
}

// RankPagesInput asks what queries find in a space.
type RankPagesInput struct {
	Space   SpaceRef     `json:"space"`
	Queries []string     `json:"queries"`
	Depth   int          `json:"depth"` // of a ranking, in documents
	Paths   []space.Path `json:"paths"` // to look for in the space
}

// RankResult holds the rankings in the order of the queries.
type RankResult struct {
	Rankings []Ranking    `json:"rankings"`
	Absent   []space.Path `json:"absent"` // of the input's paths
}

// Ranking is what one query finds.
type Ranking struct {
	Paths []space.Path `json:"paths"` // best first
	// Took is the time of the search as a user makes it.
	Took time.Duration `json:"took"`
}

// RankPages returns what queries find, for measuring.
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
	err = s.withFinder(ctx, func(f Finder) error {
		if _, err := f.Reread(ctx, m.ID, nil, progress); err != nil {
			return err
		}
		for i, q := range in.Queries {
			ranking, err := f.Rank(ctx, m.ID, q, in.Depth)
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
