package oauth_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"testing"
	"time"

	"satchel/auth"
	"satchel/auth/oauth"
	"satchel/auth/store"
	"satchel/internal/database"
	"satchel/internal/database/databasetest"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// world is the server on the real store, with one person and their space.
type world struct {
	t      *testing.T
	server *oauth.Server
	store  *store.Store
	clock  *clock
	ann    store.User
	space  store.Space
}

func eachWorld(t *testing.T, fn func(t *testing.T, w *world)) {
	t.Helper()
	databasetest.Each(t, func(t *testing.T, db *database.DB) {
		if _, err := db.Migrate(t.Context(), store.Migrations()...); err != nil {
			t.Fatal(err)
		}
		w := &world{t: t, clock: &clock{t: now()}}
		w.store = store.New(db, store.Options{Now: w.clock.now, Flush: time.Hour, TokenKey: []byte("an example key of 32 bytes, no secret")})
		t.Cleanup(func() {
			if err := w.store.Close(); err != nil {
				t.Error(err)
			}
		})
		var err error
		if w.ann, w.space, err = w.store.CreateUser(t.Context(), store.Actor{Via: "command line"}, store.NewUser{Name: "ann"}); err != nil {
			t.Fatal(err)
		}
		w.server = serve(t, w.store, func(o *oauth.Options) { o.Now = w.clock.now })
		fn(t, w)
	})
}

// client holds the data that a client keeps.
type client struct {
	*world
	id, redirect string
}

func (w *world) register(redirect string) client {
	w.t.Helper()
	body, _ := json.Marshal(map[string]any{"redirect_uris": []string{redirect}, "client_name": "Claude", "token_endpoint_auth_method": "client_secret_post"})
	a := ask(w.t, w.server.Handler(), "POST", oauth.PathRegister, "application/json", string(body))
	if a.status != 201 {
		w.t.Fatalf("%+v", a)
	}
	return client{w, a.json["client_id"].(string), redirect}
}

// code returns the code that the client gets after ann has granted everything.
func (c client) code() string {
	c.t.Helper()
	r, err := c.server.Authorize(c.t.Context(), request("client_id", c.id, "redirect_uri", c.redirect))
	if err != nil {
		c.t.Fatal(err)
	}
	to, err := c.server.Approve(c.t.Context(), c.ann.ID, r, c.space.ID, r.Scopes)
	if err != nil {
		c.t.Fatal(err)
	}
	u, err := url.Parse(to)
	if err != nil || u.Query().Get("iss") != issuer || u.Query().Get("state") != "s+ &=" {
		c.t.Fatalf("sent to %s", to)
	}
	return u.Query().Get("code")
}

func (c client) redeem(code string, pairs ...string) answer {
	return post(c.t, c.server.Handler(), oauth.PathToken, redeem(append([]string{"client_id", c.id, "redirect_uri", c.redirect, "code", code}, pairs...)...))
}

func (c client) refresh(token string, pairs ...string) answer {
	return post(c.t, c.server.Handler(), oauth.PathToken, refresh(append([]string{"client_id", c.id, "refresh_token", token}, pairs...)...))
}

func (c client) connect() answer {
	c.t.Helper()
	a := c.redeem(c.code(), "resource", resource)
	if a.status != 200 {
		c.t.Fatalf("%+v", a)
	}
	return a
}

func (a answer) access() string { s, _ := a.json["access_token"].(string); return s }
func (a answer) again() string  { s, _ := a.json["refresh_token"].(string); return s }

// good reports whether an access token is valid for ann.
func (w *world) good(token string) bool {
	w.t.Helper()
	p, err := w.store.VerifyAccess(w.t.Context(), token, resource)
	if err != nil && fault.CodeOf(err) != fault.Unauthenticated {
		w.t.Fatal(err)
	}
	return err == nil && p.User == w.ann.ID && p.Space == w.space.ID
}

func TestClientsConnectRefreshAndLeave(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		for _, c := range []client{
			w.register("http://localhost:8787/callback"),
			w.register("https://app.example/a,b?x=1"), // a comma is part of it
			{w, "https://claude.ai/oauth/mcp-oauth-client-metadata", "https://claude.ai/api/mcp/auth_callback"},
			{w, "https://claude.ai/oauth/claude-code-client-metadata", "http://localhost:51234/callback"},
		} {
			first := c.connect()
			if !w.good(first.access()) || first.json["expires_in"] != (7*24*time.Hour).Seconds() || first.json["scope"] != "read write" {
				t.Fatalf("%s: %+v", c.id, first)
			}
			second := c.refresh(first.again(), "resource", issuer+"/")
			if second.status != 200 || !w.good(second.access()) || second.again() == first.again() {
				t.Fatalf("%s: %+v", c.id, second)
			}
			w.clock.add(8 * time.Minute) // the process slept meanwhile
			if third := c.refresh(first.again()); third.status != 200 || third.again() != second.again() || third.access() != second.access() {
				t.Errorf("%s: another successor: %+v", c.id, third)
			}
			if a := post(t, w.server.Handler(), oauth.PathRevoke, url.Values{"client_id": {c.id}, "token": {second.again()}}); a.status != 200 {
				t.Errorf("%+v", a)
			}
			if w.good(first.access()) || w.good(second.access()) {
				t.Error("works after it was revoked")
			}
			if a := c.refresh(second.again()); a.code() != "invalid_grant" {
				t.Errorf("%+v", a)
			}
		}
	})
}

