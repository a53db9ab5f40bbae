package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"satchel/auth"
	"satchel/auth/store"
	"satchel/gitstore"
	"satchel/gitstore/gitcmd"
	"satchel/gitstore/remotes"
	"satchel/gitstore/reviews"
	"satchel/gitstore/secretscan"
	"satchel/gitstore/sources"
	"satchel/gitstore/sources/syncs"
	"satchel/internal/admin"
	"satchel/internal/config"
	"satchel/internal/database"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/internal/usage"
	"satchel/sandbox/protocol"
	"satchel/tools/index"
)

// Core is the open data directory, with everything that an administrative command needs. It
// holds the directory's lock until Close.
type Core struct {
	Config   *config.Config
	Log      *slog.Logger
	DB       *database.DB
	Accounts *store.Store
	Git      *gitstore.Store
	Service  *service.Service
	Admin    *admin.Local

	links
	runtime   Runtime // runs sandboxes; nil if the configuration switches sandboxes off
	sources   *sources.Manager
	syncs     *syncs.Manager
	reviews   *reviews.Reviews
	events    *relay
	deletions deletions
}

// allowList returns the list of people who may become users without an invitation.
func allowList(a config.Auth) auth.AllowList {
	return auth.AllowList{Emails: a.AllowEmails, Domains: a.AllowDomains, GitHubUsers: a.AllowGitHubUsers, GitHubOrgs: a.AllowGitHubOrgs}
}

// Initialised reports whether a server, or the command that adds the first person, ever
// started in a data directory.
func Initialised(dataDir string) bool {
	_, err := os.Stat(filepath.Join(dataDir, "spaces"))
	return err == nil
}

// SocketPath returns the socket at which a running server takes administrative commands.
func SocketPath(dataDir string) string { return filepath.Join(dataDir, "run", "admin.sock") }

// OpenCore opens the data directory, creates it if it is missing, and migrates its
// database. It returns a fault.Conflict if another process uses the directory.
func OpenCore(ctx context.Context, cfg *config.Config, version string, log *slog.Logger) (*Core, error) {
	return openCore(ctx, cfg, version, log, remotes.Metrics{}, nil)
}

func openCore(ctx context.Context, cfg *config.Config, version string, log *slog.Logger, m remotes.Metrics, synced func(space.SyncRun)) (_ *Core, err error) {
	c := &Core{Config: cfg, Log: log, events: &relay{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	run := filepath.Dir(SocketPath(cfg.DataDir))
	if err := os.MkdirAll(run, 0o700); err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "The data directory cannot be created (%s). Name another one with --data.", err)
	}
	if err := checkShared(cfg.DataDir); err != nil {
		return nil, err
	}
	// An existing directory may have another mode.
	if err := os.Chmod(run, 0o700); err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "The data directory %s does not belong to this user (%s). Run this command as its owner, or name another one with --data.", cfg.DataDir, cause(err))
	}
	if err = c.openTransport(ctx, c); err != nil {
		return nil, err
	}
	spaces := filepath.Join(cfg.DataDir, "spaces")
	// Open the store first, because it takes the lock of the data directory.
	screen := c.screen
	if !cfg.Space.ScreenSecrets {
		screen = nil
	}
	c.Git, err = gitstore.Open(gitstore.Options{
		Dir: spaces,
		Limits: gitstore.Limits{
			File: cfg.Space.MaxFile, Change: cfg.Space.MaxChange(), Space: cfg.Space.MaxSize, Repository: cfg.Space.MaxHistory(),
		},
		Events:    c.events,
		Transport: c.transport,
		Screen:    screen,

		CheckoutOwner: protocol.CommandUID,
		Logger:        log.With("part", "gitstore"),
	})
	if err != nil {
		return nil, err
	}
	if err = c.checkLost(); err != nil {
		return nil, err
	}
	if c.DB, err = database.Open(ctx, database.Options{URL: cfg.DatabaseURL(), Logger: log.With("part", "database")}); err != nil {
		return nil, err
	}
	migrations := slices.Concat(store.Migrations(), remotes.Migrations(), secretscan.Migrations(), reviews.Migrations(), sources.Migrations(), syncs.Migrations(), usage.Migrations())
	if _, err = c.DB.Migrate(ctx, migrations...); err != nil {
		return nil, err
	}
	if err = c.openRemotes(ctx, c, m); err != nil {
		return nil, err
	}
	key, err := c.box.Derive("tokens")
	if err != nil {
		return nil, err
	}
	a := cfg.Auth
	c.Accounts = store.New(c.DB, store.Options{
		TokenKey:       key,
		Seal:           c.box,
		AccessLifetime: a.AccessLifetime, RefreshLifetime: a.RefreshLifetime, SessionLifetime: a.SessionLifetime,
		Logger: log.With("part", "accounts"),
	})
	if c.runtime, err = NewRuntime(cfg, filepath.Join(run, "sandboxes"), ProgramsDir(cfg), cfg.Sandbox.Spare, log); err != nil {
		return nil, err
	}
	if err = c.openSources(ctx, synced); err != nil {
		return nil, err
	}
	if c.reviews, err = reviews.New(reviews.Options{DB: c.DB, Git: c.Git, Logger: log.With("part", "reviews")}); err != nil {
		return nil, err
	}
	c.Service = service.New(service.Options{
		Accounts: c.Accounts, Git: c.Git, Sources: c.sources, Syncs: c.syncs, Secrets: c.secrets, Remotes: c.remotes, Pending: c.held, Reviews: c.reviews,
		Search:    searchLimits(cfg),
		OpenIndex: func() (*index.Index, error) { return openIndex(cfg, log) },
		ForgetVectors: func(ctx context.Context, x *index.Index, id space.SpaceID) error {
			return forgetVectors(ctx, cfg, x, id)
		},
		SpacesDir: spaces, ScreenSecrets: cfg.Space.ScreenSecrets, DeleteSpace: c.deleteHere,
		Imports: service.ImportOptions{
			Transport: c.transport, CAFile: cfg.Remotes.CAFile, Git: gitcmd.Runner{Program: "git", Memory: cfg.Remotes.GitMemory},
			Dir: run, Limit: cfg.Space.MaxHistory(),
		},
		URL: PagesURL(cfg), Allow: allowList(cfg.Auth), MembersInvite: cfg.Auth.MembersInvite, AllowSources: cfg.Library.AllowSources,
		Logger: log.With("part", "service"),
	})
	c.Admin = &admin.Local{Service: c.Service, Running: admin.Info{Version: version, MaxFile: cfg.Space.MaxFile}}
	c.events.follow(c.remotes)
	return c, nil
}

