package oauth_test

import (
	"encoding/base64"
	"errors"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"satchel/auth"
	"satchel/auth/oauth"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// redeem returns a valid token request with a code, with changes as in request.
func redeem(pairs ...string) url.Values {
	return form(url.Values{
		"grant_type": {"authorization_code"}, "client_id": {"client_1"}, "code": {"satchel_ac_x"}, "redirect_uri": {callback}, "code_verifier": {verifier},
	}, pairs)
}

func refresh(pairs ...string) url.Values {
	return form(url.Values{"grant_type": {"refresh_token"}, "client_id": {"client_1"}, "refresh_token": {"satchel_rt_x"}}, pairs)
}

func form(q url.Values, pairs []string) url.Values {
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] == "-" {
			q.Del(pairs[i])
		} else {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	return q
}

func TestCodeIsRedeemed(t *testing.T) {
	m := newMemory()
	a := post(t, serve(t, m).Handler(), oauth.PathToken, redeem("resource", issuer+"/"))
	if a.status != 200 || noStore(a) != "" || a.header.Get("Content-Type") != "application/json" {
		t.Fatalf("%+v", a)
	}
	if want := (map[string]any{
		"access_token": m.tokens.Access.Reveal(), "refresh_token": m.tokens.Refresh.Reveal(), "token_type": "Bearer", "expires_in": 3600.0, "scope": "read",
	}); !reflect.DeepEqual(a.json, want) {
		t.Errorf("got %v, want %v", a.json, want)
	}
	want := auth.Redemption{Code: "satchel_ac_x", Client: "client_1", RedirectURI: callback, Verifier: verifier, Resource: resource}
	if len(m.redeemed) != 1 || m.redeemed[0] != want {
		t.Errorf("redeemed %+v, want %+v", m.redeemed, want)
	}
}

func TestTokenIsRefreshed(t *testing.T) {
	for _, tt := range []struct {
		name   string
		pairs  []string
		expect auth.RefreshRequest
	}{
		{"as before", nil, auth.RefreshRequest{}},
		{"with an empty scope", []string{"scope", "", "resource", ""}, auth.RefreshRequest{Resource: resource}},
		{"with less", []string{"scope", "read"}, auth.RefreshRequest{Scopes: []space.Scope{"read"}}},
		{"with scopes that are not known", []string{"scope", "offline_access openid"}, auth.RefreshRequest{}},
		{"for the resource under another name", []string{"resource", "http://127.0.0.1:8080/mcp/"}, auth.RefreshRequest{Resource: resource}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := newMemory()
			a := post(t, serve(t, m).Handler(), oauth.PathToken, refresh(tt.pairs...))
			tt.expect.Client, tt.expect.Refresh = "client_1", "satchel_rt_x"
			if a.status != 200 || len(m.refreshed) != 1 || !reflect.DeepEqual(m.refreshed[0], tt.expect) {
				t.Errorf("%d, %+v", a.status, m.refreshed)
			}
		})
	}
}

func TestTokenRequestsThatAreWrong(t *testing.T) {
	for _, tt := range []struct {
		name   string
		form   url.Values
		status int
		code   string
	}{
		{"nothing", url.Values{}, 400, "invalid_request"},
		{"no grant type", redeem("grant_type", "-"), 400, "invalid_request"},
		{"password", redeem("grant_type", "password"), 400, "unsupported_grant_type"},
		{"client_credentials", redeem("grant_type", "client_credentials"), 400, "unsupported_grant_type"},
		{"implicit", redeem("grant_type", "implicit"), 400, "unsupported_grant_type"},
		{"no client", redeem("client_id", "-"), 400, "invalid_request"},
		{"a client that was deleted", redeem("client_id", "client_9"), 401, "invalid_client"},
		{"a deleted client that refreshes", refresh("client_id", "client_9"), 401, "invalid_client"},
		{"Attack: a client that no database can look up", redeem("client_id", "a\x00"), 401, "invalid_client"},
		{"no code", redeem("code", "-"), 400, "invalid_request"},
		{"no verifier", redeem("code_verifier", "-"), 400, "invalid_request"},
		{"no redirect", redeem("redirect_uri", "-"), 400, "invalid_request"},
		{"no refresh token", refresh("refresh_token", "-"), 400, "invalid_request"},
		{"a short verifier", redeem("code_verifier", "short"), 400, "invalid_grant"},
		{"Attack: a code of any bytes", redeem("code", "a\xff\x00"), 400, "invalid_grant"},
		{"Attack: a code that is too long", redeem("code", strings.Repeat("a", 5000)), 400, "invalid_grant"},
		{"Attack: a refresh token of any bytes", refresh("refresh_token", "a\n"), 400, "invalid_grant"},
		{"another resource", redeem("resource", "https://other.example/mcp"), 400, "invalid_target"},
		{"another resource to refresh", refresh("resource", "https://other.example/mcp"), 400, "invalid_target"},
		{"two resources", add(redeem("resource", resource), "resource", "https://other.example/"), 400, "invalid_target"},
		{"many resources", func() url.Values { q := redeem(); q["resource"] = slices.Repeat([]string{resource}, 9); return q }(), 400, "invalid_target"},
		{"a scope that is none", refresh("scope", "\x01"), 400, "invalid_scope"},
		{"the code twice", add(redeem(), "code", "satchel_ac_y"), 400, "invalid_request"},
		{"the client twice", add(redeem(), "client_id", "client_2"), 400, "invalid_request"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := newMemory()
			a := post(t, serve(t, m).Handler(), oauth.PathToken, tt.form)
			if a.status != tt.status || a.code() != tt.code || noStore(a) != "" || len(m.redeemed)+len(m.refreshed) > 0 || a.header.Get("WWW-Authenticate") != "" {
				t.Errorf("%+v", a)
			}
			if d, _ := a.json["error_description"].(string); d == "" || strings.ContainsAny(d, "\"\\\n") {
				t.Errorf("the description is %q", d)
			}
		})
	}
}

