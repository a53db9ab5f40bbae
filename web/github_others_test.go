package web_test

import (
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"satchel/auth"
	"satchel/auth/github/app"
	"satchel/auth/store"
)

// Attack: a stranger and a reader try every route of another user's space, and those for
// admins.
func TestAttackOthersIDs(t *testing.T) {
	h := newHubWorld(t)
	h.link(h.space.ID, auth.LinkConnected)
	ada := h.as(h.ada)
	h.choosing(ada, "ada")
	h.did()
	routes := []struct {
		method, path     string
		stranger, reader int
	}{
		{"GET", h.path, 404, 200},
		{"GET", h.path + "/pick", 404, 403},
		{"POST", h.path + "/pick", 404, 403},
		{"POST", h.path + "/install", 404, 403},
		{"POST", h.path + "/connect", 404, 403},
		{"POST", h.path + "/create", 404, 403},
		{"POST", h.path + "/check", 404, 403},
		{"POST", h.path + "/disconnect", 404, 403},
		{"GET", "/admin/github", 404, 404},
		{"GET", "/admin/github/created?code=good&state=x", 404, 404},
		{"POST", "/admin/github/manifest", 404, 404},
		{"POST", "/admin/github/enter", 404, 404},
		{"POST", "/admin/github/forget", 404, 404},
		{"GET", "/spaces/" + string(h.space.ID) + "/bring", 404, 403},
		{"POST", "/spaces/" + string(h.space.ID) + "/bring/questions", 404, 403},
	}
	form := url.Values{"repository": {"11"}, "owner": {"ada-l"}, "name": {"x"}, "id": {"1"}, "client-id": {"c"}, "client-secret": {"s"}, "private-key": {canaryKey}}
	for _, r := range routes {
		for who, tt := range map[string]struct {
			u      store.User
			status int
		}{"a stranger": {h.eve, r.stranger}, "a reader": {h.bob, r.reader}} {
			b := h.as(tt.u)
			maps.Copy(b.cookies, ada.flows())
			a := answer{}
			if r.method == "GET" {
				a = b.get(r.path)
			} else {
				a = b.send(r.path, form)
			}
			want(t, who+" "+r.method+" "+r.path, a, tt.status)
			if tt.status != 200 && strings.Contains(a.body, "ada-l") {
				t.Errorf("%s %s: it names the repository", who, r.path)
			}
		}
		b := h.browser()
		if r.method == "POST" {
			want(t, "nobody "+r.path, b.send(r.path, form), 401)
		} else if a := b.get(r.path); a.StatusCode != http.StatusSeeOther || !strings.HasPrefix(a.location(), issuer+"/signin?") {
			t.Errorf("nobody %s: %d", r.path, a.StatusCode)
		}
	}
	if did := h.did(); did != "" || h.linked(h.space.ID).Repository != 11 {
		t.Errorf("they did %s", did)
	}
}

// Attack: another site posts with the person's cookies, or a form has no token of the
// session.
func TestAttackCrossSiteGitHub(t *testing.T) {
	h := newHubWorld(t)
	h.link(h.space.ID, auth.LinkConnected)
	b := h.as(h.ada)
	token := b.token()
	in := "/spaces/" + string(h.space.ID)
	for _, path := range []string{
		h.path + "/install", h.path + "/connect", h.path + "/pick", h.path + "/create", h.path + "/check", h.path + "/disconnect",
		"/admin/github/manifest", "/admin/github/enter", "/admin/github/forget", in + "/bring/questions", "/start/local", "/start/skip",
	} {
		form := url.Values{"repository": {"11"}, "name": {"x"}, "form": {token}}.Encode()
		for name, site := range map[string][2]string{"another site": {"https://evil.test", "cross-site"}, "a sister site": {"https://evil.satchel.test", "same-site"}, "no origin": {"null", "cross-site"}, "an old browser": {"https://evil.test", ""}} {
			a := b.request(http.MethodPost, path, form, func(r *http.Request) {
				r.Header.Set("Origin", site[0])
				r.Header.Set("Sec-Fetch-Site", site[1])
				if site[1] == "" {
					r.Header.Del("Sec-Fetch-Site")
				}
			})
			want(t, name+" "+path, a, http.StatusForbidden)
		}
		want(t, "without the token "+path, b.request(http.MethodPost, path, "repository=11&name=x"), http.StatusForbidden)
	}
	if did := h.did(); did != "" || h.linked(h.space.ID).Repository != 11 || len(b.flows()) > 0 {
		t.Errorf("they did %s", did)
	}
}

