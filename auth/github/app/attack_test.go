package app_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"satchel/auth"
	"satchel/auth/github/app"
	"satchel/auth/github/apptest"
	"satchel/internal/fault"
)

// victim installs the App on acme, of which mallory is not a member, and on a repository of
// mallory.
func victim(t *testing.T) (w *world, acme int64) {
	t.Helper()
	w = newWorld(t)
	w.create(false)
	acme = w.install("acme")
	w.gh.AddRepository(apptest.Repository{Owner: "mallory", Name: "own", Private: true})
	w.gh.Install(apptest.Installing{App: w.slug(), Account: "mallory", By: "mallory"})
	return w, acme
}

// Attack: a callback names somebody else's installation. Only the code and the state in the
// query count.
func TestAttackSpoofedInstallationID(t *testing.T) {
	w, acme := victim(t)
	_, manifest, err := w.Manifest("", app.NewApp{})
	if err != nil {
		t.Fatal(err)
	}
	other := w.gh.AddApp("bob", []byte(strings.Replace(string(manifest), `"name":"`, `"name":"x `, 1)))
	foreign := w.gh.Install(apptest.Installing{App: other.Slug, Account: "ada", By: "ada"})
	if _, err := w.Link(t.Context(), w.ann.ID, w.annSpace, w.find("ada"), w.wiki); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, id string }{
		{"claimed by another user", fmt.Sprint(acme)},
		{"unclaimed", "4711"},
		{"of another App", fmt.Sprint(foreign)},
		{"not a number", "1 OR 1=1"},
		{"a path", "../../app"},
	} {
		t.Run(c.name, func(t *testing.T) {
			flow, q := w.visit("mallory")
			q.Set("installation_id", c.id)
			q.Set("setup_action", "install")
			f, err := w.Finish(t.Context(), w.callback(), flow, q)
			if err != nil || names(f) != "mallory/own" || len(f.Installations) != 1 {
				t.Errorf("%+v, %v", f, err)
			}
			for _, repository := range []int64{w.wiki, w.notes, acme, 0, -1} {
				_, err = w.Link(t.Context(), w.eve.ID, w.eveSpace, f, repository)
				wantCode(t, fmt.Sprint("connects ", repository), err, fault.Forbidden)
			}
			w.unlinked(w.eveSpace)
		})
	}
	t.Run("duplicated", func(t *testing.T) {
		flow, q := w.visit("mallory")
		q["installation_id"] = []string{fmt.Sprint(acme), "1"}
		_, err := w.Finish(t.Context(), w.callback(), flow, q)
		wantCode(t, "two of them", err, fault.Invalid)
	})
	if n := w.gh.Count(http.MethodGet, fmt.Sprintf("/user/installations/%d/repositories", acme)); n != 1 { // the request of ada
		t.Errorf("somebody else's installation was asked for %d times", n-1)
	}
}

// Attack: the list contains installations of another App.
func TestAttackInstallationOfAnotherApp(t *testing.T) {
	w, _ := withApp(t)
	w.gh.Behave(apptest.Behaviour{Garble: func(path string, body map[string]any) {
		if path == "/user/installations" {
			for _, i := range body["installations"].([]any) {
				i.(map[string]any)["app_id"] = float64(99)
			}
		}
	}})
	if f := w.find("ada"); len(f.Installations) != 0 || len(f.Repositories) != 0 {
		t.Errorf("%+v", f)
	}
}

// Attack: an organization has the App. Everybody who may read one of its repositories sees
// the installation. Only people who may push can connect a repository.
func TestAttackVictimOrganisation(t *testing.T) {
	for _, c := range []struct {
		name string
		be   func(w *world)
		sees string
	}{
		{"a stranger", func(*world) {}, ""},
		{"a member who may read", func(w *world) { w.gh.SetRole("acme", "mallory", "member") }, "acme/wiki(read)"},
		{"an outside collaborator who may read", func(w *world) { w.gh.SetPermission("acme/wiki", "mallory", "read") }, "acme/wiki(read)"},
		{"an outside collaborator who triages", func(w *world) { w.gh.SetPermission("acme/wiki", "mallory", "triage") }, "acme/wiki(read)"},
		{"whose invitation is pending", func(w *world) { w.gh.SetRole("acme", "mallory", "pending") }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.create(false)
			w.install("acme")
			c.be(w)
			f := w.find("mallory")
			if names(f) != c.sees {
				t.Errorf("sees %q, want %q", names(f), c.sees)
			}
			_, err := w.Link(t.Context(), w.eve.ID, w.eveSpace, f, w.wiki)
			wantCode(t, "connected", err, fault.Forbidden)
			w.unlinked(w.eveSpace)
			if w.gh.Count(http.MethodPost, "/app/installations/*") != 0 {
				t.Error("a token was asked for")
			}
		})
	}
}

