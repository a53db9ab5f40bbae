package apptest_test

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"satchel/auth/github/apptest"
)

func TestRefusesCodes(t *testing.T) {
	w := newWorld(t)
	code := func(login string) (code, verifier string) {
		location, verifier := w.begin(nil)
		back, err := w.Authorize(login, location)
		if err != nil {
			t.Fatal(err)
		}
		return back.Query().Get("code"), verifier
	}
	other := w.AddApp("ada", encoded(object{"name": "Other", "url": "http://o.test", "callback_urls": []string{"http://o.test/cb"}}))
	for name, c := range map[string]struct {
		change  url.Values
		advance time.Duration
		want    string
	}{
		"good":                      {nil, 0, ""},
		"without a redirect URI":    {url.Values{"redirect_uri": nil}, 0, ""},
		"wrong PKCE verifier":       {url.Values{"code_verifier": {"other"}}, 0, "bad_verification_code"},
		"no PKCE verifier":          {url.Values{"code_verifier": nil}, 0, "bad_verification_code"},
		"other redirect URI":        {url.Values{"redirect_uri": {"http://satchel.test/signin/github/callback"}}, 0, "redirect_uri_mismatch"},
		"wrong secret":              {url.Values{"client_secret": {"x"}}, 0, "incorrect_client_credentials"},
		"unknown client":            {url.Values{"client_id": {"x"}}, 0, "incorrect_client_credentials"},
		"code of another app":       {url.Values{"client_id": {other.ClientID}, "client_secret": {other.ClientSecret}}, 0, "bad_verification_code"},
		"made-up code":              {url.Values{"code": {"made-up"}}, 0, "bad_verification_code"},
		"expired after ten minutes": {nil, 10 * time.Minute, "bad_verification_code"},
		"good just before it":       {nil, 10*time.Minute - 2*time.Second, ""},
	} {
		t.Run(name, func(t *testing.T) {
			key, verifier := code("ada")
			w.Advance(c.advance)
			v := w.exchange(key, verifier, c.change)
			if got, _ := v["error"].(string); got != c.want {
				t.Fatalf("%v, not %q", v, c.want)
			}
			if c.want == "" && (v["token_type"] != "bearer" || v["expires_in"] != 28800.0 || !strings.HasPrefix(v["access_token"].(string), "ghu_")) {
				t.Error(v)
			}
			// The code is used, whatever the answer.
			if v := w.exchange(key, verifier, nil); v["error"] != "bad_verification_code" && c.want != "incorrect_client_credentials" && !strings.Contains(name, "made") {
				t.Errorf("a code is good twice: %v", v)
			}
		})
	}
}

func TestRefusesAuthorizationRequests(t *testing.T) {
	w := newWorld(t)
	for name, c := range map[string]struct {
		change url.Values
		back   string // the error in the redirect; empty if there is no redirect
		page   string
	}{
		"other redirect URI":          {url.Values{"redirect_uri": {"http://evil.test/github/callback"}}, "", "400 Be careful!"},
		"path below the redirect URI": {url.Values{"redirect_uri": {"http://satchel.test/github/callback/more"}}, "", "400 Be careful!"},
		"query at the redirect URI":   {url.Values{"redirect_uri": {"http://satchel.test/github/callback?a=b"}}, "", "400 Be careful!"},
		"unknown client":              {url.Values{"client_id": {"x"}}, "", "404 Page not found"},
		"plain PKCE":                  {url.Values{"code_challenge_method": {"plain"}}, "invalid_request", ""},
		"PKCE without its method":     {url.Values{"code_challenge_method": nil}, "invalid_request", ""},
	} {
		t.Run(name, func(t *testing.T) {
			location, _ := w.begin(c.change)
			back, err := w.Authorize("ada", location)
			switch {
			case c.page != "" && (!errors.Is(err, apptest.ErrPage) || !strings.Contains(err.Error(), c.page)):
				t.Error(back, err)
			case c.page == "" && (err != nil || back.Query().Get("error") != c.back || back.Query().Get("state") != "xyz" || back.Query().Has("code")):
				t.Error(back, err)
			}
		})
	}
	t.Run("whom it knows it does not ask, unless an account is to be selected", func(t *testing.T) {
		location, _ := w.begin(nil)
		if _, err := w.Authorize("bob", location); err != nil {
			t.Fatal(err)
		}
		if back, err := w.Browser("bob").Go(location, nil); err != nil || back.Query().Get("code") == "" {
			t.Error(back, err)
		}
		if _, err := w.Browser("bob").Go(location+"&prompt=select_account", nil); !errors.Is(err, apptest.ErrPage) {
			t.Error(err)
		}
	})
	t.Run("somebody says no", func(t *testing.T) {
		location, _ := w.begin(nil)
		u, _ := url.Parse(location)
		q := u.Query()
		q.Set("deny", "1")
		if back, err := w.Browser("mallory").Go(w.URL+"/login/oauth/authorize", q); err != nil || back.Query().Get("error") != "access_denied" {
			t.Error(back, err)
		}
	})
}

