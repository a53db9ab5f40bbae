package server

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"satchel/auth"
	"satchel/auth/store"
	"satchel/internal/config"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/internal/testenv"
)

// granted gives a client of a person what it asks for, as the page of consent
// does.
func (r *running) granted(user, resource string) auth.Tokens {
	r.t.Helper()
	u, err := r.Accounts.FindUser(r.t.Context(), user)
	if err != nil {
		r.t.Fatal(err)
	}
	m, err := r.Accounts.FindSpace(r.t.Context(), u.ID, "")
	if err != nil {
		r.t.Fatal(err)
	}
	verifier := strings.Repeat("v", 43)
	challenge := sha256.Sum256([]byte(verifier))
	const client, redirect = "https://claude.ai/oauth/claude-code-client-metadata", "http://localhost/callback"
	code, err := r.Accounts.CreateCode(r.t.Context(), auth.Consent{
		Client: client, Name: "Claude Code", User: u.ID, Space: m.ID, Scopes: []space.Scope{space.ScopeRead, space.ScopeWrite},
		Resource: resource, RedirectURI: redirect, Challenge: base64.RawURLEncoding.EncodeToString(challenge[:]),
	})
	if err != nil {
		r.t.Fatal(err)
	}
	got, err := r.Accounts.Redeem(r.t.Context(), auth.Redemption{Code: code.Reveal(), Client: client, RedirectURI: redirect, Verifier: verifier})
	if err != nil {
		r.t.Fatal(err)
	}
	return got
}

// bearing sends tools/list with a token and returns the answer, read.
func (r *running) bearing(token, query string) (status int, challenge string) {
	r.t.Helper()
	const body = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"}}}}`
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.URL()+query, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	for k, v := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/list",
	} {
		req.Header.Set(k, v)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		r.t.Fatal(err)
	}
	return res.StatusCode, res.Header.Get("WWW-Authenticate")
}

// jwtOf signs claims as another issuer would; alg says how.
func jwtOf(t *testing.T, alg string, key *ecdsa.PrivateKey, claims map[string]any) string {
	t.Helper()
	part := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(b)
	}
	text := part(map[string]string{"alg": alg, "typ": "at+jwt"}) + "." + part(claims)
	if key == nil {
		return text + "."
	}
	sum := sha256.Sum256([]byte(text))
	a, b, err := ecdsa.Sign(rand.Reader, key, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	sig := make([]byte, 64)
	a.FillBytes(sig[:32])
	b.FillBytes(sig[32:])
	return text + "." + base64.RawURLEncoding.EncodeToString(sig)
}

// Each kind of token that is none of ours, or is no more, is refused at every
// request, with a challenge that tells the client where to sign in.
func TestAttackTokensThatAreRefused(t *testing.T) {
	r := boot(t, settings(t))
	ctx := t.Context()
	for _, name := range []string{"removed", "revoked", "wanted"} {
		addUser(t, r.Service, name, false)
	}
	good := r.granted("wanted", r.resource())
	if status, _ := r.bearing(good.Access.Reveal(), ""); status != http.StatusOK {
		t.Fatalf("a good token: status %d", status)
	}
	removed, revoked := r.granted("removed", r.resource()), r.granted("revoked", r.resource())
	removeUser(t, r.Service, "removed")
	if _, err := r.Service.RevokeGrant(ctx, service.Operator(), service.RevokeGrantInput{ID: revoked.Grant}); err != nil {
		t.Fatal(err)
	}
	u, err := r.Accounts.FindUser(ctx, "wanted")
	if err != nil {
		t.Fatal(err)
	}
	session, _, err := r.Accounts.StartSession(ctx, store.NewSession{User: u.ID, Method: "link"})
	if err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	claims := map[string]any{"iss": r.issuer, "aud": r.resource(), "sub": string(u.ID), "client_id": "x", "scope": "read write", "exp": time.Now().Add(time.Hour).Unix()}
	metadata := `resource_metadata="` + r.at(r.listener.Addr().String()) + `/.well-known/oauth-protected-resource/mcp"`
	for _, c := range []struct {
		name, token, query string
		error              string // of the challenge; "" where there must be none
	}{
		{"none", "", "", ""},
		{"in the query", "", "?access_token=" + good.Access.Reveal(), ""},
		{"for another resource", r.granted("wanted", "https://other.example/mcp").Access.Reveal(), "", "invalid_token"},
		{"for the issuer and not the resource", r.granted("wanted", r.issuer).Access.Reveal(), "", "invalid_token"},
		{"of a removed person", removed.Access.Reveal(), "", "invalid_token"},
		{"of a revoked grant", revoked.Access.Reveal(), "", "invalid_token"},
		{"a refresh token", good.Refresh.Reveal(), "", "invalid_token"},
		{"a browser's session", session.Reveal(), "", "invalid_token"},
		{"another token of the same form", auth.NewSecret(auth.KindAccess).Reveal(), "", "invalid_token"},
		{"one bit changed", flipped(good.Access.Reveal()), "", "invalid_token"},
		{"a JWT that nobody signed", jwtOf(t, "none", nil, claims), "", "invalid_token"},
		{"a JWT of another issuer", jwtOf(t, "ES256", key, claims), "", "invalid_token"},
		{"a JWT whose algorithm was swapped", jwtOf(t, "HS256", key, claims), "", "invalid_token"},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, challenge := r.bearing(c.token, c.query)
			if status != http.StatusUnauthorized || !strings.Contains(challenge, metadata) || !strings.Contains(challenge, `scope="read write"`) {
				t.Errorf("status %d, challenge %s", status, challenge)
			}
			if want := `error="` + c.error + `"`; (c.error != "") != strings.Contains(challenge, "error=") || c.error != "" && !strings.Contains(challenge, want) {
				t.Errorf("challenge %s, want the error %q", challenge, c.error)
			}
			if c.token != "" && strings.Contains(challenge, c.token) {
				t.Error("the challenge repeats the token")
			}
		})
	}
	if log := r.log.String(); strings.Contains(log, good.Access.Reveal()[12:]) || strings.Contains(log, good.Refresh.Reveal()[12:]) {
		t.Error("the log has a token")
	}
}

