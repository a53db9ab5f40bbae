package service_test

import (
	"strings"
	"testing"

	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
)

// The ID of a source that has ended, as the person who added it is gone, is for everybody but admins like
// one that never existed. No other source gets the ID.
func TestAnEndedSourceIsLikeAnUnknownOne(t *testing.T) {
	w, _, in := syncWorld(t)
	ctx, op := t.Context(), service.Operator()
	src, err := w.AddSyncedSource(ctx, op, in)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.SyncSource(ctx, op, service.SyncSourceInput{ID: "handbook"}); err != nil {
		t.Fatal(err)
	}
	if err := w.Sources.Remove(ctx, src.Space, "handbook"); err != nil {
		t.Fatal(err)
	}
	if err := w.Options.Syncs.EndSource(ctx, "handbook"); err != nil {
		t.Fatal(err)
	}
	u, _, err := w.Accounts.CreateUser(ctx, store.Actor{Via: "test"}, store.NewUser{Name: "eve", Space: space.NewSpaceID()})
	if err != nil {
		t.Fatal(err)
	}
	eve := service.Person(u)
	for name, do := range map[string]func(id string) error{
		"read": func(id string) error { _, err := w.OpenSource(ctx, eve, id); return err },
		"open": func(id string) error { _, err := w.OpenSyncedSource(ctx, eve, id); return err },
		"status": func(id string) error {
			_, err := w.ListSyncRuns(ctx, eve, service.ListSyncRunsInput{ID: id})
			return err
		},
		"wait": func(id string) error {
			_, err := w.WaitForSync(ctx, eve, service.WaitForSyncInput{ID: id, Differs: func(space.Sync) bool { return true }})
			return err
		},
		"sync": func(id string) error { _, err := w.SyncSource(ctx, eve, service.SyncSourceInput{ID: id}); return err },
		"reset": func(id string) error {
			_, err := w.SyncSource(ctx, eve, service.SyncSourceInput{ID: id, Reset: true})
			return err
		},
		"cancel": func(id string) error { _, err := w.CancelSync(ctx, eve, service.CancelSyncInput{ID: id}); return err },
		"change": func(id string) error {
			_, err := w.ChangeSyncedSource(ctx, eve, service.ChangeSyncedSourceInput{ID: id})
			return err
		},
		"remove": func(id string) error {
			_, err := w.RemoveSyncedSource(ctx, eve, service.RemoveSyncedSourceInput{ID: id})
			return err
		},
		"unpublish": func(id string) error {
			_, err := w.UnpublishSource(ctx, eve, service.UnpublishSourceInput{ID: id})
			return err
		},
		"upload": func(id string) error {
			_, err := w.UploadToSource(ctx, eve, service.UploadToSourceInput{ID: id, Name: "a.md", Stream: strings.NewReader("# A")})
			return err
		},
		"remove a file": func(id string) error {
			_, err := w.RemoveFromSource(ctx, eve, service.RemoveFromSourceInput{ID: id, Names: []string{"a.md"}})
			return err
		},
	} {
		ended, unknown := do("handbook"), do("unknown1")
		if fault.CodeOf(ended) != fault.NotFound || fault.CodeOf(unknown) != fault.NotFound || strings.ReplaceAll(fault.PublicOf(unknown), "unknown1", "handbook") != fault.PublicOf(ended) {
			t.Errorf("attack: %s: %v, and of an unknown source: %v", name, ended, unknown)
		}
	}
	w.Write(map[string]string{"knowledge/a.md": "# A"})
	publish := service.PublishSourceInput{Space: service.SpaceRef{ID: w.Space}, Source: space.Source{ID: "handbook", Dir: "knowledge", Everybody: true}}
	if _, err := w.PublishSource(ctx, service.Person(w.Owner), publish); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("another source with its ID: %v", err)
	}
	if st, err := w.ListSyncRuns(ctx, op, service.ListSyncRunsInput{ID: "handbook"}); err != nil || st.State != space.SyncEnded || !st.Manages {
		t.Errorf("the operator: %+v, %v", st, err)
	}
}
