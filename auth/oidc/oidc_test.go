package oidc_test

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"satchel/auth"
	"satchel/auth/oidc"
	"satchel/auth/oidc/oidctest"
	"satchel/internal/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const redirect = "https://satchel.example/signin/oidc/callback"

type clock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *clock) now() time.Time          { c.mu.Lock(); defer c.mu.Unlock(); return c.t }
func (c *clock) advance(d time.Duration) { c.mu.Lock(); c.t = c.t.Add(d); c.mu.Unlock() }

type world struct {
	issuer   *oidctest.Server
	provider *oidc.Provider
	clock    *clock
}

func setup(t *testing.T, server oidctest.Options, options oidc.Options) *world {
	t.Helper()
	w := &world{clock: &clock{t: time.Date(2030, 5, 1, 12, 0, 0, 0, time.UTC)}}
	server.Now, options.Now = w.clock.now, w.clock.now
	w.issuer = oidctest.New(server)
	t.Cleanup(w.issuer.Close)
	options.Issuer, options.ClientSecret = w.issuer.URL, server.ClientSecret
	if options.ClientID = server.ClientID; options.ClientID == "" {
		options.ClientID = "satchel"
	}
	var err error
	if w.provider, err = oidc.New(options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.provider.Close)
	return w
}

// browse begins a sign-in, and returns the query with which the issuer redirects the browser.
func (w *world) browse(t *testing.T) (flow []byte, q url.Values) {
	t.Helper()
	location, flow, err := w.provider.Begin(t.Context(), redirect, "the-state")
	if err != nil {
		t.Fatalf("begin: %v", err)
	}
	if q, err = w.issuer.Browse(location); err != nil {
		t.Fatalf("browse: %v", err)
	}
	return flow, q
}

// signIn does a whole sign-in. edit may change the query of the redirect.
func (w *world) signIn(t *testing.T, edit func(url.Values)) (auth.ExternalIdentity, error) {
	t.Helper()
	flow, q := w.browse(t)
	if edit != nil {
		edit(q)
	}
	return w.provider.Finish(t.Context(), redirect, flow, q)
}

func refused(t *testing.T, err error, code fault.Code) {
	t.Helper()
	if fault.CodeOf(err) != code {
		t.Fatalf("got %v (%s), want a fault of %s", err, fault.CodeOf(err), code)
	}
	if p := fault.PublicOf(err); strings.Contains(p, "SECRET-DETAIL") || !strings.HasSuffix(p, ".") {
		t.Errorf("the public message is %q", p)
	}
	if len(err.Error()) > 2000 {
		t.Errorf("the error has %d bytes", len(err.Error()))
	}
}

// unasked checks that the issuer received no code.
func unasked(t *testing.T, w *world) {
	t.Helper()
	if n := w.issuer.Requests("/token"); n != 0 {
		t.Errorf("the token endpoint was asked %d times", n)
	}
}

func TestSignsIn(t *testing.T) {
	ada := auth.ExternalIdentity{Subject: "248289761001", Email: "ada@example.com", Name: "Ada Lovelace", Login: "ada"}
	for _, c := range []struct {
		name      string
		server    oidctest.Options
		behaviour oidctest.Behaviour
	}{
		{name: "a public client"},
		{name: "a client with a secret", server: oidctest.Options{ClientSecret: "s+cret/&="}},
		{name: "a client whose secret goes into the form", server: oidctest.Options{ClientSecret: "s+cret"}, behaviour: oidctest.Behaviour{
			Metadata: func(m map[string]any) {
				m["token_endpoint_auth_methods_supported"] = []string{"client_secret_post"}
			},
		}},
		{name: "an issuer with a path", server: oidctest.Options{Path: "/realms/one"}},
		{name: "an exact redirect URI", server: oidctest.Options{Redirects: []string{redirect}}},
		{name: "EdDSA", behaviour: oidctest.Behaviour{Algorithm: "EdDSA"}},
		{name: "RS256", behaviour: oidctest.Behaviour{Algorithm: "RS256"}},
		{name: "PS256", behaviour: oidctest.Behaviour{Algorithm: "PS256"}},
		{name: "an issuer that does not say how it signs", behaviour: oidctest.Behaviour{
			Metadata: func(m map[string]any) { delete(m, "id_token_signing_alg_values_supported") },
		}},
		{name: "an issuer without RFC 9207", behaviour: oidctest.Behaviour{OmitIss: true, Metadata: func(m map[string]any) { delete(m, "authorization_response_iss_parameter_supported") }}},
		{name: "who says the rest at the userinfo endpoint", behaviour: oidctest.Behaviour{LeanIDToken: true}},
		{name: "several audiences and this server authorized", behaviour: oidctest.Behaviour{
			Claims: func(c map[string]any) { c["aud"], c["azp"] = []string{"other", "satchel"}, "satchel" },
		}},
		{name: "a clock that is a bit ahead", behaviour: oidctest.Behaviour{Claims: func(c map[string]any) { c["iat"] = c["iat"].(int64) + 50 }}},
		{name: "no at_hash", behaviour: oidctest.Behaviour{Claims: func(c map[string]any) { delete(c, "at_hash") }}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := setup(t, c.server, oidc.Options{})
			w.issuer.Behave(c.behaviour)
			who, err := w.signIn(t, nil)
			if err != nil {
				t.Fatal(err)
			}
			want := ada
			want.Issuer = w.issuer.URL
			if who.Issuer != want.Issuer || who.Subject != want.Subject || who.Email != want.Email || who.Name != want.Name || who.Login != want.Login || who.GitHubLogin != "" {
				t.Errorf("got %+v, want %+v", who, want)
			}
		})
	}
}

