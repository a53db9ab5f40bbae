package server

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"gorm.io/gorm"

	"satchel/internal/config"
	"satchel/internal/service"
)

// TestClientsConnectAtTheFirstTry replays what each client sends, from its first
// 401 to a refreshed token, against a server on the person's machine and against
// one with a public address behind a proxy.
func TestClientsConnectAtTheFirstTry(t *testing.T) {
	for _, public := range []bool{false, true} {
		cfg := settings(t)
		cfg.Auth.Rate, cfg.Server.Rate = 1e6, 1e6
		name := "on this machine"
		if public {
			name, cfg.Server.PublicURL = "public", "https://satchel.example"
		}
		t.Run(name, func(t *testing.T) {
			replayAll(t, cfg, public)
		})
	}
}

func replayAll(t *testing.T, cfg *config.Config, public bool) {
	r := boot(t, cfg)
	issuer := cfg.Server.PublicURL
	if !public {
		issuer = "http://localhost:" + r.listener.Addr().String()[strings.LastIndex(r.listener.Addr().String(), ":")+1:]
	}
	origins := []string{issuer}
	if !public {
		origins = append(origins, strings.TrimSuffix(r.URL(), "/mcp"))
	}
	door := newFrontDoor(t, r.listener.Addr().String(), origins...)
	type connected struct {
		replay
		granted grant
	}
	var all []connected
	for i, s := range scripts() {
		if s.hosted && !public {
			continue
		}
		user := fmt.Sprintf("person-%d", i)
		addUser(t, r.Service, user, false)
		for _, origin := range origins {
			c := replay{nil, s, origin, origin + "/mcp", &http.Client{Transport: door}}
			t.Run(c.name()+" connects", func(t *testing.T) {
				link, err := r.Service.CreateLoginLink(t.Context(), service.Operator(), service.CreateLoginLinkInput{User: service.UserRef{Name: user}})
				if err != nil {
					t.Fatal(err)
				}
				c.t = t
				all = append(all, connected{c, c.connect(newBrowser(t, issuer, door), link.URL)})
			})
		}
	}
	expire := func(tx *gorm.DB) error { return tx.Exec("UPDATE auth_tokens SET expires = 1").Error }
	if err := r.DB.Transact(t.Context(), expire); err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		t.Run(c.name()+" refreshes", func(t *testing.T) {
			c.t = t
			c.works(c.refreshed(c.granted).Access)
		})
	}
}

// replay is one client at work.
type replay struct {
	t      *testing.T
	s      script
	issuer string
	typed  string // what the client was told to connect to
	http   *http.Client
}

func (c replay) name() string {
	if strings.HasPrefix(c.typed, c.issuer) {
		return c.s.name
	}
	return c.s.name + ", told the address with digits,"
}

type answer struct {
	status int
	header http.Header
	body   []byte
}

func (a answer) String() string { return fmt.Sprintf("%d %v %s", a.status, a.header, a.body) }

func (c replay) send(method, address string, header map[string]string, body string) answer {
	c.t.Helper()
	a, err := c.try(method, address, header, body)
	if err != nil {
		c.t.Fatal(err)
	}
	return a
}

func (c replay) try(method, address string, header map[string]string, body string) (answer, error) {
	r, err := http.NewRequestWithContext(c.t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	for k, v := range header {
		r.Header.Set(k, v)
	}
	if c.s.origin != "" && !strings.HasSuffix(address, "/mcp") {
		r.Header.Set("Origin", c.s.origin)
	}
	res, err := c.http.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return answer{}, err
	}
	if got := res.Header.Get("Access-Control-Allow-Origin"); c.s.origin != "" && r.Header.Get("Origin") != "" && got != "*" {
		return answer{}, fmt.Errorf("%s %s is closed to pages: Access-Control-Allow-Origin is %q", method, address, got)
	}
	return answer{res.StatusCode, res.Header, b}, nil
}

// preflight is what a browser asks before a page's request with such a header.
func (c replay) preflight(method, address string) {
	c.t.Helper()
	if c.s.origin == "" {
		return
	}
	a := c.send(http.MethodOptions, address, map[string]string{"Access-Control-Request-Method": method, "Access-Control-Request-Headers": "content-type,mcp-protocol-version"}, "")
	allowed := strings.ToLower(a.header.Get("Access-Control-Allow-Headers"))
	if a.status/100 != 2 || !strings.Contains(a.header.Get("Access-Control-Allow-Methods"), method) || !strings.Contains(allowed, "content-type") || !strings.Contains(allowed, "mcp-protocol-version") {
		c.t.Fatalf("the preflight of %s %s: %s", method, address, a)
	}
}

