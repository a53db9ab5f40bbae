package web_test

import (
	"encoding/hex"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"satchel/auth/store"
	"satchel/internal/space"
	"satchel/web"
)

// things are ada's things that others try to reach.
type things struct {
	session, grant, invitation, server string
	passkey                            []byte
}

func (w *world) things() things {
	w.t.Helper()
	ctx := w.t.Context()
	var th things
	_, ss, err := w.StartSession(ctx, store.NewSession{User: w.ada.ID, Method: "link"})
	must(w.t, err)
	th.session = ss.ID
	g, _, err := w.CreateKey(ctx, cli, store.NewKey{User: w.ada.ID, Space: w.space.ID, Scopes: []space.Scope{space.ScopeRead}, Name: "k"})
	must(w.t, err)
	th.grant = string(g.ID)
	_, in, err := w.CreateInvitation(ctx, cli, store.NewInvitation{By: w.ada.ID, Space: w.space.ID, Role: space.Editor, Note: "grace", Lifetime: time.Hour})
	must(w.t, err)
	th.invitation = in.ID
	_, in, err = w.CreateInvitation(ctx, cli, store.NewInvitation{By: w.ada.ID, Lifetime: time.Hour})
	must(w.t, err)
	th.server = in.ID
	th.passkey = []byte("adas-key")
	must(w.t, w.AddPasskey(ctx, cli, store.Passkey{ID: th.passkey, User: w.ada.ID, Name: "phone", Credential: []byte("credential adas-key")}))
	must(w.t, w.LinkIdentity(ctx, cli, store.Identity{User: w.ada.ID, Issuer: "https://github.com", Subject: "1", Label: "ada-l"}))
	return th
}

// TestWhoMayOpenEachPage opens every page as nobody, as eve who has no access to ada's
// space, as bob who reads the space, as carol who edits it, and as ada who owns the space and
// is an admin. New pages are included automatically.
func TestWhoMayOpenEachPage(t *testing.T) {
	a, _ := newComplete(t)
	nobody, eve, bob, carol, ada := a.browser(), a.as(a.eve), a.as(a.bob), a.as(a.carol), a.as(a.ada)
	owners := []string{"end", "give", "github/pick", "publish"}
	editors := []string{"bring", "bring/import", "delete/{path...}", "edit/{path...}", "memory/new", "new", "rename/{path...}", "revert", "upload"}
	pages := 0
	for _, r := range a.server.Routes() {
		pattern, ok := strings.CutPrefix(r.Pattern, "GET ")
		if !ok {
			continue
		}
		pages++
		path, inSpace := a.fill(a.space.ID, pattern), strings.HasPrefix(pattern, "/spaces/{id}")
		try := func(who string, b *browser, path string, wants ...int) {
			t.Helper()
			res := b.get(path)
			if len(wants) > 0 && !slices.Contains(wants, res.StatusCode) || res.StatusCode >= 500 {
				t.Errorf("%s as %s: %d, want %v: %s", path, who, res.StatusCode, wants, heading(res.body))
			}
			if !strings.Contains(pattern, "/raw/") { // a file, which has headers of its own
				checkPage(t, pattern+" as "+who, res)
			}
		}
		if r.Audience == web.Anyone {
			try("nobody", nobody, path)
		} else {
			try("nobody", nobody, path, http.StatusSeeOther)
		}
		switch {
		case r.Audience == web.Admins:
			try("eve", eve, path, http.StatusNotFound)
			try("bob", bob, path, http.StatusNotFound)
		case inSpace:
			try("eve", eve, path, http.StatusNotFound)
			try("ada", ada, a.fill("s_none", pattern), http.StatusNotFound)
			act := strings.TrimPrefix(pattern, "/spaces/{id}/")
			if slices.Contains(owners, act) {
				try("carol", carol, path, http.StatusForbidden)
			}
			if slices.Contains(owners, act) || slices.Contains(editors, act) {
				try("bob", bob, path, http.StatusForbidden)
			}
		}
		if !strings.HasSuffix(pattern, "/events") { // a stream, which does not end
			try("bob", bob, path)
			try("ada", ada, path)
		}
	}
	if pages < 50 {
		t.Errorf("only %d pages were found", pages)
	}
}

