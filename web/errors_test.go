package web_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/web"
	"satchel/web/pages"
)

// Internal errors are logged without the secrets of the address, and the page does not
// reveal their details.
func TestInternalError(t *testing.T) {
	var log bytes.Buffer
	w := newWorld(t, func(o *web.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	link := w.link(w.ada)
	secret := strings.TrimPrefix(link, "/signin/link/")
	b := w.as(w.ada)
	// A browser that disconnects is not an error.
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	b.get("/account", func(r *http.Request) { *r = *r.WithContext(gone) })
	if log.Len() > 0 {
		t.Errorf("the log: %s", log.String())
	}
	must(t, w.db.Close())
	for _, path := range []string{link, "/account", "/admin", "/spaces/" + string(w.space.ID)} {
		a := b.get(path)
		want(t, path, a, http.StatusServiceUnavailable)
		checkPage(t, path, a)
		for _, s := range []string{"closed", "sql", "context", "auth_"} {
			if strings.Contains(strings.ToLower(a.body), s) {
				t.Errorf("%s: the page has %q", path, s)
			}
		}
	}
	if !strings.Contains(log.String(), "closed") || !strings.Contains(log.String(), "GET /signin/link/{token}") {
		t.Errorf("the log: %s", log.String())
	}
	if strings.Contains(log.String(), secret) || strings.Contains(log.String(), b.cookies["__Host-satchel"]) {
		t.Error("the log has a secret")
	}
}

// The page of an error leads on: to a second attempt when the same address can work later,
// and home or to the sign-in.
func TestErrorPagesLeadOn(t *testing.T) {
	const again, home, signIn = `<a class="button" href="">`, `href="/">Go to the home page`, `href="/signin">Sign in`
	w := newWorld(t)
	b := w.as(w.ada)
	for path, to := range map[string]string{"/nowhere": home, "/spaces/none": home} {
		a := b.get(path)
		want(t, path, a, http.StatusNotFound)
		if !strings.Contains(a.body, to) || strings.Contains(a.body, again) {
			t.Errorf("%s: %s", path, a.body)
		}
	}
	link := w.link(w.ada)
	if a := w.browser().get("/signin/link/none"); !strings.Contains(a.body, signIn) {
		t.Errorf("signed out: %s", a.body)
	}
	must(t, w.db.Close())
	if a := w.browser().get(link); !strings.Contains(a.body, again) {
		t.Errorf("an address that can work later: %s", a.body)
	}
	if a := w.browser().send(link, nil); strings.Contains(a.body, again) {
		t.Errorf("a form would be opened as a page: %s", a.body)
	}
}

// Over plain http, as on a person's own computer, browsers would reject __Host- cookies,
// so they are not used.
func TestOverHTTP(t *testing.T) {
	const local = "http://localhost:8080"
	w := newWorld(t)
	s, err := pages.New(web.Options{Issuer: local + "/", MCPURL: local + "/mcp", Accounts: w.Store, Service: w.made.Service, App: w.made.App})
	must(t, err)
	defer s.Close()
	r := httptest.NewRequest("POST", local+w.link(w.ada), strings.NewReader(""))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", local)
	rec := httptest.NewRecorder()
	s.Handler().ServeHTTP(rec, r)
	c := rec.Header().Get("Set-Cookie")
	if rec.Code != http.StatusSeeOther || !strings.HasPrefix(c, "satchel=satchel_ss_") || strings.Contains(c, "Secure") || !strings.Contains(c, "HttpOnly") || !strings.Contains(c, "SameSite=Lax") {
		t.Errorf("%d %.20s", rec.Code, c)
	}
	if got := rec.Header().Get("Location"); got != local+"/" {
		t.Errorf("it leads to %s", got)
	}
	// If there is no way to sign in later, the page says so and continues.
	r = httptest.NewRequest("GET", local+"/welcome", nil)
	r.Header.Set("Cookie", strings.Split(c, ";")[0])
	rec = httptest.NewRecorder()
	s.Handler().ServeHTTP(rec, r)
	if body := rec.Body.String(); rec.Code != http.StatusOK || !strings.Contains(body, "login-link --user ada") || strings.Contains(body, "passkey") {
		t.Errorf("%d %s", rec.Code, body)
	}
}

// The address to return to survives the sign-in page unchanged.
func TestReturnThroughThePage(t *testing.T) {
	w := newWorld(t)
	w.addPasskey(w.ada)
	back := request("state", `a"b'c<d>&e=f g+h%20i`)
	body := w.browser().get("/signin?return=" + url.QueryEscape(back)).body
	for _, m := range []string{`href="(/signin/github\?return=[^"]*)"`, `name="return" value="([^"]*)"`, `data-return="([^"]*)"`} {
		found := regexp.MustCompile(m).FindStringSubmatch(body)
		if found == nil {
			t.Fatalf("no %s", m)
		}
		got := strings.NewReplacer("&amp;", "&", "&#34;", `"`, "&#39;", "'", "&#43;", "+", "&lt;", "<", "&gt;", ">").Replace(found[1])
		if _, q, ok := strings.Cut(got, "?return="); ok {
			var err error
			got, err = url.QueryUnescape(q)
			must(t, err)
		}
		if got != back {
			t.Errorf("%s: got %s, want %s", m, got, back)
		}
	}
}

// Attack: a flow that began at one provider ends at another, which the attacker may
// control (OAuth 2.0 Security Best Current Practice, section 4.4).
func TestProvidersAreNotMixedUp(t *testing.T) {
	w := newWorld(t, func(o *web.Options) { o.OIDC = &fakeProvider{label: "Acme"} })
	w.github.known = withGitHub(t).github.known
	must(t, w.LinkIdentity(t.Context(), cli, store.Identity{User: w.ada.ID, Issuer: hub, Subject: "1"}))
	b := w.browser()
	want(t, "GitHub's callback for Acme's flow", b.get(callback("ada", stateOf(t, b.get("/signin/oidc")))), http.StatusBadRequest)
	if b.signedIn() {
		t.Error("somebody is signed in")
	}
}

// Long lists show the newest entries, and all on request.
func TestPagesStaySmall(t *testing.T) {
	w := newWorld(t)
	for i := range 60 {
		name := fmt.Sprintf("%02d %s", i, strings.Repeat("n", 190))
		_, _, err := w.CreateKey(t.Context(), cli, store.NewKey{User: w.ada.ID, Space: w.space.ID, Scopes: []space.Scope{space.ScopeRead, space.ScopeWrite}, Name: name})
		must(t, err)
		_, _, err = w.CreateInvitation(t.Context(), cli, store.NewInvitation{By: w.ada.ID, Space: w.space.ID, Role: space.Editor, Note: name[:150], Lifetime: time.Hour})
		must(t, err)
		u, _ := w.user(fmt.Sprintf("u%02d-%s", i, strings.Repeat("x", 50)), false)
		must(t, w.AddMember(t.Context(), cli, w.space.ID, u.ID, space.Editor))
		_, _, err = w.StartSession(t.Context(), store.NewSession{User: w.ada.ID, Method: "link", Agent: strings.Repeat("a", 200)})
		must(t, err)
		w.pass(time.Second)
	}
	b := w.as(w.ada)
	for _, path := range []string{"/account", "/admin", "/spaces/" + string(w.space.ID) + "/members"} {
		a := b.get(path)
		want(t, path, a, http.StatusOK)
		checkPage(t, path, a)
		if !strings.Contains(a.body, path+"?all#") || len(b.get(path+"?all").body) <= len(a.body) {
			t.Errorf("%s does not show that there is more", path)
		}
	}
	if body := b.get("/account/keys").body; !strings.Contains(body, ">59 nnn") || strings.Contains(body, ">00 nnn") {
		t.Error("the newest keys are not shown")
	}
}

// A page names one action: its own only if the text of the fault names none.
func TestErrorPagesNameOneAction(t *testing.T) {
	for text, own := range map[string]bool{
		"You have no space. Ask the owner of a space to let you change it.": false,
		"Only an admin of this server may do that.":                         true,
	} {
		if p := web.AsPage(fault.New(fault.Forbidden, "%s", text)); (p.Next != "") != own {
			t.Errorf("%s %s", text, p.Next)
		}
	}
}
