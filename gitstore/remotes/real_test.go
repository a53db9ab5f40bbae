package remotes_test

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"satchel/gitstore"
	"satchel/gitstore/remotes"
	"satchel/gitstore/remotetest"
	"satchel/gitstore/transport"
	"satchel/internal/database/databasetest"
	"satchel/internal/seal"
	"satchel/internal/space"
)

// real is a Manager over a real store, with a real git server as the remote.
type real struct {
	*remotes.Manager
	t      testing.TB
	remote *remotetest.Server
	store  *gitstore.Store
	o      remotes.Options
	id     space.SpaceID
}

// events passes events on to a Manager that is created after the store.
type events struct{ m *remotes.Manager }

func (e *events) Publish(ev space.Event) {
	if e.m != nil {
		e.m.Publish(ev)
	}
}

// newReal creates a space with the file here.md and no remote.
func newReal(t testing.TB, change func(*remotes.Options)) *real {
	t.Helper()
	client := transport.New(transport.Options{})
	t.Cleanup(func() { client.Close() })
	ev := &events{}
	store, err := gitstore.Open(gitstore.Options{Dir: filepath.Join(t.TempDir(), "spaces"), Transport: client, Events: ev})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	db := databasetest.Open(t, databasetest.SQLite(t))
	if _, err := db.Migrate(t.Context(), remotes.Migrations()...); err != nil {
		t.Fatal(err)
	}
	box, err := seal.Load(filepath.Join(t.TempDir(), "server.key"))
	if err != nil {
		t.Fatal(err)
	}
	r := &real{t: t, store: store, remote: remotetest.New(t, remotetest.Options{}), id: space.NewSpaceID()}
	r.o = remotes.Options{
		DB: db, Git: store, Transport: client, Seal: box,
		Backoff: remotes.Backoff{Min: time.Millisecond, Max: 5 * time.Millisecond, Slow: time.Hour},
	}
	if change != nil {
		change(&r.o)
	}
	r.Manager = remotes.New(r.o)
	ev.m = r.Manager
	t.Cleanup(func() {
		if err := r.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	if err := r.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	initial := space.ChangeSet{Changes: []space.Change{{Path: "here.md", Content: []byte("here\n")}}}
	if _, err := store.Create(t.Context(), r.id, initial, space.Meta{}); err != nil {
		t.Fatal(err)
	}
	r.remote.Create("notes")
	return r
}

// set sets the remote of the space, and syncs.
func (r *real) set(req remotes.SetRequest) space.RemoteStatus {
	r.t.Helper()
	req.Space, req.Trusted = r.id, true
	if req.URL == "" {
		req.URL = r.remote.URL("notes")
	}
	if err := r.Set(r.t.Context(), req); err != nil {
		r.t.Fatal(err)
	}
	return r.sync()
}

func (r *real) sync() space.RemoteStatus {
	r.t.Helper()
	st, err := r.Sync(r.t.Context(), r.id, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	return st
}

// write commits files to the space.
func (r *real) write(files map[string]string) space.Commit {
	r.t.Helper()
	var cs space.ChangeSet
	head, err := r.store.Head(r.t.Context(), r.id)
	if err != nil {
		r.t.Fatal(err)
	}
	for name, content := range files {
		base, mode, _, err := r.store.Blob(r.t.Context(), r.id, head, space.Path(name))
		if err != nil {
			r.t.Fatal(err)
		}
		cs.Changes = append(cs.Changes, space.Change{Path: name, Content: []byte(content), Base: base, BaseMode: mode})
	}
	c, err := r.store.Commit(r.t.Context(), r.id, cs, space.Meta{})
	if err != nil || !c.Changed {
		r.t.Fatal(c, err)
	}
	return c
}

// files lists the space's files.
func (r *real) files() []string {
	r.t.Helper()
	head, err := r.store.Head(r.t.Context(), r.id)
	if err != nil {
		r.t.Fatal(err)
	}
	fs, err := r.store.Files(r.t.Context(), r.id, head, "")
	if err != nil {
		r.t.Fatal(err)
	}
	var names []string
	for _, f := range fs {
		names = append(names, string(f.Path))
	}
	return names
}

// inStep waits until the space and the remote are the same, and returns the Status.
func (r *real) inStep(branch string) space.RemoteStatus {
	r.t.Helper()
	st := r.sync()
	if st.State != space.RemotePushed || st.Unpushed != 0 || st.Problem != "" {
		r.t.Fatalf("not in step: %+v", st)
	}
	if head := r.remote.Head("notes", branch); head != string(st.Head) {
		r.t.Fatalf("the remote's %s is at %s, the space at %s", branch, head, st.Head)
	}
	if ours, theirs := r.files(), r.remote.Files("notes", branch); !slices.Equal(ours, theirs) {
		r.t.Fatalf("here %q, there %q", ours, theirs)
	}
	r.remote.Fsck("notes")
	return st
}

func (r *real) notices() string {
	return strings.Join(r.Notices(r.id, "u_ann"), "\n")
}
