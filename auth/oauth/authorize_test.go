package oauth_test

import (
	"errors"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	"satchel/auth"
	"satchel/auth/oauth"
	"satchel/internal/fault"
	"satchel/internal/space"
)

func TestAuthorizationRequest(t *testing.T) {
	s := serve(t, newMemory())
	r, err := s.Authorize(t.Context(), request())
	if err != nil {
		t.Fatal(err)
	}
	client, _ := newMemory().Client(t.Context(), "client_1")
	want := &oauth.Request{
		Client: client, RedirectURI: callback, RedirectHost: "app.example", RedirectOrigin: "https://app.example",
		Scopes: []space.Scope{"read", "write"}, State: "s+ &=", Resource: resource, Challenge: challenge(), Issuer: issuer,
	}
	if !reflect.DeepEqual(r, want) {
		t.Errorf("got %+v, want %+v", r, want)
	}
}

// A client that asks at another name of the server gets an answer with that name. The
// server never sends the name of another server.
func TestAnswersComeFromTheNameThatWasAsked(t *testing.T) {
	s := serve(t, newMemory())
	for asked, want := range map[string]string{
		"http://127.0.0.1:8080": "http://127.0.0.1:8080", "http://[::1]:8080": "http://[::1]:8080", issuer: issuer,
		"https://evil.example": issuer, "http://127.0.0.1:8081": issuer, "": issuer,
	} {
		r, err := s.Authorize(t.Context(), request("issuer", asked))
		if err != nil {
			t.Fatal(err)
		}
		approved, err := s.Approve(t.Context(), "u_1", r, "s_1", r.Scopes)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Authorize(t.Context(), request("issuer", asked, "response_type", "token"))
		var refused *oauth.RedirectError
		if !errors.As(err, &refused) {
			t.Fatalf("a wrong request: %v", err)
		}
		for what, to := range map[string]string{"approved": approved, "denied": s.Deny(r), "refused": refused.URL} {
			if u, err := url.Parse(to); err != nil || !slices.Equal(u.Query()["iss"], []string{want}) {
				t.Errorf("asked at %q and %s, the browser is sent to %s", asked, what, to)
			}
		}
	}
}

func TestWhereTheBrowserGoesIsShown(t *testing.T) {
	s := serve(t, newMemory())
	for _, tt := range []struct {
		redirect, host, origin string
		loopback, app          bool
	}{
		{callback, "app.example", "https://app.example", false, false},
		{"http://localhost:54321/cb", "localhost:54321", "http://localhost:54321", true, false},
		{"cursor://x/cb", "cursor:", "", false, true},
	} {
		r, err := s.Authorize(t.Context(), request("redirect_uri", tt.redirect))
		if err != nil || r.RedirectHost != tt.host || r.RedirectOrigin != tt.origin || r.Loopback != tt.loopback || r.App != tt.app {
			t.Errorf("%s: %+v, %v", tt.redirect, r, err)
		}
	}
}

func TestAttackUnknownClientOrRedirectIsNeverRedirected(t *testing.T) {
	for _, tt := range []struct {
		name string
		q    url.Values
	}{
		{"no client", request("client_id", "-")},
		{"empty client", request("client_id", "")},
		{"unknown client", request("client_id", "client_9")},
		{"a client that no database can look up", request("client_id", "a\x00b")},
		{"a client of bytes that are no text", request("client_id", "a\xff")},
		{"a client that is too long", request("client_id", strings.Repeat("a", 3000))},
		{"two clients", add(request(), "client_id", "client_1")},
		{"no redirect", request("redirect_uri", "-")},
		{"two redirects", add(request(), "redirect_uri", callback)},
		{"another redirect", request("redirect_uri", "https://evil.example/cb")},
		{"another client's redirect", request("redirect_uri", "https://b.example/cb")},
		{"a prefix of the redirect", request("redirect_uri", "https://app.example/cb")},
		{"a suffix of the redirect", request("redirect_uri", callback+"&x=1")},
		{"javascript that got registered", request("client_id", "client_2", "redirect_uri", "javascript:alert(1)")},
		{"localhost's name in another host", request("redirect_uri", "http://localhost.evil.example:1/cb")},
		{"127.0.0.1 for localhost", request("redirect_uri", "http://127.0.0.1:1/cb")},
		{"a document that is off", request("client_id", "https://app.example/client.json")},
		{"everything else is wrong, too", request("redirect_uri", "https://evil.example/cb", "response_type", "token", "code_challenge", "-")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := serve(t, newMemory()).Authorize(t.Context(), tt.q)
			var p *oauth.PageError
			if !errors.As(err, &p) || p.Status != 400 || p.Title == "" || p.Text == "" {
				t.Errorf("got %v", err)
			}
			if p != nil && strings.Contains(p.Text, "evil") {
				t.Errorf("the page repeats what was sent: %s", p.Text)
			}
		})
	}
}

