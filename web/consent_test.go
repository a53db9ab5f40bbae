package web_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"satchel/auth"
	"satchel/auth/store"
	"satchel/internal/space"
)

func allow(id space.SpaceID) url.Values {
	return url.Values{"decision": {"allow"}, "space": {string(id)}, "write": {"1"}}
}

// redeem returns what the code of an answer grants.
func (w *world) redeem(user space.UserID, a answer) (space.SpaceID, string) {
	w.t.Helper()
	u, err := url.Parse(a.location())
	must(w.t, err)
	t, err := w.Redeem(w.t.Context(), auth.Redemption{Code: u.Query().Get("code"), Client: "client", RedirectURI: redirect, Verifier: verifier, Resource: issuer + "/mcp"})
	if err != nil {
		w.t.Fatalf("%v: %d %q %s", err, a.StatusCode, a.location(), heading(a.body))
	}
	all, err := w.Grants(w.t.Context(), user)
	must(w.t, err)
	for _, g := range all {
		if g.ID == t.Grant {
			return g.Space, auth.ScopeList(t.Scopes)
		}
	}
	w.t.Fatal("the grant is not listed")
	return "", ""
}

func TestConsentSaysWhoAsks(t *testing.T) {
	w := newWorld(t)
	a := w.as(w.bob).get(request())
	want(t, "consent", a, http.StatusOK)
	for _, s := range []string{
		"calls itself <strong>“<bdi>Clara</bdi>”", "<strong><bdi>client.test</bdi></strong>", "Not verified", "Use another account",
		`value="` + string(w.space.ID) + `"`, "you can only read, and so can the client", "your own", ">Allow<", ">Deny<",
	} {
		if !strings.Contains(a.body, s) {
			t.Errorf("the page lacks %q", s)
		}
	}
	if strings.Contains(a.body, string(w.evil.ID)) {
		t.Error("it offers somebody else's space")
	}
	a = w.as(w.bob).get(request("redirect_uri", "http://127.0.0.1:9999/callback"))
	if !strings.Contains(a.body, "<strong>a program on this computer</strong>") {
		t.Error("a redirect to the own computer is not called one")
	}
	a = w.as(w.bob).get(request("redirect_uri", "claraapp://done"))
	if !strings.Contains(a.body, "<bdi>claraapp:</bdi>") {
		t.Error("the scheme of a program is not shown")
	}
}

// What can be granted depends on the chosen space. The page says so for each space, and
// has no checkbox if writing cannot be allowed.
func TestConsentSaysWhatASpaceAllows(t *testing.T) {
	const (
		box     = `name="write"`
		beside  = "you can only read, and so can the client"
		instead = `class="choice fixed no instead"`
		all     = "you can only read this space"
	)
	w := newWorld(t)
	reader, own := w.user("rita", false)
	must(t, w.AddMember(t.Context(), cli, w.space.ID, reader.ID, space.Reader))
	for _, tt := range []struct {
		name     string
		who      store.User
		scope    string
		has, not []string
	}{
		{"an owner of one", w.eve, "read write", []string{box}, []string{beside, instead, all}},
		{"an owner and reader", reader, "read write", []string{box, beside, instead, `class="choice reads"`}, nil},
		{"an owner and reader of whom only reading is asked", reader, "read", []string{"you can only read</span>"}, []string{box, "so can the client", instead, "Not write"}},
	} {
		a := w.as(tt.who).get(request("scope", tt.scope))
		want(t, tt.name, a, http.StatusOK)
		checkPage(t, tt.name, a)
		for _, s := range tt.has {
			if !strings.Contains(a.body, s) {
				t.Errorf("%s: the page lacks %q", tt.name, s)
			}
		}
		for _, s := range tt.not {
			if strings.Contains(a.body, s) {
				t.Errorf("%s: the page has %q", tt.name, s)
			}
		}
	}
	must(t, w.AddMember(t.Context(), cli, own.ID, w.bob.ID, space.Editor))
	if body := w.as(w.bob).get(request()).body; !strings.Contains(body, "Shared by rita · you can change the files") {
		t.Error("an editor is not told that they may change it")
	}
}

// A vendor's name counts only if the answer goes to the vendor. On the person's own
// computer, any program can send the vendor's client ID.
func TestKnownVendors(t *testing.T) {
	w := newWorld(t)
	for _, tt := range []struct {
		id, to string
		known  bool
	}{
		{"https://claude.ai/oauth/mcp-oauth-client-metadata", "https://claude.ai/api/mcp/auth_callback", true},
		{"https://claude.ai/oauth/claude-code-client-metadata", "http://localhost:4711/callback", false},
		{"https://vscode.dev/oauth/client-metadata.json", "http://127.0.0.1:33418/", false},
		{"https://vscode.dev/oauth/client-metadata.json", "https://vscode.dev/redirect", false}, // which hands it on to a program
		{"client", redirect, false},
	} {
		a := w.as(w.ada).get(request("client_id", tt.id, "redirect_uri", tt.to))
		want(t, tt.id, a, http.StatusOK)
		if got := strings.Contains(a.body, "Satchel knows its maker"); got != tt.known || strings.Contains(a.body, "calls itself") == tt.known {
			t.Errorf("%s at %s is known: %v", tt.id, tt.to, got)
		}
	}
}