// Attack: GitHub's answer changes between finding and connecting a repository.
func TestAttackChangesBetweenFindingAndConnecting(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(w *world, installation int64)
	}{
		{"the person may not push any more", func(w *world, _ int64) { w.gh.SetPermission("acme/wiki", "mallory", "read") }},
		{"the person is none there any more", func(w *world, _ int64) { w.gh.SetPermission("acme/wiki", "mallory", "") }},
		{"the repository was moved to another installation", func(w *world, _ int64) { w.gh.TransferRepository("acme/wiki", "ada") }},
		{"the repository was taken from the App", func(w *world, i int64) {
			w.gh.AddRepository(apptest.Repository{Owner: "acme", Name: "other"})
			w.gh.Choose(i, "acme/other")
		}},
		{"the repository was deleted", func(w *world, _ int64) { w.gh.DeleteRepository("acme/wiki") }},
		{"the App was suspended", func(w *world, i int64) { w.gh.Suspend(i) }},
		{"the App was uninstalled", func(w *world, i int64) { w.gh.Uninstall(i) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.create(false)
			i := w.install("acme")
			w.install("ada", "ada/notes")
			w.gh.SetPermission("acme/wiki", "mallory", "write")
			f := w.find("mallory")
			if names(f) != "acme/wiki" {
				t.Fatal(names(f))
			}
			c.change(w, i)
			_, err := w.Link(t.Context(), w.eve.ID, w.eveSpace, f, w.wiki)
			wantCode(t, "connected", err, fault.Forbidden)
			w.unlinked(w.eveSpace)
		})
	}
}

