package web_test

import (
	"encoding/json"
	"html"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"satchel/auth/store"
	"satchel/internal/space"
	"satchel/web"
)

// A program that only checks whether a key is valid, as a server does at startup, does not
// count as a client.
func TestAKeyThatIsOnlyCheckedIsNoClient(t *testing.T) {
	h := newHubWorld(t)
	_, secret, err := h.CreateKey(t.Context(), cli, store.NewKey{User: h.ada.ID, Space: h.space.ID, Scopes: []space.Scope{space.ScopeRead}, Name: "first key"})
	must(t, err)
	_, err = h.CheckKey(t.Context(), secret.Reveal())
	must(t, err)
	if a := h.as(h.ada).get("/"); heading(a.body) != "Welcome, ada" {
		t.Errorf("after a check: %s", heading(a.body))
	}
	_, err = h.Verify(t.Context(), secret.Reveal())
	must(t, err)
	if a := h.as(h.ada).get("/"); heading(a.body) != "Your Satchel" {
		t.Errorf("after a use: %s", heading(a.body))
	}
}

// A person who had a client is not welcomed again.
func TestWithoutItsLastClientTheOverviewStays(t *testing.T) {
	for name, settle := range map[string]func(h *hubWorld){
		"the use is written":         func(h *hubWorld) { must(h.t, h.Flush(h.t.Context())) },
		"the use is not yet written": func(*hubWorld) {},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHubWorld(t)
			h.use(h.ada, h.space.ID, "Claude Code")
			settle(h)
			grants, err := h.Grants(t.Context(), h.ada.ID)
			must(t, err)
			b := h.as(h.ada)
			a := b.send("/account/grants/revoke", url.Values{"id": {string(grants[0].ID)}})
			if a = b.get(strings.TrimPrefix(a.location(), issuer)); !strings.Contains(a.body, "The client was disconnected.") {
				t.Error("it does not say that it is done")
			}
			a = b.get("/")
			if heading(a.body) != "Your Satchel" || !strings.Contains(a.body, "No client is connected now.") || strings.Contains(a.body, "Claude Code") {
				t.Errorf("%s", heading(a.body))
			}
			if a := h.as(h.bob).get("/"); heading(a.body) != "Welcome, bob" {
				t.Errorf("somebody else: %s", heading(a.body))
			}
		})
	}
}

// People can bring existing content at any time, from any page.
func TestBringIsReachedAgain(t *testing.T) {
	h := newHubWorld(t)
	h.use(h.ada, h.space.ID, "Claude Code")
	link := `href="/spaces/` + string(h.space.ID) + `/bring"`
	b := h.as(h.ada)
	for _, page := range []string{"/", "/spaces/" + string(h.space.ID)} {
		if !strings.Contains(b.get(page).body, link) {
			t.Errorf("%s does not lead there", page)
		}
	}
	if strings.Contains(h.as(h.bob).get("/spaces/"+string(h.space.ID)).body, link) {
		t.Error("a reader is led there")
	}
}

// The first page lists first the space that the person was invited to.
func TestFirstPageAfterAnInvitation(t *testing.T) {
	h := newHubWorld(t)
	b := h.as(h.bob) // a reader of ada's, with a space of his own
	shared := "/spaces/" + string(h.space.ID) + "/files/"
	a := b.get("/")
	if list, steps := strings.Index(a.body, shared), strings.Index(a.body, `<ol class="checklist">`); list < 0 || list > steps {
		t.Errorf("the space is at %d, the steps are at %d", list, steps)
	}
	a = b.get("/?joined=" + string(h.space.ID))
	checkPage(t, "joined", a)
	if i := strings.Index(a.body, "You have joined the space"); i < 0 || !strings.Contains(a.body[i:], shared) || !strings.Contains(a.body[i:], `href="/connect"`) || len(checklist(a)) == 0 {
		t.Error("it does not name the space with its links, or has no steps after it")
	}
	h.use(h.bob, h.space.ID, "Clara")
	if a = b.get("/?joined=" + string(h.space.ID)); heading(a.body) != "Your Satchel" || !strings.Contains(a.body, "You have joined the space") {
		t.Error("the overview does not name it")
	}
	// Attack: a link names a space of others, or one's own.
	for name, id := range map[string]string{"a stranger's": string(h.evil.ID), "none": "x", "markup": "%3Cb%3E"} {
		if a := b.get("/?joined=" + id); a.StatusCode != http.StatusOK || strings.Contains(a.body, "You have joined the space") || strings.Contains(a.body, "<b>") {
			t.Errorf("%s: it is named", name)
		}
	}
	if a := h.as(h.ada).get("/?joined=" + string(h.space.ID)); strings.Contains(a.body, "You have joined the space") {
		t.Error("an owner is told that they were invited")
	}
}

