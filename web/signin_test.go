package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"satchel/auth"
	"satchel/auth/store"
)

// The first path of all: a one-time link, a consent, and back to the client.
func TestFromLinkToCode(t *testing.T) {
	w := newWorld(t)
	b := w.browser()
	a := b.get(request())
	want(t, "an authorization request signed out", a, http.StatusSeeOther)
	back := strings.TrimPrefix(a.location(), issuer+"/signin?return=")
	back, err := url.QueryUnescape(back)
	must(t, err)
	if back != request() {
		t.Errorf("it would come back to %q, not %q", back, request())
	}
	link := w.link(w.ada)
	want(t, "the link", b.get(link), http.StatusOK)
	a = b.send(link, url.Values{"return": {back}})
	want(t, "the button", a, http.StatusSeeOther)
	if a.location() != issuer+request() {
		t.Errorf("it leads to %s", a.location())
	}
	want(t, "consent", b.get(request()), http.StatusOK)
	a = b.send(request(), url.Values{"decision": {"allow"}, "space": {string(w.space.ID)}, "write": {"1"}})
	want(t, "allow", a, http.StatusSeeOther)
	u, err := url.Parse(a.location())
	must(t, err)
	q := u.Query()
	if u.Scheme+"://"+u.Host+u.Path != redirect || q.Get("state") != "s t+/=&" || q.Get("iss") != issuer {
		t.Fatalf("it leads to %s", a.location())
	}
	if _, _, err := auth.ParseSecret(auth.KindCode, q.Get("code")); err != nil {
		t.Errorf("the code: %v", err)
	}
}

// Attack: a program that fetches links before the person uses them up.
func TestPreviewsUseNothingUp(t *testing.T) {
	w := newWorld(t)
	link := w.link(w.ada)
	for range 3 {
		b := w.browser()
		want(t, "preview", b.get(link), http.StatusOK)
		want(t, "preview by HEAD", b.request(http.MethodHead, link, ""), http.StatusOK)
		if len(b.cookies) > 0 {
			t.Fatal("a preview was given a cookie")
		}
	}
	b := w.browser()
	want(t, "the person", b.send(link, nil), http.StatusSeeOther)
	if b.who() != "ada" {
		t.Fatalf("%q is signed in", b.who())
	}
	want(t, "the link again", w.browser().send(link, nil), http.StatusNotFound)
	want(t, "to look at it again", w.browser().get(link), http.StatusNotFound)
}

func TestLinkThatIsNone(t *testing.T) {
	w := newWorld(t)
	over := w.link(w.ada)
	w.pass(2 * time.Hour)
	for name, path := range map[string]string{
		"expired": over, "made up": "/signin/link/" + auth.NewSecret(auth.KindLogin).Reveal(), "an invitation": "/signin/link/" + auth.NewSecret(auth.KindInvitation).Reveal(),
		"nonsense": "/signin/link/x", "markup": "/signin/link/%3Cscript%3E", "long": "/signin/link/" + strings.Repeat("a", 5000),
	} {
		for _, a := range []answer{w.browser().get(path), w.browser().send(path, nil)} {
			want(t, name, a, http.StatusNotFound)
			if strings.Contains(a.body, "<script>") {
				t.Errorf("%s: markup comes through", name)
			}
		}
	}
}

// Attack: an address to return to leads to another site. TestLocalPath has the table of
// addresses; this test has every way in which one is used.
func TestReturnStaysHere(t *testing.T) {
	w := newWorld(t)
	w.github.known = map[string]auth.ExternalIdentity{"ada": {Issuer: "https://github.com", Subject: "1", Login: "ada-l"}}
	must(t, w.LinkIdentity(t.Context(), cli, store.Identity{User: w.ada.ID, Issuer: "https://github.com", Subject: "1"}))
	must(t, w.AddPasskey(t.Context(), cli, store.Passkey{ID: []byte("k"), User: w.ada.ID, Name: "k", Credential: []byte("credential k")}))
	for _, evil := range []string{"https://evil.test/", "//evil.test", `/\evil.test`, "/\t/evil.test", "javascript:alert(1)", `/\/evil.test`} {
		ways := map[string]func() answer{
			"signed in already": func() answer { return w.as(w.ada).get("/signin?return=" + url.QueryEscape(evil)) },
			"link":              func() answer { return w.browser().send(w.link(w.ada), url.Values{"return": {evil}}) },
			"github": func() answer {
				b := w.browser()
				a := b.get("/signin/github?return=" + url.QueryEscape(evil))
				return b.get("/signin/github/callback?code=ada&state=" + stateOf(t, a))
			},
		}
		for name, way := range ways {
			if a := way(); a.StatusCode != http.StatusSeeOther || a.location() != issuer+"/" {
				t.Errorf("%s with %q: %d %q", name, evil, a.StatusCode, a.location())
			}
		}
		b := w.browser()
		b.script("/signin/passkey/begin", "{}")
		a := b.script("/signin/passkey/finish", `{"response":"k","return":`+quote(evil)+`}`)
		if a.body != `{"location":"`+issuer+`/"}` {
			t.Errorf("passkey with %q: %s", evil, a.body)
		}
		a = w.as(w.ada).send("/signout", url.Values{"return": {evil}})
		if a.location() != issuer+"/signin" {
			t.Errorf("sign out with %q: %s", evil, a.location())
		}
		if body := w.browser().get("/signin?return=" + url.QueryEscape(evil)).body; strings.Contains(body, "evil") {
			t.Errorf("the page of sign-in keeps %q", evil)
		}
	}
}