func flipped(token string) string {
	other := "A"
	if token[20] == 'A' {
		other = "B"
	}
	return token[:20] + other + token[21:]
}

// An access token is of no use once its time is over, although it was good at
// this very server.
func TestAttackExpiredToken(t *testing.T) {
	cfg := settings(t)
	cfg.Auth.AccessLifetime = time.Nanosecond // over before it is sent
	r := boot(t, cfg)
	tokens := r.granted("ann", r.resource())
	if status, challenge := r.bearing(tokens.Access.Reveal(), ""); status != http.StatusUnauthorized || !strings.Contains(challenge, "invalid_token") {
		t.Errorf("status %d, challenge %s", status, challenge)
	}
}

// ATTACK: headers that say that the server is reached elsewhere, from elsewhere.
func TestAttackForwardedHeaders(t *testing.T) {
	cfg := settings(t)
	cfg.Server.PublicURL = "https://satchel.example"
	r := boot(t, cfg)
	for _, path := range []string{"/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-authorization-server", "/.well-known/oauth-authorization-server/mcp", "/signin"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.localURL()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = "satchel.example"
		for _, h := range []string{"X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Prefix", "X-Original-Host", "Forwarded", "X-Rewrite-Url"} {
			req.Header.Set(h, "evil.example")
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || res.StatusCode != http.StatusOK || strings.Contains(string(body), "evil") || strings.Contains(fmt.Sprint(res.Header), "evil") {
			t.Errorf("%s: %d %s", path, res.StatusCode, body)
		}
		req.Host = "evil.example"
		if res, err = http.DefaultClient.Do(req); err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusForbidden {
			t.Errorf("%s under another name (DNS rebinding): status %d", path, res.StatusCode)
		}
	}
}

// ATTACK: endless requests without a key, and X-Forwarded-For that makes each look
// like another's.
func TestAttackFloodOfRequestsWithoutAKey(t *testing.T) {
	cfg := settings(t)
	cfg.Auth.Rate = 1
	r := boot(t, cfg)
	for _, c := range []struct {
		name, method, path, form string
		most                     int
	}{
		{"registration", "POST", "/oauth/register", `{"redirect_uris":["http://localhost/cb"]}`, 1},
		{"tokens", "POST", "/oauth/token", "grant_type=refresh_token&refresh_token=x&client_id=y", 3},
		{"metadata", "GET", "/.well-known/oauth-authorization-server", "", 30},
		{"metadata of the resource", "GET", "/.well-known/oauth-protected-resource/mcp", "", 30},
		{"the tools", "POST", "/mcp", "{}", 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			limited := 0
			for i := range c.most + 5 {
				req, err := http.NewRequestWithContext(t.Context(), c.method, r.localURL()+c.path, strings.NewReader(c.form))
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
				if strings.HasPrefix(c.form, "{") {
					req.Header.Set("Content-Type", "application/json")
				}
				req.Header.Set("X-Forwarded-For", fmt.Sprintf("198.51.100.%d", i))
				res, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				res.Body.Close()
				if res.StatusCode == http.StatusTooManyRequests {
					limited++
					if res.Header.Get("Retry-After") == "" {
						t.Error("429 without Retry-After")
					}
				}
			}
			if limited < 4 {
				t.Errorf("%d of the requests over the limit were refused", limited)
			}
		})
	}
	// Who has a key is never held up by who has none.
	if got := r.ask("instructions", "{}"); !strings.HasPrefix(got, "200") {
		t.Error(got)
	}
}