func TestBeginAsksForWhatItMust(t *testing.T) {
	w := setup(t, oidctest.Options{}, oidc.Options{Scopes: []string{"email"}})
	location, flow, err := w.provider.Begin(t.Context(), redirect, "st&te")
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(location)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	for name, want := range map[string]string{
		"response_type": "code", "client_id": "satchel", "redirect_uri": redirect, "state": "st&te", "scope": "openid email", "code_challenge_method": "S256",
	} {
		if q.Get(name) != want {
			t.Errorf("%s is %q, want %q", name, q.Get(name), want)
		}
	}
	if len(q.Get("code_challenge")) != 43 || len(q.Get("nonce")) < 22 {
		t.Errorf("the challenge is %q, the nonce %q", q.Get("code_challenge"), q.Get("nonce"))
	}
	if strings.Contains(location, "verifier") || len(flow) > 1<<10 {
		t.Errorf("the location tells the verifier, or the flow has %d bytes", len(flow))
	}
	again, _, err := w.provider.Begin(t.Context(), redirect, "st&te")
	if err != nil {
		t.Fatal(err)
	}
	if a, _ := url.Parse(again); a.Query().Get("nonce") == q.Get("nonce") || a.Query().Get("code_challenge") == q.Get("code_challenge") {
		t.Error("two sign-ins have the same nonce or verifier")
	}
	if n := w.issuer.Requests("/.well-known/openid-configuration"); n != 1 {
		t.Errorf("the configuration was fetched %d times", n)
	}
}

// If an attacker sends a request to the redirect URI, or a browser does so at the wrong
// time, the sign-in ends before the code is sent to the issuer.
func TestCallbackAttacks(t *testing.T) {
	long := strings.Repeat("a", 10_000)
	for _, c := range []struct {
		name string
		edit func(url.Values)
		code fault.Code
	}{
		{"login CSRF: another state", func(q url.Values) { q.Set("state", "another") }, fault.Invalid},
		{"no state", func(q url.Values) { q.Del("state") }, fault.Invalid},
		{"an error with another state", func(q url.Values) { q.Set("state", "x"); q.Set("error", "access_denied") }, fault.Invalid},
		{"mix-up: the response of another issuer (RFC 9207)", func(q url.Values) { q.Set("iss", "https://evil.example") }, fault.Invalid},
		{"mix-up: an issuer that names itself, left out", func(q url.Values) { q.Del("iss") }, fault.Invalid},
		{"mix-up: an error of another issuer", func(q url.Values) { q.Set("iss", "https://evil.example"); q.Set("error", "access_denied") }, fault.Invalid},
		{"two codes", func(q url.Values) { q.Add("code", "another") }, fault.Invalid},
		{"two states", func(q url.Values) { q.Add("state", "the-state") }, fault.Invalid},
		{"no code", func(q url.Values) { q.Del("code") }, fault.Invalid},
		{"mix-up: an issuer without end", func(q url.Values) { q.Set("iss", strings.Repeat("a", 4000)) }, fault.Invalid},
		{"a code without end", func(q url.Values) { q.Set("code", long) }, fault.Invalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := setup(t, oidctest.Options{}, oidc.Options{})
			_, err := w.signIn(t, c.edit)
			refused(t, err, c.code)
			unasked(t, w)
		})
	}
	t.Run("an iss where the issuer promised none", func(t *testing.T) {
		w := setup(t, oidctest.Options{}, oidc.Options{})
		w.issuer.Behave(oidctest.Behaviour{Iss: "https://evil.example", Metadata: func(m map[string]any) { delete(m, "authorization_response_iss_parameter_supported") }})
		_, err := w.signIn(t, nil)
		refused(t, err, fault.Invalid)
	})
}