// TestRefusesRequests checks which credentials may see and do what in the API.
func TestRefusesRequests(t *testing.T) {
	w := newWorld(t)
	w.SetPermission("ada/diary", "bob", "read")
	mine := w.Install(apptest.Installing{App: "satchel", Account: "ada", By: "ada", Repositories: []string{"ada/notes"}})
	org := w.Install(apptest.Installing{App: "satchel", Account: "acme", By: "ada"})
	other := w.AddApp("ada", encoded(object{"name": "Other", "url": "http://o.test", "public": true, "default_permissions": object{"contents": "write"}}))
	foreign := w.Install(apptest.Installing{App: other.Slug, Account: "ada", By: "ada"})
	token := w.token(mine, w.notes)
	ada, bob, mallory := w.personToken("ada"), w.personToken("bob"), w.personToken("mallory")
	read := object{"permissions": object{"contents": "read"}, "repository_ids": []int64{w.notes}}
	tokens := func(id int64) string { return fmt.Sprintf("/app/installations/%d/access_tokens", id) }
	for name, c := range map[string]struct {
		method, path, credential string
		body                     any
		status                   int
		message                  string
	}{
		"no credential":                            {"GET", "/user", "", nil, 401, "Bad credentials"},
		"made-up token":                            {"GET", "/user", "ghu_x", nil, 401, "Bad credentials"},
		"installation token where a person's is":   {"GET", "/user", token, nil, 403, "Resource not accessible by integration"},
		"a person's token where the app's is":      {"GET", "/app", ada, nil, 401, "A JSON web token could not be decoded"},
		"assertion of another app":                 {"GET", "/app", w.jwt(object{"iss": "999999"}), nil, 401, "A JSON web token could not be decoded"},
		"assertion that is signed by another":      {"GET", "/app", w.jwt(object{"iss": fmt.Sprint(other.ID)}), nil, 401, "A JSON web token could not be decoded"},
		"assertion that expired":                   {"GET", "/app", w.jwt(object{"exp": time.Now().Unix() - 1}), nil, 401, "A JSON web token could not be decoded"},
		"assertion for longer than ten minutes":    {"GET", "/app", w.jwt(object{"exp": time.Now().Unix() + 720}), nil, 401, "A JSON web token could not be decoded"},
		"installation of another app":              {"GET", "/app/installations/" + number(foreign), w.jwt(nil), nil, 404, "Not Found"},
		"token of another app's installation":      {"POST", tokens(foreign), w.jwt(nil), nil, 404, "Not Found"},
		"repository outside of the installation":   {"POST", tokens(mine), w.jwt(nil), object{"repository_ids": []int64{w.diary}}, 422, "There is at least one repository that does not exist or is not accessible to the parent installation."},
		"repository of another account":            {"POST", tokens(mine), w.jwt(nil), object{"repository_ids": []int64{w.notes, w.wiki}}, 422, "There is at least one repository that does not exist or is not accessible to the parent installation."},
		"permission that was not granted":          {"POST", tokens(mine), w.jwt(nil), object{"permissions": object{"administration": "write"}}, 422, "The permissions requested are not granted to this installation."},
		"less than what was granted":               {"POST", tokens(mine), w.jwt(nil), read, 201, ""},
		"repository that the token is not for":     {"GET", "/repositories/" + number(w.diary), token, nil, 404, "Not Found"},
		"repository that is not there":             {"GET", "/repositories/1", token, nil, 404, "Not Found"},
		"permission at another repository":         {"GET", "/repos/acme/wiki/collaborators/bob/permission", token, nil, 404, "Not Found"},
		"permission of nobody":                     {"GET", "/repos/ada/notes/collaborators/nobody/permission", token, nil, 404, "nobody is not a user"},
		"permission of who has none":               {"GET", "/repos/ada/notes/collaborators/mallory/permission", token, nil, 200, ""},
		"installation that the person cannot see":  {"GET", "/user/installations/" + number(org) + "/repositories", mallory, nil, 404, "Not Found"},
		"installation of another app, by a person": {"GET", "/user/installations/" + number(foreign) + "/repositories", ada, nil, 404, "Not Found"},
		"installation on one's organisation":       {"GET", "/user/installations/" + number(org) + "/repositories", bob, nil, 200, ""},
		"repository that the app may not make":     {"POST", "/user/repos", ada, object{"name": "new"}, 403, "Resource not accessible by integration"},
		"ending a token with the wrong secret":     {"DELETE", "/applications/" + w.app.ClientID + "/token", "Basic x", object{"access_token": ada}, 401, "Bad credentials"},
		"ending a token that is not there":         {"DELETE", "/applications/" + w.app.ClientID + "/token", "Basic " + w.app.ClientSecret, object{"access_token": "x"}, 404, "Not Found"},
	} {
		t.Run(name, func(t *testing.T) {
			status, v := w.ask(c.method, c.path, c.credential, c.body)
			if message, _ := v["message"].(string); status != c.status || message != c.message {
				t.Errorf("%d %v, not %d %s", status, v, c.status, c.message)
			}
		})
	}

	t.Run("a member who may only read sees the organisation's installation, and may not push", func(t *testing.T) {
		_, v := w.ask("GET", "/user/installations", bob, nil)
		if v["total_count"] != 1.0 {
			t.Fatal(v)
		}
		_, v = w.ask("GET", "/user/installations/"+number(org)+"/repositories", bob, nil)
		p := v["repositories"].([]any)[0].(object)["permissions"].(object)
		if p["pull"] != true || p["push"] != false {
			t.Error(p)
		}
	})
	t.Run("suspended", func(t *testing.T) {
		w.Suspend(mine)
		for name, c := range map[string][3]string{
			"mint":             {"POST", tokens(mine), w.jwt(nil)},
			"its token":        {"GET", "/repos/ada/notes", token},
			"its repositories": {"GET", "/user/installations/" + number(mine) + "/repositories", ada},
		} {
			if status, v := w.ask(c[0], c[1], c[2], nil); status != 403 || v["message"] != "This installation has been suspended" {
				t.Error(name, status, v)
			}
		}
		_, v := w.ask("GET", "/user/installations", ada, nil)
		if i := v["installations"].([]any)[0].(object); i["suspended_at"] == nil {
			t.Error(i)
		}
		w.Unsuspend(mine)
		if status, _ := w.ask("GET", "/repos/ada/notes", token, nil); status != 200 {
			t.Error(status)
		}
	})
	t.Run("tokens end with their time, the installation and the person's authorization", func(t *testing.T) {
		w.Deauthorize("satchel", "bob")
		if status, _ := w.ask("GET", "/user", bob, nil); status != 401 {
			t.Error(status)
		}
		warm := w.token(org, w.wiki)
		w.Uninstall(org)
		if status, _ := w.ask("GET", "/repos/acme/wiki", warm, nil); status != 401 {
			t.Error(status)
		}
		w.Advance(time.Hour + time.Second)
		if status, _ := w.ask("GET", "/repos/ada/notes", token, nil); status != 401 {
			t.Error(status)
		}
	})
}

