package app_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"satchel/auth"
	"satchel/auth/github/app"
	"satchel/auth/github/apptest"
	"satchel/internal/fault"
)

func TestManifest(t *testing.T) {
	for _, c := range []struct {
		name                string
		address, public     string
		hooks, creates      bool
		open                bool
		org                 string
		action              string
		permissions, events string
	}{
		{"a person's", "https://github.com", "https://notes.example.com", true, false, false, "",
			"https://github.com/settings/apps/new?state=a%26b", "contents:write metadata:read", "push repository"},
		{"an organization's", "https://github.com", "https://notes.example.com", true, false, false, "acme",
			"https://github.com/organizations/acme/settings/apps/new?state=a%26b", "contents:write metadata:read", "push repository"},
		{"at GitHub Enterprise", "https://git.example.com/", "https://notes.example.com", true, false, false, "acme",
			"https://git.example.com/organizations/acme/settings/apps/new?state=a%26b", "contents:write metadata:read", "push repository"},
		{"at ghe.com", "https://Tenant.ghe.com", "https://notes.example.com", true, false, false, "",
			"https://tenant.ghe.com/settings/apps/new?state=a%26b", "contents:write metadata:read", "push repository"},
		{"that makes repositories", "https://github.com", "https://notes.example.com", true, true, false, "",
			"https://github.com/settings/apps/new?state=a%26b", "administration:write contents:write metadata:read", "push repository"},
		{"that others install too", "https://github.com", "https://notes.example.com", true, false, true, "",
			"https://github.com/settings/apps/new?state=a%26b", "contents:write metadata:read", "push repository"},
		{"on this machine, where GitHub reaches nothing", "https://github.com", "http://localhost:8080", false, false, false, "",
			"https://github.com/settings/apps/new?state=a%26b", "contents:write metadata:read", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, func(o *app.Options) { o.URL, o.Public, o.Hooks = c.address, c.public, c.hooks })
			action, body, err := w.Manifest("a&b", app.NewApp{Organisation: c.org, Creates: c.creates, Public: c.open})
			if err != nil || action != c.action {
				t.Fatalf("%s, %v", action, err)
			}
			var m map[string]any
			if err := json.Unmarshal(body, &m); err != nil {
				t.Fatal(err)
			}
			name, _ := m["name"].(string)
			if name == "" || len(name) > 34 || strings.ContainsAny(name, ":[]") {
				t.Errorf("the name %q", name)
			}
			delete(m, "name")
			want := map[string]any{
				"url": c.public, "redirect_url": c.public + "/admin/github/created",
				"callback_urls": []any{c.public + "/github/callback", c.public + "/signin/github/callback"},
				"setup_url":     c.public + "/github/setup", "setup_on_update": true, "request_oauth_on_install": false, "public": c.open,
				"default_permissions": map[string]any{},
			}
			for p := range strings.FieldsSeq(c.permissions) {
				what, level, _ := strings.Cut(p, ":")
				want["default_permissions"].(map[string]any)[what] = level
			}
			if c.hooks {
				want["hook_attributes"] = map[string]any{"url": c.public + "/github/webhook", "active": true}
				var events []any
				for e := range strings.FieldsSeq(c.events) {
					events = append(events, e)
				}
				want["default_events"] = events
			}
			if !reflect.DeepEqual(m, want) {
				t.Errorf("%s", body)
			}
		})
	}
}

func TestManifestRefusesWhatIsNoOrganisation(t *testing.T) {
	w := newWorld(t)
	for _, org := range []string{"../settings", "a/b", "-a", "a b", "a\nb", "ä", strings.Repeat("a", 101)} {
		_, _, err := w.Manifest("s", app.NewApp{Organisation: org})
		wantCode(t, org, err, fault.Invalid)
	}
}