// ATTACK: a page of another site, open in somebody's browser, asks for so much that
// they and their clients are locked out.
func TestAttackAnotherSiteUsesUpSomebodysLimit(t *testing.T) {
	cfg := settings(t)
	cfg.Auth.Rate = 1
	r := boot(t, cfg)
	ask := func(path string, header ...string) int {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.issuer+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode
	}
	for _, path := range []string{"/signin", "/mcp"} {
		limited := false
		for range 20 {
			limited = ask(path, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "image") == http.StatusTooManyRequests || limited
		}
		if !limited {
			t.Errorf("%s: the other site is not limited", path)
		}
	}
	// ATTACK: who is no browser claims another origin each time.
	limited := 0
	for i := range 20 {
		if ask("/signin", "Sec-Fetch-Site", "cross-site", "Origin", fmt.Sprintf("https://%d.example", i)) == http.StatusTooManyRequests {
			limited++
		}
	}
	if limited < 19 {
		t.Errorf("%d of 20 requests of made-up origins were refused", limited)
	}
	if got := ask("/signin", "Sec-Fetch-Site", "none", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"); got != http.StatusOK {
		t.Errorf("the person: status %d", got)
	}
	if got := ask("/signin", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"); got != http.StatusOK {
		t.Errorf("the person, sent by a client's page: status %d", got)
	}
	if got := ask("/mcp"); got != http.StatusUnauthorized {
		t.Errorf("their client: status %d", got)
	}
	// Pages have no part in what clients may ask for, nor the other way round.
	for range 20 {
		ask("/signin")
	}
	res, err := http.PostForm(r.issuer+"/oauth/token", map[string][]string{"grant_type": {"refresh_token"}, "refresh_token": {"x"}, "client_id": {"y"}})
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode == http.StatusTooManyRequests {
		t.Error("pages use up what is for tokens")
	}
}

// ATTACK: bodies that never come, which would hold the server's descriptors for
// ever, also where the answer was written without reading them.
func TestAttackBodiesThatNeverCome(t *testing.T) {
	cfg := settings(t)
	cfg.Server.BodyTimeout = time.Second
	r := boot(t, cfg)
	for _, path := range []string{"/oauth/token", "/oauth/register", "/mcp", "/signin/mail", "/signout", "/nothing"} {
		conn, err := net.Dial("tcp", r.listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{", path, strings.TrimPrefix(r.issuer, "http://"))
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			_, _ = io.Copy(io.Discard, conn)
		}()
		testenv.Receive(t, "the connection of "+path, closed)
	}
	// Who sends a body in time may wait as long as the answer takes.
	if got := r.ask("instructions", "{}"); !strings.HasPrefix(got, "200") {
		t.Error(got)
	}
}

// A person whom an entry of the allow list let in is out while it is gone.
func TestAllowListThatChanged(t *testing.T) {
	cfg := settings(t)
	cfg.Auth.AllowDomains = []string{"example.com"}
	r := boot(t, cfg)
	u, err := r.Service.Admit(t.Context(), auth.ExternalIdentity{Issuer: "https://id.example", Subject: "1", Email: "Eve@Example.com", Name: "Eve"}, "", "")
	if err != nil || u.Name != "eve" {
		t.Fatalf("%+v, %v", u, err)
	}
	if _, err := r.Service.Admit(t.Context(), auth.ExternalIdentity{Issuer: "https://id.example", Subject: "2", Email: "x@example.com.evil.example"}, "", ""); err == nil {
		t.Error("somebody whom nothing lets in was let in")
	}
	key, err := r.Service.CreateKey(t.Context(), service.Operator(), service.CreateKeyInput{Space: service.SpaceRef{User: "eve"}, Scopes: []space.Scope{space.ScopeRead}})
	if err != nil {
		t.Fatal(err)
	}
	r.end()
	for _, c := range []struct {
		domains []string
		want    int
	}{{nil, http.StatusUnauthorized}, {[]string{"example.com"}, http.StatusOK}} {
		again := *cfg
		again.Auth.AllowDomains = c.domains
		r := reopen(t, &again)
		if status, _ := r.bearing(key.Secret, ""); status != c.want {
			t.Errorf("with %v: status %d, want %d", c.domains, status, c.want)
		}
		r.end()
	}
	// Another entry lets them in again, once they sign in.
	again := *cfg
	again.Auth.AllowDomains, again.Auth.AllowEmails = nil, []string{"eve@example.com"}
	r = reopen(t, &again)
	if status, _ := r.bearing(key.Secret, ""); status != http.StatusUnauthorized {
		t.Errorf("before they sign in: status %d", status)
	}
	back, err := r.Service.Admit(t.Context(), auth.ExternalIdentity{Issuer: "https://id.example", Subject: "1", Email: "eve@example.com"}, "", "")
	if err != nil || back.ID != u.ID {
		t.Errorf("%+v, %v", back, err)
	}
	if status, _ := r.bearing(key.Secret, ""); status != http.StatusOK {
		t.Errorf("once they signed in: status %d", status)
	}
}

// reopen starts a server on a directory that has users.
func reopen(t *testing.T, cfg *config.Config) *running {
	t.Helper()
	s, err := OpenServer(t.Context(), cfg, "test", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{Server: s, t: t, log: &lockedBuffer{}, stop: cancel, ended: make(chan error, 1)}
	ready := make(chan struct{})
	go func() { r.ended <- s.Serve(ctx, func() { close(ready) }) }()
	select {
	case <-ready:
	case err := <-r.ended:
		t.Fatal(err)
	}
	t.Cleanup(r.end)
	return r
}
