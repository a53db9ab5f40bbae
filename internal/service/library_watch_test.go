package service_test

import (
	"testing"

	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
)

// Attack: a person waits for news of a source, and is no reader any more when there is some.
func TestWaitingForASyncEndsWithTheRight(t *testing.T) {
	w, _, in := syncWorld(t)
	ctx, op := t.Context(), service.Operator()
	u, _, err := w.Accounts.CreateUser(ctx, store.Actor{Via: "test"}, store.NewUser{Name: "eve", Space: space.NewSpaceID()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.AddSyncedSource(ctx, op, in); err != nil {
		t.Fatal(err)
	}
	eve := service.Person(u)
	always := func(space.Sync) bool { return true }
	st, err := w.WaitForSync(ctx, eve, service.WaitForSyncInput{ID: "handbook", Differs: always})
	if err != nil || st.State != space.SyncNew || st.Settings != nil {
		t.Errorf("a reader: %+v, %v", st, err)
	}
	nobody := []string{}
	st, err = w.WaitForSync(ctx, eve, service.WaitForSyncInput{ID: "handbook", Differs: func(space.Sync) bool {
		if _, err := w.ChangeSyncedSource(ctx, op, service.ChangeSyncedSourceInput{ID: "handbook", Readers: &nobody}); err != nil {
			t.Error(err)
		}
		return true
	}})
	if fault.CodeOf(err) != fault.NotFound || st.Source != "" {
		t.Errorf("no reader any more: %+v, %v", st, err)
	}
	if all, err := w.ListSyncs(ctx, eve, service.ListSourcesInput{}); err != nil || len(all) != 0 {
		t.Errorf("%+v, %v", all, err)
	}
}

// A preview suggests a free ID. The name docs has another meaning.
func TestAPreviewSuggestsAFreeID(t *testing.T) {
	w, server, in := syncWorld(t)
	ctx, op := t.Context(), service.Operator()
	for _, want := range []string{"docs-source", "docs-source-2"} {
		p, err := w.PreviewSyncedSource(ctx, op, service.SyncedSourceInput{Setting: in.Setting})
		if err != nil || p.ID != want || p.Title != "Docs" {
			t.Fatalf("%+v, %v", p, err)
		}
		in.Source.ID = p.ID
		in.URL = server.URL("docs")
		if _, err := w.AddSyncedSource(ctx, op, in); err != nil {
			t.Fatal(err)
		}
	}
}

// Only those who may change a source count its troubles, and see its history.
func TestWhoLearnsOfFailedSyncs(t *testing.T) {
	w, server, in := syncWorld(t)
	ctx, op := t.Context(), service.Operator()
	if _, err := w.AddSyncedSource(ctx, op, in); err != nil {
		t.Fatal(err)
	}
	server.Push("docs", "main", map[string]string{"c.md": "c"})
	in.Source.ID, in.Settings = "broken", []byte(`{"branch": "none"}`)
	if _, err := w.AddSyncedSource(ctx, op, in); err != nil {
		t.Fatal(err)
	}
	if _, err := w.SyncSource(ctx, op, service.SyncSourceInput{ID: "broken"}); err != nil {
		t.Fatal(err)
	}
	reader := service.Person(w.Owner)
	for name, c := range map[string]struct {
		actor service.Actor
		want  int
	}{"the operator": {op, 1}, "a reader": {reader, 0}} {
		if n, err := w.CountFailedSyncs(ctx, c.actor, service.None{}); err != nil || n != c.want {
			t.Errorf("%s: %d, %v", name, n, err)
		}
	}
	if _, err := w.OpenSyncedSource(ctx, reader, "broken"); fault.CodeOf(err) != fault.Forbidden {
		t.Errorf("a reader opens the history: %v", err)
	}
}
