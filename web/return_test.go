package web_test

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// A client opened the page of consent, and the person signs in by a link that
// they open from elsewhere: the client's request is not lost.
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

	// Once signed in, nothing is remembered.
	want(t, "sign out", b.send("/signout", nil), http.StatusSeeOther)
	if page := b.get(w.link(w.ada)); !strings.Contains(page.body, `name="return" value="/"`) {
		t.Errorf("an old request is still remembered:\n%s", page.body)
	}
}

// Attack: another program on this machine sets a cookie for its port's pages,
// which reaches ours (RFC 6265 section 8.5).
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