// TestWhoMayDoWhat tries actions as everybody. Somebody else's things look as if they
// did not exist. Each row is tried in a fresh world by nobody, by eve who has no access to
// ada's space, by bob who reads it, and by ada who owns it and is an admin.
func TestWhoMayDoWhat(t *testing.T) {
	form := func(pairs ...string) url.Values {
		v := url.Values{}
		for i := 0; i+1 < len(pairs); i += 2 {
			v.Set(pairs[i], pairs[i+1])
		}
		return v
	}
	const get = "GET"
	for _, tt := range []struct {
		name, method            string
		path                    func(*world, things) string
		form                    func(*world, things) url.Values
		nobody, eve, member, ok int
	}{
		{"first page", get, at("/"), nil, 303, 200, 200, 200},
		{"sign in", get, at("/signin"), nil, 200, 303, 303, 303},
		{"nowhere", get, at("/nowhere"), nil, 404, 404, 404, 404},
		{"nowhere by POST", "POST", at("/nowhere"), nil, 404, 404, 404, 404},
		{"a form's address by GET", get, at("/account/grants/revoke"), nil, 404, 404, 404, 404},
		{"invite to the server", "POST", at("/admin/invite"), nil, 401, 404, 404, 303},
		{"revoke an invitation as admin", "POST", at("/admin/invitations/revoke"), func(_ *world, th things) url.Values { return form("id", th.server) }, 401, 404, 404, 303},
		{"remove a person", "POST", func(w *world, _ things) string { return "/admin/people/" + string(w.bob.ID) + "/remove" }, nil, 401, 404, 404, 303},
		{"remove a person who is none", "POST", at("/admin/people/u_x/remove"), nil, 401, 404, 404, 404},
		{"remove oneself", "POST", func(w *world, _ things) string { return "/admin/people/" + string(w.ada.ID) + "/remove" }, nil, 401, 404, 404, 400},
		{"make an admin", "POST", func(w *world, _ things) string { return "/admin/people/" + string(w.eve.ID) + "/admin" }, func(*world, things) url.Values { return form("admin", "1") }, 401, 404, 404, 303},
		{"make a sign-in link", "POST", func(w *world, _ things) string { return "/admin/people/" + string(w.bob.ID) + "/link" }, nil, 401, 404, 404, 303},
		{"make a sign-in link for nobody", "POST", at("/admin/people/u_x/link"), nil, 401, 404, 404, 404},
		{"make a sign-in link for oneself", "POST", func(w *world, _ things) string { return "/admin/people/" + string(w.ada.ID) + "/link" }, nil, 401, 404, 404, 400},
		{"a sign-in link by GET", get, func(w *world, _ things) string { return "/admin/people/" + string(w.bob.ID) + "/link" }, nil, 404, 404, 404, 404},
		{"a sign-in link that was not made", get, at("/admin/link"), nil, 303, 404, 404, 404},
		{"no admin is left", "POST", func(w *world, _ things) string { return "/admin/people/" + string(w.ada.ID) + "/admin" }, nil, 401, 404, 404, 409},

		{"end a session", "POST", at("/account/sessions/end"), func(_ *world, th things) url.Values { return form("id", th.session) }, 401, 404, 404, 303},
		{"end no session", "POST", at("/account/sessions/end"), nil, 401, 404, 404, 404},
		{"end other sessions", "POST", at("/account/sessions/end-others"), nil, 401, 303, 303, 303},
		{"remove a passkey", "POST", at("/account/passkeys/remove"), func(_ *world, th things) url.Values { return form("id", hex.EncodeToString(th.passkey)) }, 401, 404, 404, 303},
		{"remove what is no passkey", "POST", at("/account/passkeys/remove"), func(*world, things) url.Values { return form("id", "../x") }, 401, 404, 404, 404},
		{"unlink", "POST", at("/account/identities/unlink"), func(*world, things) url.Values { return form("issuer", "https://github.com", "subject", "1") }, 401, 404, 404, 303},
		{"revoke a grant", "POST", at("/account/grants/revoke"), func(_ *world, th things) url.Values { return form("id", th.grant) }, 401, 404, 404, 303},
		{"make a key", "POST", at("/account/keys"), func(w *world, _ things) url.Values {
			return form("space", string(w.space.ID), "name", "n", "days", "30")
		}, 401, 400, 303, 303},
		{"a key by the name of a space", "POST", at("/account/keys"), func(*world, things) url.Values { return form("space", "ada", "name", "n", "days", "30") }, 401, 400, 400, 400},
		{"a key for longer than is offered", "POST", at("/account/keys"), func(w *world, _ things) url.Values {
			return form("space", string(w.space.ID), "name", "n", "days", "99999")
		}, 401, 400, 400, 400},
		{"link GitHub", "POST", at("/account/link/github"), nil, 401, 200, 200, 200},
		{"link GitHub by GET", get, at("/account/link/github"), nil, 404, 404, 404, 404},

		{"invite to a space", "POST", inSpace("/invite"), func(*world, things) url.Values { return form("role", "editor") }, 401, 404, 403, 303},
		{"invite an owner", "POST", inSpace("/invite"), func(*world, things) url.Values { return form("role", "owner") }, 401, 404, 403, 400},
		{"revoke an invitation to a space", "POST", inSpace("/invitations/revoke"), func(_ *world, th things) url.Values { return form("id", th.invitation) }, 401, 404, 403, 303},
		{"change a role", "POST", ofMember("bob", "/role"), func(*world, things) url.Values { return form("role", "editor") }, 401, 404, 403, 303},
		{"make a second owner", "POST", ofMember("bob", "/role"), func(*world, things) url.Values { return form("role", "owner") }, 401, 404, 403, 400},
		{"take the owner's role", "POST", ofMember("ada", "/role"), func(*world, things) url.Values { return form("role", "reader") }, 401, 404, 403, 400},
		{"add who was not invited", "POST", ofMember("eve", "/role"), func(*world, things) url.Values { return form("role", "reader") }, 401, 404, 403, 404},
		{"remove a member", "POST", ofMember("bob", "/remove"), nil, 401, 404, 303, 303}, // bob leaves
		{"remove the owner", "POST", ofMember("ada", "/remove"), nil, 401, 404, 403, 400},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			th := w.things()
			for _, who := range []struct {
				name string
				b    *browser
				want int
			}{{"nobody", w.browser(), tt.nobody}, {"eve", w.as(w.eve), tt.eve}, {"bob", w.as(w.bob), tt.member}, {"ada", w.as(w.ada), tt.ok}} {
				if who.name == "ada" && tt.name == "remove a member" {
					must(t, w.AddMember(t.Context(), cli, w.space.ID, w.bob.ID, space.Reader)) // he left
				}
				var a answer
				if path := tt.path(w, th); tt.method == get {
					a = who.b.get(path)
				} else {
					v := url.Values{}
					if tt.form != nil {
						v = tt.form(w, th)
					}
					a = who.b.send(path, v)
				}
				want(t, who.name, a, who.want)
				checkPage(t, who.name, a)
				if a.StatusCode == http.StatusSeeOther && !strings.HasPrefix(a.location(), issuer+"/") {
					t.Errorf("%s is sent to %s", who.name, a.location())
				}
			}
		})
	}
}