// Attacks on the creation of the App: only a fresh code from GitHub creates an App, and
// only one.
func TestAttackManifestCodes(t *testing.T) {
	w := newWorld(t)
	code := func() string {
		action, manifest, err := w.Manifest("state", app.NewApp{})
		if err != nil {
			t.Fatal(err)
		}
		back, err := w.gh.CreateApp("ada", action, manifest)
		if err != nil {
			t.Fatal(err)
		}
		return back.Query().Get("code")
	}
	for _, bad := range []string{"", "unknown", "../../user", "a/b", "a?b", "a%2fb", strings.Repeat("a", 201)} {
		_, err := w.Create(t.Context(), w.ann.ID, bad)
		wantCode(t, "the code "+bad, err, fault.Invalid)
	}
	if n := w.gh.Count(http.MethodGet, "/user"); n != 0 {
		t.Error("a code led elsewhere")
	}
	good := code()
	if _, err := w.Create(t.Context(), w.ann.ID, good); err != nil {
		t.Fatal(err)
	}
	before := w.gh.Count(http.MethodPost, "/app-manifests/*")
	_, err := w.Create(t.Context(), w.ann.ID, good)
	wantCode(t, "a replayed code, where there is an App", err, fault.Conflict)
	if w.gh.Count(http.MethodPost, "/app-manifests/*") != before {
		t.Error("a code was used up for nothing")
	}
	if err := w.Forget(t.Context(), w.ann.ID); err != nil {
		t.Fatal(err)
	}
	_, err = w.Create(t.Context(), w.ann.ID, good)
	wantCode(t, "a replayed code", err, fault.Invalid)
	if _, ok, _ := w.App(t.Context()); ok {
		t.Error("there is an App")
	}
}

// GitHub's description of the App is checked, because people follow its address and this
// server uses its secrets.
func TestCreateChecksWhatItIsTold(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(map[string]any)
		want   fault.Code
	}{
		{"a page elsewhere", func(m map[string]any) { m["html_url"] = "https://evil.example/apps/satchel" }, fault.Unavailable},
		{"a page with a password", func(m map[string]any) { m["html_url"] = strings.Replace(m["html_url"].(string), "://", "://a:b@", 1) }, fault.Unavailable},
		{"no id", func(m map[string]any) { m["id"] = 0 }, fault.Unavailable},
		{"a key that is none", func(m map[string]any) { m["pem"] = "canary-key" }, fault.Invalid},
		{"no client secret", func(m map[string]any) { m["client_secret"] = "" }, fault.Invalid},
		{"contents that may only be read", func(m map[string]any) { m["permissions"] = map[string]any{"contents": "read"} }, fault.Invalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			action, manifest, err := w.Manifest("state", app.NewApp{})
			if err != nil {
				t.Fatal(err)
			}
			back, err := w.gh.CreateApp("ada", action, manifest)
			if err != nil {
				t.Fatal(err)
			}
			w.gh.Behave(apptest.Behaviour{Garble: func(path string, body map[string]any) {
				if strings.HasPrefix(path, "/app-manifests/") {
					c.change(body)
				}
			}})
			_, err = w.Create(t.Context(), w.ann.ID, back.Query().Get("code"))
			wantCode(t, "made", err, c.want)
			if strings.Contains(w.log.String()+err.Error(), "canary") {
				t.Error("the key is shown")
			}
			if _, ok, _ := w.App(t.Context()); ok {
				t.Error("there is an App")
			}
			w.gh.ForgetViolations()
		})
	}
}

