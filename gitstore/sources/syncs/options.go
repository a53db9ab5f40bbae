package syncs

import (
	"context"
	"log/slog"
	"time"

	"satchel/gitstore/sources"
	"satchel/gitstore/sources/upstream"
	"satchel/internal/database"
	"satchel/internal/space"
)

// Store holds the spaces of synced sources; see *gitstore.Store.
type Store interface {
	space.Committer
	Head(ctx context.Context, id space.SpaceID) (space.CommitID, error)
	Files(ctx context.Context, id space.SpaceID, at space.CommitID, under space.Path) ([]space.Entry, error)
	ReadBlob(ctx context.Context, id space.SpaceID, b space.BlobID) ([]byte, error)
}

// The defaults of Options, and the limits of a schedule.
const (
	DefaultEvery    = space.SyncEvery
	MinEvery        = 5 * time.Minute
	WatchEvery      = time.Minute // default and minimum for a directory, since its check reads no file
	MaxEvery        = 30 * 24 * time.Hour
	DefaultAtOnce   = 2
	DefaultRetries  = 2
	DefaultRetry    = time.Second
	DefaultMaxFiles = sources.DefaultMaxFiles
	DefaultMaxTime  = 2 * time.Hour
)

// Options configure a Manager. DB, Workflows, Store, Sources, Env and Dir are required.
type Options struct {
	DB *database.DB
	// Workflows is the URL of the database that holds the state of running syncs:
	// sqlite:PATH or postgres://…
	Workflows string
	Store     Store
	Sources   *sources.Manager
	// Env is what upstreams use. Scratch, Trusted and Token are set for each sync.
	Env upstream.Env
	// Token returns the token with which a repository of a GitHub server is read, or "" for none.
	// by is the person who added the source; it is empty for the operator. Nil means no tokens.
	Token func(ctx context.Context, by space.UserID, host, repository string) (string, error)
	// Ended is called after each run. It must not block. It may be nil.
	Ended func(r space.SyncRun)
	// Dir is the directory of stages, and of the temporary files of upstreams.
	Dir string
	// AtOnce limits the syncs that run at the same time, and separately the uploads.
	AtOnce int
	// Retries is how often a step is repeated within a sync after a temporary error. Retry is
	// the delay before the first repetition.
	Retries int
	Retry   time.Duration
	// MaxFiles limits the files of a source.
	MaxFiles int
	// MaxTime limits a run, without the time in which it waits for a place.
	MaxTime time.Duration
	Now     func() time.Time
	Logger  *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.AtOnce == 0 {
		o.AtOnce = DefaultAtOnce
	}
	if o.Retries == 0 {
		o.Retries = DefaultRetries
	}
	if o.Retry == 0 {
		o.Retry = DefaultRetry
	}
	if o.MaxFiles == 0 {
		o.MaxFiles = DefaultMaxFiles
	}
	if o.MaxTime == 0 {
		o.MaxTime = DefaultMaxTime
	}
	if o.Ended == nil {
		o.Ended = func(space.SyncRun) {}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}