func TestCodeAttacks(t *testing.T) {
	t.Run("another code: PKCE", func(t *testing.T) {
		w := setup(t, oidctest.Options{}, oidc.Options{})
		_, q := w.browse(t)
		_, mine, err := w.provider.Begin(t.Context(), redirect, "the-state")
		if err != nil {
			t.Fatal(err)
		}
		_, err = w.provider.Finish(t.Context(), redirect, mine, q)
		refused(t, err, fault.Invalid)
	})
	t.Run("a code twice", func(t *testing.T) {
		w := setup(t, oidctest.Options{}, oidc.Options{})
		flow, q := w.browse(t)
		if _, err := w.provider.Finish(t.Context(), redirect, flow, q); err != nil {
			t.Fatal(err)
		}
		_, err := w.provider.Finish(t.Context(), redirect, flow, q)
		refused(t, err, fault.Invalid)
	})
	t.Run("a made up code", func(t *testing.T) {
		w := setup(t, oidctest.Options{}, oidc.Options{})
		_, err := w.signIn(t, func(q url.Values) { q.Set("code", "made-up") })
		refused(t, err, fault.Invalid)
	})
	t.Run("another redirect URI", func(t *testing.T) {
		w := setup(t, oidctest.Options{}, oidc.Options{})
		flow, q := w.browse(t)
		_, err := w.provider.Finish(t.Context(), redirect+"/", flow, q)
		refused(t, err, fault.Invalid)
		unasked(t, w)
	})
	t.Run("a flow that is no flow", func(t *testing.T) {
		w := setup(t, oidctest.Options{}, oidc.Options{})
		for _, f := range []string{"", "{}", "null", "[]", `{"issuer":"https://evil.example","verifier":"v","nonce":"n"}`, strings.Repeat("{", 10_000)} {
			_, err := w.provider.Finish(t.Context(), redirect, []byte(f), url.Values{"state": {""}, "code": {"x"}})
			refused(t, err, fault.Invalid)
		}
		unasked(t, w)
	})
	t.Run("a flow of another issuer", func(t *testing.T) {
		w, other := setup(t, oidctest.Options{}, oidc.Options{}), setup(t, oidctest.Options{}, oidc.Options{})
		_, flow, err := other.provider.Begin(t.Context(), redirect, "the-state")
		if err != nil {
			t.Fatal(err)
		}
		_, err = w.provider.Finish(t.Context(), redirect, flow, url.Values{"state": {"the-state"}, "code": {"c"}, "iss": {w.issuer.URL}})
		refused(t, err, fault.Invalid)
		unasked(t, w)
	})
	t.Run("another client's secret", func(t *testing.T) {
		w := setup(t, oidctest.Options{ClientSecret: "right"}, oidc.Options{})
		p, err := oidc.New(oidc.Options{Issuer: w.issuer.URL, ClientID: "satchel", ClientSecret: "wrong", Now: w.clock.now})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		w.provider = p
		_, err = w.signIn(t, nil)
		refused(t, err, fault.Unavailable)
		if n := w.issuer.Requests("/token"); n != 1 {
			t.Errorf("the code was shown %d times", n)
		}
	})
}

func TestRefusalsOfTheIssuer(t *testing.T) {
	for _, c := range []struct {
		name, answer, token string
		code                fault.Code
	}{
		{name: "the person says no", answer: "access_denied", code: fault.Forbidden},
		{name: "not completed", answer: "login_required", code: fault.Invalid},
		{name: "busy", answer: "temporarily_unavailable", code: fault.Unavailable},
		{name: "broken", answer: "server_error", code: fault.Unavailable},
		{name: "a scope that it does not know", answer: "invalid_scope", code: fault.Unavailable},
		{name: "an error of its own", answer: "interstellar_trouble", code: fault.Unavailable},
		{name: "the code is over", token: "invalid_grant", code: fault.Invalid},
		{name: "the client is not known", token: "invalid_client", code: fault.Unavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := setup(t, oidctest.Options{}, oidc.Options{})
			w.issuer.Behave(oidctest.Behaviour{Refuse: c.answer, TokenError: c.token})
			_, err := w.signIn(t, nil)
			refused(t, err, c.code)
		})
	}
}

// retell changes the claims of a token and keeps its signature.
func retell(token string, edit func(map[string]any)) string {
	parts := strings.Split(token, ".")
	b, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		panic(err)
	}
	var claims map[string]any
	if err := json.Unmarshal(b, &claims); err != nil {
		panic(err)
	}
	edit(claims)
	if b, err = json.Marshal(claims); err != nil {
		panic(err)
	}
	parts[1] = base64.RawURLEncoding.EncodeToString(b)
	return strings.Join(parts, ".")
}

