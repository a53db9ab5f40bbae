package index

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"satchel/internal/space"
	"satchel/tools/index/postings"
	"satchel/tools/index/rank"
)

// Source is the git store from which the index reads collections.
type Source interface {
	// Head returns the newest commit, or "" if there is none yet.
	Head(ctx context.Context, id space.SpaceID) (space.CommitID, error)
	// Diff lists the files that differ between two commits. After an error the index is
	// rebuilt, because the older commit may be gone.
	Diff(ctx context.Context, id space.SpaceID, from, to space.CommitID) ([]space.FileChange, error)
	// Files lists the files of a commit at or under a path. The path "" lists all files.
	Files(ctx context.Context, id space.SpaceID, at space.CommitID, under space.Path) ([]space.Entry, error)
	// ReadBlob returns a blob's content. It may be called concurrently.
	ReadBlob(ctx context.Context, id space.SpaceID, b space.BlobID) ([]byte, error)
}

// Dater is a Source that knows when files changed. If a Source is not a Dater, a file has the date
// in its front matter, or no date.
type Dater interface {
	// Dates returns when each file last changed in the commits after from, up to the commit to.
	// An empty from means the whole history. A file that is absent from the map has no date.
	Dates(ctx context.Context, id space.SpaceID, from, to space.CommitID) (map[space.Path]time.Time, error)
}

// Derived is a Source whose collections come from other collections, such as snapshots of a
// space. Its Head can be older than the original until the next snapshot.
type Derived interface {
	// Newest returns the commit that Head will return after the next snapshot.
	Newest(ctx context.Context, id space.SpaceID) (space.CommitID, error)
}

// Options configure an Index. The zero value of a field means its default.
type Options struct {
	// Dir holds the databases. It is created if it does not exist. It must contain no other
	// files.
	Dir string
	// Logger receives rebuilds and failures. Default: nothing is logged.
	Logger *slog.Logger
	// Semantic holds the models that find results beyond matching words. Default: none.
	Semantic *rank.Semantic
	// Now is the clock. Default time.Now.
	Now func() time.Time

	// Only tests set the following fields.
	storage    postings.Options
	ranking    rank.Options
	maxTime    time.Duration // how long a search may take
	retryAfter time.Duration // how long a Follower waits before the first retry; see maxRetryFactor
}

// maxFileBytes is the size of the largest file whose content is indexed. Of a larger file,
// only the path is indexed.
const maxFileBytes = 1 << 20

// followWorkers limits the collections that a Follower updates at once.
const followWorkers = 2

func (o Options) withDefaults() Options {
	o.storage = o.storage.WithDefaults()
	o.maxTime = cmp.Or(o.maxTime, maxTime)
	o.retryAfter = cmp.Or(o.retryAfter, 3*time.Second)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}
