package web_test

import (
	"net/http"
	"strings"
	"testing"
)

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