func TestIDTokenAttacks(t *testing.T) {
	set := func(name string, v any) func(map[string]any) {
		return func(c map[string]any) { c[name] = v }
	}
	shift := func(name string, seconds int64) func(map[string]any) {
		return func(c map[string]any) { c[name] = c[name].(int64) + seconds }
	}
	for _, c := range []struct {
		name      string
		behaviour oidctest.Behaviour
	}{
		{"unsigned", oidctest.Behaviour{Algorithm: "none"}},
		{"signed with the client's secret", oidctest.Behaviour{Algorithm: "HS256"}},
		{"alg swapped to none with the signature left", oidctest.Behaviour{Header: set("alg", "none")}},
		{"alg swapped to another family", oidctest.Behaviour{Header: set("alg", "RS256")}},
		{"an unknown key", oidctest.Behaviour{Header: set("kid", "unknown")}},
		{"another subject under the same signature", oidctest.Behaviour{Token: func(s string) string { return retell(s, set("sub", "admin")) }}},
		{"no signature", oidctest.Behaviour{Token: func(s string) string { return s[:strings.LastIndex(s, ".")+1] }}},
		{"no token at all", oidctest.Behaviour{Token: func(string) string { return "garbage" }}},
		{"another issuer", oidctest.Behaviour{Claims: set("iss", "https://evil.example")}},
		{"another issuer without end", oidctest.Behaviour{Claims: set("iss", "https://evil.example/"+strings.Repeat("a", 100_000))}},
		{"the issuer with a slash", oidctest.Behaviour{Claims: func(c map[string]any) { c["iss"] = c["iss"].(string) + "/" }}},
		{"another audience", oidctest.Behaviour{Claims: set("aud", "other")}},
		{"several audiences without azp", oidctest.Behaviour{Claims: set("aud", []string{"satchel", "other"})}},
		{"several audiences and another authorized", oidctest.Behaviour{Claims: func(c map[string]any) { c["aud"], c["azp"] = []string{"satchel", "other"}, "other" }}},
		{"another authorized party", oidctest.Behaviour{Claims: set("azp", "other")}},
		{"another sign-in's nonce", oidctest.Behaviour{Claims: set("nonce", "another")}},
		{"no nonce", oidctest.Behaviour{Claims: func(c map[string]any) { delete(c, "nonce") }}},
		{"expired", oidctest.Behaviour{Claims: shift("exp", -400)}},
		{"no exp", oidctest.Behaviour{Claims: func(c map[string]any) { delete(c, "exp") }}},
		{"not yet issued", oidctest.Behaviour{Claims: shift("iat", 120)}},
		{"issued long ago", oidctest.Behaviour{Claims: shift("iat", -3600)}},
		{"no iat", oidctest.Behaviour{Claims: func(c map[string]any) { delete(c, "iat") }}},
		{"not yet good", oidctest.Behaviour{Claims: func(c map[string]any) { c["nbf"] = c["iat"].(int64) + 3600 }}},
		{"no subject", oidctest.Behaviour{Claims: func(c map[string]any) { delete(c, "sub") }}},
		{"a subject without end", oidctest.Behaviour{Claims: set("sub", strings.Repeat("a", 256))}},
		{"a subject of two lines", oidctest.Behaviour{Claims: set("sub", "a\nb")}},
		{"a subject that is a number", oidctest.Behaviour{Claims: set("sub", 7)}},
		{"another access token", oidctest.Behaviour{Response: set("access_token", "swapped")}},
		{"somebody else at the userinfo endpoint", oidctest.Behaviour{LeanIDToken: true, Userinfo: set("sub", "somebody-else")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := setup(t, oidctest.Options{ClientSecret: "known to both"}, oidc.Options{})
			w.issuer.Behave(c.behaviour)
			who, err := w.signIn(t, nil)
			refused(t, err, fault.Unauthenticated)
			if who.Subject != "" || who.Email != "" {
				t.Errorf("an identity came with the error: %+v", who)
			}
		})
	}
	t.Run("no ID token", func(t *testing.T) {
		w := setup(t, oidctest.Options{}, oidc.Options{})
		w.issuer.Behave(oidctest.Behaviour{Response: func(r map[string]any) { delete(r, "id_token") }})
		_, err := w.signIn(t, nil)
		refused(t, err, fault.Unavailable)
	})
	t.Run("an issuer that offers only what can be forged", func(t *testing.T) {
		w := setup(t, oidctest.Options{}, oidc.Options{})
		w.issuer.Behave(oidctest.Behaviour{Metadata: set("id_token_signing_alg_values_supported", []string{"HS256", "none"})})
		_, _, err := w.provider.Begin(t.Context(), redirect, "s")
		refused(t, err, fault.Unavailable)
	})
}
