package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
)

// Searching is what the command line may ask of the search index. An empty user is
// the first admin.
type Searching interface {
	// Search answers as the search tool answers the person's AI.
	Search(ctx context.Context, r SearchRequest, progress func(string)) (json.RawMessage, error)
	// Reindex makes the index of spaces again, or brings it up to date.
	Reindex(ctx context.Context, r ReindexRequest, progress func(string)) ([]Reindexed, error)
	// Rank reports what queries find, for measuring.
	Rank(ctx context.Context, r RankRequest, progress func(string)) (Ranked, error)
}

// SearchRequest is a search in the person's own space.
type SearchRequest struct {
	User string `json:"user"`
	// Arguments are the search tool's.
	Arguments SearchArguments `json:"arguments"`
	// Explain adds to each result why it ranks where it does, as "why".
	Explain bool `json:"explain,omitempty"`
}

// SearchArguments are the arguments of the search tool; what is absent is left
// to it.
type SearchArguments struct {
	Query     string `json:"query"`
	Limit     int    `json:"limit,omitempty"`
	Source    string `json:"source,omitempty"`
	Since     string `json:"since,omitempty"`
	MaxTokens int    `json:"max_tokens,omitempty"`
}

// ReindexRequest says which spaces are indexed again: one by its id, one person's
// own, or all where both are empty.
type ReindexRequest struct {
	User  string        `json:"user"`
	Space space.SpaceID `json:"space"`
	// Changed asks for these paths alone, of one space: it is brought to its
	// head and they are read again. Nil: everything is indexed again.
	Changed []string `json:"changed"`
}

// Reindexed is what came of one space.
type Reindexed struct {
	Space     space.SpaceID  `json:"space"`
	Owner     string         `json:"owner"`
	Commit    space.CommitID `json:"commit"`    // that the index speaks of now
	Documents int64          `json:"documents"` // that it holds
	Read      int            `json:"read"`      // files that were read
	// Absent are the paths of the request that the space does not have, sorted.
	Absent  []space.Path `json:"absent,omitempty"`
	Seconds float64      `json:"seconds"`
}

// RankRequest asks what queries find in the person's own space.
type RankRequest struct {
	User    string   `json:"user"`
	Queries []string `json:"queries"`
	Depth   int      `json:"depth"` // of a ranking, in documents
	// Paths are looked for in the space.
	Paths []space.Path `json:"paths"`
}

// Ranked answers a RankRequest.
type Ranked struct {
	Rankings []Ranking    `json:"rankings"` // in the order of the queries
	Absent   []space.Path `json:"absent"`   // of the paths that were asked for
}

// Ranking is what one query finds.
type Ranking struct {
	Paths []space.Path `json:"paths"` // best first
	// Took is how long the search takes that a user gets.
	Took time.Duration `json:"took"`
}

// Finder searches spaces and keeps their index. Its methods may be called
// concurrently.
type Finder interface {
	// Search calls the search tool on behalf of a person. The index is at the
	// space's head then, or has been waited for.
	Search(ctx context.Context, u store.User, m store.Membership, args json.RawMessage, explain bool, progress func(string)) (json.RawMessage, error)
	// Rebuild makes the index of a space again.
	Rebuild(ctx context.Context, id space.SpaceID, progress func(string)) (Reindexed, error)
	// Reread brings the index of a space to its head, and reads these files
	// again though they have not changed.
	Reread(ctx context.Context, id space.SpaceID, paths []space.Path, progress func(string)) (Reindexed, error)
	// Rank ranks the files of a space.
	Rank(ctx context.Context, id space.SpaceID, query string, depth int) (Ranking, error)
	// Close ends its work. Nothing else may be called then.
	Close() error
}

