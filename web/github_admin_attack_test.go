package web_test

import (
	"testing"

	"satchel/auth"
)

// Attack: a person who is no longer an admin when GitHub sends them back, or a second
// admin with the first one's state, creates an App.
func TestAttackManifestOfWhoIsNoAdmin(t *testing.T) {
	h := newHubWorld(t)
	h.noApp()
	must(t, h.SetAdmin(t.Context(), cli, h.eve.ID, true))
	ada, eve := h.as(h.ada), h.as(h.eve)
	state := manifestState(t, eve.send("/admin/github/manifest", nil))
	want(t, "another admin with the state", ada.get("/admin/github/created?code=good&state="+state), 400)
	must(t, h.SetAdmin(t.Context(), cli, h.eve.ID, false))
	want(t, "demoted meanwhile", eve.get("/admin/github/created?code=good&state="+state), 404)
	h.untouched("demoted")
	must(t, h.SetAdmin(t.Context(), cli, h.eve.ID, true))
	want(t, "an admin again: it was used up by neither", eve.get("/admin/github/created?code=good&state="+state), 303)
	if !h.hasApp() {
		t.Error("no App is there")
	}
	// A second admin's own flow, begun before, is rejected because there is an App.
	h.noApp()
	second := manifestState(t, ada.send("/admin/github/manifest", nil))
	h.setApp(func(*auth.GitHubApp) {})
	want(t, "the second", ada.get("/admin/github/created?code=good&state="+second), 409)
}
