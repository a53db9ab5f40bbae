package api_test

import (
	"net/http"
	"testing"

	"satchel/internal/space"
)

// A client makes a source of files, replaces a file and removes it. Another person's client cannot.
func TestUploadedSources(t *testing.T) {
	w := newWorld(t)
	w.login("owner", string(w.library.Owner.ID), "g_9", space.ScopeRead, space.ScopeWrite)
	asFile := func(r *http.Request) { r.Header.Set("Content-Type", "application/octet-stream") }
	want(t, "add", w.ask("POST", "/api/sources", "owner", map[string]any{"id": "manuals", "kind": "upload"}), 201, "")
	upload := func(token, name, content string) answer {
		t.Helper()
		return w.ask("POST", "/api/sources/manuals/files?name="+name, token, content, asFile)
	}
	type view struct {
		Source struct {
			Files int
			State string
		}
		Files                   []struct{ Name, Path, Reason, Problem string }
		Added, Changed, Deleted int
	}
	var v view
	a := upload("owner", "guides/start.html", "<main><h1>Start</h1><p>Turn the key.</p></main>")
	want(t, "upload", a, 200, "")
	if a.into(t, &v); v.Added != 1 || len(v.Files) != 1 || v.Files[0].Path != "guides/start.html.md" || v.Source.State != "ready" {
		t.Errorf("%+v", v)
	}
	v = view{}
	if upload("owner", "guides/start.html", "<main><h1>Start</h1><p>Press the button.</p></main>").into(t, &v); v.Changed != 1 || v.Added != 0 {
		t.Errorf("a second version: %+v", v)
	}
	want(t, "no text", upload("owner", "picture.png", "\x89PNG\x00"), 400, "invalid")
	want(t, "a path that leads out", upload("owner", "../up.md", "x"), 400, "invalid")
	want(t, "a name that is missing", upload("owner", "", "x"), 400, "invalid")
	want(t, "JSON", w.ask("POST", "/api/sources/manuals/files?name=a.md", "owner", `{}`), 415, "unsupported_media_type")
	want(t, "another person", upload("bob", "a.md", "x"), 403, "forbidden")
	want(t, "no source", w.ask("POST", "/api/sources/none/files?name=a.md", "owner", "x", asFile), 404, "not_found")
	want(t, "removal by another", w.ask("DELETE", "/api/sources/manuals/files?path=guides/start.html", "bob", nil), 403, "forbidden")
	want(t, "removal of nothing", w.ask("DELETE", "/api/sources/manuals/files?path=no.md", "owner", nil), 404, "not_found")
	v = view{}
	if w.ask("DELETE", "/api/sources/manuals/files?path=guides/start.html", "owner", nil).into(t, &v); v.Deleted != 1 || v.Source.Files != 0 {
		t.Errorf("removal: %+v", v)
	}
}