// Attack: the code and the state leak in a Referer or the browser's history. The person is
// redirected at once, and no page tells another site its address.
func TestAttackReferer(t *testing.T) {
	h := newHubWorld(t)
	b := h.as(h.ada)
	state := h.state(b, "/connect")
	for name, a := range map[string]answer{
		"finished":     b.get("/github/callback?code=ada&state=" + state),
		"over":         b.get("/github/callback?code=canary-code&state=canary-state"),
		"no state":     b.get("/github/callback?code=canary-code"),
		"setup":        b.get("/github/setup?code=canary-code&state=canary-state&installation_id=5"),
		"the manifest": b.get("/admin/github/created?code=canary-code&state=canary-state"),
		"connect":      b.send(h.path+"/connect", nil),
	} {
		if got := a.Header.Get("Referrer-Policy"); got != "same-origin" {
			t.Errorf("%s: Referrer-Policy %q", name, got)
		}
		if a.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: it is kept by caches", name)
		}
		if strings.Contains(a.body, "canary-") {
			t.Errorf("%s: the page repeats the code or the state", name)
		}
		if strings.Contains(a.location(), "code=") || strings.Contains(a.location(), "state=") {
			t.Errorf("%s: it is sent on to %s", name, a.location())
		}
	}
}

// A person who no longer owns the space when they return connects nothing.
func TestAttackSpaceLostMeanwhile(t *testing.T) {
	h := newHubWorld(t)
	b := h.as(h.ada)
	state := h.state(b, "/connect")
	must(t, h.GiveSpace(t.Context(), cli, h.space.ID, h.bob.ID))
	a := b.get("/github/callback?code=ada&state=" + state)
	if a.StatusCode != http.StatusNotFound && a.StatusCode != http.StatusForbidden {
		t.Errorf("%d", a.StatusCode)
	}
	h.untouched("a space that was given away")
}

// Attack: GitHub returns names that are not valid.
func TestAttackHostileNames(t *testing.T) {
	h := newHubWorld(t)
	evil := `</option><script>alert(1)</script>"'`
	h.setApp(func(a *auth.GitHubApp) { a.Name, a.Owner, a.HTMLURL = evil, evil, "javascript:alert(1)" })
	h.hub.people["evil"] = app.Found{GitHubUser: 4, Login: "evil", Installations: []app.Installation{{ID: 1, Account: evil, ManageURL: "javascript:alert(1)", Selection: evil}},
		Repositories: []app.Repository{{ID: 11, FullName: evil + "\u202e\n", Push: true, Installation: 1}}}
	b := h.as(h.ada)
	h.choosing(b, "evil")
	pages := []answer{b.get(h.path + "/pick"), b.get("/admin/github")}
	h.link(h.space.ID, auth.LinkSuspended, func(l *auth.RepositoryLink) { l.FullName, l.GitHubLogin, l.Account = evil, evil, evil })
	pages = append(pages, b.get(h.path), b.get("/"))
	for i, a := range pages {
		want(t, "page", a, 200)
		if strings.Contains(a.body, "<script>alert") || strings.Contains(a.body, `="javascript:`) || strings.Contains(a.body, "\u202e") {
			t.Errorf("page %d takes a name for more than text", i)
		}
	}
}