// Attack: a session whose secret the attacker knows is planted before the person signs in.
func TestSessionFixation(t *testing.T) {
	w := newWorld(t)
	b := w.as(w.eve)
	planted := b.cookies["__Host-satchel"]
	want(t, "sign in", b.send(w.link(w.ada), nil), http.StatusSeeOther)
	if b.cookies["__Host-satchel"] == planted || b.who() != "ada" {
		t.Fatal("the session that was there is used on")
	}
	attacker := w.browser()
	attacker.cookies["__Host-satchel"] = planted
	if attacker.signedIn() {
		t.Error("the planted session still is good")
	}
	// A secret that the server never made is not adopted either.
	b = w.browser()
	b.cookies["__Host-satchel"] = auth.NewSecret(auth.KindSession).Reveal()
	planted = b.cookies["__Host-satchel"]
	want(t, "sign in", b.request(http.MethodPost, w.link(w.ada), ""), http.StatusSeeOther)
	if b.cookies["__Host-satchel"] == planted {
		t.Error("a made-up session was taken up")
	}
}

func TestSessionCookie(t *testing.T) {
	w := newWorld(t)
	a := w.browser().send(w.link(w.ada), nil)
	c := a.Header.Get("Set-Cookie")
	for _, part := range []string{"__Host-satchel=satchel_ss_", "; Path=/", "; HttpOnly", "; Secure", "; SameSite=Lax", "; Max-Age="} {
		if !strings.Contains(c, part) {
			t.Errorf("the cookie lacks %q", part)
		}
	}
	if strings.Contains(c, "Domain") {
		t.Error("the cookie names a domain")
	}
	// Attack: a second cookie of the name, from a host that may set one.
	b := w.as(w.ada)
	a = b.get("/account", func(r *http.Request) {
		r.Header.Set("Cookie", r.Header.Get("Cookie")+"; __Host-satchel="+auth.NewSecret(auth.KindSession).Reveal())
	})
	want(t, "two cookies", a, http.StatusSeeOther)
}

func TestSignOut(t *testing.T) {
	w := newWorld(t)
	b := w.as(w.ada)
	kept := b.cookies["__Host-satchel"]
	want(t, "by GET", b.get("/signout"), http.StatusNotFound)
	a := b.send("/signout", url.Values{"return": {request()}})
	want(t, "sign out", a, http.StatusSeeOther)
	if a.location() != issuer+"/signin?return="+url.QueryEscape(request()) {
		t.Errorf("it leads to %s", a.location())
	}
	if _, ok := b.cookies["__Host-satchel"]; ok {
		t.Error("the cookie is left")
	}
	b.cookies["__Host-satchel"] = kept
	if b.signedIn() {
		t.Error("the session is good after")
	}
	want(t, "again", w.browser().send("/signout", nil), http.StatusSeeOther)
}

func TestSignInOffersWhatExists(t *testing.T) {
	w := newWorld(t)
	if body := w.browser().get("/signin").body; strings.Contains(body, "data-passkey") {
		t.Error("the page offers a passkey, and nobody has one")
	}
	w.addPasskey(w.ada)
	body := w.browser().get("/signin").body
	for _, s := range []string{"Sign in with GitHub", "Sign in with a passkey", "Send me a link", "satchel login-link"} {
		if !strings.Contains(body, s) {
			t.Errorf("it lacks %q", s)
		}
	}
	bare := newWorld(t, bare)
	a := bare.browser().get("/signin")
	for _, s := range []string{"GitHub", "passkey", "mail", "<script", "<form"} {
		if strings.Contains(a.body, s) {
			t.Errorf("with nothing configured it has %q", s)
		}
	}
	if !strings.Contains(a.body, "satchel login-link") || strings.Contains(a.Header.Get("Content-Security-Policy"), "script-src") {
		t.Errorf("with nothing configured: %s", a.Header.Get("Content-Security-Policy"))
	}
	for _, path := range []string{"/signin/github", "/signin/oidc", "/signin/oidc/callback"} {
		want(t, path, bare.browser().get(path), http.StatusNotFound)
	}
	for _, path := range []string{"/signin/mail", "/signin/passkey/begin", "/signin/passkey/finish"} {
		want(t, path, bare.browser().send(path, nil), http.StatusNotFound)
	}
}
