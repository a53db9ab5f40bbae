package web_test

import (
	"maps"
	"net/http"
	"net/url"
	"testing"

	"satchel/auth"
)

// Two tabs connect two spaces at once and return in any order.
func TestTwoSpacesAreConnectedAtOnce(t *testing.T) {
	h := newHubWorld(t)
	second := h.newSpace(h.ada, "second")
	b := h.as(h.ada)
	other := "/spaces/" + string(second.ID) + "/github"
	one := h.state(b, "/connect")
	two := away(t, b.send(other+"/connect", nil)).Query().Get("state")
	want(t, "the second comes back", b.get("/github/callback?code=ada&state="+two), 303)
	want(t, "the first comes back", b.get("/github/callback?code=ada&state="+one), 303)
	want(t, "the first list", b.get(h.path+"/pick"), 200)
	want(t, "the second list", b.get(other+"/pick"), 200)
	want(t, "the first choice", b.send(h.path+"/pick", url.Values{"repository": {"11"}}), 303)
	want(t, "the second choice", b.send(other+"/pick", url.Values{"repository": {"12"}}), 303)
	if h.linked(h.space.ID).Repository != 11 || h.linked(second.ID).Repository != 12 {
		t.Errorf("links: %+v, %+v", h.linked(h.space.ID), h.linked(second.ID))
	}
	if left := b.flows(); len(left) > 0 {
		t.Errorf("cookies are left: %v", left)
	}
}

// Attack: another site's link, the redirect of an image or a prefetch opens the callback
// or the list while the person is at GitHub or chooses. It uses up none of their flows.
func TestAttackLinkEndsNobodysFlow(t *testing.T) {
	h := newHubWorld(t)
	b := h.as(h.ada)
	install, connect := h.state(b, "/install"), h.state(b, "/connect")
	h.choosing(b, "ada")
	h.did()
	for _, target := range []string{
		"/github/callback?state=x", "/github/callback?state=", "/github/callback?state=x&code=y", "/github/callback?code=y&error=access_denied&state=x",
		"/github/callback?state=x&state=" + connect, "/github/callback?state=" + auth.NewSecret(auth.KindFlow).Reveal(), "/github/callback?state=" + string(h.space.ID),
		"/github/setup?state=x", "/github/setup", "/admin/github/created?state=x&code=y", h.path + "/pick", h.path + "/pick?q=x", "/spaces/" + string(h.evil.ID) + "/github/pick",
	} {
		before := b.flows()
		b.get(target)
		if !maps.Equal(before, b.flows()) {
			t.Errorf("%s changed the cookies", target)
		}
		// Two at once; the answer of the first never arrives.
		b.get(target)
		maps.Copy(b.cookies, before)
	}
	// Another person's browser with the same states cannot end them either.
	for _, state := range []string{install, connect} {
		h.as(h.eve).get("/github/setup?state=" + state)
		h.as(h.eve).get("/github/callback?code=eve&state=" + state)
	}
	h.untouched("links")
	want(t, "the installation goes on", b.get("/github/setup?state="+install), http.StatusSeeOther)
	want(t, "the visit goes on", b.get("/github/callback?code=ada&state="+connect), http.StatusSeeOther)
	want(t, "the choice goes on", b.send(h.path+"/pick", url.Values{"repository": {"11"}}), http.StatusSeeOther)
	if h.linked(h.space.ID).Repository != 11 {
		t.Errorf("the link: %+v", h.linked(h.space.ID))
	}
}

// Attack: endless flows make the browser's cookies grow until the server rejects its
// requests.
func TestAttackFlowCookiesAreBounded(t *testing.T) {
	h := newHubWorld(t)
	b := h.as(h.ada)
	for range 30 {
		h.state(b, "/connect")
	}
	if n := len(b.flows()); n > 8 {
		t.Errorf("%d cookies", n)
	}
	// Unlike a browser, a map has no order, so the last may be among the dropped.
	b.forget()
	last := h.state(b, "/connect")
	want(t, "the last", b.get("/github/callback?code=ada&state="+last), http.StatusSeeOther)
}
