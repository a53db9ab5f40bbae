package oauth_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"satchel/auth"
	"satchel/auth/oauth"
	"satchel/internal/fault"
)

func TestRegistration(t *testing.T) {
	m := newMemory()
	h := serve(t, m).Handler()
	a := ask(t, h, "POST", oauth.PathRegister, "application/json; charset=utf-8", `{
		"client_name": "Cursor \u202e", "client_uri": "https://cursor.com", "logo_uri": "https://127.0.0.1/logo", "jwks_uri": "http://169.254.169.254/",
		"redirect_uris": ["http://localhost:8787/callback", "https://www.cursor.com/agents/mcp/oauth/callback", "cursor://anysphere.cursor-mcp/oauth/callback", "http://localhost:8787/callback"],
		"token_endpoint_auth_method": "client_secret_basic", "grant_types": ["authorization_code", "refresh_token", "implicit"], "response_types": ["code", "token"],
		"scope": "read offline_access", "client_id": "mine", "client_secret": "mine", "x": {"y": [1]}
	}`)
	if a.status != 201 || noStore(a) != "" {
		t.Fatalf("%+v", a)
	}
	id, _ := a.json["client_id"].(string)
	redirects := []string{"http://localhost:8787/callback", "https://www.cursor.com/agents/mcp/oauth/callback", "cursor://anysphere.cursor-mcp/oauth/callback"}
	want := map[string]any{
		"client_id": id, "client_id_issued_at": float64(now().Unix()), "client_name": "Cursor", "client_uri": "https://cursor.com",
		"redirect_uris": []any{redirects[0], redirects[1], redirects[2]}, "grant_types": []any{"authorization_code", "refresh_token"},
		"response_types": []any{"code"}, "token_endpoint_auth_method": "none", "scope": "read write",
	}
	if !strings.HasPrefix(id, "client_") || len(id) < 30 || !reflect.DeepEqual(a.json, want) {
		t.Errorf("got %v, want %v", a.json, want)
	}
	c := auth.Client{ID: id, Kind: auth.ClientRegistered, Name: "Cursor", URI: "https://cursor.com", RedirectURIs: redirects, Created: now()}
	if !reflect.DeepEqual(m.clients[id], c) {
		t.Errorf("stored %+v", m.clients[id])
	}
	if b := ask(t, h, "POST", oauth.PathRegister, "application/json", `{"redirect_uris":["https://a.example/"]}`); b.status != 201 || b.json["client_id"] == id || b.json["client_name"] != nil {
		t.Errorf("the least that is needed: %+v", b)
	}
}