func TestTokenRequestsThatCannotBeRead(t *testing.T) {
	h := serve(t, newMemory()).Handler()
	for _, tt := range []struct {
		name, method, target, contentType, body string
		status                                  int
	}{
		{"Attack: parameters in the URL, which ends in logs", "POST", "?" + redeem().Encode(), "application/x-www-form-urlencoded", "", 400},
		{"JSON", "POST", "", "application/json", `{"grant_type":"authorization_code"}`, 400},
		{"no type", "POST", "", "", redeem().Encode(), 400},
		{"multipart", "POST", "", "multipart/form-data; boundary=x", "--x--", 400},
		{"a form that is none", "POST", "", "application/x-www-form-urlencoded", "a=%zz", 400},
		{"GET", "GET", "?" + redeem().Encode(), "", "", 405},
		{"Attack: a huge body", "POST", "", "application/x-www-form-urlencoded", "a=" + strings.Repeat("a", 70<<10), 413},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if a := ask(t, h, tt.method, oauth.PathToken+tt.target, tt.contentType, tt.body); a.status != tt.status || a.code() != "invalid_request" || noStore(a) != "" {
				t.Errorf("%+v", a)
			}
		})
	}
	if a := ask(t, h, "POST", oauth.PathToken, "application/x-www-form-urlencoded; charset=UTF-8", redeem().Encode()); a.status != 200 {
		t.Errorf("a form with a charset: %+v", a)
	}
}

func TestWhatTheStoreRefuses(t *testing.T) {
	wrapped := func(err error) error { return fault.Wrap(err, fault.Invalid, "The thing is \"gone\".") }
	for _, tt := range []struct {
		name   string
		err    error
		status int
		code   string
	}{
		{"the grant", wrapped(auth.ErrInvalidGrant), 400, "invalid_grant"},
		{"the resource", wrapped(auth.ErrInvalidTarget), 400, "invalid_target"},
		{"the scope", wrapped(auth.ErrInvalidScope), 400, "invalid_scope"},
		{"something else", fault.New(fault.Invalid, "No."), 400, "invalid_request"},
		{"a person who was removed", fault.New(fault.Unauthenticated, "No."), 400, "invalid_grant"},
		{"a person who may not any more", fault.New(fault.Forbidden, "No."), 400, "invalid_grant"},
		{"too many", &fault.Error{Code: fault.Limited, Public: "Wait.", RetryAfter: time.Minute}, 429, "temporarily_unavailable"},
		{"a database that is away", fault.New(fault.Unavailable, "Wait."), 503, "temporarily_unavailable"},
		{"a fault of ours", errors.New("secret detail"), 500, "server_error"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := newMemory()
			m.err = tt.err
			h := serve(t, m).Handler()
			for _, f := range []url.Values{redeem(), refresh()} {
				a := post(t, h, oauth.PathToken, f)
				if a.status != tt.status || a.code() != tt.code || noStore(a) != "" || strings.Contains(a.body, "secret detail") {
					t.Errorf("%+v", a)
				}
			}
		})
	}
}

