package app

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"

	"satchel/auth/store"
	"satchel/cmd/satchel/internal/admin"
	"satchel/gitstore"
	"satchel/internal/config"
	"satchel/internal/database"
	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/sandbox/agent"
)

// Core is the open data directory: all that an administrative command needs. It
// holds the directory's lock until Close.
type Core struct {
	Config   *config.Config
	Log      *slog.Logger
	DB       *database.DB
	Accounts *store.Store
	Git      *gitstore.Store
	Admin    *admin.Local

	events *relay
}

// Initialised tells whether there is a Satchel in a data directory: whether a
// server, or the command that adds the first person, was ever started on it.
func Initialised(dataDir string) bool {
	_, err := os.Stat(filepath.Join(dataDir, "spaces"))
	return err == nil
}

// SocketPath is where a running server takes administrative commands.
func SocketPath(dataDir string) string { return filepath.Join(dataDir, "run", "admin.sock") }

// OpenCore opens the data directory, making it where it is missing, and brings
// its database up to date. It returns a fault.Conflict where another process
// works on the directory.
func OpenCore(ctx context.Context, cfg *config.Config, version string, log *slog.Logger) (_ *Core, err error) {
	c := &Core{Config: cfg, Log: log, events: &relay{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	run := filepath.Dir(SocketPath(cfg.DataDir))
	if err := os.MkdirAll(run, 0o700); err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "The data directory cannot be made (%s). Name another one with --data.", err)
	}
	if err := checkShared(cfg.DataDir); err != nil {
		return nil, err
	}
	// Where it was there already, its mode is somebody's else idea.
	if err := os.Chmod(run, 0o700); err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "The data directory %s is not this user's (%s). Run this as its owner, or name another one with --data.", cfg.DataDir, cause(err))
	}
	spaces := filepath.Join(cfg.DataDir, "spaces")
	// First of all, because it takes the lock.
	c.Git, err = gitstore.Open(gitstore.Options{
		Dir:    spaces,
		Limits: gitstore.Limits{File: cfg.Space.MaxFile, Change: cfg.Space.MaxChange, Space: cfg.Space.MaxSize},
		Events: c.events,

		CheckoutOwner: agent.CommandUID,
		Logger:        log.With("part", "gitstore"),
	})
	if err != nil {
		return nil, err
	}
	if c.DB, err = database.Open(ctx, database.Options{URL: cfg.DatabaseURL(), Logger: log.With("part", "database")}); err != nil {
		return nil, err
	}
	if _, err = c.DB.Migrate(ctx, store.Migrations()...); err != nil {
		return nil, err
	}
	c.Accounts = store.New(c.DB, store.Options{Logger: log.With("part", "accounts")})
	c.Admin = &admin.Local{Accounts: c.Accounts, Git: c.Git, SpacesDir: spaces, Running: admin.Info{Version: version, MaxFile: cfg.Space.MaxFile}}
	return c, nil
}

// checkShared refuses a data directory in which every user of the machine may
// write: whatever the modes of what is in it, they could put a database with
// keys of their own in the place of ours. A group that may is left to whoever
// made the directory, since volumes are handed to containers so.
func checkShared(dir string) error {
	const everyone = 0o002
	st, err := os.Stat(dir)
	if err != nil || runtime.GOOS == "windows" || st.Mode().Perm()&everyone == 0 {
		return err // Windows has no such modes
	}
	return fault.New(fault.Invalid, "Every user of this machine may write in the data directory %s. Run chmod 700 on it, or name another one with --data.", dir)
}

// Close closes what is open, in the order that leaves nothing half done.
func (c *Core) Close() error {
	var errs []error
	if c.Accounts != nil {
		errs = append(errs, c.Accounts.Close())
	}
	if c.DB != nil {
		errs = append(errs, c.DB.Close())
	}
	if c.Git != nil {
		errs = append(errs, c.Git.Close())
	}
	return errors.Join(errs...)
}

// relay passes commits on to those that follow them, who are made after the
// store that tells of them.
type relay struct {
	followers atomic.Pointer[[]space.Events]
}

// Publish implements space.Events.
func (r *relay) Publish(e space.Event) {
	if f := r.followers.Load(); f != nil {
		for _, to := range *f {
			to.Publish(e)
		}
	}
}

func (r *relay) follow(to ...space.Events) { r.followers.Store(&to) }
