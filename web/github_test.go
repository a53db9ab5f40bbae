package web_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"satchel/auth"
	"satchel/auth/github/app"
	"satchel/auth/store"
	"satchel/internal/space"
	"satchel/internal/testenv"
	"satchel/web"
)

// The whole flow: install, return, sign in at GitHub, choose, view, disconnect.
func TestConnectARepository(t *testing.T) {
	h := newHubWorld(t)
	b := h.as(h.ada)
	want(t, "not installed", b.get(h.path), 200)
	u := away(t, b.send(h.path+"/install", nil))
	if !strings.HasSuffix(u.Path, "/installations/new") {
		t.Fatalf("to install it leads to %s", u)
	}
	a := b.get("/github/setup?" + url.Values{"installation_id": {"1"}, "setup_action": {"install"}, "state": {u.Query().Get("state")}}.Encode())
	want(t, "after the installation", a, 303)
	u = away(t, a)
	if q := u.Query(); u.Path != "/login/oauth/authorize" || q.Get("redirect_uri") != issuer+"/github/callback" {
		t.Fatalf("it goes on to %s", u)
	}
	h.untouched("so far")
	a = b.get("/github/callback?" + url.Values{"code": {"ada"}, "state": {u.Query().Get("state")}}.Encode())
	want(t, "the callback", a, 303)
	page := b.get(h.path + "/pick")
	want(t, "the list", page, 200)
	for text, shown := range map[string]bool{"ada-l/notes": true, "ada-l/blog": true, "org/secret": false, "ada-l/old": false, "2 repositories that": true, hubURL + "/settings/installations/1": true} {
		if strings.Contains(page.body, text) != shown {
			t.Errorf("the list: %q is shown: %t", text, !shown)
		}
	}
	before := b.cookies["__Host-satchel"]
	a = b.send(h.path+"/pick", url.Values{"repository": {"11"}})
	want(t, "the choice", a, 303)
	if l := h.linked(h.space.ID); l.Repository != 11 || l.GitHubLogin != "ada-l" || l.User != h.ada.ID {
		t.Fatalf("it connected %+v", l)
	}
	// A secret that was seen before is worthless afterwards.
	after := b.cookies["__Host-satchel"]
	old := h.browser()
	old.cookies["__Host-satchel"] = before
	if before == after || old.signedIn() || !b.signedIn() {
		t.Error("the session's secret did not change with the link")
	}
	page = b.get(h.path)
	for _, text := range []string{"Connected to GitHub", hubURL + "/ada-l/notes", "ada-l", "Check now", "Disconnect"} {
		if !strings.Contains(page.body, text) {
			t.Errorf("connected: nothing says %q", text)
		}
	}
	want(t, "check", b.send(h.path+"/check", nil), 303)
	want(t, "disconnect", b.send(h.path+"/disconnect", nil), 303)
	if h.linked(h.space.ID).Repository != 0 {
		t.Error("it is still connected")
	}
}

// In every state, people who can do something about it get a way to continue, and others
// do not.
func TestEveryStateHasAWayOn(t *testing.T) {
	link := func(s auth.LinkState) func(*hubWorld) {
		return func(h *hubWorld) { h.link(h.space.ID, s) }
	}
	ada := func(h *hubWorld) store.User { return h.ada }
	bob := func(h *hubWorld) store.User { return h.bob }
	for _, tt := range []struct {
		name, title string
		who         func(*hubWorld) store.User
		set         func(*hubWorld)
		ways        []string // addresses of forms and links that are there
		not         []string
	}{
		{"no App, an admin", "Connect this space to GitHub", ada, func(h *hubWorld) { h.noApp() }, []string{`href="/admin/github"`}, nil},
		{"no App, a member", "Connect this space to GitHub", bob, func(h *hubWorld) { h.noApp() }, []string{"ask an admin"}, []string{`href="/admin/github"`}},
		{"not installed", "Connect this space to GitHub", ada, func(*hubWorld) {}, []string{"/github/install", "/github/connect"}, nil},
		{"not installed, a reader", "Connect this space to GitHub", bob, func(*hubWorld) {}, []string{"who owns the space"}, []string{"/github/install", "/github/connect"}},
		{"waiting", "Waiting for approval at GitHub", ada, func(h *hubWorld) { must(t, h.AskForApproval(t.Context(), h.space.ID, h.ada.ID)) }, []string{"/github/install", "/github/connect", `href="/"`}, nil},
		{"connected", "Connected to GitHub", ada, link(auth.LinkConnected), []string{"/github/check", "/github/disconnect", "/github/connect"}, nil},
		{"connected, a reader", "Connected to GitHub", bob, link(auth.LinkConnected), []string{"ada-l/notes", "who owns the space"}, []string{"/github/check", "/github/disconnect"}},
		{"suspended", "The GitHub App is suspended", ada, link(auth.LinkSuspended), []string{"/github/install", "/github/check", "/github/disconnect"}, nil},
		{"removed", "GitHub repository out of reach", ada, link(auth.LinkRemoved), []string{"/github/install", "/github/connect", "/github/disconnect"}, nil},
		{"removed with the App, an admin", "GitHub repository out of reach", ada, func(h *hubWorld) { link(auth.LinkConnected)(h); h.noApp() }, []string{`href="/admin/github"`, "/github/disconnect"}, []string{"/github/install"}},
		{"access lost", "Access to the GitHub repository was lost", ada, link(auth.LinkLost), []string{"/github/connect", "/github/check", "/github/disconnect"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHubWorld(t)
			tt.set(h)
			a := h.as(tt.who(h)).get(h.path)
			want(t, tt.name, a, 200)
			if heading(a.body) != tt.title {
				t.Errorf("the title is %q", heading(a.body))
			}
			for _, w := range tt.ways {
				if !strings.Contains(a.body, w) {
					t.Errorf("%q is missing", w)
				}
			}
			for _, w := range tt.not {
				if strings.Contains(a.body, w) {
					t.Errorf("%q is there", w)
				}
			}
		})
	}
}