// Attack: a stored page, another session and another kind of page do not show a secret
// that was shown; reloading the page makes no second key.
func TestWhatIsShownOnceIsShownToItsSession(t *testing.T) {
	w := newWorld(t)
	keys := func() int {
		list, err := w.ListKeys(t.Context(), w.bob.ID)
		must(t, err)
		return len(list)
	}
	b := w.as(w.bob)
	make := func() {
		want(t, "make", b.send("/account/keys", url.Values{"space": {string(w.space.ID)}, "name": {"n"}, "days": {"30"}}), http.StatusSeeOther)
	}
	make()
	want(t, "HEAD", b.request("HEAD", b.once, ""), http.StatusSeeOther)
	kept := b.flows()
	if a := b.get(b.once); a.StatusCode != http.StatusOK || a.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("shown: %d, %s", a.StatusCode, a.Header.Get("Cache-Control"))
	}
	for name, cookies := range map[string]map[string]string{"loaded again": nil, "with the cookie of before": kept} {
		b.forget()
		maps.Copy(b.cookies, cookies)
		a := b.get(b.once)
		want(t, name, a, http.StatusSeeOther)
		if a = b.get(strings.TrimPrefix(a.location(), issuer)); !strings.Contains(a.body, "shown only once") || strings.Contains(a.body, `value="satchel_`) {
			t.Errorf("%s: it does not say why, or shows it", name)
		}
	}
	if keys() != 1 {
		t.Errorf("%d keys", keys())
	}
	make()
	other := w.as(w.eve)
	maps.Copy(other.cookies, b.flows())
	want(t, "another's session", other.get(b.once), http.StatusSeeOther)
	want(t, "which uses nothing up", b.get(b.once), http.StatusOK)
	b.forget()
	make()
	key := b.onlyFlow()
	must(t, w.SetAdmin(t.Context(), cli, w.bob.ID, true))
	b.send("/admin/invite", nil)
	b.plant(key)
	want(t, "as an invitation", b.get(b.once), http.StatusNotFound)
}

// atHome returns a browser at a server with a loopback address; here sends a request to
// that address.
func atHome(t *testing.T, at string, with ...func(*web.Options)) (w *world, as func(store.User) *browser, here func(*http.Request)) {
	t.Helper()
	w = newWorld(t, append(with, withoutOAuth, func(o *web.Options) { o.Issuer, o.MCPURL = at, at+"/mcp" })...)
	u, err := url.Parse(at)
	must(t, err)
	as = func(who store.User) *browser {
		b := w.as(who)
		b.cookies = map[string]string{"satchel": b.cookies["__Host-satchel"]}
		return b
	}
	return w, as, func(r *http.Request) {
		r.Host = u.Host
		if r.Method == http.MethodPost {
			r.Header.Set("Origin", at)
		}
	}
}

// The page of a link says that the link only opens on this machine.
func TestInvitationOfALocalServer(t *testing.T) {
	for _, at := range []string{"http://127.0.0.1:8080", "http://localhost:8080", "http://[::1]:8080"} {
		w, as, here := atHome(t, at)
		b := as(w.ada)
		token := formToken.FindStringSubmatch(b.get("/account", here).body)
		if token == nil {
			t.Fatalf("%s: nobody is signed in", at)
		}
		a := b.request("POST", "/admin/invite", url.Values{"form": {token[1]}}.Encode(), here)
		want(t, at, a, http.StatusSeeOther)
		if a = b.get(b.once, here); !strings.Contains(a.body, at+"/invite/") || !strings.Contains(a.body, "on this machine only") {
			t.Errorf("%s: it does not say so", at)
		}
	}
}

// Admins of a local server get settings that need no key. Attack: nobody else, and nobody
// at a public server, learns where the server and its data are.
func TestClaudeDesktopOfALocalServer(t *testing.T) {
	stdio := func(o *web.Options) { o.Stdio = []string{"/opt/satchel", "stdio", "--data", "/srv/my \"data\""} }
	w, as, here := atHome(t, "http://127.0.0.1:8080", stdio)
	page := as(w.ada).get("/connect/claude-desktop", here).body
	if !strings.Contains(page, "only on the computer that runs this server") {
		t.Error("the page does not say where the settings work")
	}
	_, text, _ := strings.Cut(page, `<code id="snippet">`)
	text, _, _ = strings.Cut(text, "</code>")
	var got struct {
		MCPServers map[string]struct {
			Command string
			Args    []string
		}
	}
	must(t, json.Unmarshal([]byte(html.UnescapeString(text)), &got))
	if s := got.MCPServers["satchel"]; s.Command != "/opt/satchel" || !slices.Equal(s.Args, []string{"stdio", "--data", `/srv/my "data"`}) {
		t.Errorf("an admin is given %s", text)
	}
	public := newWorld(t, stdio)
	for name, a := range map[string]answer{
		"no admin": as(w.eve).get("/connect/claude-desktop", here), "an admin of a public server": public.as(public.ada).get("/connect/claude-desktop"),
	} {
		if a.StatusCode != http.StatusOK || strings.Contains(a.body, "/opt/satchel") || strings.Contains(a.body, "/srv/my") || !strings.Contains(a.body, "YOUR_KEY") {
			t.Errorf("%s: %d, not the generic one", name, a.StatusCode)
		}
	}
}

// Attack: an address makes a page show a text of its own.
func TestDoneWords(t *testing.T) {
	w := newWorld(t)
	b := w.as(w.ada)
	for page, done := range map[string]string{
		"/account?done=passkey": "The passkey was added.", "/account/keys?done=revoked": "The key was revoked.", "/spaces/" + string(w.space.ID) + "/members?done=role": "The role was changed.",
		"/account?done=role": "", "/account?done=Send+me+money": "", "/?done=passkey": "",
	} {
		_, said, ok := strings.Cut(b.get(page).body, `<p role="status">`)
		if ok != (done != "") || !strings.HasPrefix(said, done) {
			t.Errorf("%s says %.40q", page, said)
		}
	}
	in := "/spaces/" + string(w.space.ID)
	for _, done := range []string{"role", "same"} {
		a := b.send(in+"/members/"+string(w.bob.ID)+"/role", url.Values{"role": {"editor"}})
		if a.location() != issuer+in+"/members?done="+done {
			t.Errorf("a role leads to %s, not to %s", a.location(), done)
		}
	}
	if a := b.get(in + "/members?done=same"); !strings.Contains(a.body, "No change was needed") || strings.Contains(a.body, "The role was changed") {
		t.Error("it does not say that it was the role already")
	}
}