func TestAttackCodes(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		c, thief := w.register("http://localhost:8787/callback"), w.register("http://localhost:8787/callback")
		code := c.code()
		for name, a := range map[string]answer{
			"another client":                thief.redeem(code),
			"another verifier":              c.redeem(code, "code_verifier", verifier+"x"),
			"the challenge for a verifier":  c.redeem(code, "code_verifier", challenge()),
			"another redirect":              c.redeem(code, "redirect_uri", "http://localhost:8788/callback"),
			"another code":                  c.redeem(auth.NewSecret(auth.KindCode).Reveal()),
			"a code with a changed letter":  c.redeem(code + "x"),
			"an access token for the code":  c.redeem(auth.NewSecret(auth.KindAccess).Reveal()),
			"the code for a refresh token":  c.refresh(code),
			"a code that was never a token": c.redeem("code"),
		} {
			if a.status != 400 || a.code() != "invalid_grant" || a.access() != "" {
				t.Errorf("%s: %+v", name, a)
			}
		}
		a := c.redeem(code)
		if a.status != 200 || !w.good(a.access()) {
			t.Fatalf("the client itself: %+v", a)
		}
		if b := c.redeem(code); b.code() != "invalid_grant" || w.good(a.access()) {
			t.Errorf("used again: %+v, and what it gave works: %v", b, w.good(a.access()))
		}
		late := c.code()
		w.clock.add(2 * time.Minute)
		if a := c.redeem(late); a.code() != "invalid_grant" {
			t.Errorf("too late: %+v", a)
		}
	})
}

func TestAttackRefreshTokens(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		c, thief := w.register("http://localhost:8787/callback"), w.register("http://localhost:8787/callback")
		first := c.connect()
		for name, a := range map[string]answer{
			"another client":               thief.refresh(first.again()),
			"an access token":              c.refresh(first.access()),
			"another token":                c.refresh(auth.NewSecret(auth.KindRefresh).Reveal()),
			"a token with a changed digit": c.refresh(first.again() + "0"),
		} {
			if a.status != 400 || a.code() != "invalid_grant" {
				t.Errorf("%s: %+v", name, a)
			}
		}
		second := c.refresh(first.again())
		w.clock.add(16 * time.Minute)
		if a := c.refresh(first.again()); a.code() != "invalid_grant" || w.good(second.access()) {
			t.Errorf("a stolen token: %+v, and what it gave works: %v", a, w.good(second.access()))
		}
	})
}

func TestRefreshWithLessScope(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		c := w.register("http://localhost:8787/callback")
		r, err := w.server.Authorize(t.Context(), request("client_id", c.id, "redirect_uri", c.redirect))
		if err != nil {
			t.Fatal(err)
		}
		to, err := w.server.Approve(t.Context(), w.ann.ID, r, w.space.ID, []space.Scope{space.ScopeRead})
		if err != nil {
			t.Fatal(err)
		}
		u, _ := url.Parse(to)
		a := c.redeem(u.Query().Get("code"))
		if a.status != 200 || a.json["scope"] != "read" {
			t.Fatalf("%+v", a)
		}
		if b := c.refresh(a.again(), "scope", "read write"); b.code() != "invalid_scope" {
			t.Errorf("Attack: more than the person granted: %+v", b)
		}
		if b := c.refresh(a.again(), "scope", "read offline_access"); b.status != 200 || b.json["scope"] != "read" {
			t.Errorf("%+v", b)
		}
	})
}

func TestClientThatWasDeletedRegistersAgain(t *testing.T) {
	eachWorld(t, func(t *testing.T, w *world) {
		c := w.register("http://localhost:8787/callback")
		tokens := c.connect()
		if err := w.store.DeleteClient(t.Context(), store.Actor{Via: "command line"}, c.id); err != nil {
			t.Fatal(err)
		}
		if a := c.refresh(tokens.again()); a.status != http.StatusUnauthorized || a.code() != "invalid_client" || w.good(tokens.access()) {
			t.Errorf("%+v", a)
		}
		if _, err := w.server.Authorize(t.Context(), request("client_id", c.id, "redirect_uri", c.redirect)); err == nil {
			t.Error("may ask still")
		}
	})
}