// The page says if a person has no installation at GitHub, and how to continue.
func TestNoInstallationFound(t *testing.T) {
	h := newHubWorld(t)
	b := h.as(h.ada)
	h.choosing(b, "none")
	a := b.get(h.path + "/pick")
	if heading(a.body) != "Install the GitHub App first" || !strings.Contains(a.body, "/github/install") {
		t.Errorf("%d %s", a.StatusCode, heading(a.body))
	}
}

func TestALongListIsFiltered(t *testing.T) {
	h := newHubWorld(t)
	f := app.Found{GitHubUser: 1, Login: "ada-l", Installations: []app.Installation{{ID: 1, Account: "ada-l", Selection: "all"}}, Cut: true}
	for i := range 400 {
		f.Repositories = append(f.Repositories, app.Repository{ID: int64(100 + i), FullName: fmt.Sprintf("ada-l/r%03d", i), Push: true, Installation: 1})
	}
	h.hub.people["many"] = f
	b := h.as(h.ada)
	h.choosing(b, "many")
	a := b.get(h.path + "/pick")
	if n := strings.Count(a.body, `name="repository"`); n != 50 || len(a.body) > 60_000 || !strings.Contains(a.body, "400 of 400") {
		t.Errorf("%d of them on %d bytes", n, len(a.body))
	}
	a = b.get(h.path + "/pick?q=R399")
	if n := strings.Count(a.body, `name="repository"`); n != 1 || !strings.Contains(a.body, "1 of 400") {
		t.Errorf("the filter leaves %d", n)
	}
	a = b.get(h.path + "/pick?q=" + url.QueryEscape(`"><script>`))
	if strings.Contains(a.body, "<script>") || !strings.Contains(a.body, "Show all") {
		t.Error("the filter comes back as it was sent")
	}
	want(t, "one that is not shown", b.send(h.path+"/pick", url.Values{"repository": {"450"}}), 303)
	if h.linked(h.space.ID).Repository != 450 {
		t.Error("it was not connected")
	}
}

func TestCreateARepository(t *testing.T) {
	h := newHubWorld(t)
	b := h.as(h.ada)
	h.choosing(b, "ada")
	for name, form := range map[string]url.Values{
		"no name":                     {"owner": {"ada-l"}},
		"a path for a name":           {"owner": {"ada-l"}, "name": {"../x"}},
		"dots alone":                  {"owner": {"ada-l"}, "name": {".."}},
		"Attack: an owner not listed": {"owner": {"victim"}, "name": {"x"}},
		"no owner":                    {"name": {"x"}},
	} {
		want(t, name, b.send(h.path+"/create", form), 400)
	}
	a := b.send(h.path+"/create", url.Values{"owner": {"ada-l"}, "name": {"memory"}, "visibility": {"private"}})
	state := away(t, a).Query().Get("state")
	h.did()
	want(t, "made", b.get("/github/callback?code=ada&state="+state), 303)
	if l, did := h.linked(h.space.ID), h.did(); l.FullName != "ada-l/memory" || did != "finish ada, make memory private=true" {
		t.Errorf("%+v %s", l, did)
	}

	h.setApp(func(a *auth.GitHubApp) { a.Creates = false })
	h.choosing(b, "ada")
	if page := b.get(h.path + "/pick"); !strings.Contains(page.body, `href="https://github.test/new?`) || strings.Contains(page.body, "/github/create") {
		t.Error("an App that may not make repositories does not lead to GitHub's page for that")
	}
	want(t, "create nevertheless", b.send(h.path+"/create", url.Values{"owner": {"ada-l"}, "name": {"x"}}), 403)
}

