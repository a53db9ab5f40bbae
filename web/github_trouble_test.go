package web_test

import (
	"html"
	"strings"
	"testing"

	"satchel/auth"
	"satchel/gitstore/remotes"
	"satchel/internal/space"
)

// Every page describes a problem with a connection in one sentence, with one remedy. The
// first page never ticks the step or cuts the text.
func TestAConnectionInTroubleIsToldTheSameEverywhere(t *testing.T) {
	for _, state := range []auth.LinkState{auth.LinkSuspended, auth.LinkRemoved, auth.LinkLost} {
		t.Run(string(state), func(t *testing.T) {
			h := newHubWorld(t)
			must(t, h.service.Remotes.Set(t.Context(), remotes.SetRequest{Space: h.space.ID, URL: hubURL + "/ada-l/notes.git", Kind: space.KindGitHub, Trusted: true}))
			h.sync(h.space.ID, errDown)
			link := h.link(h.space.ID, state)
			what, _ := link.Trouble(auth.AtGitHubTab)
			b := h.as(h.ada)
			tells := func(name, path string) answer {
				a := b.get(path)
				place := auth.AtGitHubTab
				if path == h.path {
					place = "" // the page itself has the buttons
				}
				_, way := link.Trouble(place)
				body := html.UnescapeString(a.body)
				if !strings.Contains(body, what) || !strings.Contains(body, way) {
					t.Errorf("%s does not say it whole", name)
				}
				for _, other := range []string{"git.test", "cannot be reached", "space sync", "Everything is pushed", "On its way"} {
					if strings.Contains(body, other) {
						t.Errorf("%s says %q, too", name, other)
					}
				}
				return a
			}
			first := tells("the first steps", "/")
			if got := checklist(first); len(got) < 2 || got[0] != "next" {
				t.Errorf("the first steps: %v", got)
			}
			tells("the space's page of GitHub", h.path)
			tells("where it is pushed", "/spaces/"+string(h.space.ID)+"/remote")
			h.use(h.ada, h.space.ID, "Clara")
			if a := tells("the overview", "/"); strings.Count(html.UnescapeString(a.body), "<strong>"+what) != 1 {
				t.Error("the overview says it more than once")
			}
			l := h.link(h.space.ID, auth.LinkConnected)
			if what, way := l.Trouble(auth.AtGitHubTab); what+way != "" {
				t.Error("one that stands is in trouble")
			}
			h.sync(h.space.ID, nil)
			if a := b.get("/"); !strings.Contains(a.body, "See the connection") || !strings.Contains(a.body, "Everything is pushed") {
				t.Error("it is not said that it stands again")
			}
		})
	}
}