// Attack: the browser chooses a repository that GitHub did not list.
func TestAttackRepositoryNotInTheList(t *testing.T) {
	w, _ := withApp(t)
	f := w.find("ada")
	for name, change := range map[string]func(*app.Found){
		"not in the list":            func(f *app.Found) { f.Repositories = f.Repositories[:0] },
		"that may only be read":      func(f *app.Found) { f.Repositories[0].Push, f.Repositories[1].Push = false, false },
		"that is archived":           func(f *app.Found) { f.Repositories[0].Archived, f.Repositories[1].Archived = true, true },
		"of a suspended App":         func(f *app.Found) { f.Installations[0].Suspended = true },
		"of no installation":         func(f *app.Found) { f.Installations = nil },
		"of another App":             func(f *app.Found) { f.App++ },
		"of nobody":                  func(f *app.Found) { f.GitHubUser = 0 },
		"with a name that is a path": func(f *app.Found) { f.Repositories[0].FullName, f.Repositories[1].FullName = "ada/../x", "ada/.." },
	} {
		copied := f
		copied.Repositories, copied.Installations = append([]app.Repository(nil), f.Repositories...), append([]app.Installation(nil), f.Installations...)
		change(&copied)
		if _, err := w.Link(t.Context(), w.ann.ID, w.annSpace, copied, w.notes); fault.CodeOf(err) != fault.Forbidden && fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := w.Link(t.Context(), w.eve.ID, w.annSpace, f, w.notes)
	wantCode(t, "another user's space", err, fault.Forbidden)
	w.unlinked(w.annSpace)
}

// Attack: the code or the state belongs to another visit.
func TestAttackCodesAndStates(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(w *world, flow *[]byte, q url.Values)
		want   fault.Code
	}{
		{"the code of another user's visit", func(w *world, _ *[]byte, q url.Values) {
			_, theirs := w.visit("mallory")
			q.Set("code", theirs.Get("code"))
		}, fault.Invalid},
		{"an expired code", func(w *world, _ *[]byte, _ url.Values) { w.gh.Advance(time.Hour) }, fault.Invalid},
		{"a code that is none", func(_ *world, _ *[]byte, q url.Values) { q.Set("code", "x") }, fault.Invalid},
		{"no code with a good state", func(_ *world, _ *[]byte, q url.Values) { q.Del("code") }, fault.Invalid},
		{"an empty code", func(_ *world, _ *[]byte, q url.Values) { q.Set("code", "") }, fault.Invalid},
		{"two codes", func(_ *world, _ *[]byte, q url.Values) { q.Add("code", "x") }, fault.Invalid},
		{"no state", func(_ *world, _ *[]byte, q url.Values) { q.Del("state") }, fault.Invalid},
		{"a forged state", func(_ *world, _ *[]byte, q url.Values) { q.Set("state", "state-3") }, fault.Invalid},
		{"two states", func(_ *world, _ *[]byte, q url.Values) { q.Add("state", "state-2") }, fault.Invalid},
		{"the flow of another visit", func(w *world, flow *[]byte, _ url.Values) { *flow, _ = w.visit("ada") }, fault.Invalid},
		{"no flow", func(_ *world, flow *[]byte, _ url.Values) { *flow = nil }, fault.Invalid},
		{"a flow that is huge", func(_ *world, flow *[]byte, _ url.Values) { *flow = append(*flow, strings.Repeat(" ", 9<<10)...) }, fault.Invalid},
		{"the person said no", func(_ *world, _ *[]byte, q url.Values) { q.Set("error", "access_denied") }, fault.Forbidden},
		{"another error", func(_ *world, _ *[]byte, q url.Values) { q.Set("error", "canary_ghu_AAAAAAAA") }, fault.Invalid},
		{"an error of the token endpoint with status 200", func(w *world, _ *[]byte, _ url.Values) {
			w.gh.Behave(apptest.Behaviour{TokenError: "bad_verification_code"})
		}, fault.Invalid},
		{"wrong credentials, with status 200", func(w *world, _ *[]byte, _ url.Values) {
			w.gh.Behave(apptest.Behaviour{TokenError: "incorrect_client_credentials"})
		}, fault.Unavailable},
		{"a token endpoint that gives none", func(w *world, _ *[]byte, _ url.Values) {
			w.gh.Behave(apptest.Behaviour{Body: map[string]string{"/login/oauth/access_token": `{"token_type":"bearer"}`}})
		}, fault.Unavailable},
		{"a token endpoint that sends no JSON", func(w *world, _ *[]byte, _ url.Values) {
			w.gh.Behave(apptest.Behaviour{Body: map[string]string{"/login/oauth/access_token": "access_token=ghu_x"}})
		}, fault.Unavailable},
		{"an answer without end", func(w *world, _ *[]byte, _ url.Values) {
			w.gh.Behave(apptest.Behaviour{Body: map[string]string{"/user": `{"id":1,"login":"` + strings.Repeat("a", 5<<20) + `"}`}})
		}, fault.Unavailable},
		{"a GitHub that is down", func(w *world, _ *[]byte, _ url.Values) { w.gh.Behave(apptest.Behaviour{Down: true}) }, fault.Unavailable},
		{"a GitHub that asks to wait", func(w *world, _ *[]byte, _ url.Values) {
			w.gh.Behave(apptest.Behaviour{Status: map[string]int{"/user/installations": http.StatusForbidden}, Header: map[string]http.Header{"/user/installations": {"Retry-After": {"60"}}}})
		}, fault.Limited},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, _ := withApp(t)
			flow, q := w.visit("ada")
			c.change(w, &flow, q)
			f, err := w.Finish(t.Context(), w.callback(), flow, q)
			wantCode(t, "finished", err, c.want)
			if len(f.Repositories) != 0 || err != nil && strings.Contains(fault.PublicOf(err), "canary") {
				t.Errorf("%+v, %v", f, err)
			}
		})
	}
	t.Run("a replayed code", func(t *testing.T) {
		w, _ := withApp(t)
		flow, q := w.visit("ada")
		if _, err := w.Finish(t.Context(), w.callback(), flow, q); err != nil {
			t.Fatal(err)
		}
		_, err := w.Finish(t.Context(), w.callback(), flow, q)
		wantCode(t, "the second time", err, fault.Invalid)
	})
	t.Run("another redirect", func(t *testing.T) {
		w, _ := withApp(t)
		flow, q := w.visit("ada")
		_, err := w.Finish(t.Context(), "https://evil.example/github/callback", flow, q)
		wantCode(t, "finished", err, fault.Invalid)
		location, _, err := w.Begin(t.Context(), "https://evil.example/github/callback", "s")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.gh.Authorize("ada", location); err == nil {
			t.Error("GitHub sends the browser elsewhere")
		}
	})
	t.Run("a flow of an App before", func(t *testing.T) {
		w, _ := withApp(t)
		flow, q := w.visit("ada")
		if err := w.Forget(t.Context(), w.ann.ID); err != nil {
			t.Fatal(err)
		}
		w.createFor("acme", false)
		_, err := w.Finish(t.Context(), w.callback(), flow, q)
		wantCode(t, "finished", err, fault.Invalid)
	})
}