// find lends the index to f.
func (l *Local) find(ctx context.Context, f func(Finder) error) (err error) {
	if l.OpenFinder == nil {
		return fault.New(fault.Unavailable, "There is no search index here.")
	}
	finder, err := l.OpenFinder(ctx)
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

// Search searches.
func (l *Local) Search(ctx context.Context, r SearchRequest, progress func(string)) (answer json.RawMessage, err error) {
	name, which, _ := strings.Cut(r.User, "/")
	u, err := l.user(ctx, name)
	if err != nil {
		return nil, err
	}
	m, err := l.Accounts.FindSpace(ctx, u.ID, which)
	if err != nil {
		return nil, err
	}
	args, err := json.Marshal(r.Arguments)
	if err != nil {
		return nil, err
	}
	err = l.find(ctx, func(f Finder) error {
		answer, err = f.Search(ctx, u, m, args, r.Explain, progress)
		return err
	})
	return answer, err
}

// Reindex indexes again.
func (l *Local) Reindex(ctx context.Context, r ReindexRequest, progress func(string)) ([]Reindexed, error) {
	var paths []space.Path
	for _, c := range r.Changed {
		p, err := space.ParsePath(c)
		if err != nil {
			return nil, err
		}
		paths = append(paths, p)
	}
	slices.Sort(paths)
	paths = slices.Compact(paths)
	spaces, err := l.toReindex(ctx, r)
	if err != nil {
		return nil, err
	}
	out := []Reindexed{}
	err = l.find(ctx, func(f Finder) error {
		for i, s := range spaces {
			tell := progress
			if len(spaces) > 1 {
				tell = func(text string) { progress(fmt.Sprintf("%d of %d spaces: %s", i+1, len(spaces), text)) }
			}
			began := time.Now()
			var done Reindexed
			var err error
			if r.Changed != nil {
				done, err = f.Reread(ctx, s.ID, paths, tell)
			} else {
				done, err = f.Rebuild(ctx, s.ID, tell)
			}
			if err != nil {
				return err
			}
			done.Space, done.Owner, done.Seconds = s.ID, s.OwnerLabel(), time.Since(began).Seconds()
			out = append(out, done)
		}
		return nil
	})
	return out, err
}

// toReindex finds the spaces of a request. Paths alone belong to one space, and
// without a name to the first admin's, as everywhere.
func (l *Local) toReindex(ctx context.Context, r ReindexRequest) ([]service.SpaceInfo, error) {
	all, err := l.Service.ListSpaces(ctx, service.Operator(), service.ListSpacesInput{})
	if err != nil || r.Space == "" && r.User == "" && r.Changed == nil {
		return all, err
	}
	id := r.Space
	if id == "" {
		if _, id, err = l.spaceOf(ctx, r.User); err != nil {
			return nil, err
		}
	}
	for _, s := range all {
		if s.ID == id {
			return []service.SpaceInfo{s}, nil
		}
	}
	return nil, fault.New(fault.NotFound, "There is no space %.60q. The spaces are listed by: satchel space list", string(id))
}

// Rank ranks.
func (l *Local) Rank(ctx context.Context, r RankRequest, progress func(string)) (Ranked, error) {
	_, id, err := l.spaceOf(ctx, r.User)
	if err != nil {
		return Ranked{}, err
	}
	out := Ranked{Rankings: []Ranking{}, Absent: []space.Path{}}
	head, err := l.Git.Head(ctx, id)
	if err != nil {
		return Ranked{}, err
	}
	for _, p := range r.Paths {
		if e, err := l.Git.Lookup(ctx, id, head, p); e.Dir || fault.CodeOf(err) == fault.NotFound {
			out.Absent = append(out.Absent, p)
		} else if err != nil {
			return Ranked{}, err
		}
	}
	err = l.find(ctx, func(f Finder) error {
		if _, err := f.Reread(ctx, id, nil, progress); err != nil {
			return err
		}
		for i, q := range r.Queries {
			ranking, err := f.Rank(ctx, id, q, r.Depth)
			if err != nil {
				return err
			}
			out.Rankings = append(out.Rankings, ranking)
			progress(fmt.Sprintf("Asked %d of %d queries", i+1, len(r.Queries)))
		}
		return nil
	})
	return out, err
}

// Search asks the server.
func (c *Remote) Search(ctx context.Context, r SearchRequest, progress func(string)) (json.RawMessage, error) {
	return callLong[json.RawMessage](ctx, c, "search", r, progress)
}

// Reindex asks the server.
func (c *Remote) Reindex(ctx context.Context, r ReindexRequest, progress func(string)) ([]Reindexed, error) {
	return callLong[[]Reindexed](ctx, c, "search/reindex", r, progress)
}

// Rank asks the server.
func (c *Remote) Rank(ctx context.Context, r RankRequest, progress func(string)) (Ranked, error) {
	return callLong[Ranked](ctx, c, "search/rank", r, progress)
}
