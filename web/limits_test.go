package web_test

import (
	"net/http"
	"net/url"
	"testing"
)

// Attack: somebody uses up the limit of the address of a signed-in person.
func TestWhoIsSignedInIsNotKeptOut(t *testing.T) {
	w := newWorld(t)
	b := w.as(w.ada)
	w.limit = "page"
	want(t, "signed in", b.get("/account"), http.StatusOK)
	want(t, "signed out", w.browser().get("/signin"), http.StatusTooManyRequests)
}

// Attack: bytes that one of the databases does not accept as text.
func TestBytesThatAreNoText(t *testing.T) {
	w := newWorld(t)
	b := w.as(w.ada)
	for _, value := range []string{"\x00", "\xff", "a\x00b"} {
		for _, path := range []string{"/account/sessions/end", "/account/grants/revoke", "/admin/invitations/revoke", "/spaces/" + string(w.space.ID) + "/invitations/revoke"} {
			want(t, path, b.send(path, url.Values{"id": {value}}), http.StatusBadRequest)
		}
		for _, path := range []string{"/admin/people/%00/remove", "/admin/people/%ff/admin", "/spaces/%00/invite"} {
			want(t, path, b.send(path, url.Values{"admin": {"1"}}), http.StatusNotFound)
		}
	}
	want(t, "a page", b.get("/invite/%00"), http.StatusNotFound)
}
