package gitstore

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"time"

	"satchel/gitstore/packfile"
	"satchel/internal/space"
)

// Limits are the limits of a space. A zero field takes the default.
type Limits struct {
	File       int64 // bytes of one file; default 10 MiB
	Change     int64 // bytes of content in one change set; default 100 MiB
	Space      int64 // bytes of all files at head; default 1 GiB
	Repository int64 // bytes of all packs, history included; default 4 GiB
	Files      int   // files at head; default 200,000
	// Walk limits the paths that a walk over a foreign commit finds: those of its tree,
	// or those that differ from another tree; default twice Files, and at least
	// 400,000.
	Walk      int
	Entries   int   // entries of one change set; default 100,000
	Conflicts int   // conflicts of one merge with a remote; default 10,000
	Reflog    int64 // bytes of the branch's reflog, which GC shortens; default 8 MiB
}

// The default limits.
const (
	DefaultFileLimit       = 10 << 20
	DefaultChangeLimit     = 100 << 20
	DefaultSpaceLimit      = 1 << 30
	DefaultRepositoryLimit = 4 << 30
	DefaultFilesLimit      = 200_000
	DefaultEntriesLimit    = 100_000
	DefaultConflictsLimit  = 10_000
	DefaultReflogLimit     = 8 << 20
)

// Options configure a Store. Only Dir is required.
type Options struct {
	// Dir holds the repositories, as Dir/<id>.git, and what is derived from them. It is
	// created with mode 0700. Only one process can have it open.
	Dir    string
	Limits Limits
	// Events receives every commit after it is durable, in order per space.
	Events space.Events
	// AllowWorkflows reports whether a space may change .github/workflows/**; nil means
	// that none may. After a commit of such a file, every push by a GitHub App installation
	// without the permission workflows:write fails.
	AllowWorkflows func(space.SpaceID) bool
	// Screen checks a file whose content is new to the space before it is stored; nil accepts
	// everything. Commit and Import call it for each such file. They also call it for
	// messages and for the names in an imported history, with the path
	// space.CommentPath. A fault.Error refuses the file: Commit.Rejected lists it, and
	// the rest is committed. An imported history is refused as a whole. A Warned error
	// refuses nothing, and Commit.Warnings has it. Any other error ends the change.
	// before returns the content of the path in head, or nothing if there is none.
	// Screen may be called for several files at once, and must not call the Store.
	Screen func(ctx context.Context, id space.SpaceID, p space.Path, content []byte, before func() ([]byte, error)) error
	// Transport reaches the spaces' remotes; nil means that spaces have none.
	Transport Transport
	// LibraryDir is the library that Checkout returns; default an empty directory.
	LibraryDir string
	// CheckoutOwner is the uid and gid of commands in a sandbox. If this process is
	// root, checkouts belong to that user, so that commands may change the modes and
	// times of files that they did not create. Otherwise, or if CheckoutOwner is 0,
	// checkouts belong to this process.
	CheckoutOwner int
	// CommitterName and CommitterEmail identify the committer; default Satchel.
	CommitterName  string
	CommitterEmail string
	// Git is the git program; default "git", found through PATH.
	Git string
	// GitTimeout limits a run of the git program, except the check of a space; default 10
	// minutes.
	GitTimeout time.Duration
	// GitMemory limits each process of the git program, in bytes; default
	// gitcmd.DefaultMemory, and no limit if negative.
	GitMemory int64
	// IdlePacks is the smallest number of packs that GC consolidates; default 50.
	IdlePacks int
	// LeftoverAge is the time without writes after which GC and Sweep remove a
	// leftover; default a day.
	LeftoverAge time.Duration
	// OpenSpaces is the number of spaces that may stay open; default 256. To open one more,
	// the store closes spaces that nobody uses.
	OpenSpaces int
	// RevertTime limits the time to compute a revert; default 20 seconds.
	RevertTime time.Duration
	// DateCommits limits how many commits Dates goes back in a history; default 20,000.
	DateCommits int
	// CacheBytes limits the cache of decoded objects; default 64 MiB.
	CacheBytes int64
	// Sync makes a file or directory durable; default fsync. Only benchmarks set it, to
	// count and slow down fsyncs.
	Sync   func(*os.File) error
	Logger *slog.Logger

	// probe is called at each named step of a change on disk, for crash tests.
	probe func(step string)
	disk  packfile.Disk // writes files, and uses Sync and probe
}

func (o *Options) committer() space.Person {
	return space.Person{Name: o.CommitterName, Email: o.CommitterEmail}
}

func (o Options) withDefaults() Options {
	def64 := func(v *int64, d int64) {
		if *v == 0 {
			*v = d
		}
	}
	def64(&o.Limits.File, DefaultFileLimit)
	def64(&o.Limits.Change, DefaultChangeLimit)
	def64(&o.Limits.Space, DefaultSpaceLimit)
	def64(&o.Limits.Repository, DefaultRepositoryLimit)
	def64(&o.Limits.Reflog, DefaultReflogLimit)
	def64(&o.CacheBytes, 64<<20)
	if o.Limits.Files == 0 {
		o.Limits.Files = DefaultFilesLimit
	}
	if o.Limits.Conflicts == 0 {
		o.Limits.Conflicts = DefaultConflictsLimit
	}
	if o.Limits.Walk == 0 {
		o.Limits.Walk = 2 * max(o.Limits.Files, DefaultFilesLimit)
	}
	if o.Limits.Entries == 0 {
		o.Limits.Entries = DefaultEntriesLimit
	}
	if o.OpenSpaces == 0 {
		o.OpenSpaces = 256
	}
	if o.IdlePacks == 0 {
		o.IdlePacks = 50
	}
	if o.LeftoverAge == 0 {
		o.LeftoverAge = 24 * time.Hour
	}
	if o.RevertTime == 0 {
		o.RevertTime = 20 * time.Second
	}
	if o.DateCommits == 0 {
		o.DateCommits = 20_000
	}
	if o.CommitterName == "" {
		o.CommitterName = "Satchel"
	}
	if o.CommitterEmail == "" {
		o.CommitterEmail = "satchel@localhost"
	}
	if o.Git == "" {
		o.Git = "git"
	}
	if o.GitTimeout == 0 {
		o.GitTimeout = 10 * time.Minute
	}
	if o.Sync == nil {
		o.Sync = packfile.SyncFile
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.probe == nil {
		o.probe = func(string) {}
	}
	o.disk = packfile.Disk{Sync: o.Sync, Step: o.probe, Deflaters: new(sync.Pool)}
	return o
}
