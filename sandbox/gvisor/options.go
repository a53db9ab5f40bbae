package gvisor

import (
	"log/slog"
	"time"

	"satchel/internal/space"
	"satchel/sandbox/programs"
)

// Options configure a Runtime. RunDir and Programs are required; every other
// field has a default.
type Options struct {
	// RunDir is the absolute path of a directory for the state of running sandboxes, used
	// only by this Runtime. It is created with mode 0700 if missing. Its content is not
	// needed after the server has ended.
	RunDir string
	// Rootfs is a root file system directory whose programs the sandboxes use; empty means
	// the host's /usr.
	Rootfs string
	// Programs returns the programs that sandboxes are made of. It is called before a child starts
	// and in Check. Check and Start return its fault.Error.
	Programs func() (programs.Programs, error)
	// Spare is how many sandboxes are kept booted for the next Start with SpareLimits.
	// A spare has served nobody; it gets its space when it is taken.
	Spare       int
	SpareLimits space.Limits
	// Args is the command line of process 1 in a sandbox; empty means the agent's.
	Args []string
	// Platform is how gVisor intercepts system calls: "systrap" (default),
	// "kvm" or "ptrace".
	Platform string
	// NoDirectFS makes the gofer open every file for the sentry: an additional barrier,
	// with half the speed of file access.
	NoDirectFS bool
	// DirentCache is how many directory entries the sentry keeps; default
	// 16,384, at most a quarter of OpenFiles.
	DirentCache int
	// OpenFiles is how many host files the sentry and the gofer of a sandbox may each have
	// open; default 65,536, at most an eighth of the machine's limit and, if the server is
	// not root, the server's own limit.
	OpenFiles int
	// NoCgroups disables cgroups.
	NoCgroups bool
	// WatchInterval is how often the watchdog measures a sandbox that has a
	// memory limit and no cgroup; default 250 ms.
	WatchInterval time.Duration
	// StartTimeout limits the boot of a sandbox, and then the attachment of its space. A boot takes
	// some 100 ms, but waits for other boots; default 30 s.
	StartTimeout time.Duration
	// StopTimeout is how long to wait for the end of a sandbox; default 10 s.
	StopTimeout time.Duration
	// DebugLog is a directory for gVisor's own debug logs; empty for none. They grow
	// without limit, and are only for debugging.
	DebugLog string
	// Logger defaults to slog.Default().
	Logger *slog.Logger
}

// defaultDirentCache is large, because a search over 5,000 files takes 212 ms instead of 707 ms if
// the cache has room for all their entries.
const defaultDirentCache = 16_384

const defaultOpenFiles = 4 * defaultDirentCache

func (o Options) withDefaults() Options {
	if o.Platform == "" {
		o.Platform = "systrap"
	}
	if o.DirentCache == 0 {
		o.DirentCache = defaultDirentCache
	}
	if o.OpenFiles == 0 {
		o.OpenFiles = defaultOpenFiles
	}
	if o.WatchInterval == 0 {
		o.WatchInterval = 250 * time.Millisecond
	}
	if o.StartTimeout == 0 {
		o.StartTimeout = 30 * time.Second
	}
	if o.StopTimeout == 0 {
		o.StopTimeout = 10 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o
}