func add(q url.Values, name, value string) url.Values { q.Add(name, value); return q }

func TestWrongRequestsTellTheClient(t *testing.T) {
	long := strings.Repeat("s", 4097)
	for _, tt := range []struct {
		name, code string
		q          url.Values
		state      string
	}{
		{"no response_type", "invalid_request", request("response_type", "-"), "s+ &="},
		{"implicit", "unsupported_response_type", request("response_type", "token"), "s+ &="},
		{"hybrid", "unsupported_response_type", request("response_type", "code id_token"), "s+ &="},
		{"fragment", "invalid_request", request("response_mode", "fragment"), "s+ &="},
		{"form_post", "invalid_request", request("response_mode", "form_post"), "s+ &="},
		{"request object", "request_not_supported", request("request", "e30.e30."), "s+ &="},
		{"request_uri", "request_uri_not_supported", request("request_uri", "https://a.example/"), "s+ &="},
		{"Attack: no PKCE", "invalid_request", request("code_challenge", "-"), "s+ &="},
		{"Attack: plain PKCE", "invalid_request", request("code_challenge_method", "plain"), "s+ &="},
		{"Attack: PKCE without a method, which means plain", "invalid_request", request("code_challenge_method", "-"), "s+ &="},
		{"a short challenge", "invalid_request", request("code_challenge", strings.Repeat("a", 42)), "s+ &="},
		{"a long challenge", "invalid_request", request("code_challenge", strings.Repeat("a", 44)), "s+ &="},
		{"a challenge of a verifier's characters", "invalid_request", request("code_challenge", strings.Repeat("~", 43)), "s+ &="},
		{"a challenge that is none", "invalid_request", request("code_challenge", strings.Repeat("=", 43)), "s+ &="},
		{"another resource", "invalid_target", request("resource", "https://other.example/mcp"), "s+ &="},
		{"a resource below", "invalid_target", request("resource", resource+"/x"), "s+ &="},
		{"a resource with a fragment", "invalid_target", request("resource", resource+"#x"), "s+ &="},
		{"a resource with a query", "invalid_target", request("resource", resource+"?x"), "s+ &="},
		{"Attack: a resource with a user", "invalid_target", request("resource", "https://satchel.example@evil.example/mcp"), "s+ &="},
		{"Attack: a resource of http", "invalid_target", request("resource", "http://satchel.example/mcp"), "s+ &="},
		{"two resources", "invalid_target", add(request(), "resource", "https://other.example/mcp"), "s+ &="},
		{"nine resources", "invalid_target", func() url.Values { q := request(); q["resource"] = slices.Repeat([]string{resource}, 9); return q }(), "s+ &="},
		{"a scope that is none", "invalid_scope", request("scope", "read \"write\""), "s+ &="},
		{"a scope that is too long", "invalid_scope", request("scope", strings.Repeat("a ", 600)), "s+ &="},
		{"a parameter twice", "invalid_request", add(request(), "scope", "read"), "s+ &="},
		{"an unknown parameter twice", "invalid_request", add(add(request(), "x", "1"), "x", "2"), "s+ &="},
		{"the challenge twice", "invalid_request", add(request(), "code_challenge", challenge()), "s+ &="},
		{"the state twice", "invalid_request", add(request(), "state", "t"), ""},
		{"a state that is too long", "invalid_request", request("state", long), ""},
		{"no state", "invalid_request", request("state", "-", "response_type", "-"), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := serve(t, newMemory()).Authorize(t.Context(), tt.q)
			u, code := redirectError(t, err)
			got := u.Query()
			if code != tt.code || got.Get("error") != tt.code || got.Get("error_description") == "" || got.Get("iss") != issuer || got.Get("state") != tt.state ||
				got.Get("tenant") != "1" || !strings.HasPrefix(u.String(), callback+"&") || got.Has("code") || got.Has("state") != (tt.state != "") {
				t.Errorf("sent to %s", u)
			}
		})
	}
}