func TestRegistrationsThatAreRefused(t *testing.T) {
	redirect := func(s string) string { b, _ := json.Marshal([]string{s}); return `{"redirect_uris":` + string(b) + `}` }
	var many []string
	for i := range 11 {
		many = append(many, fmt.Sprintf("https://a.example/%d", i))
	}
	eleven, _ := json.Marshal(many)
	for _, tt := range []struct {
		name, contentType, body string
		status                  int
		code                    string
	}{
		{"a form", "application/x-www-form-urlencoded", "redirect_uris=https://a.example/", 400, "invalid_client_metadata"},
		{"no type", "", redirect("https://a.example/"), 400, "invalid_client_metadata"},
		{"no JSON", "application/json", "{", 400, "invalid_client_metadata"},
		{"more than one value", "application/json", redirect("https://a.example/") + "{}", 400, "invalid_client_metadata"},
		{"a list", "application/json", "[]", 400, "invalid_client_metadata"},
		{"null", "application/json", "null", 400, "invalid_client_metadata"},
		{"bytes that are no text", "application/json", "{\"client_name\":\"\xff\"}", 400, "invalid_client_metadata"},
		{"a name that is a number", "application/json", `{"client_name":1,"redirect_uris":["https://a.example/"]}`, 400, "invalid_client_metadata"},
		{"no redirects", "application/json", `{}`, 400, "invalid_redirect_uri"},
		{"an empty list of redirects", "application/json", `{"redirect_uris":[]}`, 400, "invalid_redirect_uri"},
		{"redirects under another name", "application/json", `{"Redirect_URIs":["https://a.example/"]}`, 400, "invalid_redirect_uri"},
		{"a text for redirects", "application/json", `{"redirect_uris":"https://a.example/"}`, 400, "invalid_client_metadata"},
		{"Attack: many redirects", "application/json", `{"redirect_uris":` + string(eleven) + `}`, 400, "invalid_redirect_uri"},
		{"Attack: javascript", "application/json", redirect("javascript:alert(1)"), 400, "invalid_redirect_uri"},
		{"Attack: http", "application/json", redirect("http://evil.example/cb"), 400, "invalid_redirect_uri"},
		{"Attack: one bad among good ones", "application/json", `{"redirect_uris":["https://a.example/","data:text/html,x"]}`, 400, "invalid_redirect_uri"},
		{"two in one, as some servers split them", "application/json", redirect("https://a.example/ https://b.example/"), 400, "invalid_redirect_uri"},
		{"client_credentials alone", "application/json", `{"redirect_uris":["https://a.example/"],"grant_types":["client_credentials"]}`, 400, "invalid_client_metadata"},
		{"implicit alone", "application/json", `{"redirect_uris":["https://a.example/"],"response_types":["token"]}`, 400, "invalid_client_metadata"},
		{"Attack: a huge body", "application/json", `{"client_name":"` + strings.Repeat("a", 70<<10) + `"}`, 413, "invalid_client_metadata"},
		{"Attack: deep nesting", "application/json", strings.Repeat("[", 60000), 400, "invalid_client_metadata"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := newMemory()
			a := ask(t, serve(t, m).Handler(), "POST", oauth.PathRegister, tt.contentType, tt.body)
			if a.status != tt.status || a.code() != tt.code || noStore(a) != "" || len(m.clients) != 2 {
				t.Errorf("%+v", a)
			}
		})
	}
}

func TestRegistrationsAreBounded(t *testing.T) {
	m := newMemory()
	h := serve(t, m).Handler()
	m.err = &fault.Error{Code: fault.Limited, Public: "Too many clients are registered.", RetryAfter: time.Hour}
	if a := ask(t, h, "POST", oauth.PathRegister, "application/json", `{"redirect_uris":["https://a.example/"]}`); a.status != 429 || a.header.Get("Retry-After") != "3600" {
		t.Errorf("%+v", a)
	}
	m.err = errors.New("secret detail")
	if a := ask(t, h, "POST", oauth.PathRegister, "application/json", `{"redirect_uris":["https://a.example/"]}`); a.status != 500 || a.code() != "server_error" || strings.Contains(a.body, "secret") {
		t.Errorf("%+v", a)
	}
}

// FuzzRegister checks that every client that registers can use its redirects, and that the
// answer describes the stored client.
func FuzzRegister(f *testing.F) {
	for _, s := range []string{
		`{"redirect_uris":["https://a.example/cb"],"client_name":"A\u202e"}`, `{"redirect_uris":["http://localhost:1/"],"grant_types":["authorization_code"]}`,
		`{"redirect_uris":["javascript:1"]}`, `{"redirect_uris":[""],"response_types":null}`, `[`, `{"client_uri":"https://a@b/"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		m := newMemory()
		s := serve(t, m)
		a := ask(t, s.Handler(), "POST", oauth.PathRegister, "application/json", string(body))
		if a.status == 500 || a.status < 400 && a.status != 201 || a.status != 201 && (a.code() == "" || len(m.clients) != 2) {
			t.Fatalf("%+v", a)
		}
		if a.status != 201 {
			return
		}
		id := a.json["client_id"].(string)
		c := m.clients[id]
		for _, u := range c.RedirectURIs {
			if r, err := s.Authorize(t.Context(), request("client_id", id, "redirect_uri", u)); err != nil || r.RedirectURI != u {
				t.Fatalf("registered %q, with which it cannot ask: %v", u, err)
			}
		}
		said := a.json["redirect_uris"].([]any)
		if len(said) != len(c.RedirectURIs) || !slices.ContainsFunc(said, func(v any) bool { return v == c.RedirectURIs[0] }) || a.json["client_secret"] != nil {
			t.Fatalf("answered %s for %+v", a.body, c)
		}
	})
}
