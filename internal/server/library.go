package server

import (
	"context"
	"os/exec"
	"path/filepath"
	"time"

	"satchel/auth"
	"satchel/auth/store"
	"satchel/gitstore/gitcmd"
	"satchel/gitstore/sources"
	"satchel/gitstore/sources/syncs"
	"satchel/gitstore/sources/upstream"
	"satchel/internal/config"
	"satchel/internal/database"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/tools"
)

// openSources opens the manager of published sources. Nothing follows the sources yet.
func (c *Core) openSources(ctx context.Context, synced func(space.SyncRun)) error {
	c.sources = sources.New(sources.Options{
		DB: c.DB, Store: c.Git, Owned: ownedBy(c.Accounts), Dir: filepath.Join(c.Config.DataDir, "run", "library"),
		Ended: func(ctx context.Context, s space.Source) error {
			if !s.Upstream() {
				return nil
			}
			return c.syncs.EndSource(ctx, s.ID)
		},
		Logger: c.Log.With("part", "sources"),
	})
	if err := c.sources.Load(ctx); err != nil {
		return err
	}
	documents, err := newDocuments(c.runtime, c.Config.DataDir, limitsOf(c.Config), c.Config.Space.MaxFile)
	if err != nil {
		return err
	}
	c.syncs = syncs.New(syncs.Options{
		DB: c.DB, Workflows: workflowsURL(c.Config), Store: c.Git, Sources: c.sources, Dir: filepath.Join(c.Config.DataDir, "run", "syncs"),
		Env: upstream.Env{
			HTTP: c.egress.HTTPClient(), Remotes: c.transport, Git: gitcmd.Runner{Program: "git", Memory: c.Config.Remotes.GitMemory},
			YtDlp:   ytDlp(),
			Convert: documents.convert, DataDir: c.Config.DataDir,
			MaxFileBytes: c.Config.Space.MaxFile, MaxBytes: min(c.Config.Space.MaxSize, sources.DefaultMaxBytes),
			GitHub: c.Config.Auth.GitHub.URL,
			Now:    time.Now, Logger: c.Log.With("part", "upstream"),
		},
		Token: c.readToken, Ended: synced,
		Logger: c.Log.With("part", "syncs"),
	})
	c.syncs.Reserve(service.SnapshotSpace) // has copies of the sources' files, which are indexed already
	return c.syncs.Load(ctx)
}

// ytDlp returns the path of the program yt-dlp, or "" if it is not installed.
func ytDlp() string {
	program, err := exec.LookPath("yt-dlp")
	if err != nil {
		return ""
	}
	return program
}

// workflowsURL returns the URL of the database that records the progress of running syncs. With
// SQLite it is a file of its own, because a SQLite file has one writer at a time. That file can be
// deleted: the next sync of each source then starts from the beginning.
func workflowsURL(cfg *config.Config) string {
	if _, ok := database.SQLitePath(cfg.DatabaseURL()); ok {
		return "sqlite:" + filepath.Join(cfg.DataDir, "run", "workflows.db")
	}
	return cfg.DatabaseURL()
}

// ofPeople passes on the events of spaces that do not belong to a sync. The search index follows
// the sources of syncs, so it must not also index the spaces of syncs.
type ofPeople struct {
	syncs *syncs.Manager
	to    space.Events
}

// Publish implements space.Events.
func (o ofPeople) Publish(e space.Event) {
	if !o.syncs.Owns(e.Space) {
		o.to.Publish(e)
	}
}

// ownedBy returns a function that lists the spaces that a person owns and those of the person's
// sources. It lists none for a suspended or unknown person.
func ownedBy(accounts *store.Store) func(context.Context, space.UserID) ([]space.SpaceID, error) {
	return func(ctx context.Context, user space.UserID) ([]space.SpaceID, error) {
		u, err := accounts.User(ctx, user)
		if fault.CodeOf(err) == fault.NotFound || err == nil && !u.Suspended.IsZero() {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		all, err := accounts.SpacesOf(ctx, user)
		var ids []space.SpaceID
		for _, m := range all {
			if m.Role == space.Owner {
				ids = append(ids, m.ID)
			}
		}
		if err != nil {
			return nil, err
		}
		synced, err := accounts.SourceSpaces(ctx, user)
		return append(ids, synced...), err
	}
}

// followSources makes the index follow the published sources.
func (s *Server) followSources(ctx context.Context) error {
	s.shared = s.index.Follow(s.sources)
	dropped := func(ctx context.Context, collection space.SpaceID) error { return s.dropFrom(ctx, s.index, collection) }
	return s.sources.Start(ctx, sources.Index{Changed: s.shared.Refresh, Dropped: dropped})
}

// library lets the tools read the published sources.
type library struct {
	*sources.Manager
	service *service.Service
}

var _ tools.Library = library{}

func (c *Core) library() library { return library{c.sources, c.Service} }

// Sources lists the sources that a user may read.
func (l library) Sources(ctx context.Context, user space.UserID) ([]space.Source, error) {
	reader := service.Client(auth.Principal{User: user, Scopes: []space.Scope{space.ScopeRead}}, "tools")
	return l.service.ListSources(ctx, reader, service.ListSourcesInput{})
}
