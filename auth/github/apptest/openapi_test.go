package apptest_test

import (
	"net/http"
	"strings"
	"testing"

	"satchel/auth/github/apptest"
)

// TestValidates checks that every difference from GitHub's description is a violation.
func TestValidates(t *testing.T) {
	w := newWorld(t)
	id := w.Install(apptest.Installing{App: "satchel", Account: "ada", By: "ada", Repositories: []string{"ada/notes"}})
	mint := "/app/installations/" + number(id) + "/access_tokens"
	for name, c := range map[string]struct {
		method, path string
		body         any
		garble       func(path string, body map[string]any)
		want         string // in the violation; empty for none
	}{
		"good request and answer":        {"POST", mint, object{"repository_ids": []int64{w.notes}}, nil, ""},
		"permission of no such level":    {"POST", mint, object{"permissions": object{"contents": "admin"}}, nil, "request:"},
		"ids that are text":              {"POST", mint, object{"repository_ids": []string{"1"}}, nil, "request:"},
		"answer without expires_at":      {"POST", mint, nil, func(_ string, v map[string]any) { delete(v, "expires_at") }, "expires_at"},
		"answer of another type":         {"GET", "/app/installations/" + number(id), nil, func(_ string, v map[string]any) { v["app_id"] = "7" }, "app_id"},
		"selection of no such kind":      {"GET", "/app/installations/" + number(id), nil, func(_ string, v map[string]any) { v["repository_selection"] = "some" }, "repository_selection"},
		"body where none is described":   {"GET", "/app", object{"a": "b"}, nil, "request"},
		"operation of the stand-in's":    {"GET", "/app/nothing", nil, nil, "no such endpoint"},
		"error without a message":        {"GET", "/app/installations/1", nil, func(_ string, v map[string]any) { v["message"] = 7 }, "message"},
		"installation id that is none":   {"GET", "/app/installations/x", nil, nil, ""},
		"good answer that only has more": {"GET", "/app", nil, func(_ string, v map[string]any) { v["more"] = 1 }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w.Behave(apptest.Behaviour{Garble: c.garble})
			defer w.Behave(apptest.Behaviour{})
			w.ask(c.method, c.path, w.jwt(nil), c.body)
			all := strings.Join(w.Violations(), "\n")
			w.ForgetViolations()
			if (all == "") != (c.want == "") || !strings.Contains(all, c.want) {
				t.Errorf("%q, not %q", all, c.want)
			}
		})
	}
}

// TestEveryEndpointIsDescribed requests each endpoint without a credential. An endpoint
// outside GitHub's description would be a violation.
func TestEveryEndpointIsDescribed(t *testing.T) {
	w := newWorld(t)
	for _, e := range apptest.Endpoints(w.Server) {
		method, path, _ := strings.Cut(e, " ")
		path = strings.NewReplacer("{id}", "1", "{installation}", "1", "{code}", "c", "{client}", "c", "{slug}", "satchel", "{login}", "ada", "{org}", "acme",
			"{owner}", "ada", "{repo}", "notes", "{username}", "ada").Replace(path)
		if status, _ := w.ask(method, path, "", nil); status != http.StatusUnauthorized && status != http.StatusNotFound {
			t.Error(e, status)
		}
	}
}
