package service_test

import (
	"slices"
	"testing"

	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
)

// The sources of the configuration file are added, changed and kept as their entries say.
func TestConfiguredSourcesFollowTheirEntries(t *testing.T) {
	w, server, entry := syncWorld(t)
	server.Create("more")
	server.Push("more", "main", map[string]string{"m.md": "# More"})
	ctx := t.Context()
	entry.Kind, entry.URL, entry.Settings = "git", "", []byte(`{"url": "`+server.URL("docs")+`"}`)
	other := entry
	other.Source.ID = "other"
	apply := func(entries ...service.SyncedSourceInput) service.ConfiguredSources {
		t.Helper()
		got, err := w.ConfigureSources(ctx, service.Configuration(), service.ConfigureSourcesInput{Sources: entries})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	status := func(id string) space.Sync {
		t.Helper()
		s, err := w.ListSyncRuns(ctx, service.Operator(), service.ListSyncRunsInput{ID: id})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if got := apply(entry, other); !slices.Equal(got.Added, []string{"handbook", "other"}) || len(got.Problems) > 0 {
		t.Fatalf("%+v", got)
	}
	if x, err := w.SyncSource(ctx, service.Operator(), service.SyncSourceInput{ID: "handbook"}); err != nil || x.Files != 2 {
		t.Errorf("%+v, %v", x, err)
	}
	next := status("handbook").Next
	if got := apply(entry, other); len(got.Added)+len(got.Changed)+len(got.Left)+len(got.Problems) > 0 || !status("handbook").Next.Equal(next) {
		t.Errorf("the same entries: %+v, next %v", got, status("handbook").Next)
	}

	daily := int64(86400)
	entry.Source.Title, entry.Source.Everybody, entry.Readers, entry.Every = "Handbook", false, []string{"owner"}, &daily
	entry.Settings = []byte(`{"url": "` + server.URL("more") + `"}`)
	if got := apply(entry, other); !slices.Equal(got.Changed, []string{"handbook"}) {
		t.Errorf("changed: %+v", got)
	}
	x, err := w.SyncSource(ctx, service.Operator(), service.SyncSourceInput{ID: "handbook", Confirm: true})
	if err != nil || x.Title != "Handbook" || x.Everybody || !slices.Equal(x.Readers, []string{"owner"}) || x.Files != 1 || status("handbook").Every != daily {
		t.Errorf("%+v, %v", x, err)
	}

	if got := apply(other); !slices.Equal(got.Left, []string{"handbook"}) {
		t.Errorf("left: %+v", got)
	}
	if s := status("handbook"); s.Origin != space.OriginLeft || !s.Next.IsZero() {
		t.Errorf("%+v", s)
	}
	if s, err := w.OpenSource(ctx, service.Person(w.Owner), "handbook"); err != nil || s.Source.Files != 1 {
		t.Errorf("after its entry left: %+v, %v", s.Source, err)
	}
	if got := apply(entry, other); !slices.Equal(got.Changed, []string{"handbook"}) || status("handbook").Origin != space.OriginFile || status("handbook").Next.IsZero() {
		t.Errorf("back again: %+v", got)
	}
	apply()
	if _, err := w.RemoveSyncedSource(ctx, service.Operator(), service.RemoveSyncedSourceInput{ID: "handbook"}); err != nil {
		t.Errorf("remove: %v", err)
	}
}

// Nobody changes a source of the configuration file elsewhere, and only the operator configures.
func TestConfiguredSourcesChangeOnlyInTheFile(t *testing.T) {
	w, server, entry := syncWorld(t)
	ctx := t.Context()
	entry.Kind, entry.URL, entry.Settings = "git", "", []byte(`{"url": "`+server.URL("docs")+`"}`)
	in := service.ConfigureSourcesInput{Sources: []service.SyncedSourceInput{entry}}
	if err := w.Accounts.SetAdmin(ctx, store.Actor{Via: "test"}, w.Owner.ID, true); err != nil {
		t.Fatal(err)
	}
	owner := w.Owner
	owner.Admin = true
	admin := service.Person(owner)
	if _, err := w.ConfigureSources(ctx, admin, in); fault.CodeOf(err) != fault.Forbidden {
		t.Errorf("an admin configures: %v", err)
	}
	if _, err := w.ConfigureSources(ctx, service.Configuration(), in); err != nil {
		t.Fatal(err)
	}
	title := "Another"
	for name, a := range map[string]service.Actor{"an admin": admin, "the command line": service.Operator()} {
		_, err := w.ChangeSyncedSource(ctx, a, service.ChangeSyncedSourceInput{ID: "handbook", Title: &title})
		if fault.CodeOf(err) != fault.Forbidden {
			t.Errorf("%s changes: %v", name, err)
		}
		if _, err := w.RemoveSyncedSource(ctx, a, service.RemoveSyncedSourceInput{ID: "handbook"}); fault.CodeOf(err) != fault.Forbidden {
			t.Errorf("%s removes: %v", name, err)
		}
	}
	if _, err := w.SyncSource(ctx, admin, service.SyncSourceInput{ID: "handbook"}); err != nil {
		t.Errorf("a sync: %v", err)
	}
}

// An entry takes over a source of the operator's command line, and never one of a person. A bad
// entry changes nothing, and the others are applied.
func TestConfiguredSourcesAndOthers(t *testing.T) {
	w, server, entry := syncWorld(t)
	ctx := t.Context()
	w.Write(map[string]string{"knowledge/a.md": "# A"})
	w.Publish("notes", "Notes", "knowledge")
	if _, err := w.AddSyncedSource(ctx, service.Operator(), entry); err != nil {
		t.Fatal(err)
	}
	entry.Kind, entry.URL, entry.Settings = "git", "", []byte(`{"url": "`+server.URL("docs")+`"}`)
	taken, unread, kind := entry, entry, entry
	taken.Source.ID, unread.Source.ID = "notes", "unread"
	unread.Source.Everybody, unread.Readers = false, []string{"nobody"}
	got, err := w.ConfigureSources(ctx, service.Configuration(), service.ConfigureSourcesInput{Sources: []service.SyncedSourceInput{taken, unread, entry}})
	if err != nil || !slices.Equal(got.Changed, []string{"handbook"}) || len(got.Problems) != 2 || got.Problems[0].ID != "notes" || got.Problems[1].ID != "unread" {
		t.Errorf("%+v, %v", got, err)
	}
	kind.Kind, kind.Settings = "web", []byte(`{"url": "https://docs.example.com/"}`)
	got, err = w.ConfigureSources(ctx, service.Configuration(), service.ConfigureSourcesInput{Sources: []service.SyncedSourceInput{kind}})
	if err != nil || len(got.Problems) != 1 || len(got.Left) != 0 {
		t.Errorf("another kind: %+v, %v", got, err)
	}
}
