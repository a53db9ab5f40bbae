package web_test

import (
	"encoding/base64"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"satchel/auth"
)

// A client opened the consent page, and the person signs in with a link from elsewhere:
// the client's request is not lost.
func TestLinkLeadsBackToTheClient(t *testing.T) {
	w := newWorld(t)
	b := w.browser()
	a := b.get(request())
	want(t, "an authorization request signed out", a, http.StatusSeeOther)
	want(t, "sign in", b.get(strings.TrimPrefix(a.location(), issuer)), http.StatusOK)
	link := w.link(w.ada)
	page := b.get(link)
	want(t, "the link", page, http.StatusOK)
	if !strings.Contains(page.body, `name="return" value="`+strings.ReplaceAll(strings.ReplaceAll(request(), "&", "&amp;"), "+", "&#43;")+`"`) {
		t.Errorf("the page does not lead back:\n%s", page.body)
	}
	if a := b.send(link, url.Values{"return": {request()}}); a.location() != issuer+request() {
		t.Errorf("it leads to %s", a.location())
	}

	// After the sign-in, nothing is remembered.
	want(t, "sign out", b.send("/signout", nil), http.StatusSeeOther)
	if page := b.get(w.link(w.ada)); !strings.Contains(page.body, `name="return" value="/"`) {
		t.Errorf("an old request is still remembered:\n%s", page.body)
	}
}

// Attack: another program on this machine sets a cookie for its port's pages, which
// browsers also send to ours (RFC 6265 section 8.5).
func TestRememberedPathIsOurs(t *testing.T) {
	for name, value := range map[string]string{
		"another host":  base64.RawURLEncoding.EncodeToString([]byte("//evil.test/")),
		"backslash":     base64.RawURLEncoding.EncodeToString([]byte(`/\evil.test`)),
		"absolute":      base64.RawURLEncoding.EncodeToString([]byte("https://evil.test/")),
		"not base64":    "%%%",
		"line end":      base64.RawURLEncoding.EncodeToString([]byte("/a\r\nSet-Cookie: x=y")),
		"another's app": base64.RawURLEncoding.EncodeToString([]byte("javascript:alert(1)")),
	} {
		w := newWorld(t)
		b := w.browser()
		b.cookies["__Host-satchel-return"] = value
		if page := b.get(w.link(w.ada)); page.StatusCode != http.StatusOK || !strings.Contains(page.body, `name="return" value="/"`) {
			t.Errorf("%s: %d\n%s", name, page.StatusCode, page.body)
		}
	}
}

// A person sent by a client sees which client is waiting, in the words of the consent
// page, and how to continue after signing in with a link in another tab.
func TestSignInSaysWhoWaits(t *testing.T) {
	w := newWorld(t)
	must(t, w.RegisterClient(t.Context(), auth.Client{ID: "markup", Kind: auth.ClientRegistered, Name: "<b>" + strings.Repeat("W", 100), RedirectURIs: []string{redirect}, Created: w.clock()}))
	must(t, w.RegisterClient(t.Context(), auth.Client{ID: "nameless", Kind: auth.ClientRegistered, RedirectURIs: []string{redirect}, Created: w.clock()}))
	const waits = " is waiting to be connected. Sign in first."
	for name, tt := range map[string]struct{ back, want string }{
		"a claim":                       {request(), "An application that calls itself <strong>“<bdi>Clara</bdi>”</strong>" + waits},
		"a vendor":                      {request("client_id", "https://claude.ai/oauth/mcp-oauth-client-metadata", "redirect_uri", "https://claude.ai/api/mcp/auth_callback"), "<strong><bdi>Claude</bdi></strong>" + waits},
		"Attack: a long name in markup": {request("client_id", "markup"), "“<bdi>&lt;b&gt;" + strings.Repeat("W", 57) + "…</bdi>”"},
		"without a name":                {request("client_id", "nameless"), "An application without a name" + waits},
		"an unknown client":             {request("client_id", "nobody"), ""},
		"a wrong redirect":              {request("redirect_uri", "https://evil.test/"), ""},
		"a wrong request":               {request("code_challenge", ""), ""},
		"no query":                      {"/oauth/authorize", ""},
		"a query that cannot be read":   {"/oauth/authorize?client_id=%zz", ""},
		"another page":                  {"/account?client_id=client", ""},
		"another path":                  {strings.Replace(request(), "authorize", "authorize/x", 1), ""},
	} {
		a := w.browser().get("/signin?return=" + url.QueryEscape(tt.back))
		want(t, name, a, http.StatusOK)
		checkPage(t, name, a)
		if got := strings.Contains(a.body, waits) && strings.Contains(a.body, "I have signed in"); got != (tt.want != "") || !strings.Contains(a.body, tt.want) {
			t.Errorf("%s: the page lacks %q, or has one that waits", name, tt.want)
		}
		if !strings.Contains(a.body, "bin/satchel login-link<") {
			t.Errorf("%s: the page does not say how to get a link", name)
		}
	}
	a := newWorld(t, bare).browser().get("/signin?return=" + url.QueryEscape(request()))
	if !strings.Contains(a.body, waits) || !strings.Contains(a.body, "<script") {
		t.Error("the tab does not go on by itself where there are no passkeys")
	}
	// An invalid form keeps it, and so does the page that says that mail is on its way.
	a = w.browser().send("/signin/mail", url.Values{"email": {"x"}, "return": {request()}})
	if !strings.Contains(a.body, waits) {
		t.Error("after a mistake nobody waits")
	}
	a = w.browser().send("/signin/mail", url.Values{"email": {"ada@example.com"}, "return": {request()}})
	if strings.Count(a.body, `href="/signin?return=%2foauth%2fauthorize%3f`) != 2 {
		t.Errorf("the page after the mail does not lead on: %s", a.body)
	}
	<-w.post.sent
	if body := newWorld(t, withoutOAuth).browser().get("/signin?return=" + url.QueryEscape(request())).body; strings.Contains(body, waits) {
		t.Error("without an authorization server somebody waits")
	}
}

// The waiting tab continues once the person is signed in by another.
func TestWaitingTabGoesOn(t *testing.T) {
	w := newWorld(t)
	b := w.browser()
	tab := strings.TrimPrefix(b.get(request()).location(), issuer)
	page := b.get(tab)
	m := regexp.MustCompile(`href="(/signin\?return=[^"]*)">I have signed in`).FindStringSubmatch(page.body)
	if m == nil || !strings.Contains(page.body, "data-waits") || !strings.Contains(page.body, "<script") {
		t.Fatalf("nothing leads on: %s", page.body)
	}
	want(t, "too early", b.get(m[1]), http.StatusOK)
	link := w.link(w.ada)
	hidden := regexp.MustCompile(`name="return" value="([^"]*)"`).FindStringSubmatch(b.get(link).body)
	if hidden == nil {
		t.Fatal("the link's page leads nowhere")
	}
	a := b.send(link, url.Values{"return": {html.UnescapeString(hidden[1])}})
	if a.location() != issuer+request() {
		t.Errorf("the other tab is at %s", a.location())
	}
	for _, a := range []answer{b.get(m[1]), b.request(http.MethodHead, tab, "")} {
		if a.StatusCode != http.StatusSeeOther || a.location() != issuer+request() {
			t.Errorf("the tab that waited: %d %s", a.StatusCode, a.location())
		}
	}
}
