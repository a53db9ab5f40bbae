package crun

import (
	"log/slog"
	"time"
)

// Options configure a Runtime. RunDir is required; every other field has a
// default.
type Options struct {
	// RunDir holds the state of running sandboxes: an absolute path that this
	// Runtime alone uses, made with mode 0700 where missing.
	RunDir string
	// Program is the OCI runtime that starts containers, found on the PATH:
	// "crun" (default) or "runc".
	Program string
	// Rootfs is a root file system directory whose programs the sandboxes
	// use; empty lends them the host's /usr.
	Rootfs string
	// Exe is the satchel program, which becomes the agent. Empty means the
	// running program.
	Exe string
	// Args is the command line of process 1 inside; empty means the agent's.
	Args []string
	// FirstID is the first of the host's user and group ids that sandboxes are
	// given, 65,536 to each, and all of them together 16,777,216 groups after
	// those. Default 0x70000000, where nothing else takes ids (systemd's
	// "Users, Groups, UIDs and GIDs").
	FirstID uint32
	// WatchInterval is how often it is looked whether a sandbox is at its memory
	// limit; default 250 ms.
	WatchInterval time.Duration
	// StartTimeout bounds the start of a sandbox; default 30 s.
	StartTimeout time.Duration
	// StopTimeout bounds how long the end of a sandbox is waited for; default
	// 10 s.
	StopTimeout time.Duration
	// Logger defaults to slog.Default().
	Logger *slog.Logger
}

// defaultFirstID begins the range 1879048192–2147352575, which systemd lists as
// unused.
const defaultFirstID = 0x70000000

func (o Options) withDefaults() Options {
	if o.Program == "" {
		o.Program = Name
	}
	if o.FirstID == 0 {
		o.FirstID = defaultFirstID
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
