package web_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"satchel/auth"
	"satchel/internal/space"
)

var disabled = regexp.MustCompile(`value="(\d+)" required disabled`)

// A repository of another space cannot be chosen. Only the owner of that space sees which
// space it is.
func TestTakenRepositoriesAreShown(t *testing.T) {
	h := newHubWorld(t)
	second, hidden := h.newSpace(h.ada, "plans"), h.newSpace(h.eve, "eves-own-plans")
	must(t, h.AddMember(t.Context(), cli, hidden.ID, h.ada.ID, space.Editor))
	h.link(second.ID, auth.LinkConnected)
	h.link(hidden.ID, auth.LinkConnected, func(l *auth.RepositoryLink) { l.Repository, l.FullName = 12, "ada-l/blog" })
	b := h.as(h.ada)
	h.choosing(b, "ada")
	a := b.get(h.path + "/pick")
	want(t, "the list", a, 200)
	if got := disabled.FindAllStringSubmatch(a.body, -1); len(got) != 2 || got[0][1] != "12" || got[1][1] != "11" {
		t.Errorf("what cannot be chosen: %v", got)
	}
	if !strings.Contains(a.body, "/spaces/"+string(second.ID)+"/github") || !strings.Contains(a.body, "plans") {
		t.Error("ada is not led to her space")
	}
	if _, list, _ := strings.Cut(a.body, "<main"); strings.Contains(list, "eves-own-plans") || strings.Contains(list, string(hidden.ID)) {
		t.Error("she is told of a space that is not hers to disconnect")
	}

	// Attack: the form is sent anyway.
	a = b.send(h.path+"/pick", url.Values{"repository": {"11"}})
	want(t, "a taken one is chosen", a, http.StatusConflict)
	if h.linked(h.space.ID).Repository != 0 || h.linked(second.ID).Repository != 11 {
		t.Error("it changed its space")
	}
}