// An earlier consent does not count, because any program can send a client's name and
// redirect.
func TestConsentIsAskedEachTime(t *testing.T) {
	w := newWorld(t)
	b := w.as(w.ada)
	for range 3 {
		want(t, "consent", b.get(request("prompt", "none")), http.StatusOK)
		want(t, "allow", b.send(request(), allow(w.space.ID)), http.StatusSeeOther)
	}
}

// Attack: a client's name contains markup, reverses the text of the page, or pushes the
// host of the redirect out of sight.
func TestConsentCutsWhatClientsCallThemselves(t *testing.T) {
	w := newWorld(t)
	for id, name := range map[string]string{
		"markup": `</strong><script>alert(1)</script><img src=x onerror=alert(1)>`,
		"bidi":   "evil\u202emoc.edualc\u202c \u2067\u200f",
		"long":   strings.Repeat("W", 500),
		"lines":  "Claude\n\n\n\nIt returns to claude.ai",
		"quotes": `" autofocus onfocus="alert(1)`,
	} {
		must(t, w.RegisterClient(t.Context(), auth.Client{ID: id, Kind: auth.ClientRegistered, Name: shortLabel(name), RedirectURIs: []string{redirect}, Created: w.clock()}))
		a := w.as(w.ada).get(request("client_id", id))
		want(t, id, a, http.StatusOK)
		for _, bad := range []string{"<script>", "<img src=x", "onfocus=\"", "\u202e", "\u2067", "\u200f", strings.Repeat("W", 61)} {
			if strings.Contains(a.body, bad) {
				t.Errorf("%s: the page has %q", id, bad)
			}
		}
		if len(a.body) > 10_000 {
			t.Errorf("%s: %d bytes", id, len(a.body))
		}
	}
}

// shortLabel is as much of a name as the store takes.
func shortLabel(s string) string {
	if len(s) > 200 {
		return s[:200]
	}
	return s
}

func TestConsent(t *testing.T) {
	for _, tt := range []struct {
		name   string
		who    func(*world) store.User
		target string
		form   func(*world) url.Values
		status int
		leads  string // where to, in the location
		write  bool
	}{
		{"allow both", ada, request(), func(w *world) url.Values { return allow(w.space.ID) }, 303, redirect + "?code=", true},
		{"allow to read", ada, request(), func(w *world) url.Values { return url.Values{"decision": {"allow"}, "space": {string(w.space.ID)}} }, 303, redirect + "?code=", false},
		{"write for a reader is dropped", bob, request(), func(w *world) url.Values { return allow(w.space.ID) }, 303, redirect + "?code=", false},
		{"Attack: write that was not asked for", ada, request("scope", "read"), func(w *world) url.Values { return allow(w.space.ID) }, 303, redirect + "?code=", false},
		{"only write, of a reader", bob, request("scope", "write"), func(w *world) url.Values { return allow(w.space.ID) }, 400, "", false},
		{"deny", ada, request(), func(*world) url.Values { return url.Values{"decision": {"deny"}} }, 303, redirect + "?error=access_denied", false},
		{"neither", ada, request(), func(w *world) url.Values { return url.Values{"space": {string(w.space.ID)}} }, 400, "", false},
		{"Attack: a space of which one is no member", eve, request(), func(w *world) url.Values { return allow(w.space.ID) }, 400, "", false},
		{"Attack: a space that is none", ada, request(), func(*world) url.Values { return allow("s_x' OR 1=1") }, 400, "", false},
		{"no space", ada, request(), func(*world) url.Values { return url.Values{"decision": {"allow"}} }, 400, "", false},
		{"Attack: another client's redirect", ada, request("redirect_uri", "https://evil.test/callback"), func(w *world) url.Values { return allow(w.space.ID) }, 400, "", false},
		{"Attack: an unknown client", ada, request("client_id", "nobody"), func(w *world) url.Values { return allow(w.space.ID) }, 400, "", false},
		{"Attack: no PKCE", ada, request("code_challenge", ""), func(w *world) url.Values { return allow(w.space.ID) }, 200, "", false},
		{"Attack: the request in the form", ada, request("client_id", "nobody"), func(w *world) url.Values {
			f := allow(w.space.ID)
			f.Set("client_id", "client")
			f.Set("redirect_uri", redirect)
			return f
		}, 400, "", false},
		{"Attack: a session user in the form", eve, request(), func(w *world) url.Values {
			f := allow(w.space.ID)
			f.Set("user", string(w.ada.ID))
			return f
		}, 400, "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			a := w.as(tt.who(w)).send(tt.target, tt.form(w))
			want(t, "answer", a, tt.status)
			if !strings.HasPrefix(a.location(), tt.leads) || tt.leads == "" && a.location() != "" {
				t.Fatalf("it leads to %q", a.location())
			}
			if strings.Contains(tt.leads, "code=") {
				id, scopes := w.redeem(tt.who(w).ID, a)
				if id != w.space.ID || scopes != map[bool]string{true: "read write", false: "read"}[tt.write] {
					t.Errorf("granted: %s of %s", scopes, id)
				}
			}
		})
	}
}

