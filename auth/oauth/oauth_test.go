package oauth_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"satchel/auth"
	"satchel/auth/oauth"
	"satchel/internal/fault"
	"satchel/internal/space"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	issuer   = "https://satchel.example"
	resource = "https://satchel.example/mcp"
	callback = "https://app.example/cb?tenant=1"
	verifier = "a-verifier-of-some-forty-three-characters-12345"
)

func challenge() string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// memory is a Store that records its requests, and gives the answers that the test sets.
type memory struct {
	mu        sync.Mutex
	clients   map[string]auth.Client
	consents  []auth.Consent
	redeemed  []auth.Redemption
	refreshed []auth.RefreshRequest
	revoked   [][2]string
	tokens    auth.Tokens
	err       error
}

func newMemory() *memory {
	return &memory{
		clients: map[string]auth.Client{
			"client_1": {ID: "client_1", Kind: auth.ClientRegistered, Name: "App", RedirectURIs: []string{callback, "http://localhost:1/cb", "cursor://x/cb"}},
			"client_2": {ID: "client_2", Kind: auth.ClientRegistered, RedirectURIs: []string{"https://b.example/cb", "javascript:alert(1)"}},
		},
		tokens: auth.Tokens{
			Access: auth.NewSecret(auth.KindAccess), Refresh: auth.NewSecret(auth.KindRefresh), Expires: now().Add(time.Hour),
			Scopes: []space.Scope{space.ScopeRead}, Resource: resource,
		},
	}
}

func now() time.Time { return time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC) }

func (m *memory) Client(_ context.Context, id string) (auth.Client, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, ok := m.clients[id]
	if !ok {
		return c, fault.New(fault.NotFound, "There is no such client.")
	}
	return c, nil
}

func (m *memory) RegisterClient(_ context.Context, c auth.Client) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err == nil {
		m.clients[c.ID] = c
	}
	return m.err
}

func (m *memory) CreateCode(_ context.Context, c auth.Consent) (auth.Secret, error) {
	m.consents = append(m.consents, c)
	return auth.NewSecret(auth.KindCode), m.err
}

func (m *memory) Redeem(_ context.Context, r auth.Redemption) (auth.Tokens, error) {
	m.redeemed = append(m.redeemed, r)
	return m.tokens, m.err
}

func (m *memory) Refresh(_ context.Context, r auth.RefreshRequest) (auth.Tokens, error) {
	m.refreshed = append(m.refreshed, r)
	return m.tokens, m.err
}

func (m *memory) RevokeToken(_ context.Context, client, token string) error {
	m.revoked = append(m.revoked, [2]string{client, token})
	return m.err
}

// serve returns a server on the store, with changed options.
func serve(t testing.TB, m oauth.Store, change ...func(*oauth.Options)) *oauth.Server {
	t.Helper()
	o := oauth.Options{
		Issuer: issuer, Resource: resource, Aliases: []string{"http://127.0.0.1:8080/mcp", "http://[::1]:8080/mcp"},
		Store: m, Registration: true, Now: now,
	}
	for _, c := range change {
		c(&o)
	}
	s, err := oauth.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

type answer struct {
	status int
	header http.Header
	body   string
	json   map[string]any
}

func (a answer) code() string { s, _ := a.json["error"].(string); return s }

func ask(t testing.TB, h http.Handler, method, target, contentType, body string, header ...string) answer {
	t.Helper()
	r := httptest.NewRequest(method, issuer+target, strings.NewReader(body))
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	resp := w.Result()
	b, _ := io.ReadAll(resp.Body)
	a := answer{status: resp.StatusCode, header: resp.Header, body: string(b)}
	if resp.Header.Get("Content-Type") == "application/json" && len(b) > 0 {
		if err := json.Unmarshal(b, &a.json); err != nil {
			t.Errorf("the answer is no JSON: %q", b)
		}
	}
	return a
}

func post(t testing.TB, h http.Handler, target string, form url.Values, header ...string) answer {
	t.Helper()
	return ask(t, h, "POST", target, "application/x-www-form-urlencoded", form.Encode(), header...)
}

// noStore reports how an answer violates the rule that nobody may cache it.
func noStore(a answer) string {
	if a.header.Get("Cache-Control") != "no-store" || a.header.Get("Pragma") != "no-cache" || a.header.Get("Access-Control-Allow-Origin") != "*" ||
		a.header.Get("Access-Control-Allow-Credentials") != "" || a.header.Get("Set-Cookie") != "" {
		return "headers"
	}
	return ""
}

// request returns a valid authorization request with changes. Each pair is a name and its
// new value; "-" removes the parameter.
func request(pairs ...string) url.Values {
	q := url.Values{
		"client_id": {"client_1"}, "redirect_uri": {callback}, "response_type": {"code"}, "state": {"s+ &="},
		"code_challenge": {challenge()}, "code_challenge_method": {"S256"}, "resource": {resource}, "scope": {"read write"},
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] == "-" {
			q.Del(pairs[i])
		} else {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	return q
}

func TestNewRefuses(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*oauth.Options)
	}{
		{"no store", func(o *oauth.Options) { o.Store = nil }},
		{"an issuer with a path", func(o *oauth.Options) { o.Issuer = issuer + "/x" }},
		{"an issuer with a slash", func(o *oauth.Options) { o.Issuer = issuer + "/" }},
		{"an issuer that is none", func(o *oauth.Options) { o.Issuer = "satchel.example" }},
		{"a resource that is none", func(o *oauth.Options) { o.Resource = "mcp" }},
		{"a resource with a fragment", func(o *oauth.Options) { o.Resource = resource + "#x" }},
		{"an alias that is none", func(o *oauth.Options) { o.Aliases = []string{"https://a@b/"} }},
		{"documents without a client", func(o *oauth.Options) { o.Documents = true }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := oauth.Options{Issuer: issuer, Resource: resource, Store: newMemory()}
			tt.change(&o)
			if _, err := oauth.New(o); err == nil {
				t.Error("taken")
			}
		})
	}
}