func at(path string) func(*world, things) string { return func(*world, things) string { return path } }

func inSpace(path string) func(*world, things) string {
	return func(w *world, _ things) string { return "/spaces/" + string(w.space.ID) + path }
}

func ofMember(name, path string) func(*world, things) string {
	return func(w *world, _ things) string {
		id := map[string]space.UserID{"ada": w.ada.ID, "bob": w.bob.ID, "eve": w.eve.ID}[name]
		return "/spaces/" + string(w.space.ID) + "/members/" + string(id) + path
	}
}

var (
	inputs   = regexp.MustCompile(`<(?:input|select)\b[^>]*>`)
	anID     = regexp.MustCompile(`\bid="([^"]*)"`)
	wrapped  = regexp.MustCompile(`(?s)<label class="choice[^"]*">.*?</label>`)
	marked   = regexp.MustCompile(`<a href="https?://[^"]*" rel="noreferrer noopener">`)
	external = regexp.MustCompile(`(?:src|href)="(?:https?:)?//[^"]*"`)
)

// checkPage checks the invariants of every page.
func checkPage(t *testing.T, who string, a answer) {
	t.Helper()
	h := a.Header
	csp := h.Get("Content-Security-Policy")
	for _, s := range []string{"default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'", "style-src 'self'"} {
		if !strings.Contains(csp, s) {
			t.Errorf("%s: the policy lacks %s", who, s)
		}
	}
	if strings.Contains(csp, "unsafe") {
		t.Errorf("%s: the policy is %s", who, csp)
	}
	for k, v := range map[string]string{"X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin", "Cache-Control": "no-store"} {
		if h.Get(k) != v {
			t.Errorf("%s: %s is %q", who, k, h.Get(k))
		}
	}
	if h.Get("Content-Type") != "text/html; charset=utf-8" {
		return
	}
	if n := len(a.body); n > 128_000 { // before compression
		t.Errorf("%s: %d bytes", who, n)
	}
	if n := len(h1.FindAllString(a.body, -1)); n != 1 {
		t.Errorf("%s: %d first headings", who, n)
	}
	for _, s := range []string{"<!doctype html>", `<html lang="en">`, "<title>", `<main id="main"`, `name="viewport"`} {
		if !strings.Contains(a.body, s) {
			t.Errorf("%s: the page lacks %s", who, s)
		}
	}
	if strings.Contains(a.body, "ZgotmplZ") || strings.Contains(a.body, " style=") || strings.Contains(a.body, " onclick=") {
		t.Errorf("%s: the page has what its policy stops", who)
	}
	checkScripts(t, who, a)
	if m := external.FindString(marked.ReplaceAllString(a.body, "")); m != "" && !strings.Contains(m, "provider.test") && !strings.Contains(m, "github.test") {
		t.Errorf("%s: the page leads away: %s", who, m)
	}
	ids := map[string]bool{}
	for _, m := range anID.FindAllStringSubmatch(a.body, -1) {
		if ids[m[1]] {
			t.Errorf("%s: the id %s is there twice", who, m[1])
		}
		ids[m[1]] = true
	}
	for _, m := range regexp.MustCompile(`(?:aria-describedby|aria-labelledby|for)="([^"]*)"`).FindAllStringSubmatch(a.body, -1) {
		for id := range strings.FieldsSeq(m[1]) {
			if !ids[id] {
				t.Errorf("%s: nothing has the id %s", who, id)
			}
		}
	}
	rest := wrapped.ReplaceAllString(a.body, "")
	for _, in := range inputs.FindAllString(rest, -1) {
		if strings.Contains(in, `type="hidden"`) {
			continue
		}
		id := anID.FindStringSubmatch(in)
		if id == nil || !strings.Contains(a.body, `for="`+id[1]+`"`) {
			t.Errorf("%s: no label for %s", who, in)
		}
	}
	// Every form of a signed-in person has their token.
	for _, f := range regexp.MustCompile(`(?s)<form\b.*?</form>`).FindAllString(a.body, -1) {
		if strings.Contains(a.body, "Sign out<") && strings.Contains(f, `method="post"`) && !formToken.MatchString(f) {
			t.Errorf("%s: a form without a token: %.120s", who, f)
		}
	}
}