func (c replay) getJSON(address string, into any) {
	c.t.Helper()
	c.preflight(http.MethodGet, address)
	a := c.send(http.MethodGet, address, map[string]string{"Accept": "application/json", "MCP-Protocol-Version": "2025-11-25"}, "")
	if a.status != http.StatusOK || !strings.HasPrefix(a.header.Get("Content-Type"), "application/json") {
		c.t.Fatalf("%s: %s", address, a)
	}
	if err := json.Unmarshal(a.body, into); err != nil {
		c.t.Fatalf("%s: %v", address, err)
	}
}

// grant is what a client knows once it is connected.
type grant struct {
	endpoint string // of tokens
	client   string
	resource string
	tokens
}

type tokens struct {
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
	Type    string `json:"token_type"`
	Expires int    `json:"expires_in"`
	Scope   string `json:"scope"`
	Error   string `json:"error"`
}

// token sends a token request, and checks that no cache may keep the answer.
func (c replay) token(endpoint string, form url.Values) (tokens, error) {
	a, err := c.try(http.MethodPost, endpoint, map[string]string{"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}, form.Encode())
	if err != nil {
		return tokens{}, err
	}
	var got tokens
	if err := json.Unmarshal(a.body, &got); err != nil || a.status != http.StatusOK || a.header.Get("Cache-Control") != "no-store" ||
		!strings.EqualFold(got.Type, "bearer") || got.Access == "" || got.Refresh == "" || got.Expires < 1 {
		return tokens{}, fmt.Errorf("the token endpoint answered %d, error %q, Cache-Control %q, %v", a.status, got.Error, a.header.Get("Cache-Control"), err)
	}
	return got, nil
}

// call sends one message of the era with sessions.
func (c replay) call(address, bearer, session, body string) answer {
	h := map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Authorization": "Bearer " + bearer}
	if session != "" {
		h["Mcp-Session-Id"], h["MCP-Protocol-Version"] = session, "2025-11-25"
	}
	return c.send(http.MethodPost, address, h, body)
}

const (
	initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"replay","version":"1"}}}`
	discover   = `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	listTools  = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`
)

var (
	metadataParameter = regexp.MustCompile(`resource_metadata="([^"]+)"`)
	scopeParameter    = regexp.MustCompile(`scope="([^"]+)"`)
)

// connect goes from the first request to one that a token lets through.
func (c replay) connect(b *browser, link string) grant {
	t, s, typed := c.t, c.s, c.typed

	// The first request has no token, and the answer says where to get one.
	first := map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
	body := initialize
	if s.discover {
		first["MCP-Protocol-Version"], first["Mcp-Method"] = "2026-07-28", "server/discover"
		body = discover
	}
	a := c.send(http.MethodPost, typed, first, body)
	challenge := a.header.Get("WWW-Authenticate")
	if a.status != http.StatusUnauthorized || !strings.HasPrefix(challenge, "Bearer ") || strings.Contains(challenge, "error=") {
		t.Fatalf("the first request: %s", a)
	}
	metadata, scopes := metadataParameter.FindStringSubmatch(challenge), scopeParameter.FindStringSubmatch(challenge)
	if metadata == nil || scopes == nil {
		t.Fatalf("the challenge is %s", challenge)
	}

	var resource struct {
		Resource string   `json:"resource"`
		Servers  []string `json:"authorization_servers"`
		Scopes   []string `json:"scopes_supported"`
	}
	at := metadata[1]
	if s.wellKnown != "" {
		at = strings.TrimSuffix(typed, "/mcp") + s.wellKnown
	}
	c.getJSON(at, &resource)
	if resource.Resource != typed || len(resource.Servers) == 0 || resource.Servers[0] != c.issuer || slices.Contains(resource.Scopes, "offline_access") {
		t.Fatalf("the resource's metadata: %+v", resource)
	}

	for _, path := range s.servers {
		if a := c.send(http.MethodGet, c.issuer+path, nil, ""); a.status != http.StatusNotFound {
			t.Fatalf("%s: %s", path, a)
		}
	}
	var server struct {
		Issuer    string   `json:"issuer"`
		Authorize string   `json:"authorization_endpoint"`
		Token     string   `json:"token_endpoint"`
		Register  string   `json:"registration_endpoint"`
		Methods   []string `json:"code_challenge_methods_supported"`
		Auth      []string `json:"token_endpoint_auth_methods_supported"`
		Documents bool     `json:"client_id_metadata_document_supported"`
		Iss       bool     `json:"authorization_response_iss_parameter_supported"`
		Resources []string `json:"protected_resources"`
	}
	c.getJSON(c.issuer+"/.well-known/oauth-authorization-server", &server)
	if server.Issuer != c.issuer || !slices.Contains(server.Methods, "S256") || !slices.Contains(server.Auth, "none") || !server.Documents || !server.Iss ||
		!slices.Equal(server.Resources, []string{typed}) || server.Authorize != c.issuer+"/oauth/authorize" || server.Token != c.issuer+"/oauth/token" || server.Register != c.issuer+"/oauth/register" {
		t.Fatalf("the authorization server's metadata: %+v", server)
	}

	client := s.document
	if client == "" {
		client = c.register(server.Register)
	}

	verifier := rand.Text() + rand.Text()
	sum := sha256.Sum256([]byte(verifier))
	scope := s.scope
	if scope == "" {
		scope = scopes[1]
	}
	state := rand.Text()
	q := url.Values{
		"response_type": {"code"}, "client_id": {client}, "redirect_uri": {s.redirect}, "state": {state}, "scope": {scope}, "resource": {resource.Resource},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"},
	}
	for k, v := range s.extra {
		q[k] = v
	}
	authorize := server.Authorize + "?" + q.Encode()

	// The person is not signed in, and comes back to the client's request.
	if page := b.open(authorize); page.status != http.StatusOK || page.url.Path != "/signin" {
		t.Fatalf("somebody who is not signed in is shown %s (%d)\n%s", page.url, page.status, page.text)
	}
	b.press(b.open(link), signInButton)
	back := b.consent(authorize)
	got := back.Query()
	back.RawQuery = ""
	if back.String() != s.redirect || got.Get("state") != state || got.Get("iss") != c.issuer || got.Get("code") == "" {
		t.Fatalf("the browser was sent to %s with %v", back, got)
	}

	form := url.Values{"grant_type": {"authorization_code"}, "code": {got.Get("code")}, "client_id": {client}, "redirect_uri": {s.redirect}, "code_verifier": {verifier}}
	if !s.noResourceInToken {
		form.Set("resource", resource.Resource)
	}
	c.preflight(http.MethodPost, server.Token)
	granted, err := c.token(server.Token, form)
	if err != nil {
		t.Fatal(err)
	}
	c.works(granted.Access)
	return grant{server.Token, client, resource.Resource, granted}
}

