package server

import (
	"context"
	"errors"
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

// Runtime is a space.Runtime that can tell what it finds on this machine.
type Runtime interface {
	space.Runtime
	// Diagnose looks at everything that sandboxes need or can use, for
	// `satchel doctor`. It starts a trial sandbox.
	Diagnose(ctx context.Context) []host.Finding
}

// NewRuntime returns the runtime that the configuration names, with its state
// in runDir, which it alone may use; nil if the configuration names none.
func NewRuntime(cfg *config.Config, runDir string, log *slog.Logger) (Runtime, error) {
	if cfg.Sandbox.Runtime == "none" {
		return nil, nil
	}
	rt, err := gvisor.New(gvisor.Options{
		RunDir: runDir,
		Programs: func() (programs.Programs, error) {
			return programs.Install(filepath.Join(runDir, "programs"))
		},
		Rootfs: cfg.Sandbox.Rootfs, Platform: cfg.Sandbox.Platform, Logger: log.With("part", gvisor.Name),
	})
	if err != nil {
		return nil, err // and no runtime, which a typed nil would seem to be
	}
	return rt, nil
}

// bash is what runs commands: the pool over a runtime. It is nil if the
// configuration switches bash off.
type bash struct {
	runtime Runtime
	pool    *sandbox.Pool

	closeOnce sync.Once
	closeErr  error
}

// libraryOf makes the directory that the sandboxes of a user have as /library.
type libraryOf func(ctx context.Context, user space.UserID) (dir string, release func(), err error)

func openBash(cfg *config.Config, git *libraries, library libraryOf, kept *pending.Store, m sandbox.Metrics, log *slog.Logger) (*bash, error) {
	rt, err := NewRuntime(cfg, filepath.Join(cfg.DataDir, "run", "sandboxes"), log)
	if err != nil || rt == nil {
		return nil, err
	}
	s := cfg.Sandbox
	limits := sandbox.WithDisk(sandbox.DefaultLimits(), s.Disk)
	limits.Memory, limits.Processes, limits.CPUs, limits.WallTime = s.Memory, s.Processes, s.CPUs, s.WallTime
	pool, err := sandbox.New(sandbox.Options{
		Runtime: rt, Checkouts: git, Committer: git, Library: library, Pending: kept,
		Limits:       limits,
		MaxSandboxes: s.Max, MaxMemory: s.TotalMemory,
		IdleStop: s.IdleStop, DetachAfter: s.DetachAfter,
		MaxFile: cfg.Space.MaxFile, MaxChange: cfg.Space.MaxChange(),
		Metrics: m,
		Logger:  log.With("part", "sandbox"),
	})
	if err != nil {
		return nil, errors.Join(err, rt.Close())
	}
	return &bash{runtime: rt, pool: pool}, nil
}

// reap removes what an earlier process left. It must go even where nothing new
// can start.
func (b *bash) reap(ctx context.Context, log *slog.Logger) {
	n, err := b.pool.Reap(ctx)
	if err != nil {
		log.Error("sandboxes of an earlier run may still be there", "err", err)
	} else if n > 0 {
		log.Info("removed sandboxes that an earlier run left behind", "count", n)
	}
}

// check says in the log where no sandbox can start; callers of bash are told
// the same.
func (b *bash) check(ctx context.Context, log *slog.Logger) {
	if err := b.pool.Check(ctx); err != nil && ctx.Err() == nil {
		log.Warn("bash cannot run here; everything else works. satchel doctor says more", "why", fault.PublicOf(err))
	}
}

// close ends running commands with their grace, commits what they changed and
// stops every sandbox. Again it returns what it returned first.
func (b *bash) close(ctx context.Context) error {
	b.closeOnce.Do(func() { b.closeErr = errors.Join(b.pool.Close(ctx), b.runtime.Close()) })
	return b.closeErr
}
