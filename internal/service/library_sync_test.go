package service_test

import (
	"testing"
	"time"

	"satchel/auth"
	"satchel/auth/store"
	"satchel/gitstore/remotetest"
	"satchel/gitstore/sources/syncs"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/service/servicetest"
	"satchel/internal/space"
)

// syncWorld is a service with a git server, and the input that adds its repository docs.
func syncWorld(t *testing.T) (*servicetest.World, *remotetest.Server, service.SyncedSourceInput) {
	t.Helper()
	w := servicetest.New(t, time.Now)
	server := remotetest.New(t, remotetest.Options{})
	server.Create("docs")
	server.Push("docs", "main", map[string]string{"a.md": "# Alpha", "b.md": "# Beta"})
	in := service.SyncedSourceInput{Source: space.Source{ID: "handbook", Everybody: true}, Setting: syncs.Setting{URL: server.URL("docs")}}
	return w, server, in
}

func TestASyncedSourceIsReadByItsAudience(t *testing.T) {
	w, server, in := syncWorld(t)
	ctx, op := t.Context(), service.Operator()
	if _, err := w.AddSyncedSource(ctx, op, in); err != nil {
		t.Fatal(err)
	}
	x, err := w.SyncSource(ctx, op, service.SyncSourceInput{ID: "handbook"})
	if err != nil || x.Run == nil || x.Run.Added != 2 || x.State != space.SourceReady || x.Files != 2 {
		t.Fatalf("%+v, %v", x, err)
	}
	reader := service.Person(w.Owner)
	if s, err := w.OpenSource(ctx, reader, "handbook"); err != nil || s.Source.Kind != "git" {
		t.Errorf("%+v, %v", s.Source, err)
	}
	server.Push("docs", "main", map[string]string{"a.md": "# Changed", "b.md": remotetest.Gone})
	if x, err := w.SyncSource(ctx, reader, service.SyncSourceInput{ID: "handbook"}); err != nil || x.Run.Changed != 1 || x.Run.Deleted != 1 {
		t.Errorf("%+v, %v", x, err)
	}
	st, err := w.ListSyncRuns(ctx, reader, service.ListSyncRunsInput{ID: "handbook"})
	if err != nil || len(st.Runs) != 2 {
		t.Errorf("%+v, %v", st, err)
	}
	if _, err := w.RemoveSyncedSource(ctx, op, service.RemoveSyncedSourceInput{ID: "handbook"}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.OpenSource(ctx, reader, "handbook"); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("after its removal: %v", err)
	}
	if w.Git.Exists(st.Space) {
		t.Error("its space exists")
	}
	if _, err := w.AddSyncedSource(ctx, op, in); err != nil {
		t.Errorf("again: %v", err)
	}
}

// Nobody sees the space of a sync among spaces, and only the sync writes to it.
func TestTheSpaceOfASync(t *testing.T) {
	w, _, in := syncWorld(t)
	ctx, op := t.Context(), service.Operator()
	src, err := w.AddSyncedSource(ctx, op, in)
	if err != nil {
		t.Fatal(err)
	}
	if all, err := w.ListSpaces(ctx, op, service.ListSpacesInput{}); err != nil || len(all) != 1 {
		t.Errorf("%d spaces, %v", len(all), err)
	}
	ref := service.SpaceRef{ID: src.Space}
	refused := func(what string, err error, want fault.Code) {
		t.Helper()
		if fault.CodeOf(err) != want {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err = w.Restore(ctx, op, service.RestoreInput{Space: ref})
	refused("restore", err, fault.Forbidden)
	_, err = w.DeleteSpace(ctx, op, service.DeleteSpaceInput{Space: service.SpaceRef{Name: string(src.Space)}})
	refused("delete", err, fault.Forbidden)
	_, err = w.ListCommits(ctx, service.Person(w.Owner), service.ListCommitsInput{Space: ref})
	refused("a person's log", err, fault.NotFound)
	if _, err := w.ListCommits(ctx, op, service.ListCommitsInput{Space: ref}); err != nil {
		t.Errorf("the operator's log: %v", err)
	}
}

// People add sources only from listed addresses, and change only their own.
func TestPeopleAndSyncedSources(t *testing.T) {
	w, server, in := syncWorld(t)
	ctx := t.Context()
	u, _, err := w.Accounts.CreateUser(ctx, store.Actor{Via: "test"}, store.NewUser{Name: "eve", Space: space.NewSpaceID()})
	if err != nil {
		t.Fatal(err)
	}
	eve, client := service.Person(u), service.Client(auth.Principal{User: u.ID, Scopes: []space.Scope{space.ScopeRead, space.ScopeWrite}}, "api")
	for name, a := range map[string]service.Actor{"a person": eve, "a client": client} {
		if _, err := w.AddSyncedSource(ctx, a, in); fault.CodeOf(err) != fault.Forbidden {
			t.Errorf("%s adds: %v", name, err)
		}
		if _, err := w.PreviewSyncedSource(ctx, a, in); fault.CodeOf(err) != fault.Forbidden {
			t.Errorf("%s previews: %v", name, err)
		}
	}
	if n := len(server.Requests()); n > 0 {
		t.Errorf("%d requests", n)
	}
	if _, err := w.AddSyncedSource(ctx, service.Operator(), in); err != nil {
		t.Fatal(err)
	}
	for name, do := range map[string]func() error{
		"change": func() error {
			_, err := w.ChangeSyncedSource(ctx, eve, service.ChangeSyncedSourceInput{ID: "handbook"})
			return err
		},
		"remove": func() error {
			_, err := w.RemoveSyncedSource(ctx, eve, service.RemoveSyncedSourceInput{ID: "handbook"})
			return err
		},
		"reset": func() error {
			_, err := w.SyncSource(ctx, eve, service.SyncSourceInput{ID: "handbook", Reset: true})
			return err
		},
		"cancel": func() error { _, err := w.CancelSync(ctx, eve, service.CancelSyncInput{ID: "handbook"}); return err },
	} {
		if err := do(); fault.CodeOf(err) != fault.Forbidden {
			t.Errorf("%s: %v", name, err)
		}
	}
	title, nobody := "Handbook", []string{}
	x, err := w.ChangeSyncedSource(ctx, service.Operator(), service.ChangeSyncedSourceInput{ID: "handbook", Title: &title, Readers: &nobody})
	if err != nil || x.Title != title || x.Everybody {
		t.Errorf("%+v, %v", x, err)
	}
	if _, err := w.SyncSource(ctx, eve, service.SyncSourceInput{ID: "handbook"}); fault.CodeOf(err) != fault.NotFound {
		t.Errorf("a sync by a person who may not read: %v", err)
	}
}