func TestClientsThatSendASecretNevertheless(t *testing.T) {
	basic := func(user, password string) string {
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(url.QueryEscape(user)+":"+password))
	}
	const document = "https://claude.ai/oauth/mcp-oauth-client-metadata"
	for _, tt := range []struct {
		name, authorization string
		form                url.Values
		status              int
		client              string
	}{
		{"Basic with the id alone", basic("client_1", ""), redeem("client_id", "-"), 200, "client_1"},
		{"Basic and the same id", basic("client_1", ""), redeem(), 200, "client_1"},
		{"Basic with a secret", basic("client_1", "none"), redeem("client_id", "-"), 200, "client_1"},
		{"Basic with the URL of a document", basic(document, ""), redeem("client_id", "-"), 200, document},
		{"a secret in the form", "", redeem("client_secret", ""), 200, "client_1"},
		{"a secret in the form that is not empty", "", redeem("client_secret", "x"), 200, "client_1"},
		{"an old token", "Bearer satchel_at_x", redeem(), 200, "client_1"},
		{"Attack: Basic with another id", basic("client_2", ""), redeem(), 401, ""},
		{"Basic with an unknown id", basic("client_9", ""), redeem("client_id", "-"), 401, ""},
		{"Basic with a broken escape", "Basic " + base64.StdEncoding.EncodeToString([]byte("%zz:")), redeem("client_id", "-"), 401, ""},
		{"Basic that is none", "Basic ?", redeem("client_id", "-"), 400, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := newMemory()
			a := post(t, serve(t, m).Handler(), oauth.PathToken, tt.form, "Authorization", tt.authorization)
			if a.status != tt.status || a.status == 200 && m.redeemed[0].Client != tt.client {
				t.Errorf("%+v, %+v", a, m.redeemed)
			}
			// Only a client that used the header gets a challenge (RFC 6749 section 5.2).
			if (a.header.Get("WWW-Authenticate") != "") != (a.status == 401) {
				t.Errorf("challenge: %v", a.header)
			}
		})
	}
}

func TestRevocation(t *testing.T) {
	m := newMemory()
	h := serve(t, m).Handler()
	for _, tt := range []struct {
		name   string
		form   url.Values
		status int
		code   string
		client string
	}{
		{"a token", url.Values{"client_id": {"client_1"}, "token": {"satchel_rt_x"}, "token_type_hint": {"access_token"}}, 200, "", "client_1"},
		{"a document's", url.Values{"client_id": {"https://claude.ai/oauth/mcp-oauth-client-metadata"}, "token": {"x"}}, 200, "", "https://claude.ai/oauth/mcp-oauth-client-metadata"},
		{"what is none", url.Values{"client_id": {"client_1"}, "token": {"\x00"}}, 200, "", ""},
		{"nothing", url.Values{"client_id": {"client_1"}}, 400, "invalid_request", ""},
		{"no client", url.Values{"token": {"x"}}, 400, "invalid_request", ""},
		{"an unknown client", url.Values{"client_id": {"client_9"}, "token": {"x"}}, 401, "invalid_client", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m.revoked = nil
			a := post(t, h, oauth.PathRevoke, tt.form)
			if a.status != tt.status || a.code() != tt.code || (len(m.revoked) == 1) != (tt.client != "") || tt.client != "" && m.revoked[0][0] != tt.client {
				t.Errorf("%+v, %v", a, m.revoked)
			}
		})
	}
	m.err = errors.New("secret detail")
	if a := post(t, h, oauth.PathRevoke, url.Values{"client_id": {"client_1"}, "token": {"x"}}); a.status != 500 || strings.Contains(a.body, "secret") {
		t.Errorf("%+v", a)
	}
}

// FuzzToken checks that every request gets an answer in JSON that nobody may cache, and
// that only well-formed requests reach the store.
func FuzzToken(f *testing.F) {
	f.Add(redeem().Encode(), "", "application/x-www-form-urlencoded")
	f.Add(refresh("scope", "read").Encode(), "Basic Og==", "application/x-www-form-urlencoded; charset=utf-8")
	f.Add(redeem("client_id", "\x00", "resource", "%").Encode(), "Bearer x", "application/x-www-form-urlencoded")
	f.Add("grant_type=refresh_token&client_id=client_1&refresh_token=\xff", "", "text/plain")
	f.Fuzz(func(t *testing.T, body, authorization, contentType string) {
		m := newMemory()
		h := serve(t, m).Handler()
		for _, path := range []string{oauth.PathToken, oauth.PathRevoke} {
			a := ask(t, h, "POST", path, contentType, body, "Authorization", authorization)
			if a.status != 200 && (a.code() == "" || a.status < 400) || a.status == 500 || a.header.Get("Cache-Control") != "no-store" {
				t.Fatalf("%s: %+v", path, a)
			}
		}
		for _, r := range m.redeemed {
			if r.Client == "" || r.Code == "" || r.RedirectURI == "" || len(r.Verifier) < 43 || r.Resource != "" && r.Resource != resource {
				t.Fatalf("redeemed %+v", r)
			}
		}
		for _, r := range m.refreshed {
			if r.Client == "" || r.Refresh == "" || r.Resource != "" && r.Resource != resource {
				t.Fatalf("refreshed %+v", r)
			}
		}
	})
}