// Clients open consent in a window of their own, from which isolation would cut them off.
// All other pages are isolated.
func TestIsolation(t *testing.T) {
	w := newWorld(t)
	b := w.as(w.ada)
	for path, want := range map[string]string{
		"/": "same-origin", "/account": "same-origin", "/admin": "same-origin", "/invite/x": "same-origin",
		request(): "", "/signin": "", w.link(w.ada): "", "/signin/github": "",
	} {
		if got := b.get(path).Header.Get("Cross-Origin-Opener-Policy"); got != want {
			t.Errorf("%.40s: %q", path, got)
		}
	}
}

func TestTooMuch(t *testing.T) {
	w := newWorld(t)
	a := w.as(w.ada).send("/account/keys", url.Values{"name": {strings.Repeat("x", 70_000)}})
	want(t, "a large form", a, http.StatusRequestEntityTooLarge)
	for what, try := range map[string]func() answer{
		"page":   func() answer { return w.browser().get("/signin") },
		"signin": func() answer { return w.browser().send(w.link(w.ada), nil) },
		"mail":   func() answer { return w.browser().send("/signin/mail", url.Values{"email": {"ada@example.com"}}) },
		"invite": func() answer { return w.browser().get("/invite/x") },
	} {
		w.limit = what
		a := try()
		want(t, what, a, http.StatusTooManyRequests)
		if a.Header.Get("Retry-After") != "90" {
			t.Errorf("%s: Retry-After %q", what, a.Header.Get("Retry-After"))
		}
		checkPage(t, what, a)
	}
}

