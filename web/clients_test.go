package web_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"satchel/auth"
	"satchel/auth/store"
	"satchel/internal/space"
	"satchel/web"
)

// section returns the part of a page under a heading.
func section(a answer, id string) string {
	_, s, _ := strings.Cut(a.body, `<section aria-labelledby="`+id+`"`)
	s, _, _ = strings.Cut(s, "</section>")
	return s
}

// A client that is started for each use is listed while it runs and between its runs, with
// its name and how to end it. Each run has its own key.
func TestStdioClientsStandAmongTheOthers(t *testing.T) {
	c := callers{}
	h := newHubWorld(t, func(o *web.Options) { o.Called = c.of })
	b := h.as(h.ada)
	run := auth.StdioKey + "desk"
	end := func(id space.GrantID) { must(t, h.RevokeKey(t.Context(), cli, id, "")) }
	for range 3 {
		end(h.keyCalls(c, h.ada, h.space.ID, run, "claude-ai/0.1"))
		h.pass(time.Minute)
	}
	check := func(when string, over bool, rows int) {
		t.Helper()
		home, account := section(b.get("/"), "clients"), section(b.get("/account"), "clients")
		for page, s := range map[string]string{"home": home, "the account": account} {
			if strings.Count(s, "<strong><bdi>"+run) != rows || !strings.Contains(s, "claude-ai/0.1") || strings.Contains(s, "not running now") != over || strings.Contains(s, "None of your clients") {
				t.Errorf("%s: %s has %s", when, page, s)
			}
		}
		if !strings.Contains(account, "claude_desktop_config.json") || strings.Contains(account, ">Disconnect<span") == over {
			t.Errorf("%s: the account does not say how to end it", when)
		}
		if strings.Contains(b.get("/account/keys").body, run) {
			t.Errorf("%s: its key is among the keys, too", when)
		}
	}
	check("between runs", true, 1)
	must(t, h.Flush(t.Context()))
	check("once that is written", true, 1)
	id := h.keyCalls(c, h.ada, h.space.ID, run, "claude-ai/0.1")
	check("while one runs", false, 1)
	want(t, "disconnect", b.send("/account/grants/revoke", url.Values{"id": {string(id)}}), http.StatusSeeOther)
	check("after its end", true, 1)
	h.keyCalls(c, h.ada, h.space.ID, run, "claude-ai/0.1")
	h.pass(25 * time.Hour) // it was killed
	check("after a run that was killed", true, 1)

	// Attack: another person's.
	if a := h.as(h.eve).get("/account"); strings.Contains(a.body, run) {
		t.Error("a stranger sees it")
	}
	// A key that a person created and revoked is not listed.
	end(h.keyCalls(c, h.ada, h.space.ID, "a script", "x"))
	if a := b.get("/"); strings.Contains(a.body, "a script") {
		t.Error("a revoked key stands among the clients")
	}
}

// Every page asks for confirmation before it ends a client or a key.
func TestDisconnectingAsks(t *testing.T) {
	h := newHubWorld(t)
	b := h.as(h.ada)
	code := h.consented(b)
	_, err := h.Redeem(t.Context(), auth.Redemption{Code: code, Client: "client", RedirectURI: redirect, Verifier: verifier, Resource: issuer + "/mcp"})
	must(t, err)
	_, _, err = h.CreateKey(t.Context(), cli, store.NewKey{User: h.ada.ID, Space: h.space.ID, Scopes: []space.Scope{space.ScopeRead}, Name: "k"})
	must(t, err)
	ends := regexp.MustCompile(`(?s)<button type="button" class="second risky" popovertarget="([^"]+)">.{1,200}<dialog id="([^"]+)" popover .{1,700}action="/account/grants/revoke.{1,700}<button class="danger">`)
	for page, n := range map[string]int{"/account": 1, "/account/keys": 1} {
		a := b.get(page)
		if got := len(ends.FindAllString(a.body, -1)); got != n || strings.Count(a.body, `action="/account/grants/revoke`) != n {
			t.Errorf("%s: %d of %d ask", page, got, strings.Count(a.body, `action="/account/grants/revoke`))
		}
	}
}

// The first page lists changes by AIs in every space in which the person can decide on
// them, and not in spaces that they only read.
func TestHomeTellsOfChangesInEverySpace(t *testing.T) {
	a := newActive(t, web.LiveOptions{})
	team := a.newSpace(a.ada, "team-notes")
	must(t, a.AddMember(t.Context(), cli, team.ID, a.carol.ID, space.Editor))
	must(t, a.AddMember(t.Context(), cli, team.ID, a.bob.ID, space.Reader))
	_, err := a.git.Commit(t.Context(), team.ID, space.ChangeSet{Changes: []space.Change{{Path: "resources/context.md", Content: []byte("Obey.\n")}}}, space.Meta{Message: "Obey", Tool: "write", Client: "bot", Time: a.clock()})
	must(t, err)
	link := `href="/spaces/` + string(team.ID) + `/reviews">Review`
	for name, tt := range map[string]struct {
		who   store.User
		shown bool
	}{"its owner": {a.ada, true}, "an editor": {a.carol, true}, "a reader": {a.bob, false}, "a stranger": {a.eve, false}} {
		page := a.as(tt.who).get("/")
		checkPage(t, name, page)
		if strings.Contains(page.body, link) != tt.shown || strings.Contains(page.body, "team-notes of ada") != (tt.who.ID == a.carol.ID) {
			t.Errorf("%s is told: %t", name, !tt.shown)
		}
	}
}
