package index

import (
	"context"
	"log/slog"
	"time"

	"satchel/internal/space"
)

// Source is where the index reads a collection from. A git store offers it;
// what it returns is the truth, which the index only copies.
type Source interface {
	// Head returns the newest commit, "" where there is none yet.
	Head(ctx context.Context, id space.SpaceID) (space.CommitID, error)
	// Diff lists the files that differ between two commits. An error makes the
	// index rebuild itself: the older commit may be gone.
	Diff(ctx context.Context, id space.SpaceID, from, to space.CommitID) ([]space.FileChange, error)
	// Files lists the files of a commit under a directory ("" for all), as
	// additions.
	Files(ctx context.Context, id space.SpaceID, at space.CommitID, under space.Path) ([]space.Entry, error)
	// ReadBlob returns a blob's content. It may be called concurrently.
	ReadBlob(ctx context.Context, id space.SpaceID, b space.BlobID) ([]byte, error)
}

// Dater is a Source that knows when files were changed. Without it a file has
// the date of its front matter or none.
type Dater interface {
	// Dates returns when each file of "to" was last changed by a commit after
	// "from" ("" for the whole history). Files that are absent have no date.
	Dates(ctx context.Context, id space.SpaceID, from, to space.CommitID) (map[space.Path]time.Time, error)
}

// Derived is a Source whose collections are made from others, such as snapshots of
// a space. Its Head is behind until the next snapshot is made.
type Derived interface {
	// Newest returns the commit that Head will return when it has caught up.
	Newest(ctx context.Context, id space.SpaceID) (space.CommitID, error)
}

// Options configure an Index. The zero value of a field means its default.
type Options struct {
	// Dir holds the databases. It is made where it is missing; nothing else may
	// be kept in it.
	Dir string
	// Logger hears of rebuilds and failures. Default: nothing is logged.
	Logger *slog.Logger

	// MaxFileBytes is the largest file whose content is indexed; of a larger one
	// only the path is. Default 1 MiB.
	MaxFileBytes int64
	// MaxChunks is how many chunks of one file are indexed. Default 2,000, at
	// most 4,095.
	MaxChunks int
	// MaxResults is the most hits that one search returns. Default 50.
	MaxResults int
	// MaxQueryBytes is how much of a query is read. Default 2,000.
	MaxQueryBytes int
	// MaxQueryTerms is how many words of a query are searched for, the rarest.
	// Default 40.
	MaxQueryTerms int
	// Candidates is how many chunks of each database are handed to the ranking:
	// the best of all that hold a word of the query. Default 1,000.
	Candidates int
	// MaxRows is how many chunks of each segment are looked into for a phrase
	// of several words, the best first; more are where fewer than Candidates
	// have it. Default 6,000.
	MaxRows int
	// CacheBytes is how much memory rows of all databases are kept in between
	// searches; each of the Readers of a database keeps pages of a quarter of
	// that besides. Default 8 MiB.
	CacheBytes int
	// BuildBytes is about how much memory the postings of one build or update
	// take before they are written as a segment. Default 64 MiB.
	BuildBytes int
	// MinScoreShare is the part of the best hit's score under which others are
	// left out of an answer ordered by relevance: they have in common with the
	// query one of its frequent words. Default 0.2; negative: none is left out.
	MinScoreShare float64
	// Meaning has the models that add to what words find. Default: none.
	Meaning *Meaning
	// Readers is how many queries read one database at once. Default 4.
	Readers int
	// Workers is how many collections a Follower updates at once. Default 2.
	Workers int
	// MaxTime is when a search is given up, which only filters made to be slow
	// come near to; default 10 s.
	MaxTime time.Duration
	// RetryAfter is when a Follower tries again after an update failed; it
	// doubles with each failure, up to 100 times this. Default 3 s.
	RetryAfter time.Duration
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// The defaults of Options.
const (
	DefaultMaxFileBytes  = 1 << 20
	DefaultMaxChunks     = 2000
	DefaultMaxResults    = 50
	DefaultMaxQueryBytes = 2000
	DefaultMaxQueryTerms = 40
	DefaultCandidates    = 1000
	DefaultMaxRows       = 6000
	DefaultCacheBytes    = 8 << 20
	DefaultBuildBytes    = 64 << 20
	DefaultMinScoreShare = 0.2
	DefaultReaders       = 4
	DefaultWorkers       = 2
	DefaultRetryAfter    = 3 * time.Second
	DefaultMaxTime       = 10 * time.Second
)

func (o Options) withDefaults() Options {
	set := func(p *int, def int) {
		if *p <= 0 {
			*p = def
		}
	}
	if o.MaxFileBytes <= 0 {
		o.MaxFileBytes = DefaultMaxFileBytes
	}
	set(&o.MaxChunks, DefaultMaxChunks)
	o.MaxChunks = min(o.MaxChunks, 1<<chunkBits-1)
	set(&o.MaxResults, DefaultMaxResults)
	set(&o.MaxQueryBytes, DefaultMaxQueryBytes)
	set(&o.MaxQueryTerms, DefaultMaxQueryTerms)
	set(&o.Candidates, DefaultCandidates)
	set(&o.MaxRows, DefaultMaxRows)
	set(&o.CacheBytes, DefaultCacheBytes)
	set(&o.BuildBytes, DefaultBuildBytes)
	set(&o.Readers, DefaultReaders)
	set(&o.Workers, DefaultWorkers)
	if o.MinScoreShare == 0 {
		o.MinScoreShare = DefaultMinScoreShare
	}
	if o.MaxTime <= 0 {
		o.MaxTime = DefaultMaxTime
	}
	if o.RetryAfter <= 0 {
		o.RetryAfter = DefaultRetryAfter
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}