// Another name of the server has no cookies and passkeys: readers are redirected, and
// forms are rejected.
func TestOtherNames(t *testing.T) {
	w := newWorld(t)
	host := func(h string, more ...string) func(*http.Request) {
		return func(r *http.Request) {
			r.Host = h
			for i := 0; i+1 < len(more); i += 2 {
				r.Header.Set(more[i], more[i+1])
			}
		}
	}
	a := w.browser().get("/signin?return=%2Faccount", host("127.0.0.1:8080"))
	want(t, "GET", a, http.StatusSeeOther)
	if a.location() != issuer+"/signin?return=%2Faccount&from-another-name" {
		t.Errorf("it leads to %s", a.location())
	}
	a = w.browser().get(strings.TrimPrefix(a.location(), issuer))
	// The mark is removed from the address bar.
	for from, to := range map[string]string{
		"/signin?return=%2Faccount&from-another-name": "/signin?return=%2Faccount", "/account?from-another-name": "/account",
		request() + "&from-another-name": request(), "/?from-another-name": "/",
	} {
		a = w.browser().get(from)
		if a.StatusCode != http.StatusSeeOther || a.location() != issuer+to {
			t.Errorf("%s leads to %d %s", from, a.StatusCode, a.location())
		}
	}
	want(t, "a form", w.browser().send("/signout?from-another-name", nil), http.StatusSeeOther)
	// A proxy that hides the name would cause a redirect loop.
	want(t, "GET again by the other name", w.browser().get("/signin?from-another-name", host("127.0.0.1:8080")), http.StatusMisdirectedRequest)
	want(t, "POST", w.browser().send(w.link(w.ada), nil, host("127.0.0.1:8080")), http.StatusMisdirectedRequest)
	want(t, "behind a proxy that says so", w.browser().get("/signin", host("127.0.0.1:8080", "X-Forwarded-For", "192.0.2.1")), http.StatusOK)
	want(t, "with the port", w.browser().get("/signin", host("satchel.test:443")), http.StatusOK)
	want(t, "in capitals", w.browser().get("/signin", host("SATCHEL.test")), http.StatusOK)
	// Attack: a Host that becomes part of an address.
	a = w.browser().get("/account", host("evil.test"))
	if !strings.HasPrefix(a.location(), issuer+"/account?") {
		t.Errorf("it leads to %s", a.location())
	}
}

func TestStatic(t *testing.T) {
	w := newWorld(t)
	body := w.browser().get("/signin").body
	for _, m := range regexp.MustCompile(`/static/[^"]+`).FindAllString(body, -1) {
		a := w.browser().get(m)
		want(t, m, a, http.StatusOK)
		if !strings.Contains(a.Header.Get("Cache-Control"), "immutable") || len(a.body) > 40_000 || a.Header.Get("Content-Type") == "" {
			t.Errorf("%s: %d bytes, %v", m, len(a.body), a.Header)
		}
	}
	for _, bad := range []string{"/static/", "/static/x.css", "/static/..%2ftemplates%2flayout.html", "/static/%2e%2e"} {
		if a := w.browser().get(bad); a.StatusCode == http.StatusOK {
			t.Errorf("%s is there", bad)
		}
	}
	want(t, "an older one", w.browser().get("/static/style.css?0"), http.StatusOK)
}