func ada(w *world) store.User { return w.ada }
func bob(w *world) store.User { return w.bob }
func eve(w *world) store.User { return w.eve }

// People who are signed out cannot consent. An invalid request is reported before anybody
// is asked to sign in.
func TestConsentSignedOut(t *testing.T) {
	w := newWorld(t)
	want(t, "POST", w.browser().send(request(), allow(w.space.ID)), http.StatusUnauthorized)
	want(t, "GET of an unknown client", w.browser().get(request("client_id", "nobody")), http.StatusBadRequest)
	// Attack: anybody who registers a client gets an open redirector (RFC 9700 section
	// 4.11.2).
	a := w.browser().get(request("response_type", "token"))
	want(t, "GET of a bad request", a, http.StatusOK)
	if strings.Contains(a.body, "http-equiv") || !strings.Contains(a.body, `href="`+redirect+`?error=unsupported_response_type`) {
		t.Errorf("the page of a bad request: %s", a.body)
	}
	claude := request("response_type", "token", "client_id", "https://claude.ai/oauth/mcp-oauth-client-metadata", "redirect_uri", "https://claude.ai/api/mcp/auth_callback")
	want(t, "a bad request of a known vendor", w.browser().get(claude), http.StatusSeeOther)
}

// A program's own scheme gets a page with a link, and so do addresses that a policy for
// forms cannot contain.
func TestLeavingByAPage(t *testing.T) {
	w := newWorld(t)
	must(t, w.RegisterClient(t.Context(), auth.Client{ID: "other", Kind: auth.ClientRegistered, RedirectURIs: []string{"http://[::1]/callback", "https://vscode.dev/redirect"}, Created: w.clock()}))
	for _, to := range []string{"claraapp://done", "http://[::1]:4000/callback", "https://vscode.dev/redirect"} {
		id := "other"
		if strings.HasPrefix(to, "clara") {
			id = "client"
		}
		a := w.as(w.ada).send(request("redirect_uri", to, "client_id", id), allow(w.space.ID))
		want(t, to, a, http.StatusOK)
		for _, s := range []string{`content="0;url=` + strings.ReplaceAll(to, "[::1]", "[::1]") + `?code=satchel_ac_`, `href="` + to + `?code=satchel_ac_`} {
			if !strings.Contains(a.body, s) {
				t.Errorf("%s: the page lacks %q: %s", to, s, a.body)
			}
		}
		if a.Header.Get("Cache-Control") != "no-store" {
			t.Error("the page with the code may be kept")
		}
	}
	// Without consent, no program is opened automatically.
	a := w.as(w.ada).get(request("redirect_uri", "claraapp://done", "scope", `"`))
	want(t, "an error", a, http.StatusOK)
	if strings.Contains(a.body, "http-equiv") || !strings.Contains(a.body, `href="claraapp://done?error=invalid_scope`) {
		t.Errorf("the page of an error: %s", a.body)
	}
}

// Chromium lets an answer to a form redirect only as form-action allows.
func TestConsentPolicyNamesTheRedirect(t *testing.T) {
	w := newWorld(t)
	for to, source := range map[string]string{
		redirect:                         "form-action 'self' https://client.test https:;",
		"http://127.0.0.1:5123/callback": "form-action 'self' http://127.0.0.1:5123 https:;",
		"claraapp://done":                "form-action 'self';",
	} {
		p := w.as(w.ada).get(request("redirect_uri", to)).Header.Get("Content-Security-Policy") + ";"
		if !strings.Contains(p, source) || strings.Contains(p, "script-src") {
			t.Errorf("%s: %s", to, p)
		}
	}
}

func TestWithoutAuthorizationServer(t *testing.T) {
	w := newWorld(t, withoutOAuth)
	want(t, "GET", w.as(w.ada).get(request()), http.StatusNotFound)
	want(t, "POST", w.as(w.ada).send(request(), allow(w.space.ID)), http.StatusNotFound)
}
