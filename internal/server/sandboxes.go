package server

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync"

	"satchel/internal/config"
	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/sandbox"
	"satchel/sandbox/gvisor"
	"satchel/sandbox/host"
	"satchel/sandbox/pending"
	"satchel/sandbox/programs"
)

// Runtime is a space.Runtime that can diagnose this machine.
type Runtime interface {
	space.Runtime
	// Diagnose checks everything that sandboxes need or can use, for `satchel doctor`. It
	// starts a trial sandbox.
	Diagnose(ctx context.Context) []host.Finding
}

// ProgramsDir returns the directory in which a server has the programs of its sandboxes.
func ProgramsDir(cfg *config.Config) string { return filepath.Join(cfg.DataDir, "run", "programs") }

// NewRuntime returns the configured runtime, or nil if there is none. Its state is in runDir,
// which nothing else may use. spare is how many sandboxes the runtime keeps booted for new users.
func NewRuntime(cfg *config.Config, runDir, programsDir string, spare int, log *slog.Logger) (Runtime, error) {
	if cfg.Sandbox.Runtime == "none" {
		return nil, nil
	}
	rt, err := gvisor.New(gvisor.Options{
		RunDir: runDir,
		Programs: func() (programs.Programs, error) {
			return programs.Install(programsDir)
		},
		Spare: spare, SpareLimits: limitsOf(cfg),
		Rootfs: cfg.Sandbox.Rootfs, Platform: cfg.Sandbox.Platform, Logger: log.With("part", gvisor.Name),
	})
	if err != nil {
		return nil, err // not a typed nil, which would look like a runtime
	}
	return rt, nil
}

// limitsOf returns the limits of each sandbox.
func limitsOf(cfg *config.Config) space.Limits {
	s := cfg.Sandbox
	limits := sandbox.WithDisk(sandbox.DefaultLimits(), s.Disk)
	limits.Memory, limits.Processes, limits.CPUs, limits.WallTime = s.Memory, s.Processes, s.CPUs, s.WallTime
	return limits
}

// bash runs commands in the sandboxes of a pool, which uses the core's runtime. It is nil if
// the configuration switches bash off.
type bash struct {
	pool *sandbox.Pool

	closeOnce sync.Once
	closeErr  error
}

// libraryOf creates the directory that a user's sandboxes see as /library.
type libraryOf func(ctx context.Context, user space.UserID) (dir string, release func(), err error)

func openBash(cfg *config.Config, rt Runtime, git *libraries, library libraryOf, kept *pending.Store, m sandbox.Metrics, log *slog.Logger) (*bash, error) {
	if rt == nil {
		return nil, nil
	}
	s := cfg.Sandbox
	pool, err := sandbox.New(sandbox.Options{
		Runtime: rt, Checkouts: git, Committer: git, Library: library, Pending: kept,
		Limits:       limitsOf(cfg),
		MaxSandboxes: s.Max, MaxMemory: s.TotalMemory,
		IdleStop: s.IdleStop, DetachAfter: s.DetachAfter,
		MaxFile: cfg.Space.MaxFile, MaxChange: cfg.Space.MaxChange(),
		Metrics: m,
		Logger:  log.With("part", "sandbox"),
	})
	if err != nil {
		return nil, err
	}
	return &bash{pool: pool}, nil
}

// reap removes leftovers of an earlier process, even if no sandbox can start.
func (b *bash) reap(ctx context.Context, log *slog.Logger) {
	n, err := b.pool.Reap(ctx)
	if err != nil {
		log.Error("sandboxes of an earlier run may still be there", "err", err)
	} else if n > 0 {
		log.Info("removed sandboxes that an earlier run left behind", "count", n)
	}
}

// check logs why no sandbox can start. Callers of bash get the same reason.
func (b *bash) check(ctx context.Context, log *slog.Logger) {
	if err := b.pool.Check(ctx); err != nil && ctx.Err() == nil {
		log.Warn("bash cannot run here; everything else works. satchel doctor says more", "why", fault.PublicOf(err))
	}
}

// close gives running commands time to end, commits their changes and stops every sandbox.
// Later calls return the result of the first.
func (b *bash) close(ctx context.Context) error {
	b.closeOnce.Do(func() { b.closeErr = b.pool.Close(ctx) })
	return b.closeErr
}
