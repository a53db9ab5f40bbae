package access_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"satchel/auth"
	"satchel/auth/oidc/access"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// The tokens have the form of well-known issuers. The settings are those of docs/issuers.md.
func TestShapesOfIssuers(t *testing.T) {
	const (
		auth0    = "https://acme.eu.auth0.com/"
		keycloak = "https://login.example.com/realms/acme"
		entra    = "https://login.microsoftonline.com/0f0e0d0c-0000-4000-8000-000000000001/v2.0"
		supabase = "https://abcdefghijklmnop.supabase.co/auth/v1"
		api      = "6e74172b-be56-4843-9ff4-e66a39bb12e3"
	)
	both := []space.Scope{space.ScopeRead, space.ScopeWrite}
	now := time.Now()
	times := func(c obj) obj {
		c["iat"], c["exp"] = now.Unix(), now.Add(time.Hour).Unix()
		return c
	}
	with := func(c obj, change obj) obj {
		out := obj{}
		for k, v := range c {
			out[k] = v
		}
		for k, v := range change {
			if out[k] = v; v == nil {
				delete(out, k)
			}
		}
		return out
	}

	supabaseOptions := func(o *access.Options) {
		o.Issuer = supabase
		o.Algorithms = []string{"ES256"}
		o.ClientClaims = []string{"client_id"}
		o.RequireClaims = []string{"role=authenticated", "is_anonymous=false"}
		o.ReadScopes, o.WriteScopes = []string{"email"}, []string{"email"}
		o.NameClaim = "user_metadata.full_name"
	}
	supabaseToken := times(obj{
		"iss": supabase, "sub": "5f0c", "aud": resource, "role": "authenticated", "aal": "aal1", "session_id": "s",
		"email": "ada@example.com", "email_verified": true, "phone": "", "is_anonymous": false,
		"app_metadata":  obj{"provider": "email", "providers": []string{"email"}},
		"user_metadata": obj{"email_verified": true, "full_name": "Ada Lovelace"},
		"amr":           []obj{{"method": "password", "timestamp": now.Unix()}},
		"client_id":     "9a8b7c6d", "user_id": "5f0c", "scope": "openid email",
	})
	auth0Options := func(o *access.Options) {
		o.Issuer = auth0
		o.Algorithms = []string{"RS256"}
		o.EmailClaim, o.VerifiedClaim = "https://satchel.example.com/email", "https://satchel.example.com/email_verified"
		o.NameClaim = "https://satchel.example.com/name"
	}
	auth0Token := times(obj{
		"iss": auth0, "sub": "auth0|123456", "aud": []string{resource, "https://acme.eu.auth0.com/userinfo"},
		"azp": "my_client", "scope": "openid profile read write offline_access", "permissions": []string{"read", "write"},
		"https://satchel.example.com/email": "ada@example.com", "https://satchel.example.com/email_verified": true,
		"https://satchel.example.com/name": "Ada Lovelace",
	})
	keycloakOptions := func(o *access.Options) {
		o.Issuer = keycloak
		o.RequireClaims = []string{"realm_access.roles=satchel-user"}
	}
	keycloakToken := times(obj{
		"iss": keycloak, "sub": "f1e2", "aud": []string{resource, "account"}, "typ": "Bearer", "azp": "mcp-client",
		"sid": "x", "acr": "1", "allowed-origins": []string{"*"}, "jti": "onrtac:1",
		"realm_access":    obj{"roles": []string{"offline_access", "satchel-user"}},
		"resource_access": obj{"account": obj{"roles": []string{"view-profile"}}},
		"scope":           "openid email profile read write", "email_verified": true, "name": "Ada Lovelace",
		"preferred_username": "ada", "email": "ada@example.com",
	})
	entraOptions := func(o *access.Options) {
		o.Issuer = entra
		o.Audience = []string{api}
		o.Algorithms = []string{"RS256"}
		o.RequireClaims = []string{"tid=0f0e0d0c-0000-4000-8000-000000000001", "ver=2.0"}
		o.VerifiedClaim = "xms_edov"
	}
	entraToken := times(obj{
		"iss": entra, "sub": "pairwise-subject", "oid": "object-id", "tid": "0f0e0d0c-0000-4000-8000-000000000001",
		"aud": api, "azp": "my_client", "azpacr": "0", "scp": "read write", "ver": "2.0", "uti": "x",
		"name": "Ada Lovelace", "preferred_username": "ada@example.com", "email": "ada@example.com", "xms_edov": true,
	})

	type test struct {
		name    string
		options func(*access.Options)
		key     signer
		header  obj
		claims  obj
		want    []space.Scope // nil if the token is refused
		email   string
		refused string
	}
	const ada = "ada@example.com"
	rs, es := rsaKey(), ec()
	jwt := obj{"typ": "JWT"}
	for _, tt := range []test{
		{"Supabase, through the hook", supabaseOptions, es, jwt, supabaseToken, both, ada, ""},
		{"Supabase, without the hook", supabaseOptions, es, jwt, with(supabaseToken, obj{"aud": "authenticated"}), nil, "", "another resource"},
		{"Supabase, a session of the website", supabaseOptions, es, jwt, with(supabaseToken, obj{"client_id": nil}), nil, "", "names no client"},
		{"Supabase, the anon key's role", supabaseOptions, es, jwt, with(supabaseToken, obj{"role": "anon"}), nil, "", "claim role"},
		{"Supabase, the service key's role", supabaseOptions, es, jwt, with(supabaseToken, obj{"role": "service_role"}), nil, "", "claim role"},
		{"Supabase, an anonymous user", supabaseOptions, es, jwt, with(supabaseToken, obj{"is_anonymous": true}), nil, "", "claim is_anonymous"},
		{"Supabase, user_metadata verifies no address", supabaseOptions, es, jwt, with(supabaseToken, obj{"email_verified": nil}), both, "", ""},
		{"Auth0, with roles", auth0Options, rs, jwt, auth0Token, both, ada, ""},
		{"Auth0, a client that asked for less than the person may", auth0Options, rs, jwt, with(auth0Token, obj{"scope": "openid read"}), []space.Scope{space.ScopeRead}, ada, ""},
		{"Auth0, RFC 9068 profile", auth0Options, rs, obj{"typ": "at+jwt"}, with(auth0Token, obj{"azp": nil, "client_id": "my_client"}), both, ada, ""},
		{"Auth0, an ID token", auth0Options, rs, jwt, with(auth0Token, obj{"aud": "my_client", "azp": nil, "nonce": "x"}), nil, "", "not an access token"},
		{"Auth0, for userinfo alone", auth0Options, rs, jwt, with(auth0Token, obj{"aud": "https://acme.eu.auth0.com/userinfo"}), nil, "", "another resource"},
		{"Auth0, address not verified", auth0Options, rs, jwt, with(auth0Token, obj{"https://satchel.example.com/email_verified": false}), both, "", ""},
		{"Keycloak, with a required role", keycloakOptions, rs, jwt, keycloakToken, both, ada, ""},
		{"Keycloak, without the required role", keycloakOptions, rs, jwt, with(keycloakToken, obj{"realm_access": obj{"roles": []string{"offline_access"}}}), nil, "", "claim realm_access.roles"},
		{"Keycloak, a client that did not ask for the scopes", keycloakOptions, rs, jwt, with(keycloakToken, obj{"aud": "account", "scope": "openid"}), nil, "", "another resource"},
		{"Keycloak, an ID token", keycloakOptions, rs, jwt, with(keycloakToken, obj{"typ": "ID", "at_hash": "x"}), nil, "", "not an access token"},
		{"Keycloak, without an audience mapper", keycloakOptions, rs, jwt, with(keycloakToken, obj{"aud": "account"}), nil, "", "another resource"},
		{"Entra, version 2", entraOptions, rs, jwt, entraToken, both, ada, ""},
		{"Entra, version 1", entraOptions, rs, jwt, with(entraToken, obj{"iss": "https://sts.windows.net/0f0e/", "ver": "1.0", "azp": nil, "appid": "my_client"}), nil, "", "an issuer that this server does not accept"},
		{"Entra, another tenant", entraOptions, rs, jwt, with(entraToken, obj{"tid": "evil"}), nil, "", "claim tid"},
		{"Entra, an ID token of the same application", entraOptions, rs, jwt, with(entraToken, obj{"azp": nil, "scp": nil}), nil, "", "names no client"},
		{"Entra, an address that anybody may have written", entraOptions, rs, jwt, with(entraToken, obj{"xms_edov": nil}), both, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			is := newIssuer(es, rs)
			v := is.verifier(t, tt.options, func(o *access.Options) {
				is.url = o.Issuer
				is.answers["/realms/acme/.well-known/openid-configuration"] = ""
				is.answers["/.well-known/oauth-authorization-server"+path(o.Issuer)] = toJSON(obj{"issuer": o.Issuer, "jwks_uri": "https://x.example/keys"})
			})
			e, who, err := v.Verify(t.Context(), tt.key.token(tt.claims, tt.header))
			if tt.want == nil {
				if fault.CodeOf(err) != fault.Unauthenticated || !strings.Contains(fault.PublicOf(err), tt.refused) {
					t.Fatalf("got %+v, %v; want a refusal that says %q", e, err, tt.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(e.Scopes, tt.want) || e.Email != tt.email || e.Name != "Ada Lovelace" || e.Client == "" {
				t.Errorf("got %+v", e)
			}
			list := auth.AllowList{Domains: []string{"example.com"}}
			if _, ok := list.Admits(who); ok != (tt.email != "") {
				t.Errorf("the allow list says %v to %+v", ok, who)
			}
		})
	}
	t.Run("Supabase, signed with the shared secret", func(t *testing.T) {
		is := newIssuer(es)
		is.url = issuerURL
		v := is.verifier(t, supabaseOptions, func(o *access.Options) { o.Issuer = issuerURL })
		_, err := verify(v, hs256(`{"alg":"HS256","typ":"JWT"}`, toJSON(with(supabaseToken, obj{"iss": issuerURL})), []byte("super-secret-jwt-token-with-at-least-32-characters-long")))
		want(t, err, fault.Unauthenticated)
	})
}

// path returns the path of a URL without a slash at its end.
func path(url string) string {
	_, rest, _ := strings.Cut(strings.TrimPrefix(url, "https://"), "/")
	if rest = strings.TrimSuffix(rest, "/"); rest != "" {
		return "/" + rest
	}
	return ""
}

func TestScopes(t *testing.T) {
	r, w := space.ScopeRead, space.ScopeWrite
	v := map[string]func(*access.Options){
		"":        func(*access.Options) {},
		"default": func(o *access.Options) { o.DefaultScopes = []string{"read"} },
		"names":   func(o *access.Options) { o.ReadScopes, o.WriteScopes = []string{"a", "b"}, []string{"b"} },
		"none":    func(o *access.Options) { o.ScopeClaims, o.DefaultScopes = nil, []string{"read", "write"} },
		"admin":   func(o *access.Options) { o.ReadScopes, o.WriteScopes = nil, nil },
	}
	for _, tt := range []struct {
		name, options string
		claims        obj
		want          []space.Scope
	}{
		{"text", "", obj{"scope": "read write"}, []space.Scope{r, w}},
		{"list", "", obj{"scope": []string{"write"}}, []space.Scope{w}},
		{"another claim", "", obj{"scope": nil, "scp": "read"}, []space.Scope{r}},
		{"two claims together", "", obj{"scope": "read", "scp": []string{"write"}}, []space.Scope{r, w}},
		{"scopes of others", "", obj{"scope": "openid readwrite read:all READ"}, nil},
		{"a list with other things", "", obj{"scope": []any{1, nil, obj{"read": true}, "write"}}, []space.Scope{w}},
		{"a number", "", obj{"scope": 1}, nil},
		{"none", "", obj{"scope": nil}, nil},
		{"none, with a default", "default", obj{"scope": "openid"}, []space.Scope{r}},
		{"some, with a default", "default", obj{"scope": "write"}, []space.Scope{w}},
		{"other names", "names", obj{"scope": "a"}, []space.Scope{r}},
		{"one name for both", "names", obj{"scope": "b"}, []space.Scope{r, w}},
		{"our names where others are set", "names", obj{"scope": "read write"}, nil},
		{"the claim does not count", "none", obj{"scope": "read"}, []space.Scope{r, w}},
		{"no names at all", "admin", obj{"scope": "read write"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, err := verify(newIssuer(ec()).verifier(t, v[tt.options]), ec().token(good(time.Now(), tt.claims)))
			if len(tt.want) == 0 {
				if fault.CodeOf(err) != fault.Forbidden || auth.ErrorCode(err) != "insufficient_scope" {
					t.Fatalf("got %+v, %v; want insufficient_scope", e, err)
				}
				return
			}
			if err != nil || !slices.Equal(e.Scopes, tt.want) {
				t.Errorf("got %v, %v; want %v", e.Scopes, err, tt.want)
			}
		})
	}
}

func TestWhoIsNamed(t *testing.T) {
	for _, tt := range []struct {
		name   string
		claims obj
		change func(*access.Options)
		want   func(auth.External) bool
	}{
		{"verified as a text", obj{"email_verified": "true"}, nil, func(e auth.External) bool { return e.Email == "ada@example.com" }},
		{"not verified", obj{"email_verified": false}, nil, func(e auth.External) bool { return e.Email == "" }},
		{"not verified as a text", obj{"email_verified": "false"}, nil, func(e auth.External) bool { return e.Email == "" }},
		{"verified as a number", obj{"email_verified": 1}, nil, func(e auth.External) bool { return e.Email == "" }},
		{"verified as a list", obj{"email_verified": []bool{true}}, nil, func(e auth.External) bool { return e.Email == "" }},
		{"nothing is said of verifying", obj{"email_verified": nil}, nil, func(e auth.External) bool { return e.Email == "" }},
		{"all are verified", obj{"email_verified": false}, func(o *access.Options) { o.VerifiedClaim = "" }, func(e auth.External) bool { return e.Email == "ada@example.com" }},
		{"no claim holds addresses", nil, func(o *access.Options) { o.EmailClaim = "" }, func(e auth.External) bool { return e.Email == "" }},
		{"Attack: two addresses in one", obj{"email": "eve@evil.example,ada@example.com"}, nil, func(e auth.External) bool { return e.Email == "" }},
		{"Attack: two domains", obj{"email": "eve@evil.example@example.com"}, nil, func(e auth.External) bool { return e.Email == "" }},
		{"Attack: a quoted address", obj{"email": `"eve@evil.example"@example.com`}, nil, func(e auth.External) bool { return e.Email == "" }},
		{"Attack: a line end in it", obj{"email": "eve@evil.example\n@example.com"}, nil, func(e auth.External) bool { return e.Email == "" }},
		{"an address without a domain", obj{"email": "ada"}, nil, func(e auth.External) bool { return e.Email == "" }},
		{"a list of addresses", obj{"email": []string{"ada@example.com"}}, nil, func(e auth.External) bool { return e.Email == "" }},
		{"Attack: a name of two lines, for commits", obj{"name": "Ada\n\nSigned-off-by: root\x00"}, nil, func(e auth.External) bool { return e.Name == "Ada Signed-off-by: root" }},
		{"a long name", obj{"name": strings.Repeat("é", 300)}, nil, func(e auth.External) bool { return e.Name == strings.Repeat("é", 100) }},
		{"a name that is no text", obj{"name": 7}, nil, func(e auth.External) bool { return e.Name == "" }},
		{"nested", obj{"app_metadata": obj{"x": obj{"y": "Nested"}}}, func(o *access.Options) { o.NameClaim = "app_metadata.x.y" }, func(e auth.External) bool { return e.Name == "Nested" }},
		{"the literal name comes first", obj{"a.b": "Literal", "a": obj{"b": "Nested"}}, func(o *access.Options) { o.NameClaim = "a.b" }, func(e auth.External) bool { return e.Name == "Literal" }},
		{"nested in a name with dots", obj{"https://x.example/claims": obj{"name": "Both"}}, func(o *access.Options) { o.NameClaim = "https://x.example/claims.name" }, func(e auth.External) bool { return e.Name == "Both" }},
		{"space", obj{"space": "team"}, func(o *access.Options) { o.SpaceClaim = "space" }, func(e auth.External) bool { return e.Space == "team" }},
		{"a claim called nothing is not the space", obj{"": "team"}, nil, func(e auth.External) bool { return e.Space == "" }},
		{"the first client claim", obj{"azp": "a", "client_id": "b"}, func(o *access.Options) { o.ClientClaims = []string{"azp", "client_id"} }, func(e auth.External) bool { return e.Client == "a" }},
		{"a required truth value", obj{"staff": true}, func(o *access.Options) { o.RequireClaims = []string{"staff=true"} }, func(e auth.External) bool { return true }},
		{"a required number", obj{"level": 3}, func(o *access.Options) { o.RequireClaims = []string{"level=3"} }, func(e auth.External) bool { return true }},
		{"a required value with =", obj{"group": "a=b"}, func(o *access.Options) { o.RequireClaims = []string{"group=a=b"} }, func(e auth.External) bool { return true }},
		{"several audiences, one of them ours", obj{"aud": []string{"x", resource}}, nil, func(e auth.External) bool { return true }},
		{"typ with its prefix", nil, func(o *access.Options) { o.Types = []string{"application/AT+JWT"} }, func(e auth.External) bool { return true }},
		{"times with a fraction", obj{"iat": float64(time.Now().Unix()) - 0.5}, nil, func(e auth.External) bool { return true }},
		{"nonce in what is typed an access token", obj{"nonce": "x"}, nil, func(e auth.External) bool { return true }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			change := tt.change
			if change == nil {
				change = func(*access.Options) {}
			}
			e, err := verify(newIssuer(ec()).verifier(t, change), ec().token(good(time.Now(), tt.claims)))
			if err != nil || !tt.want(e) {
				t.Errorf("got %+v, %v", e, err)
			}
		})
	}
}
