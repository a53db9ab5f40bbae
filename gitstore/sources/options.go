package sources

import (
	"context"
	"log/slog"
	"time"

	"satchel/internal/database"
	"satchel/internal/space"
)

// Store provides the files of snapshots; see *gitstore.Store.
type Store interface {
	Head(ctx context.Context, id space.SpaceID) (space.CommitID, error)
	Files(ctx context.Context, id space.SpaceID, at space.CommitID, under space.Path) ([]space.Entry, error)
	ReadBlob(ctx context.Context, id space.SpaceID, b space.BlobID) ([]byte, error)
	Dates(ctx context.Context, id space.SpaceID, from, to space.CommitID) (map[space.Path]time.Time, error)
}

// The defaults of Options.
const (
	DefaultMaxSources = 50
	DefaultMaxFiles   = 50_000
	DefaultMaxBytes   = 512 << 20
	DefaultSettle     = 300 * time.Millisecond
	DefaultLookEvery  = time.Minute
)

// Options configure a Manager. DB, Store and Owned are required.
type Options struct {
	DB    *database.DB
	Store Store
	// Owned returns the spaces that a user owns. It returns none after the user was removed
	// from the server.
	Owned func(ctx context.Context, user space.UserID) ([]space.SpaceID, error)
	// Ended is called after a source ended because its publisher no longer owns the space. It may
	// be nil.
	Ended func(ctx context.Context, s space.Source) error
	// Dir is the directory in which the trees for sandboxes are made; empty means no
	// trees.
	Dir string
	// MaxSources limits the sources of one person. MaxFiles and MaxBytes limit the files
	// of one source. Zero means the default.
	MaxSources, MaxFiles int
	MaxBytes             int64
	// Settle is the pause after a publisher's snapshots, so that commits that follow each
	// other closely share the next snapshot.
	Settle time.Duration
	// LookEvery is the interval at which the Manager checks that every publisher still
	// owns the published space, and tries failed snapshots again.
	LookEvery time.Duration
	Now       func() time.Time
	Logger    *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.MaxSources == 0 {
		o.MaxSources = DefaultMaxSources
	}
	if o.MaxFiles == 0 {
		o.MaxFiles = DefaultMaxFiles
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	if o.Settle == 0 {
		o.Settle = DefaultSettle
	}
	if o.LookEvery == 0 {
		o.LookEvery = DefaultLookEvery
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// Index follows the snapshots, so that they can be searched.
type Index struct {
	// Changed reports a new snapshot. It must not block.
	Changed func(collection space.SpaceID)
	// Dropped removes what is stored for a publication that has ended.
	Dropped func(ctx context.Context, collection space.SpaceID) error
}