func TestEntersAnAppByHand(t *testing.T) {
	w := newWorld(t)
	_, manifest, err := w.Manifest("", app.NewApp{Creates: true})
	if err != nil {
		t.Fatal(err)
	}
	made, other := w.gh.AddApp("ada", manifest), w.gh.AddApp("bob", []byte(strings.Replace(string(manifest), `"name":"`, `"name":"x `, 1)))
	good := auth.GitHubApp{ID: made.ID, Secrets: auth.GitHubSecrets{ClientSecret: made.ClientSecret, PrivateKey: made.PrivateKey, Webhook: made.Webhook}}
	for _, c := range []struct {
		name   string
		change func(*auth.GitHubApp)
	}{
		{"no id", func(a *auth.GitHubApp) { a.ID = 0 }},
		{"another App's key", func(a *auth.GitHubApp) { a.Secrets.PrivateKey = other.PrivateKey }},
		{"another App's id", func(a *auth.GitHubApp) { a.ID = other.ID }},
		{"another App's client id", func(a *auth.GitHubApp) { a.ClientID = other.ClientID }},
		{"another App's client secret", func(a *auth.GitHubApp) { a.Secrets.ClientSecret = other.ClientSecret }},
		{"no key", func(a *auth.GitHubApp) { a.Secrets.PrivateKey = "" }},
		{"no client secret", func(a *auth.GitHubApp) { a.Secrets.ClientSecret = "" }},
		{"half a key", func(a *auth.GitHubApp) { a.Secrets.PrivateKey = a.Secrets.PrivateKey[:200] }},
	} {
		a := good
		c.change(&a)
		_, err := w.Enter(t.Context(), w.ann.ID, a)
		wantCode(t, c.name, err, fault.Invalid)
		if err != nil && strings.Contains(err.Error(), made.PrivateKey[40:80]) {
			t.Errorf("%s: the error shows the key", c.name)
		}
	}
	if _, ok, _ := w.App(t.Context()); ok {
		t.Fatal("there is an App")
	}
	good.Secrets.PrivateKey = "  " + strings.ReplaceAll(good.Secrets.PrivateKey, "\n", "\r\n") // in the form that browsers send
	good.Secrets.ClientSecret += " "
	a, err := w.Enter(t.Context(), w.ann.ID, good)
	if err != nil || a.Slug != made.Slug || a.ClientID != made.ClientID || a.Owner != "ada" || !a.Creates || a.Secrets != (auth.GitHubSecrets{}) {
		t.Fatalf("%+v, %v", a, err)
	}
	_, err = w.Enter(t.Context(), w.ann.ID, good)
	wantCode(t, "a second one", err, fault.Conflict)
	w.install("ada", "ada/notes")
	if _, err := w.Link(t.Context(), w.ann.ID, w.annSpace, w.find("ada"), w.notes); err != nil {
		t.Error(err)
	}
}

// After an admin removes the App, its connections give access to nothing.
func TestForgetEndsEverything(t *testing.T) {
	w, _ := withApp(t)
	w.connect(w.notes)
	if _, err := w.credential("ada/notes"); err != nil {
		t.Fatal(err)
	}
	if err := w.Forget(t.Context(), w.ann.ID); err != nil {
		t.Fatal(err)
	}
	w.becomes(auth.LinkRemoved)
	_, err := w.credential("ada/notes")
	wantCode(t, "a token", err, fault.Unavailable)
	for what, err := range map[string]error{
		"a visit":      func() error { _, _, err := w.Begin(t.Context(), w.callback(), "s"); return err }(),
		"an install":   func() error { _, err := w.InstallURL(t.Context(), "s"); return err }(),
		"a look again": func() error { _, err := w.Recheck(t.Context(), w.annSpace); return err }(),
	} {
		wantCode(t, what, err, fault.Unavailable)
	}
}

// A redirect in an answer cannot send a secret elsewhere.
func TestRedirectsAreNotFollowed(t *testing.T) {
	w, _ := withApp(t)
	w.connect(w.notes)
	var led []string
	evil := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { led = append(led, r.URL.Path) }))
	defer evil.Close()
	away := http.Header{"Location": {evil.URL}}
	for _, path := range []string{"/login/oauth/access_token", "/user", "/app/installations/*", "/repositories/*"} {
		w.gh.Behave(apptest.Behaviour{Status: map[string]int{path: http.StatusTemporaryRedirect}, Header: map[string]http.Header{path: away}})
		flow, q := []byte(nil), url.Values(nil)
		func() {
			location, f, err := w.Begin(t.Context(), w.callback(), "state-2")
			if err != nil {
				t.Fatal(err)
			}
			back, err := w.gh.Authorize("ada", location)
			if err != nil {
				t.Fatal(err)
			}
			flow, q = f, back.Query()
		}()
		_, _ = w.Finish(t.Context(), w.callback(), flow, q)
		_, _ = w.Recheck(t.Context(), w.annSpace)
	}
	if len(led) != 0 {
		t.Errorf("followed to %v", led)
	}
	w.gh.ForgetViolations()
}