// Attack: somebody steals the code. PKCE makes a code useless on its own.
func TestAttackBeginHasPKCE(t *testing.T) {
	w, _ := withApp(t)
	location, flow, err := w.Begin(t.Context(), w.callback(), "s")
	u, _ := url.Parse(location)
	q := u.Query()
	if err != nil || q.Get("code_challenge_method") != "S256" || len(q.Get("code_challenge")) != 43 || q.Get("prompt") != "select_account" || q.Get("state") != "s" || q.Has("scope") {
		t.Errorf("%s, %v", location, err)
	}
	if strings.Contains(location, string(flow)) || len(flow) > 1000 {
		t.Error("the flow is in the address, or is long")
	}
}

// A token goes only to the connected repository.
func TestAttackTokenForAnotherRemote(t *testing.T) {
	w, _ := withApp(t)
	w.connect(w.notes)
	for _, at := range []string{
		w.CloneURL("ada/diary"), "https://evil.example/ada/notes.git", w.gh.URL + "/ada/notes", w.gh.URL + "/ada/notes.git/", w.gh.URL + "@evil.example/ada/notes.git", "",
	} {
		_, err := w.Credential(t.Context(), repositoryAt(w.annSpace, at))
		wantCode(t, at, err, fault.Unavailable)
	}
	_, err := w.Credential(t.Context(), repositoryAt(w.eveSpace, w.CloneURL("ada/notes")))
	wantCode(t, "another space", err, fault.Unavailable)
	if w.gh.Count(http.MethodPost, "/app/installations/*") != 1 { // of the check when it was connected
		t.Error("a token was made")
	}
}

// Attack: GitHub returns a token with more rights than requested.
func TestAttackTokenThatIsNotRestricted(t *testing.T) {
	w, _ := withApp(t)
	w.connect(w.notes)
	if err := w.Forget(t.Context(), w.ann.ID); err != nil {
		t.Fatal(err)
	}
	for len(w.states) > 0 {
		<-w.states
	}
	v, _ := withApp(t)
	f := v.find("ada")
	v.gh.Behave(apptest.Behaviour{Garble: func(path string, body map[string]any) {
		if strings.HasSuffix(path, "/access_tokens") {
			all := body["repositories"].([]any)
			body["repositories"] = append(all, all[0])
		}
	}})
	_, err := v.Link(t.Context(), v.ann.ID, v.annSpace, f, v.notes)
	wantCode(t, "connected", err, fault.Unavailable)
	v.unlinked(v.annSpace)
	v.gh.ForgetViolations()
}

// A permission of another account in GitHub's answer does not count.
func TestAttackPermissionOfSomebodyElse(t *testing.T) {
	w, _ := withApp(t)
	w.connect(w.notes)
	w.gh.Behave(apptest.Behaviour{Garble: func(path string, body map[string]any) {
		if strings.HasSuffix(path, "/permission") {
			body["user"].(map[string]any)["id"] = float64(99)
		}
	}})
	if l, err := w.Recheck(t.Context(), w.annSpace); err != nil || l.State != auth.LinkLost {
		t.Errorf("%s, %v", l.State, err)
	}
}

// Errors and logs never contain a code that could not be redeemed, because it may still be
// valid.
func TestCodesAreNotLogged(t *testing.T) {
	w, _ := withApp(t)
	flow, q := w.visit("ada")
	code := q.Get("code")
	if err := w.Forget(t.Context(), w.ann.ID); err != nil {
		t.Fatal(err)
	}
	w.gh.Close()
	_, err := w.Create(t.Context(), w.ann.ID, "canary-code-of-a-manifest")
	wantCode(t, "made", err, fault.Unavailable)
	if strings.Contains(err.Error()+w.log.String(), "canary-code") {
		t.Errorf("%v", err)
	}
	if _, err = w.Finish(t.Context(), w.callback(), flow, q); err == nil || strings.Contains(err.Error()+w.log.String(), code) {
		t.Errorf("%v", err)
	}
}