func TestMetadata(t *testing.T) {
	h := serve(t, newMemory(), func(o *oauth.Options) { o.Documents, o.HTTP = true, http.DefaultClient }).Handler()
	want := `{"authorization_endpoint":"https://satchel.example/oauth/authorize","authorization_response_iss_parameter_supported":true,` +
		`"client_id_metadata_document_supported":true,"code_challenge_methods_supported":["S256"],"grant_types_supported":["authorization_code","refresh_token"],` +
		`"issuer":"https://satchel.example","protected_resources":["https://satchel.example/mcp"],"registration_endpoint":"https://satchel.example/oauth/register",` +
		`"response_modes_supported":["query"],"response_types_supported":["code"],"revocation_endpoint":"https://satchel.example/oauth/revoke",` +
		`"revocation_endpoint_auth_methods_supported":["none"],"scopes_supported":["read","write"],"token_endpoint":"https://satchel.example/oauth/token",` +
		`"token_endpoint_auth_methods_supported":["none"]}`
	for _, path := range []string{"/.well-known/oauth-authorization-server", "/.well-known/oauth-authorization-server/mcp"} {
		// Attack: headers of a request give the server another name. The server ignores them.
		a := ask(t, h, "GET", path, "", "", "Host", "evil.example", "X-Forwarded-Host", "evil.example", "X-Forwarded-Proto", "http", "Forwarded", "host=evil.example")
		if a.status != 200 || a.body != want || a.header.Get("Cache-Control") != "public, max-age=300" || a.header.Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("%s: %+v", path, a)
		}
	}
	if a := ask(t, h, "POST", oauth.PathMetadata, "", ""); a.status != 405 || a.header.Get("Allow") != "GET, HEAD, OPTIONS" {
		t.Errorf("%+v", a)
	}
	if a := ask(t, h, "HEAD", oauth.PathMetadata, "", ""); a.status != 200 {
		t.Errorf("%+v", a)
	}

	off := serve(t, newMemory(), func(o *oauth.Options) { o.Registration = false }).Handler()
	a := ask(t, off, "GET", oauth.PathMetadata, "", "")
	if _, has := a.json["registration_endpoint"]; has || a.json["client_id_metadata_document_supported"] != false {
		t.Errorf("offers what is off: %s", a.body)
	}
	if a := ask(t, off, "POST", oauth.PathRegister, "application/json", `{"redirect_uris":["https://a.example/"]}`); a.status != 403 || a.code() != "access_denied" {
		t.Errorf("registration that is off answers %+v", a)
	}
}

func TestResourceMetadata(t *testing.T) {
	a := ask(t, oauth.ResourceMetadata(resource, []string{issuer}, []string{"read", "write"}), "GET", "/.well-known/oauth-protected-resource/mcp", "", "", "X-Forwarded-Host", "evil.example")
	want := `{"authorization_servers":["https://satchel.example"],"bearer_methods_supported":["header"],"resource":"https://satchel.example/mcp",` +
		`"resource_name":"Satchel","scopes_supported":["read","write"]}`
	if a.status != 200 || a.body != want || a.header.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("%+v", a)
	}
}

func TestPagesOfOtherOriginsMayCall(t *testing.T) {
	h := serve(t, newMemory()).Handler()
	for path, method := range map[string]string{oauth.PathMetadata: "GET", oauth.PathToken: "POST", oauth.PathRegister: "POST", oauth.PathRevoke: "POST"} {
		a := ask(t, h, "OPTIONS", path, "", "", "Origin", "https://browser.example", "Access-Control-Request-Method", method, "Access-Control-Request-Headers", "content-type")
		if a.status != 204 || a.header.Get("Access-Control-Allow-Origin") != "*" || !strings.Contains(a.header.Get("Access-Control-Allow-Methods"), method) ||
			!strings.Contains(a.header.Get("Access-Control-Allow-Headers"), "Content-Type") || a.header.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s: %+v", path, a)
		}
	}
}

func TestWhoAsksTooOftenWaits(t *testing.T) {
	var asked []string
	h := serve(t, newMemory(), func(o *oauth.Options) {
		o.Limit = func(_ *http.Request, what string) (time.Duration, bool) {
			asked = append(asked, what)
			return 1500 * time.Millisecond, false
		}
	}).Handler()
	for _, r := range [][2]string{{"POST", oauth.PathRegister}, {"POST", oauth.PathToken}, {"POST", oauth.PathRevoke}, {"GET", oauth.PathMetadata}} {
		if a := ask(t, h, r[0], r[1], "", ""); a.status != 429 || a.header.Get("Retry-After") != "2" || a.code() != "temporarily_unavailable" || noStore(a) != "" {
			t.Errorf("%v: %+v", r, a)
		}
	}
	if strings.Join(asked, " ") != "register token token metadata" {
		t.Errorf("asked about %v", asked)
	}
}

func redirectError(t *testing.T, err error) (*url.URL, string) {
	t.Helper()
	var re *oauth.RedirectError
	if !errors.As(err, &re) {
		t.Fatalf("got %v", err)
	}
	u, err := url.Parse(re.URL)
	if err != nil {
		t.Fatal(err)
	}
	return u, re.Code
}
