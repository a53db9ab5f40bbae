package apptest_test

import (
	"net/http"
	"strings"
	"testing"
)

// TestConnects creates an app from a manifest, installs it, signs a person in, gets a token
// for one repository, and pushes.
func TestConnects(t *testing.T) {
	w := newWorld(t)
	m := manifest()
	m["name"] = "Second"
	back, err := w.CreateApp("ada", w.URL+"/settings/apps/new?state=abc", encoded(m))
	if err != nil || back.Query().Get("state") != "abc" || !strings.HasPrefix(back.String(), "http://satchel.test/admin/github/created?") {
		t.Fatal(back, err)
	}
	status, made := w.ask("POST", "/app-manifests/"+back.Query().Get("code")+"/conversions", "", nil)
	if status != http.StatusCreated || made["slug"] != "second" || made["html_url"] != w.URL+"/github-apps/second" {
		t.Fatal(status, made)
	}
	if status, _ := w.ask("POST", "/app-manifests/"+back.Query().Get("code")+"/conversions", "", nil); status != http.StatusNotFound {
		t.Error("a code of a manifest converts twice", status)
	}
	w.app = w.App("second")
	if status, v := w.ask("GET", "/app", w.jwt(nil), nil); status != 200 || v["slug"] != "second" {
		t.Fatal(status, v)
	}

	back, err = w.InstallByPage("ada", w.app.HTMLURL+"/installations/new?state=s1", "ada", "ada/notes")
	if err != nil || back.Query().Get("state") != "s1" || back.Query().Get("setup_action") != "install" {
		t.Fatal(back, err)
	}
	location, verifier := w.begin(nil)
	if back, err = w.Authorize("ada", location); err != nil || back.Query().Get("state") != "xyz" {
		t.Fatal(back, err)
	}
	person := w.exchange(back.Query().Get("code"), verifier, nil)["access_token"].(string)
	if status, v := w.ask("GET", "/user", person, nil); status != 200 || v["login"] != "ada" {
		t.Fatal(status, v)
	}
	status, v := w.ask("GET", "/user/installations?per_page=100", person, nil)
	if status != 200 || v["total_count"] != 1.0 {
		t.Fatal(status, v)
	}
	installation := int64(v["installations"].([]any)[0].(object)["id"].(float64))
	status, v = w.ask("GET", "/user/installations/"+number(installation)+"/repositories", person, nil)
	if status != 200 || v["total_count"] != 1.0 || v["repositories"].([]any)[0].(object)["permissions"].(object)["push"] != true {
		t.Fatal(status, v)
	}
	if status, _ := w.ask("DELETE", "/applications/"+w.app.ClientID+"/token", "Basic "+w.app.ClientSecret, object{"access_token": person}); status != http.StatusNoContent {
		t.Error(status)
	}
	if status, _ := w.ask("GET", "/user", person, nil); status != http.StatusUnauthorized {
		t.Error("a token that was ended is good", status)
	}

	token := w.token(installation, w.notes)
	if !strings.HasPrefix(token, "ghs_") || len(token) < 100 {
		t.Error(token)
	}
	for path, want := range map[string]string{
		"/repositories/" + number(w.notes): "ada/notes", "/repos/ada/notes": "ada/notes",
	} {
		if status, v := w.ask("GET", path, token, nil); status != 200 || v["full_name"] != want {
			t.Error(status, v)
		}
	}
	if status, v := w.ask("GET", "/repos/ada/notes/collaborators/ada/permission", token, nil); status != 200 || v["permission"] != "admin" {
		t.Error(status, v)
	}
	dir := w.commit("ada/notes", token, "new.md", "hello")
	if out, err := w.git(dir, token, "push"); err != nil {
		t.Fatal(out)
	}
	if got, _ := w.File("ada/notes", "new.md"); got != "hello" {
		t.Errorf("%q", got)
	}
}

func number(id int64) string { return string(encoded(id)) }
