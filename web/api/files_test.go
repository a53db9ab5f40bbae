package api_test

import (
	"slices"
	"strings"
	"testing"
)

// TestFiles checks that a key creates, replaces and edits text files of its own space.
func TestFiles(t *testing.T) {
	w := newWorld(t)
	type changed struct {
		Etag, Commit, Problem string
		Created               bool
		Diff                  []string
		Added, Removed        int
	}
	change := func(method, body string) changed {
		t.Helper()
		a := w.ask(method, "/api/files", "ann", body)
		want(t, body, a, 200, "")
		var v changed
		a.into(t, &v)
		return v
	}
	first := change("PUT", `{"path": "knowledge/tea.md", "content": "# Tea\nGreen.\n"}`)
	if !first.Created || first.Commit == "" || len(first.Diff) > 0 {
		t.Errorf("%+v", first)
	}
	if again := change("PUT", `{"path": "knowledge/tea.md", "content": "# Tea\nGreen.\n"}`); again.Commit != "" || again.Etag != first.Etag {
		t.Errorf("%+v", again)
	}
	second := change("PATCH", `{"path": "knowledge/tea.md", "edits": [{"old": "Green", "new": "Black"}]}`)
	if second.Added != 1 || second.Removed != 1 || !slices.Contains(second.Diff, "+Black.") || second.Etag == first.Etag {
		t.Errorf("%+v", second)
	}
	refused := w.ask("PUT", "/api/files", "ann", `{"path": "knowledge/tea.md", "content": "x"}`)
	want(t, "no base", refused, 409, "conflict")
	if !strings.Contains(string(refused.body), second.Etag) {
		t.Errorf("%s", refused.body)
	}
	want(t, "a stale base", w.ask("PUT", "/api/files", "ann", `{"path": "knowledge/tea.md", "content": "x", "baseEtag": "`+first.Etag+`"}`), 409, "conflict")
	want(t, "a stale edit", w.ask("PATCH", "/api/files", "ann", `{"path": "knowledge/tea.md", "edits": [{"old": "B", "new": "b"}], "baseEtag": "`+first.Etag+`"}`), 409, "conflict")
	if third := change("PUT", `{"path": "knowledge/tea.md", "content": "", "baseEtag": "`+second.Etag+`"}`); third.Removed != 2 {
		t.Errorf("%+v", third)
	}
	if v := change("PUT", `{"path": "memory/tea.md", "content": "x"}`); v.Problem == "" {
		t.Errorf("%+v", v)
	}
	want(t, "no content", w.ask("PUT", "/api/files", "ann", `{"path": "knowledge/new.md"}`), 400, "invalid")
	want(t, "no new", w.ask("PATCH", "/api/files", "ann", `{"path": "memory/tea.md", "edits": [{"old": "x"}]}`), 400, "invalid")
	want(t, "no edits", w.ask("PATCH", "/api/files", "ann", `{"path": "memory/tea.md", "edits": []}`), 400, "invalid")
	want(t, "no file", w.ask("PATCH", "/api/files", "ann", `{"path": "no.md", "edits": [{"old": "x", "new": "y"}]}`), 404, "not_found")
}