// Errors at GitHub are shown where the person can continue, and nothing is connected.
func TestGitHubFails(t *testing.T) {
	h := newHubWorld(t)
	b := h.as(h.ada)
	back := func(q url.Values) answer {
		q.Set("state", h.state(b, "/connect"))
		return b.get("/github/callback?" + q.Encode())
	}
	for name, tt := range map[string]struct {
		q      url.Values
		status int
	}{
		"denied":                {url.Values{"error": {"access_denied"}, "error_description": {"<b>no</b>"}}, 400},
		"no code":               {url.Values{}, 400},
		"an empty code":         {url.Values{"code": {""}}, 400},
		"Attack: two codes":     {url.Values{"code": {"ada", "eve"}}, 400},
		"a code that is no one": {url.Values{"code": {"forged"}}, 400},
	} {
		a := back(tt.q)
		want(t, name, a, tt.status)
		if !strings.Contains(a.body, h.path+"/connect") || strings.Contains(a.body, "<b>no") {
			t.Errorf("%s: no way on, or GitHub's own words", name)
		}
		if h.linked(h.space.ID).Repository != 0 {
			t.Errorf("%s: it was connected", name)
		}
	}
}

// An admin creates the App with one click, once.
func TestMakeTheApp(t *testing.T) {
	h := newHubWorld(t)
	h.noApp()
	b := h.as(h.ada)
	want(t, "the page", b.get("/admin/github"), 200)
	for _, org := range []string{"", "a/b", "-a", "a b", strings.Repeat("a", 40), `"><script>`} {
		want(t, "the organization "+org, b.send("/admin/github/manifest", url.Values{"owner": {"org"}, "org": {org}}), 400)
	}
	a := b.send("/admin/github/manifest", url.Values{"owner": {"org"}, "org": {"acme"}, "creates": {"1"}})
	want(t, "the form", a, 200)
	if csp := a.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "form-action 'self' https://github.test;") && !strings.HasSuffix(csp, "form-action 'self' https://github.test") {
		t.Errorf("the form may lead to %q", csp)
	}
	if !strings.Contains(a.body, `action="https://github.test/organizations/acme/settings/apps/new?state=`) || !strings.Contains(a.body, `&#34;administration&#34;:&#34;write&#34;`) {
		t.Errorf("the form: %.3000s", a.body)
	}
	// Attack: GitHub, or somebody who reads its requests, learns the token of the
	// session's forms.
	form := a.body[strings.Index(a.body, `<form method="post" action="https://github.test`):]
	if formToken.MatchString(form) {
		t.Error("the form to GitHub carries the session's token")
	}
	state := manifestState(t, a)
	want(t, "the callback", b.get("/admin/github/created?code=good&state="+state), 303)
	if !h.hasApp() {
		t.Fatal("it is not made")
	}
	h.did()
	want(t, "once", b.get("/admin/github/created?code=good&state="+state), 400)
	want(t, "a second App", b.send("/admin/github/manifest", nil), 409)
	want(t, "a second App by hand", b.send("/admin/github/enter", url.Values{"id": {"1"}, "client-id": {"x"}, "client-secret": {"y"}, "private-key": {canaryKey}}), 409)
	h.untouched("a second App")
	want(t, "forget", b.send("/admin/github/forget", nil), 303)
	if h.hasApp() {
		t.Error("it is not forgotten")
	}
}

func manifestState(t *testing.T, a answer) string {
	t.Helper()
	_, rest, ok := strings.Cut(a.body, "settings/apps/new?state=")
	state, _, ok2 := strings.Cut(rest, `"`)
	if !ok || !ok2 {
		t.Fatalf("%d: no form to GitHub: %s", a.StatusCode, heading(a.body))
	}
	return state
}

