// Package servicetest makes services over real stores for tests of the fronts. Call
// [New] for a service with one person and their space, or [Library] where a test has
// accounts and spaces of its own.
package servicetest

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"satchel/auth/store"
	"satchel/gitstore"
	"satchel/gitstore/remotes"
	"satchel/gitstore/secretscan"
	"satchel/gitstore/sources"
	"satchel/gitstore/transport"
	"satchel/internal/database/databasetest"
	"satchel/internal/seal"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/sandbox/pending"
)

// World is a service with a person, Owner, who has a space.
type World struct {
	*service.Service
	Accounts *store.Store
	Git      *gitstore.Store
	Sources  *sources.Manager
	Remotes  *remotes.Manager
	Held     *pending.Store
	Secrets  *secretscan.Scanner
	Options  service.Options // of Service
	Owner    store.User
	Space    space.SpaceID
	t        testing.TB
}

// New makes a World that ends with the test.
func New(t testing.TB, now func() time.Time, change ...func(*sources.Options)) *World {
	t.Helper()
	w := &World{t: t}
	db := databasetest.Open(t, databasetest.SQLite(t))
	_, err := db.Migrate(t.Context(), append(store.Migrations(), remotes.Migrations()...)...)
	w.must(err)
	w.Accounts = store.New(db, store.Options{Now: now, TokenKey: make([]byte, 32)})
	t.Cleanup(func() { _ = w.Accounts.Close() })
	dir, client := t.TempDir(), transport.New(transport.Options{})
	t.Cleanup(func() { _ = client.Close() })
	w.Git, err = gitstore.Open(gitstore.Options{Dir: filepath.Join(dir, "spaces"), Transport: client})
	w.must(err)
	t.Cleanup(func() { _ = w.Git.Close() })
	box, err := seal.Load(filepath.Join(dir, "server.key"))
	w.must(err)
	w.Held, err = pending.Open(pending.Options{Dir: filepath.Join(dir, "held"), Seal: box})
	w.must(err)
	w.Remotes = remotes.New(remotes.Options{DB: db, Git: w.Git, Transport: client, Seal: box, Backoff: remotes.Backoff{Min: time.Hour, Max: time.Hour}})
	w.must(w.Remotes.Load(t.Context()))
	t.Cleanup(func() { _ = w.Remotes.Close(context.WithoutCancel(t.Context())) })
	w.Space = space.NewSpaceID()
	_, err = w.Git.Create(t.Context(), w.Space, space.ChangeSet{}, space.Meta{})
	w.must(err)
	w.Owner, _, err = w.Accounts.CreateUser(t.Context(), store.Actor{Via: "test"}, store.NewUser{Name: "owner", Space: w.Space})
	w.must(err)
	w.Options = options(t, w.Accounts, w.Git, now, change...)
	w.Options.Git, w.Options.Remotes, w.Options.Held, w.Options.SpacesDir, w.Options.ScreenSecrets = w.Git, w.Remotes, w.Held, filepath.Join(dir, "spaces"), true
	w.Service, w.Sources, w.Secrets = service.New(w.Options), w.Options.Sources, w.Options.Secrets
	return w
}

// Library makes a service with the library of the spaces in git. It ends with the test.
func Library(t testing.TB, accounts *store.Store, git *gitstore.Store, now func() time.Time, change ...func(*sources.Options)) (*service.Service, *sources.Manager) {
	t.Helper()
	o := options(t, accounts, git, now, change...)
	return service.New(o), o.Sources
}

func options(t testing.TB, accounts *store.Store, git *gitstore.Store, now func() time.Time, change ...func(*sources.Options)) service.Options {
	t.Helper()
	w := &World{t: t}
	db := databasetest.Open(t, databasetest.SQLite(t))
	_, err := db.Migrate(t.Context(), append(sources.Migrations(), secretscan.Migrations()...)...)
	w.must(err)
	secrets, err := secretscan.New(secretscan.Options{DB: db})
	w.must(err)
	o := sources.Options{
		DB: db, Store: git, Dir: filepath.Join(t.TempDir(), "library"), Now: now, LookEvery: time.Hour,
		Owned: func(ctx context.Context, u space.UserID) ([]space.SpaceID, error) {
			all, err := accounts.SpacesOf(ctx, u)
			var out []space.SpaceID
			for _, m := range all {
				if m.Role == space.Owner {
					out = append(out, m.ID)
				}
			}
			return out, err
		},
	}
	for _, f := range change {
		f(&o)
	}
	m := sources.New(o)
	t.Cleanup(m.Close)
	w.must(m.Start(t.Context(), sources.Index{
		Changed: func(space.SpaceID) {}, Dropped: func(context.Context, space.SpaceID) error { return nil },
	}))
	return service.Options{Accounts: accounts, Git: git, Sources: m, Secrets: secrets, Remotes: remotes.New(remotes.Options{Git: git}), Now: now}
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