func TestRefusesManifests(t *testing.T) {
	w := newWorld(t)
	for name, change := range map[string]object{
		"no URL":                  {"url": ""},
		"name too long":           {"name": strings.Repeat("x", 35)},
		"unknown permission":      {"default_permissions": object{"everything": "write"}},
		"more than a permission":  {"default_permissions": object{"metadata": "write"}},
		"unknown event":           {"default_events": []string{"everything"}},
		"setup and authorization": {"request_oauth_on_install": true},
		"eleven callbacks":        {"callback_urls": strings.Split(strings.Repeat("http://a.test/ ", 11), " ")[:11]},
		"a field of its own":      {"webhook": "x"},
	} {
		t.Run(name, func(t *testing.T) {
			m := manifest()
			m["name"] = "new"
			for k, v := range change {
				m[k] = v
			}
			if _, err := w.CreateApp("ada", w.URL+"/settings/apps/new?state=s", encoded(m)); err == nil || !strings.Contains(err.Error(), "422 Invalid GitHub App configuration") {
				t.Error(err)
			}
		})
	}
	m := manifest()
	m["name"] = "Mine"
	if _, err := w.CreateApp("bob", w.URL+"/organizations/acme/settings/apps/new", encoded(m)); err == nil || !strings.Contains(err.Error(), "404") {
		t.Error("a member makes the organisation's app:", err)
	}
	back, err := w.CreateApp("ada", w.URL+"/organizations/acme/settings/apps/new", encoded(m))
	if err != nil || back.Query().Has("state") {
		t.Fatal(back, err)
	}
	w.Advance(time.Hour)
	if status, _ := w.ask("POST", "/app-manifests/"+back.Query().Get("code")+"/conversions", "", nil); status != 404 {
		t.Error("a code of an hour ago converts:", status)
	}
	if got := w.App("mine"); got.Owner != "acme" {
		t.Error(got.Owner)
	}
}