// OpenSpaces opens only the spaces, for when the database cannot be opened.
func OpenSpaces(cfg *config.Config, log *slog.Logger) (*gitstore.Store, error) {
	return gitstore.Open(gitstore.Options{Dir: filepath.Join(cfg.DataDir, "spaces"), Logger: log})
}

// IndexFiles maps the database files of the search index to their spaces. A space has
// several files during a rebuild.
func IndexFiles(cfg *config.Config) (map[string]space.SpaceID, error) {
	files, err := filepath.Glob(filepath.Join(indexDir(cfg), "*.db"))
	out := map[string]space.SpaceID{}
	for _, f := range files {
		id, _, _ := strings.Cut(filepath.Base(f), ".")
		out[f] = space.SpaceID(id)
	}
	return out, err
}

// checkLost refuses to start with a missing or empty SQLite file if there are spaces. In a new
// database, no user would have access to these spaces.
func (c *Core) checkLost() error {
	file, ok := database.SQLitePath(c.Config.DatabaseURL())
	if !ok {
		return nil
	}
	what := "is missing"
	st, err := os.Stat(file)
	switch {
	case err == nil && st.Size() > 0, err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil // database.Open reports other errors
	case err == nil:
		what = "is empty"
	}
	spaces, err := c.Git.Spaces()
	if err != nil || len(spaces) == 0 {
		return err
	}
	return fault.New(fault.Unavailable, "The database %s %s, but %s has spaces. Stop Satchel, and put a copy of the database from your backup there. Without a copy, move the directory spaces elsewhere, start Satchel, and import each repository from there.",
		file, what, c.Config.DataDir)
}

func openIndex(cfg *config.Config, log *slog.Logger) (*index.Index, error) {
	o := index.Options{Dir: indexDir(cfg), Logger: log.With("part", "index")}
	var err error
	if o.Semantic, err = Semantic(cfg, vectorsDir(cfg), log); err != nil {
		return nil, err
	}
	x, err := index.Open(o)
	if err != nil {
		if o.Semantic != nil {
			o.Semantic.Close()
		}
		return nil, fmt.Errorf("open the search index: %w", err)
	}
	return x, nil
}

// searchLimits returns the configured limits of searches.
func searchLimits(cfg *config.Config) service.SearchLimits {
	return service.SearchLimits{Wait: cmp.Or(cfg.Search.Wait, -1)}
}

func indexDir(cfg *config.Config) string { return filepath.Join(cfg.DataDir, "index") }

// checkShared refuses a data directory in which every user of the machine may write.
// Whatever the modes of its files, those users could replace the database with one that
// contains their own keys. A directory that a group may write to is allowed, because
// containers get volumes that way.
func checkShared(dir string) error {
	const everyone = 0o002
	st, err := os.Stat(dir)
	if err != nil || runtime.GOOS == "windows" || st.Mode().Perm()&everyone == 0 {
		return err // Windows has no such modes
	}
	return fault.New(fault.Invalid, "Every user of this machine can write to the data directory %s. Run chmod 700 on it, or name another one with --data.", dir)
}

// Close closes all parts, in an order that leaves no work half done.
func (c *Core) Close() error {
	errs := []error{c.closeRemotes()}
	if c.syncs != nil {
		errs = append(errs, c.syncs.Close())
	}
	if c.runtime != nil { // after the syncs, which convert documents in its sandboxes
		errs = append(errs, c.runtime.Close())
	}
	if c.sources != nil {
		c.sources.Close()
	}
	if c.reviews != nil {
		c.reviews.Close()
	}
	if c.Accounts != nil {
		errs = append(errs, c.Accounts.Close())
	}
	if c.DB != nil {
		errs = append(errs, c.DB.Close())
	}
	if c.Git != nil {
		errs = append(errs, c.Git.Close())
	}
	return errors.Join(append(errs, c.closeTransport())...)
}

// relay passes the store's events to followers, which are created after the store.
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
