// Package servicetest makes services over real stores, for tests of the packages that use package
// service. Call [New] for a service with one person and their space, or [Empty] for a service
// without people.
package servicetest

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"satchel/auth/store"
	"satchel/gitstore"
	"satchel/gitstore/gitcmd"
	"satchel/gitstore/remotes"
	"satchel/gitstore/reviews"
	"satchel/gitstore/secretscan"
	"satchel/gitstore/sources"
	"satchel/gitstore/sources/syncs"
	"satchel/gitstore/sources/upstream"
	"satchel/gitstore/transport"
	"satchel/internal/database"
	"satchel/internal/database/databasetest"
	"satchel/internal/seal"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/sandbox/pending"
)

// World is a service with a person, Owner, who has a space.
type World struct {
	*service.Service
	DB       *database.DB
	Accounts *store.Store
	Git      *gitstore.Store
	Sources  *sources.Manager
	Remotes  *remotes.Manager
	Reviews  *reviews.Reviews
	Pending  *pending.Store
	Secrets  *secretscan.Scanner
	Dir      string          // the directory of the spaces and of all other data that is not in DB
	Options  service.Options // the options of Service
	Owner    store.User
	Space    space.SpaceID
	t        testing.TB
}

// Setup changes options before a World is made of them. Any field may be nil.
type Setup struct {
	Accounts  func(*store.Options)
	Git       func(*gitstore.Options)
	Transport func(*transport.Options)
	Remotes   func(*remotes.Options)
	Reviews   func(*reviews.Options)
	Sources   func(*sources.Options)
	Service   func(*service.Options)
}

// New makes a World that ends with the test.
func New(t testing.TB, now func() time.Time, change ...func(*sources.Options)) *World {
	t.Helper()
	w := Empty(t, now, Setup{Sources: func(o *sources.Options) {
		for _, f := range change {
			f(o)
		}
	}})
	w.Space = space.NewSpaceID()
	_, err := w.Git.Create(t.Context(), w.Space, space.ChangeSet{}, space.Meta{})
	w.must(err)
	w.Owner, _, err = w.Accounts.CreateUser(t.Context(), store.Actor{Via: "test"}, store.NewUser{Name: "owner", Space: w.Space})
	w.must(err)
	return w
}

// Empty makes a World without people that ends with the test.
func Empty(t testing.TB, now func() time.Time, s Setup) *World {
	t.Helper()
	w := &World{t: t, Dir: t.TempDir()}
	w.DB = databasetest.Open(t, databasetest.SQLite(t))
	_, err := w.DB.Migrate(t.Context(), slices.Concat(store.Migrations(), remotes.Migrations(), secretscan.Migrations(), reviews.Migrations(), sources.Migrations(), syncs.Migrations())...)
	w.must(err)
	box, err := seal.Load(filepath.Join(w.Dir, "server.key"))
	w.must(err)
	w.Accounts = store.New(w.DB, with(store.Options{Now: now, TokenKey: make([]byte, 32), Seal: box}, s.Accounts))
	t.Cleanup(func() { _ = w.Accounts.Close() })
	client := transport.New(with(transport.Options{}, s.Transport))
	t.Cleanup(func() { _ = client.Close() })
	spaces := filepath.Join(w.Dir, "spaces")
	w.Git, err = gitstore.Open(with(gitstore.Options{Dir: spaces, Transport: client}, s.Git))
	w.must(err)
	t.Cleanup(func() { _ = w.Git.Close() })
	w.Pending, err = pending.Open(pending.Options{Dir: filepath.Join(w.Dir, "held"), Seal: box})
	w.must(err)
	w.Remotes = remotes.New(with(remotes.Options{DB: w.DB, Git: w.Git, Transport: client, Seal: box, Backoff: remotes.Backoff{Min: time.Hour, Max: time.Hour}}, s.Remotes))
	w.must(w.Remotes.Load(t.Context()))
	t.Cleanup(func() { _ = w.Remotes.Close(context.WithoutCancel(t.Context())) })
	w.Reviews, err = reviews.New(with(reviews.Options{DB: w.DB, Git: w.Git, Now: now, Patience: time.Hour}, s.Reviews))
	w.must(err)
	t.Cleanup(w.Reviews.Close)
	w.Secrets, err = secretscan.New(secretscan.Options{DB: w.DB})
	w.must(err)
	w.Sources = sources.New(with(sources.Options{DB: w.DB, Store: w.Git, Dir: filepath.Join(w.Dir, "library"), Now: now, LookEvery: time.Hour, Owned: w.owned}, s.Sources))
	t.Cleanup(w.Sources.Close)
	w.must(w.Sources.Start(t.Context(), sources.Index{
		Changed: func(space.SpaceID) {}, Dropped: func(context.Context, space.SpaceID) error { return nil },
	}))
	runs := syncs.New(syncs.Options{
		DB: w.DB, Workflows: "sqlite:" + filepath.Join(w.Dir, "workflows.db"), Store: w.Git, Sources: w.Sources, Dir: filepath.Join(w.Dir, "syncs"),
		Retry: time.Millisecond, Now: now,
		Env: upstream.Env{Remotes: client, Git: gitcmd.Runner{Program: "git"}, MaxFileBytes: 10 << 20, MaxBytes: 100 << 20, Now: now},
	})
	t.Cleanup(func() { _ = runs.Close() })
	w.Options = with(service.Options{
		Accounts: w.Accounts, Git: w.Git, Sources: w.Sources, Syncs: runs, Secrets: w.Secrets, Remotes: w.Remotes, Reviews: w.Reviews, Pending: w.Pending, Now: now, SpacesDir: spaces, ScreenSecrets: true,
		Imports: service.ImportOptions{Transport: client, Git: gitcmd.Runner{Program: "git"}, Dir: w.Dir, Limit: 100 << 20},
		DeleteSpace: func(ctx context.Context, by store.Actor, id space.SpaceID, owner space.UserID) (<-chan error, error) {
			_, err := w.Accounts.DeleteSpace(ctx, by, id, owner)
			done := make(chan error, 1)
			done <- w.Git.Delete(ctx, id)
			return done, err
		},
	}, s.Service)
	w.Service = service.New(w.Options)
	return w
}

func (w *World) owned(ctx context.Context, u space.UserID) (out []space.SpaceID, err error) {
	if out, err = w.Accounts.SourceSpaces(ctx, u); err != nil {
		return nil, err
	}
	all, err := w.Accounts.SpacesOf(ctx, u)
	for _, m := range all {
		if m.Role == space.Owner {
			out = append(out, m.ID)
		}
	}
	return out, err
}

func with[T any](o T, change func(*T)) T {
	if change != nil {
		change(&o)
	}
	return o
}

// Write commits files to the space.
func (w *World) Write(files map[string]string) {
	w.t.Helper()
	var cs space.ChangeSet
	for p, text := range files {
		cs.Changes = append(cs.Changes, space.Change{Path: p, Content: []byte(text)})
	}
	_, err := w.Git.Commit(w.t.Context(), w.Space, cs, space.Meta{})
	w.must(err)
}

// Publish publishes a directory of the space for everybody.
func (w *World) Publish(id, title, dir string) space.Source {
	w.t.Helper()
	s, err := w.PublishSource(w.t.Context(), service.Person(w.Owner), service.PublishSourceInput{
		Space: service.SpaceRef{ID: w.Space}, Source: space.Source{ID: id, SourceText: space.SourceText{Title: title}, Dir: space.Path(dir), Everybody: true},
	})
	w.must(err)
	return s
}

func (w *World) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}