// An invalid code is not a dead end, and a valid one that lives for a while suffices.
func TestManifestCodes(t *testing.T) {
	h := newHubWorld(t)
	h.noApp()
	b := h.as(h.ada)
	begin := func() string { return manifestState(t, b.send("/admin/github/manifest", nil)) }
	a := b.get("/admin/github/created?code=dead&state=" + begin())
	if a.StatusCode != http.StatusBadRequest || !strings.Contains(a.body, "/admin/github/manifest") || h.hasApp() {
		t.Errorf("a dead code: %d", a.StatusCode)
	}
	state := begin()
	h.pass(59 * time.Minute)
	want(t, "59 minutes later", b.get("/admin/github/created?code=good&state="+state), 303)
}

// Attack: a page shows secrets of the App, with any error in the form.
func TestSecretsAreNeverRendered(t *testing.T) {
	h := newHubWorld(t)
	b := h.as(h.ada)
	bodies := []string{b.get("/admin/github").body, b.get("/admin/github?made").body, b.get(h.path).body}
	h.noApp()
	for _, form := range []url.Values{
		{"id": {"x"}}, {"id": {"7"}}, {"id": {"7"}, "client-id": {"Iv1.x"}}, {"id": {"7"}, "client-id": {"Iv1.x"}, "client-secret": {"canary-client-secret"}},
		{"id": {"7"}, "client-id": {"Iv1.x"}, "client-secret": {"canary-client-secret"}, "private-key": {"CANARYPEM"}},
		{"id": {"7"}, "client-id": {"Iv1.x"}, "client-secret": {"canary-client-secret"}, "private-key": {canaryKey}, "webhook-secret": {"canary-webhook"}},
	} {
		a := b.send("/admin/github/enter", form)
		want(t, "a wrong form", a, 400)
		bodies = append(bodies, a.body)
	}
	h.noApp()
	bodies = append(bodies, b.send("/admin/github/enter", url.Values{"id": {"7"}, "client-id": {"Iv1.x"}, "client-secret": {"canary-client-secret"}, "private-key": {strings.ReplaceAll(appKey(), "\n", "\r\n")}, "webhook-secret": {"canary-webhook"}}).body)
	if !h.hasApp() {
		t.Error("the right form was not taken")
	}
	for i, body := range bodies {
		for _, canary := range []string{"CANARYPEM", "canary-", "END RSA"} {
			if strings.Contains(body, canary) {
				t.Errorf("page %d shows %s", i, canary)
			}
		}
	}
}

// The page describes correctly how pushes at GitHub arrive, with and without webhooks. The
// button to check fetches them.
func TestWhenPushesAtGitHubComeHere(t *testing.T) {
	for name, tt := range map[string]struct {
		every time.Duration
		hooks bool
		says  string
	}{
		"by a webhook":      {time.Minute, true, "usually within seconds"},
		"asked for":         {2 * time.Minute, false, "usually within minutes"},
		"asked by use only": {0, false, "when a client next uses the space."},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHubWorld(t, func(o *web.Options) { o.PollEvery, o.Webhooks = tt.every, tt.hooks })
			b := h.as(h.ada)
			if a := b.get(h.path); !strings.Contains(a.body, tt.says) || !strings.Contains(a.body, "If GitHub does not find the App, the App is private") {
				t.Errorf("before: it does not say %q, or what to do about a private App", tt.says)
			}
			h.choosing(b, "ada")
			b.send(h.path+"/pick", url.Values{"repository": {"11"}})
			if !strings.Contains(b.get(h.path).body, tt.says) {
				t.Errorf("connected: it does not say %q", tt.says)
			}
			h.stands(h.space.ID, space.RemotePushed)
			before := h.origin.calls()
			a := b.send(h.path+"/check", nil)
			testenv.WaitFor(t, "the remote is asked", func() bool { return h.origin.calls() > before })
			if a = b.get(strings.TrimPrefix(a.location(), issuer)); !strings.Contains(a.body, "New changes at GitHub are being fetched") {
				t.Error("it does not say that it is done")
			}
			// Attack: a stranger makes the server fetch.
			h.stands(h.space.ID, space.RemotePushed)
			before = h.origin.calls()
			want(t, "a stranger", h.as(h.eve).send(h.path+"/check", nil), 404)
			if h.origin.calls() != before {
				t.Error("a stranger had it fetched")
			}
			a = b.send(h.path+"/disconnect", nil)
			if a = b.get(strings.TrimPrefix(a.location(), issuer)); !strings.Contains(a.body, "The repository was disconnected.") {
				t.Error("it does not say that it is disconnected")
			}
		})
	}
}
