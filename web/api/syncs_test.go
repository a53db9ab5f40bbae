package api_test

import (
	"slices"
	"testing"

	"satchel/gitstore/remotetest"
	"satchel/gitstore/sources/syncs"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/internal/testenv"
)

// A client starts a sync, and follows it to its end. It adds sources only from listed addresses.
func TestSyncedSources(t *testing.T) {
	w := newWorld(t)
	server := remotetest.New(t, remotetest.Options{})
	server.Create("docs")
	server.Push("docs", "main", map[string]string{"a.md": "# Alpha"})
	if a := w.ask("POST", "/api/sources", "ann", map[string]any{"id": "handbook", "url": server.URL("docs")}); a.StatusCode != 403 {
		t.Errorf("add: %d %s", a.StatusCode, a.body)
	}
	if a := w.ask("POST", "/api/sources/preview", "ann", map[string]any{"id": "handbook", "kind": "nothing"}); a.StatusCode != 400 {
		t.Errorf("preview: %d %s", a.StatusCode, a.body)
	}
	_, err := w.library.AddSyncedSource(t.Context(), service.Operator(), service.SyncedSourceInput{
		Source: space.Source{ID: "handbook", Everybody: true}, Setting: syncs.Setting{URL: server.URL("docs")},
	})
	if err != nil {
		t.Fatal(err)
	}
	if a := w.ask("POST", "/api/sync/handbook", "ann", map[string]any{"reset": false, "push": true}); a.StatusCode != 202 {
		t.Errorf("sync: %d %s", a.StatusCode, a.body)
	}
	var st struct {
		State string
		Runs  []struct{ Added int }
	}
	testenv.WaitFor(t, "the sync", func() bool { // not over REST, whose limit of requests a slow sync would reach
		now, err := w.library.ListSyncRuns(t.Context(), service.Operator(), service.ListSyncRunsInput{ID: "handbook"})
		return err == nil && now.State == space.SyncReady
	})
	w.ask("GET", "/api/sync/handbook", "ann", nil).into(t, &st)
	if st.State != "ready" || len(st.Runs) != 1 || st.Runs[0].Added != 1 {
		t.Errorf("%+v", st)
	}
	for _, c := range []struct{ method, path string }{{"PATCH", "/api/sources/handbook"}, {"DELETE", "/api/sources/handbook"}, {"DELETE", "/api/sync/handbook"}} {
		var body any
		if c.method == "PATCH" {
			body = map[string]any{"title": "Mine"}
		}
		if a := w.ask(c.method, c.path, "ann", body); a.StatusCode != 403 {
			t.Errorf("%s %s: %d", c.method, c.path, a.StatusCode)
		}
	}
}

// The person who added a source pauses and resumes it, and gives it other names.
func TestPausedSources(t *testing.T) {
	w := newWorld(t)
	w.login("owner", string(w.library.Owner.ID), "g_9", space.ScopeRead, space.ScopeWrite)
	if a := w.ask("POST", "/api/sources", "owner", map[string]any{"id": "manuals", "kind": "upload"}); a.StatusCode != 201 {
		t.Fatalf("add: %d %s", a.StatusCode, a.body)
	}
	for _, paused := range []bool{true, false} {
		if a := w.ask("PATCH", "/api/sources/manuals", "owner", map[string]any{"paused": paused, "aliases": "pumps, valves"}); a.StatusCode != 200 {
			t.Errorf("pause: %d %s", a.StatusCode, a.body)
		}
		var st struct{ Paused bool }
		w.ask("GET", "/api/sync/manuals", "owner", nil).into(t, &st)
		if st.Paused != paused {
			t.Errorf("%+v, want %v", st, paused)
		}
	}
	all, err := w.library.ListSources(t.Context(), service.Operator(), service.ListSourcesInput{})
	if err != nil || len(all) == 0 || !slices.ContainsFunc(all, func(s space.Source) bool { return slices.Equal(s.Names(), []string{"manuals", "pumps", "valves"}) }) {
		t.Errorf("%+v, %v", all, err)
	}
}
