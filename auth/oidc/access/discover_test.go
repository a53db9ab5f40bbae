package access_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"satchel/auth/oidc/access"
	"satchel/internal/fault"
)

func asFault(err error, f **fault.Error) bool { return errors.As(err, f) }

func TestWhereMetadataMayBe(t *testing.T) {
	for _, tt := range []struct {
		name, issuer, path string
	}{
		{"OpenID, no path", "https://login.example.com", "/.well-known/openid-configuration"},
		{"RFC 8414, no path", "https://login.example.com", "/.well-known/oauth-authorization-server"},
		{"Auth0: a slash at the end", "https://tenant.example.com/", "/.well-known/openid-configuration"},
		{"RFC 8414, a slash at the end", "https://tenant.example.com/", "/.well-known/oauth-authorization-server"},
		{"Keycloak: appended", "https://login.example.com/realms/acme", "/realms/acme/.well-known/openid-configuration"},
		{"Keycloak: inserted", "https://login.example.com/realms/acme", "/.well-known/oauth-authorization-server/realms/acme"},
		{"Entra: appended", "https://login.example.com/0f0e/v2.0", "/0f0e/v2.0/.well-known/openid-configuration"},
		{"Supabase: inserted", "https://ref.example.com/auth/v1", "/.well-known/oauth-authorization-server/auth/v1"},
		{"OpenID's name inserted", "https://login.example.com/a", "/.well-known/openid-configuration/a"},
		{"RFC 8414's name appended", "https://login.example.com/a", "/a/.well-known/oauth-authorization-server"},
		{"a path with escapes", "https://login.example.com/a%2Fb", "/.well-known/oauth-authorization-server/a/b"}, // as URL.Path has it
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				is := newIssuer(ec())
				is.url = tt.issuer
				is.answers["/realms/acme/.well-known/openid-configuration"] = ""
				is.answers[tt.path] = toJSON(obj{"issuer": tt.issuer, "jwks_uri": "https://cdn.example.net/keys"})
				v := is.verifier(t)
				_, err := verify(v, ec().token(good(time.Now(), obj{"iss": tt.issuer})))
				want(t, err, "")
				time.Sleep(16 * time.Minute)
				synctest.Wait()
				asked := is.requests()
				if asked[tt.path] != 2 {
					t.Errorf("the location was asked %d times: it is not remembered", asked[tt.path])
				}
				total := 0
				for path, n := range asked {
					if path != "/keys" {
						total += n
					}
				}
				if total > 5 {
					t.Errorf("%v: the others are asked again", asked)
				}
			})
		})
	}
}

func TestMetadataThatIsNotBelieved(t *testing.T) {
	for name, metadata := range map[string]string{
		"of another issuer":              toJSON(obj{"issuer": "https://evil.example", "jwks_uri": "https://login.example.com/keys"}),
		"with a slash at the end":        toJSON(obj{"issuer": issuerURL + "/", "jwks_uri": "https://login.example.com/keys"}),
		"in capitals":                    toJSON(obj{"issuer": "https://LOGIN.example.com/realms/acme", "jwks_uri": "https://login.example.com/keys"}),
		"Entra's template":               toJSON(obj{"issuer": "https://login.example.com/{tenantid}/v2.0", "jwks_uri": "https://login.example.com/keys"}),
		"without issuer":                 toJSON(obj{"jwks_uri": "https://login.example.com/keys"}),
		"without keys":                   toJSON(obj{"issuer": issuerURL}),
		"keys over plain http":           toJSON(obj{"issuer": issuerURL, "jwks_uri": "http://login.example.com/keys"}),
		"keys over http on this machine": toJSON(obj{"issuer": issuerURL, "jwks_uri": "http://127.0.0.1/keys"}),
		"keys in a file":                 toJSON(obj{"issuer": issuerURL, "jwks_uri": "file:///etc/passwd"}),
		"keys in the text":               toJSON(obj{"issuer": issuerURL, "jwks_uri": "data:application/json,{}"}),
		"a page":                         "<html>",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				is := newIssuer(ec())
				is.answers["/realms/acme/.well-known/openid-configuration"] = metadata
				v := is.verifier(t)
				_, err := verify(v, ec().token(good(time.Now())))
				want(t, err, fault.Unavailable)
				if is.fetched() != 0 {
					t.Error("its keys were fetched")
				}
			})
		})
	}
}

func TestKeysThatMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		is := newIssuer(ec())
		v := is.verifier(t)
		_, err := verify(v, ec().token(good(time.Now())))
		want(t, err, "")
		is.set(func(is *issuer) {
			is.answers["/realms/acme/.well-known/openid-configuration"] = toJSON(obj{"issuer": issuerURL, "jwks_uri": "https://login.example.com/new"})
			is.answers["/new"] = toJSON(obj{"keys": []any{ecOther().jwk()}})
			is.answers["/keys"] = ""
		})
		// The verifier first asks at the old place, and then at the new one.
		_, err = verify(v, ecOther().token(good(time.Now())))
		want(t, err, fault.Unavailable)
		time.Sleep(2 * time.Second)
		_, err = verify(v, ecOther().token(good(time.Now())))
		want(t, err, "")
		// If the metadata is missing for a time, the verifier still fetches the keys from
		// the same place.
		is.set(func(is *issuer) {
			is.answers["/realms/acme/.well-known/openid-configuration"] = ""
			is.answers["/new"] = toJSON(obj{"keys": []any{ec().jwk()}})
		})
		time.Sleep(time.Hour)
		_, err = verify(v, ec().token(good(time.Now())))
		want(t, err, "")
	})
}

// Attack: a redirect leads to another host with somebody else's keys.
func TestRedirects(t *testing.T) {
	evilKeys := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(toJSON(obj{"keys": []any{ecOther().jwk()}})))
	}))
	defer evilKeys.Close()
	for _, tt := range []struct {
		name string
		to   string // the target of /keys; "" for none
		ok   bool
	}{
		{"none", "", true},
		{"on the same host", "/elsewhere", true},
		{"to another host", evilKeys.URL, false},
		{"in a circle", "/keys", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			mux := http.NewServeMux()
			s := httptest.NewServer(mux)
			defer s.Close()
			keys := func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write([]byte(toJSON(obj{"keys": []any{ec().jwk()}})))
			}
			mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write([]byte(toJSON(obj{"issuer": s.URL, "jwks_uri": s.URL + "/keys"})))
			})
			mux.HandleFunc("/elsewhere", keys)
			var asked atomic.Int32
			mux.HandleFunc("/keys", func(w http.ResponseWriter, r *http.Request) {
				asked.Add(1)
				if tt.to == "" {
					keys(w, r)
					return
				}
				http.Redirect(w, r, tt.to, http.StatusFound)
			})
			transport := &http.Transport{}
			defer transport.CloseIdleConnections()
			v, err := access.New(newIssuer(ec()).options(func(o *access.Options) {
				o.Issuer, o.HTTP = s.URL, &http.Client{Transport: transport}
			}))
			if err != nil {
				t.Fatal(err)
			}
			defer v.Close()
			_, err = verify(v, ec().token(good(time.Now(), obj{"iss": s.URL})))
			if tt.ok {
				want(t, err, "")
				return
			}
			want(t, err, fault.Unavailable)
			if n := asked.Load(); n > 40 { // some attempts, each with one request and three redirects
				t.Errorf("%d redirects were followed", n)
			}
			_, err = verify(v, ecOther().token(good(time.Now(), obj{"iss": s.URL})))
			want(t, err, fault.Unavailable)
		})
	}
}