func (c replay) register(endpoint string) string {
	c.t.Helper()
	c.preflight(http.MethodPost, endpoint)
	a := c.send(http.MethodPost, endpoint, map[string]string{"Content-Type": "application/json", "Accept": "application/json"}, c.s.register)
	var got struct {
		ID        string   `json:"client_id"`
		Secret    string   `json:"client_secret"`
		Auth      string   `json:"token_endpoint_auth_method"`
		Redirects []string `json:"redirect_uris"`
	}
	if err := json.Unmarshal(a.body, &got); err != nil || a.status != http.StatusCreated || got.ID == "" || got.Secret != "" || got.Auth != "none" || len(got.Redirects) == 0 {
		c.t.Fatalf("registration: %v: %s", err, a)
	}
	return got.ID
}

// works opens a session with a token and lists the tools.
func (c replay) works(bearer string) {
	c.t.Helper()
	a := c.call(c.typed, bearer, "", initialize)
	if a.status != http.StatusOK {
		c.t.Fatalf("initialize: %s", a)
	}
	session := a.header.Get("Mcp-Session-Id")
	if a := c.call(c.typed, bearer, session, `{"jsonrpc":"2.0","method":"notifications/initialized"}`); a.status != http.StatusAccepted {
		c.t.Fatalf("notifications/initialized: %s", a)
	}
	if a := c.call(c.typed, bearer, session, listTools); a.status != http.StatusOK || !bytes.Contains(a.body, []byte(`"instructions"`)) {
		c.t.Fatalf("tools/list: %s", a)
	}
}

// refreshed learns from a refusal that the token has expired, and refreshes it as
// often at once as the client does; all get the same.
func (c replay) refreshed(old grant) tokens {
	c.t.Helper()
	a := c.send(http.MethodPost, c.typed, map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Authorization": "Bearer " + old.Access,
		"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "server/discover",
	}, discover)
	if challenge := a.header.Get("WWW-Authenticate"); a.status != http.StatusUnauthorized || !strings.Contains(challenge, `error="invalid_token"`) || !metadataParameter.MatchString(challenge) {
		c.t.Fatalf("an expired token: %s", a)
	}
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {old.Refresh}, "client_id": {old.client}}
	if !c.s.noResourceInToken {
		form.Set("resource", old.resource)
	}
	all := make([]tokens, max(1, c.s.refreshes))
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i := range all {
		wg.Go(func() { all[i], errs[i] = c.token(old.endpoint, form) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		c.t.Fatal(err)
	}
	for _, got := range all {
		if got.Access == old.Access || got.Refresh == old.Refresh || got.Access != all[0].Access || got.Refresh != all[0].Refresh {
			c.t.Fatalf("of %d refreshes at once one got other tokens", len(all))
		}
	}
	return all[0]
}