func TestResourceMayBeNamedAsClientsKnowIt(t *testing.T) {
	s := serve(t, newMemory())
	for _, r := range []string{
		"-", "", resource, resource + "/", issuer, issuer + "/", "HTTPS://Satchel.Example/mcp", "https://satchel.example:443/mcp",
		"http://127.0.0.1:8080/mcp", "http://127.0.0.1:8080/mcp/", "http://127.0.0.1:8080", "http://127.0.0.1:8080/", "http://[::1]:8080/mcp", "http://[::1]:8080",
	} {
		got, err := s.Authorize(t.Context(), request("resource", r))
		if err != nil || got.Resource != resource {
			t.Errorf("%q: %v", r, err)
		}
	}
	if _, err := s.Authorize(t.Context(), add(request(), "resource", issuer)); err != nil {
		t.Errorf("the same in two forms: %v", err)
	}
}

func TestScopes(t *testing.T) {
	s := serve(t, newMemory())
	for _, tt := range []struct{ asked, want string }{
		{"-", "read write"}, {"", "read write"}, {" ", "read write"}, {"read", "read"}, {"write", "write"}, {"write read read", "read write"},
		{"read offline_access openid", "read"}, {"openid profile", "read write"}, {"READ", "read write"}, {"mcp:tools", "read write"},
	} {
		r, err := s.Authorize(t.Context(), request("scope", tt.asked))
		if err != nil || auth.ScopeList(r.Scopes) != tt.want {
			t.Errorf("%q: %v, %v", tt.asked, r, err)
		}
	}
}

func TestWhatIsNotKnownIsIgnored(t *testing.T) {
	r, err := serve(t, newMemory()).Authorize(t.Context(), request("prompt", "none", "nonce", "n", "access_type", "offline", "id_token_hint", "x", "request", "", "response_mode", "query"))
	if err != nil || r.Client.ID != "client_1" {
		t.Errorf("%v, %v", r, err)
	}
}

func TestApproveAndDeny(t *testing.T) {
	m := newMemory()
	s := serve(t, m)
	r, err := s.Authorize(t.Context(), request())
	if err != nil {
		t.Fatal(err)
	}
	to, err := s.Approve(t.Context(), "u_1", r, "s_1", []space.Scope{space.ScopeRead})
	if err != nil {
		t.Fatal(err)
	}
	u, _ := url.Parse(to)
	q := u.Query()
	if !strings.HasPrefix(to, callback+"&code=satchel_ac_") || q.Get("state") != "s+ &=" || q.Get("iss") != issuer || q.Get("tenant") != "1" || q.Has("error") {
		t.Errorf("approved: sent to %s", to)
	}
	if strings.Contains(to, "+") {
		t.Errorf("a plus is a space to some and a plus to others: %s", to)
	}
	want := auth.Consent{
		Client: "client_1", Name: "App", User: "u_1", Space: "s_1", Scopes: []space.Scope{space.ScopeRead}, Resource: resource,
		RedirectURI: callback, Challenge: challenge(),
	}
	if len(m.consents) != 1 || !reflect.DeepEqual(m.consents[0], want) {
		t.Errorf("stored %+v, want %+v", m.consents, want)
	}
	u, _ = url.Parse(s.Deny(r))
	if q := u.Query(); q.Get("error") != "access_denied" || q.Get("state") != "s+ &=" || q.Get("iss") != issuer || q.Get("tenant") != "1" || q.Has("code") {
		t.Errorf("denied: sent to %s", u)
	}
}

