package gitstore

import (
	"context"
	"log/slog"
	"os"
	"time"

	"satchel/gitstore/packfile"
	"satchel/internal/space"
)

// Limits bound what a space may hold. Zero takes the default.
type Limits struct {
	File       int64 // bytes of one file; default 10 MiB
	Change     int64 // bytes of content in one change set; default 100 MiB
	Space      int64 // bytes of all files at head; default 1 GiB
	Repository int64 // bytes of all packs, history included; default 4 GiB
	Files      int   // files at head; default 200,000
	// Walk bounds what one look at a commit of a foreign history may find: paths
	// of its tree, or that differ from another's; default twice Files, and no
	// less than 400,000.
	Walk      int
	Entries   int   // entries of one change set; default 100,000
	Conflicts int   // of one merge with a remote; default 10,000
	Reflog    int64 // bytes of the branch's reflog, which GC shortens; default 8 MiB
}

// The default limits (DESIGN section 4).
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

// Options configure a Store. Only Dir is needed.
type Options struct {
	// Dir holds the repositories, as Dir/<id>.git, and what is derived from
	// them. It is made with mode 0700. One process may have it open.
	Dir    string
	Limits Limits
	// Events is told of every commit, in order per space, after it is durable.
	Events space.Events
	// AllowWorkflows reports whether a space may change .github/workflows/**;
	// nil means that none may. One such file would stop every later push of an
	// installation without the permission workflows:write.
	AllowWorkflows func(space.SpaceID) bool
	// Screen is asked about every file whose content is new to the space, by
	// Commit and by Import, before it is stored, and about messages and the names
	// in an imported history, as the path space.CommentPath; nil passes all. A
	// fault.Error refuses the file, listed in Commit.Rejected, and the rest is
	// committed; an imported history is refused whole. A Warned error refuses
	// nothing and is added to Commit.Warnings; another error ends the change.
	// before returns the content of the path in head, empty for none. Screen may be
	// called for several files at once, and must not call the Store.
	Screen func(ctx context.Context, id space.SpaceID, p space.Path, content []byte, before func() ([]byte, error)) error
	// Transport reaches the spaces' remotes; nil: spaces have none.
	Transport Transport
	// LibraryDir is what Checkout gives as the library; empty makes an empty
	// directory.
	LibraryDir string
	// CheckoutOwner is the uid and gid that commands have in a sandbox. Where
	// this process is root checkouts belong to it, so that commands may change
	// the modes and times of files that they did not make; else, and where it
	// is 0, they belong to this process.
	CheckoutOwner int
	// CommitterName and CommitterEmail are who commits; default Satchel.
	CommitterName  string
	CommitterEmail string
	// Git is the git program; default "git", found through PATH.
	Git string
	// GitTimeout ends a run of the git program; default 10 minutes.
	GitTimeout time.Duration
	// GitMemory bounds each process of the git program, in bytes; default
	// gitcmd.DefaultMemory, and less than zero sets no limit.
	GitMemory int64
	// IdlePacks is from how many packs on GC consolidates them; default 50.
	IdlePacks int
	// LeftoverAge is how long nothing was written to what GC and Sweep take
	// for left behind; default a day.
	LeftoverAge time.Duration
	// OpenSpaces bounds how many idle spaces are kept open; default 256.
	OpenSpaces int
	// RevertTime bounds how long a revert is worked out; default 20 seconds.
	RevertTime time.Duration
	// DateCommits bounds how many commits Dates follows a history back; default
	// 20,000.
	DateCommits int
	// CacheBytes bounds the cache of decoded objects; default 64 MiB.
	CacheBytes int64
	// Sync makes a file or directory durable; default fsync. Benchmarks count
	// and slow it down; nothing else sets it.
	Sync   func(*os.File) error
	Logger *slog.Logger

	// probe is called at each named step of a commit, for crash tests.
	probe func(step string)
	disk  packfile.Disk // of Sync and probe
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
	o.disk = packfile.Disk{Sync: o.Sync, Step: o.probe}
	return o
}