func TestApproveRefuses(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*oauth.Request, *memory)
		scopes []space.Scope
		code   fault.Code
	}{
		{"no scope", nil, nil, fault.Invalid},
		{"Attack: a scope that was not asked for", nil, []space.Scope{"read", "write"}, fault.Invalid},
		{"Attack: a scope that is none", nil, []space.Scope{"read write"}, fault.Invalid},
		{"Attack: another redirect", func(r *oauth.Request, _ *memory) { r.RedirectURI = "https://evil.example/" }, []space.Scope{"read"}, fault.Invalid},
		{"a space of others", func(_ *oauth.Request, m *memory) { m.err = fault.New(fault.Forbidden, "No.") }, []space.Scope{"read"}, fault.Forbidden},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := newMemory()
			s := serve(t, m)
			r, err := s.Authorize(t.Context(), request("scope", "read"))
			if err != nil {
				t.Fatal(err)
			}
			if tt.change != nil {
				tt.change(r, m)
			}
			if to, err := s.Approve(t.Context(), "u_1", r, "s_1", tt.scopes); fault.CodeOf(err) != tt.code || to != "" {
				t.Errorf("%q, %v", to, err)
			}
		})
	}
}

func TestGrantWithoutANameIsCalledAsItsHost(t *testing.T) {
	m := newMemory()
	s := serve(t, m)
	r, err := s.Authorize(t.Context(), request("client_id", "client_2", "redirect_uri", "https://b.example/cb"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Approve(t.Context(), "u_1", r, "s_1", r.Scopes); err != nil || m.consents[0].Name != "b.example" {
		t.Errorf("%+v, %v", m.consents, err)
	}
}

// FuzzAuthorize checks that no request sends anybody to an address that the client did not
// register.
func FuzzAuthorize(f *testing.F) {
	f.Add(request().Encode(), "https://app.example/cb?tenant=1", "read")
	f.Add(request("redirect_uri", "http://localhost:99/cb").Encode(), "http://localhost/cb", "")
	f.Add(request("response_type", "token", "state", "\x00\xff").Encode(), "cursor://x/cb", "")
	f.Add("client_id=fuzz&redirect_uri=javascript:alert(1)", "javascript:alert(1)", "x")
	f.Add("client_id=fuzz&redirect_uri=https%3A%2F%2Fa%5C%40b%2F&resource=%00", `https://a\@b/`, "x")
	f.Fuzz(func(t *testing.T, query, registered, scope string) {
		q, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		m := newMemory()
		m.clients["fuzz"] = auth.Client{ID: "fuzz", RedirectURIs: []string{registered}}
		if scope != "" {
			q.Set("scope", scope)
		}
		s := serve(t, m)
		r, err := s.Authorize(t.Context(), q)
		var to string
		var re *oauth.RedirectError
		var pe *oauth.PageError
		switch {
		case err == nil:
			if len(r.Scopes) == 0 || r.Resource != resource || r.State != q.Get("state") || len(r.Challenge) < 43 {
				t.Fatalf("took %+v", r)
			}
			to = s.Deny(r)
			if there, err := s.Approve(t.Context(), "u_1", r, "s_1", r.Scopes); err != nil || !strings.HasPrefix(there, r.RedirectURI) {
				t.Fatalf("sent to %q, %v", there, err)
			}
		case errors.As(err, &re):
			to = re.URL
		case errors.As(err, &pe):
			if pe.Status < 400 || pe.Text == "" {
				t.Fatalf("the page %+v", pe)
			}
			return
		default:
			t.Fatalf("the error %v", err)
		}
		u, err := url.Parse(to)
		if err != nil || u.Fragment != "" || u.User != nil {
			t.Fatalf("sent to %q, %v", to, err)
		}
		client, _ := m.Client(t.Context(), q.Get("client_id"))
		if !slices.ContainsFunc(client.RedirectURIs, func(s string) bool {
			v, err := url.Parse(s)
			return err == nil && v.Scheme == u.Scheme && v.Hostname() == u.Hostname() && v.EscapedPath() == u.EscapedPath() && strings.HasPrefix(u.RawQuery, v.RawQuery) &&
				(v.Scheme == "http" || strings.HasPrefix(to, s))
		}) {
			t.Fatalf("sent to %q, which is none of %q", to, client.RedirectURIs)
		}
		if u.Scheme != "https" && u.Scheme != "http" && u.Scheme != "cursor" && !strings.HasPrefix(registered, u.Scheme) {
			t.Fatalf("sent to %q", to)
		}
	})
}
