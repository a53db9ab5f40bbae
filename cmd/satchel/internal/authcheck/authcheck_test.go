package authcheck

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestARightDeploymentSuitsEveryClient(t *testing.T) {
	for _, tt := range []struct {
		name     string
		change   func(*deployment)
		warnings int
	}{
		{"the built-in authorization server", func(*deployment) {}, 0},
		{"sign-in as a page in place of a redirect", func(d *deployment) {
			d.instead["/oauth/authorize"] = func(w http.ResponseWriter, r *http.Request) {
				if strings.HasPrefix(r.URL.Query().Get("client_id"), "https://") {
					answers(200, "text/html", "<!doctype html>Sign in")(w, r)
				} else {
					answers(400, "text/html", "<!doctype html>Unknown")(w, r)
				}
			}
		}, 0},
		{"another issuer", func(d *deployment) {
			const issuer = "https://login.example.com"
			d.resource["authorization_servers"] = []string{issuer}
			d.server["issuer"], d.server["authorization_endpoint"], d.server["token_endpoint"] = issuer, issuer+"/oauth/authorize", issuer+"/oauth/token"
		}, 0},
		{"another issuer with a path, known by OpenID alone", func(d *deployment) {
			const issuer = "https://login.example.com/realms/a"
			d.resource["authorization_servers"] = []string{issuer}
			d.server["issuer"] = issuer
			d.serverAt = []string{"/realms/a/.well-known/openid-configuration"}
		}, 1},
		{"a client that is registered and deleted", func(d *deployment) { d.register = true }, 0},
		{"no metadata at the root", func(d *deployment) { d.instead[wellKnownResource] = answers(404, "text/plain", "") }, 1},
		{"no cross-origin requests", func(d *deployment) { d.cors = false }, 1},
		{"no refresh tokens", func(d *deployment) { d.server["grant_types_supported"] = []string{"authorization_code"} }, 1},
		{"a certificate for six days, with four left", func(d *deployment) {
			d.life, d.notAfter = 6*24*time.Hour, now().Add(4*24*time.Hour)
		}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := right()
			tt.change(d)
			r := d.check(t)
			if n := count(r, Warning); !r.OK || n != tt.warnings {
				t.Errorf("%d warnings, not %d: %s", n, tt.warnings, text(t, r))
			}
			for _, c := range r.Clients {
				if c.Verdict != Connects {
					t.Errorf("%s %s: %s", c.Name, c.Verdict, c.Reason)
				}
			}
			if posted := slices.Contains(d.requests, "POST /oauth/register"); posted != d.register || d.deleted != d.register {
				t.Errorf("registered: %v, deleted: %v", posted, d.deleted)
			}
		})
	}
}

func count(r Report, s Status) (n int) {
	for _, f := range r.Findings {
		if f.Status == s {
			n++
		}
	}
	return n
}

func text(t *testing.T, r Report) string {
	t.Helper()
	var b strings.Builder
	if err := r.Write(&b); err != nil {
		t.Fatal(err)
	}
	return "\n" + b.String()
}

// For each fault of a deployment, the table has the check that finds it, its fix, and the
// clients that cannot or may not connect.
func TestWhatIsWrong(t *testing.T) {
	page := answers(200, "text/html", "<!doctype html><title>Log in to the proxy</title>")
	everybody := allClients()
	for _, tt := range []struct {
		name   string
		change func(*deployment)
		check  string
		status Status
		what   string // a part of the observation
		fix    string // a part of the fix
		out    []client
		maybe  []client
	}{
		{"http on the internet", func(d *deployment) { d.url = "http://satchel.example.com/mcp" }, "URL", Failed, "http://", "server.domain", everybody, nil},
		{"a loopback address", func(d *deployment) {
			d.url = "http://127.0.0.1:8080/mcp"
			local := strings.NewReplacer(base, "http://127.0.0.1:8080")
			d.challenge = local.Replace(d.challenge)
			d.resource["resource"], d.resource["authorization_servers"] = d.url, []string{"http://127.0.0.1:8080"}
			for k, v := range d.server {
				if s, ok := v.(string); ok {
					d.server[k] = local.Replace(s)
				}
			}
		}, "URL", Warning, "on this machine", "public", hosted(), nil},
		{"a query", func(d *deployment) { d.url = mcp + "?key=1" }, "URL", Failed, "query", "plain URL", everybody, nil},
		{"no path", func(d *deployment) {
			d.url = base + "/"
			d.instead["/"] = answers(404, "text/plain", "")
		}, "URL", Warning, "no path", mcp, everybody, nil},
		{"a slash too many", func(d *deployment) {
			d.url = mcp + "/"
			d.instead["/mcp/"] = func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("WWW-Authenticate", d.challenge)
				w.WriteHeader(401)
			}
		}, "resource", Failed, "byte for byte", mcp, []client{claude, claudeCode}, []client{chatGPT}},

		{"no address", func(d *deployment) { d.addrs = nil }, "address", Failed, "no address", "A record", everybody, nil},
		{"a private address", func(d *deployment) { d.addrs = []string{"192.168.1.7"} }, "address", Failed, "private", "tunnel", hosted(), nil},
		{"a private address beside a public one", func(d *deployment) { d.addrs = []string{"93.184.216.34", "10.0.0.1"} }, "address", Failed, "10.0.0.1", "only public addresses", hosted(), nil},
		{"a tailnet's address", func(d *deployment) { d.addrs = []string{"100.100.1.2"} }, "address", Failed, "NAT", "tunnel", hosted(), nil},
		{"IPv6 alone", func(d *deployment) { d.addrs = []string{"2606:2800:220:1::1"} }, "address", Failed, "IPv4", "A record", hosted(), nil},
		{"IPv4 that does not answer", func(d *deployment) { d.dial = errors.New("refused") }, "IPv4", Warning, "port 443", "firewall", nil, hosted()},

		{"a certificate of nobody's", func(d *deployment) { d.ca = false }, "certificate", Failed, "no authority", "public authority", everybody, nil},
		{"a certificate for another name", func(d *deployment) { d.names = []string{"other.example.com"} }, "certificate", Failed, "another name", "satchel.example.com", everybody, nil},
		{"a certificate that has expired", func(d *deployment) { d.notAfter = now().Add(-time.Hour) }, "certificate", Failed, "expired", "Renew", everybody, nil},
		{"a certificate that ends soon", func(d *deployment) { d.notAfter = now().Add(5 * 24 * time.Hour) }, "certificate", Warning, "2026-11-27", "Renew", nil, nil},

		{"no token asked for", func(d *deployment) { d.instead["POST /mcp"] = answers(200, "application/json", `{"jsonrpc":"2.0"}`) }, "first request", Failed, "without a token", "token", everybody, nil},
		{"403 in place of 401", func(d *deployment) { d.instead["POST /mcp"] = answers(403, "text/plain", "") }, "first request", Failed, "403", "server.public_url", everybody, nil},
		{"a redirect to another host", func(d *deployment) { d.instead["POST /mcp"] = redirects("https://www.example.com/mcp") }, "first request", Failed, "another host", "itself", everybody, nil},
		{"a redirect on the same host", func(d *deployment) { d.instead["POST /mcp"] = redirects("/mcp/") }, "first request", Failed, "repeat a POST", mcp + "/", everybody, nil},
		{"a proxy's page", func(d *deployment) { d.instead["POST /mcp"] = page }, "first request", Failed, "HTML", "proxy", everybody, nil},
		{"a proxy that lost its server", func(d *deployment) {
			d.instead["POST /mcp"] = answers(502, "text/html", "<!DOCTYPE html>")
			d.instead["POST /mcp"] = answers(502, "text/plain", "")
		}, "first request", Failed, "502", "server.listen", everybody, nil},
		{"another path", func(d *deployment) { d.instead["POST /mcp"] = answers(404, "text/plain", "") }, "first request", Failed, "no MCP endpoint", "path", everybody, nil},
		{"a limit", func(d *deployment) { d.instead["POST /mcp"] = answers(429, "text/plain", "") }, "first request", Failed, "limits", "trusted_proxies", everybody, nil},
		{"something else", func(d *deployment) { d.instead["POST /mcp"] = answers(400, "text/plain", "") }, "first request", Failed, "400", "proxy", everybody, nil},
		{"no challenge", func(d *deployment) { d.challenge = "" }, "first request", Warning, "WWW-Authenticate", "proxy", nil, []client{claude, chatGPT, tools}},
		{"another scheme's challenge", func(d *deployment) { d.challenge = `Basic realm="x"` }, "first request", Warning, "WWW-Authenticate", "proxy", nil, []client{claude, chatGPT, tools}},
		{"a challenge without metadata", func(d *deployment) { d.challenge = `Bearer scope="read"` }, "first request", Warning, "resource_metadata", "Satchel", nil, []client{chatGPT}},
		{"a challenge without scope", func(d *deployment) { d.challenge, _, _ = strings.Cut(d.challenge, ", scope") }, "first request", Warning, "no scope", "scopes", nil, nil},
		{"a challenge for offline access", func(d *deployment) {
			d.challenge = strings.Replace(d.challenge, "read write", "read offline_access", 1)
		}, "first request", Warning, "offline_access", "offline_access", nil, nil},
		{"a bad token refused with 403", func(d *deployment) {
			d.instead["POST /mcp"] = func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("WWW-Authenticate", d.challenge)
				if r.Header.Get("Authorization") != "" {
					w.WriteHeader(403)
					return
				}
				w.WriteHeader(401)
			}
		}, "bad token", Failed, "403", "401", everybody, nil},
		{"a proxy that drops the token", func(d *deployment) {
			d.instead["POST /mcp"] = func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("WWW-Authenticate", d.challenge)
				w.WriteHeader(401)
			}
		}, "bad token", Warning, "invalid_token", "WWW-Authenticate", nil, []client{chatGPT}},

		{"metadata named under another host", func(d *deployment) { d.challenge = strings.ReplaceAll(d.challenge, base, "https://10.0.0.5:8080") }, "resource metadata", Failed, "10.0.0.5", base, everybody, nil},
		{"metadata named under http", func(d *deployment) {
			d.challenge = strings.ReplaceAll(d.challenge, base, "http://satchel.example.com")
		}, "resource metadata", Failed, "http://satchel", "server.public_url", everybody, nil},
		{"metadata named as no URL", func(d *deployment) { d.challenge = `Bearer resource_metadata="/x", scope="read"` }, "resource metadata", Failed, "not a URL", "server.public_url", everybody, nil},
		{"no metadata", func(d *deployment) { d.resource = nil }, "resource metadata", Failed, "404", "proxy", everybody, nil},
		{"a proxy's page in place of metadata", func(d *deployment) { d.instead[wellKnownResource+"/mcp"] = page }, "resource metadata", Failed, "text/html", "proxy", everybody, nil},
		{"metadata behind a redirect", func(d *deployment) { d.instead[wellKnownResource+"/mcp"] = redirects("https://www.example.com/") }, "resource metadata", Failed, "302", "proxy", everybody, nil},
		{"metadata that is no JSON", func(d *deployment) { d.instead[wellKnownResource+"/mcp"] = answers(200, "application/json", "{") }, "resource metadata", Failed, "valid JSON", "proxy", everybody, nil},
		{"metadata of two servers", func(d *deployment) {
			d.instead[wellKnownResource] = answers(200, "application/json", `{"resource":"https://a"}`)
		}, "resource metadata", Failed, "different", "same server", everybody, nil},
		{"metadata of another name", func(d *deployment) { d.resource["resource"] = "https://old.example.com/mcp" }, "resource", Failed, "old.example.com", "server.public_url", everybody, nil},
		{"metadata of another path", func(d *deployment) { d.resource["resource"] = base + "/other" }, "resource", Failed, "/other", "Give clients the URL " + base + "/other", everybody, nil},
		{"metadata of the origin", func(d *deployment) { d.resource["resource"] = base }, "resource", Failed, "byte for byte", base, []client{claude, claudeCode}, nil},
		{"metadata of nothing", func(d *deployment) { d.resource["resource"] = "" }, "resource", Failed, "no resource", "server", everybody, nil},
		{"no authorization server", func(d *deployment) { d.resource["authorization_servers"] = []string{} }, "authorization server", Failed, "names no", "auth.issuer.url", everybody, nil},
		{"two authorization servers", func(d *deployment) { d.resource["authorization_servers"] = []string{base, "https://b.example.com"} }, "authorization server", Warning, "only the first", "first", nil, nil},
		{"an authorization server without https", func(d *deployment) {
			d.resource["authorization_servers"] = []string{"http://login.example.com"}
		}, "authorization server", Failed, "not https", "https", everybody, nil},
		{"an authorization server on loopback", func(d *deployment) {
			d.resource["authorization_servers"] = []string{"http://localhost:8080"}
		}, "authorization server", Failed, "loopback", "server.public_url", everybody, nil},
		{"an authorization server that is no URL", func(d *deployment) { d.resource["authorization_servers"] = []string{"login"} }, "authorization server", Failed, "not an issuer", "plain URL", everybody, nil},
		{"a scope that is no right", func(d *deployment) { d.resource["scopes_supported"] = []string{"read", "offline_access"} }, "scopes", Warning, "offline_access", "authorization server", nil, nil},

		{"no server metadata", func(d *deployment) { d.server = nil }, "server metadata", Failed, "404", "/.well-known/oauth-authorization-server", everybody, nil},
		{"server metadata that is something else", func(d *deployment) { delete(d.server, "authorization_endpoint") }, "server metadata", Failed, "not the metadata", "authorization server", everybody, nil},
		{"another issuer by a slash", func(d *deployment) { d.server["issuer"] = base + "/" }, "server metadata", Failed, "byte for byte", "slash", everybody, nil},
		{"OpenID's place alone", func(d *deployment) { d.serverAt = []string{"/.well-known/openid-configuration"} }, "server metadata", Warning, "openid-configuration", "there too", nil, nil},
		{"no token endpoint", func(d *deployment) { delete(d.server, "token_endpoint") }, "endpoints", Failed, "token_endpoint", "both", everybody, nil},
		{"an endpoint without https", func(d *deployment) { d.server["token_endpoint"] = "http://satchel.example.com/oauth/token" }, "endpoints", Failed, "https", "server.public_url", everybody, nil},
		{"no codes", func(d *deployment) { d.server["response_types_supported"] = []string{"token"} }, "endpoints", Failed, "no codes", "code", everybody, nil},
		{"PKCE that is not said", func(d *deployment) { delete(d.server, "code_challenge_methods_supported") }, "PKCE", Failed, "S256", "S256", everybody, nil},
		{"plain PKCE", func(d *deployment) { d.server["code_challenge_methods_supported"] = []string{"plain"} }, "PKCE", Failed, "S256", "S256", everybody, nil},
		{"no registration", func(d *deployment) { delete(d.server, "registration_endpoint") }, "client identification", Warning, "cannot register", "auth.registration", nil, []client{cursor, tools}},
		{"no documents", func(d *deployment) { delete(d.server, "client_id_metadata_document_supported") }, "client identification", Warning, "new connection", "auth.client_documents", nil, nil},
		{"documents with secrets alone", func(d *deployment) {
			d.server["token_endpoint_auth_methods_supported"] = []string{"client_secret_basic"}
		}, "client identification", Warning, "no none", "none", nil, nil},
		{"preset clients alone", func(d *deployment) {
			delete(d.server, "registration_endpoint")
			delete(d.server, "client_id_metadata_document_supported")
		}, "client identification", Warning, "neither", "its id", nil, everybody},
		{"answers that do not name the issuer", func(d *deployment) { delete(d.server, "authorization_response_iss_parameter_supported") }, "issuer in answers", Warning, "RFC 9207", "redirect URI", nil, nil},

		{"registration that is refused", func(d *deployment) {
			d.register = true
			d.instead["/oauth/register"] = answers(403, "application/json", `{"error":"access_denied"}`)
		}, "registration", Failed, "access_denied", "auth.registration", []client{cursor, tools}, nil},
		{"registration that forgets the redirect URI", func(d *deployment) {
			d.register = true
			d.instead["/oauth/register"] = answers(201, "application/json", `{"client_id":"c"}`)
		}, "registration", Failed, "redirect URI", "loopback", []client{cursor, tools}, nil},
		{"a registered client that is not known", func(d *deployment) {
			d.register = true
			d.refuse = func(id, _ string) bool { return id == "c" }
		}, "sign-in for a registered client", Failed, "redirect URI http://127.0.0.1:49154", "registers", []client{cursor, tools}, nil},
		{"registration that is limited", func(d *deployment) {
			d.register = true
			d.instead["/oauth/register"] = answers(429, "application/json", `{}`)
		}, "registration", Warning, "limit", "trusted_proxies", nil, nil},

		{"attack: an open redirect", func(d *deployment) {
			d.redirect = func(id, redirect string) string {
				if !strings.HasPrefix(id, "https://") {
					return redirect + "?error=unauthorized_client"
				}
				return ""
			}
		}, "unknown client", Failed, "unknown client", "page", nil, nil},
		{"sign-in for anybody's client", func(d *deployment) {
			d.redirect = func(string, string) string { return "/signin" }
		}, "unknown client", Warning, "unknown client", "refuse", nil, nil},
		{"no authorization endpoint", func(d *deployment) { d.instead["/oauth/authorize"] = answers(404, "text/plain", "") }, "unknown client", Failed, "404", "proxy", everybody, nil},
		{"an authorization endpoint that fails", func(d *deployment) { d.instead["/oauth/authorize"] = answers(500, "text/plain", "") }, "unknown client", Failed, "500", "proxy", everybody, nil},
		{"Claude's document that cannot be fetched", func(d *deployment) {
			d.refuse = func(id, _ string) bool { return strings.HasSuffix(id, "/mcp-oauth-client-metadata") }
		}, "sign-in for Claude (web, Desktop, mobile)", Failed, "mcp-oauth-client-metadata", "fetch", []client{claude}, nil},
		{"loopback ports that must be registered", func(d *deployment) {
			d.refuse = func(_, redirect string) bool { return strings.HasPrefix(redirect, "http://localhost:") }
		}, "sign-in for Claude Code", Failed, "http://localhost:49152/callback", "preset", []client{claudeCode}, nil},
		{"a resource that the issuer does not know", func(d *deployment) {
			d.redirect = func(id, redirect string) string {
				if strings.HasPrefix(id, "https://chatgpt.com") {
					return redirect + "?error=invalid_target&error_description=unknown+resource"
				}
				return ""
			}
		}, "sign-in for ChatGPT", Failed, "unknown resource", mcp, []client{chatGPT}, nil},
		{"attack: a code without consent", func(d *deployment) {
			d.redirect = func(id, redirect string) string {
				if strings.HasPrefix(id, "https://vscode") {
					return redirect + "?code=1"
				}
				return ""
			}
		}, "sign-in for VS Code", Failed, "without consent", "consent", []client{vsCode}, nil},

		{"a token endpoint that is a page", func(d *deployment) { d.instead["/oauth/token"] = page }, "token endpoint", Failed, "HTML", "proxy", everybody, nil},
		{"a token endpoint that is not there", func(d *deployment) { d.instead["/oauth/token"] = answers(404, "text/plain", "") }, "token endpoint", Failed, "404", "proxy", everybody, nil},
		{"attack: tokens for nothing", func(d *deployment) {
			d.instead["/oauth/token"] = answers(200, "application/json", `{"access_token":"a"}`)
		}, "token endpoint", Failed, "never issued", "Do not use", nil, nil},
		{"errors of another form", func(d *deployment) {
			d.instead["/oauth/token"] = answers(400, "application/json", `{"code":400,"error_code":"bad"}`)
		}, "token endpoint", Warning, "RFC 6749", "invalid_grant", nil, []client{claude, claudeCode, tools}},
		{"another error", func(d *deployment) { d.tokenErr = "invalid_request" }, "token endpoint", Warning, "invalid_request", "invalid_grant", nil, []client{claude, claudeCode}},
		{"another error to a refresh token alone", func(d *deployment) {
			d.instead["/oauth/token"] = func(w http.ResponseWriter, r *http.Request) {
				e := "invalid_grant"
				if r.FormValue("grant_type") == "refresh_token" {
					e = "server_error"
				}
				answers(400, "application/json", `{"error":"`+e+`"}`)(w, r)
			}
		}, "token endpoint", Warning, "server_error", "invalid_grant", nil, []client{claude, claudeCode}},
		{"tokens that may be cached", func(d *deployment) { d.noStore = false }, "token endpoint", Warning, "no-store", "pass it", nil, nil},

		{"attack: metadata that follows X-Forwarded-Host", func(d *deployment) { d.follows = "resource" }, "forwarded host", Failed, wellKnownResource, "configuration", nil, nil},
		{"attack: an issuer that follows X-Forwarded-Host", func(d *deployment) { d.follows = "issuer" }, "forwarded host", Failed, "/.well-known/oauth-authorization-server", "configuration", nil, nil},
		{"attack: a challenge that follows X-Forwarded-Host", func(d *deployment) {
			d.instead["POST /mcp"] = func(w http.ResponseWriter, r *http.Request) {
				host := "satchel.example.com"
				if f := r.Header.Get("X-Forwarded-Host"); f != "" {
					host = f
				}
				e := ""
				if r.Header.Get("Authorization") != "" {
					e = `error="invalid_token", `
				}
				w.Header().Set("WWW-Authenticate", `Bearer `+e+`resource_metadata="https://`+host+wellKnownResource+`/mcp", scope="read"`)
				w.WriteHeader(401)
			}
		}, "forwarded host", Failed, "forged", "configuration", nil, nil},
		{"pages that may not call", func(d *deployment) { d.cors = false }, "browser clients", Warning, "/oauth/token", "allowed_origins", nil, nil},
		{"a clock that is slow", func(d *deployment) { d.date = now().Add(-10 * time.Minute) }, "clock", Warning, "10m0s", "NTP", nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := right()
			tt.change(d)
			r := d.check(t)
			i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.Name == tt.check && f.Status == tt.status })
			if i < 0 {
				t.Fatalf("%s did not end as %s:%s", tt.check, tt.status, text(t, r))
			}
			f := r.Findings[i]
			if !strings.Contains(f.What, tt.what) || !strings.Contains(f.Fix, tt.fix) {
				t.Errorf("it says %q and to do %q", f.What, f.Fix)
			}
			if r.OK != (count(r, Failed) == 0) {
				t.Error("the report is fine, though something failed, or the other way round")
			}
			for _, id := range everybody {
				want := Connects
				if slices.Contains(tt.out, id) {
					want = Cannot
				} else if slices.Contains(tt.maybe, id) {
					want = Doubtful
				}
				if got := r.Clients[id]; got.Verdict != want || (got.Reason == "") != (want == Connects) {
					t.Errorf("%s %s (%s), not %s", got.Name, got.Verdict, got.Reason, want)
				}
			}
		})
	}
}

// A reason why a client cannot connect counts before a reason why it may not. The first of each
// kind counts.
func TestTheReasonThatCounts(t *testing.T) {
	d := right()
	d.dial = errors.New("refused")
	d.instead["POST /mcp"] = answers(403, "text/plain", "")
	d.resource = nil
	r := d.check(t)
	if c := r.Clients[claude]; c.Verdict != Cannot || !strings.Contains(c.Reason, "403") {
		t.Errorf("%+v", c)
	}
}

func TestURLsThatAreNone(t *testing.T) {
	for _, u := range []string{"", "satchel.example.com", "ftp://satchel.example.com/mcp", "https:///mcp", "https:satchel", "http://[::1", "javascript:alert(1)"} {
		if _, err := Check(t.Context(), Options{URL: u}); !errors.Is(err, ErrURL) {
			t.Errorf("%q: %v", u, err)
		}
	}
}

// If only a proxy of the environment leads to the internet, the name may have no address here.
// This is not a problem.
func TestThroughAProxyOfTheEnvironment(t *testing.T) {
	c := &checker{o: Options{URL: mcp, Lookup: func(context.Context, string) ([]netip.Addr, error) { return nil, errors.New("no such host") }}, reasons: map[client]reason{}}
	c.url, _ = url.Parse(mcp)
	c.checkAddress(t.Context())
	if f := c.report.Findings; len(f) != 1 || f[0].Status != Skipped || len(c.reasons) != 0 {
		t.Errorf("%+v", f)
	}
}

func TestNothingAnswers(t *testing.T) {
	r, err := Check(t.Context(), Options{URL: "http://127.0.0.1:1/mcp"})
	if err != nil {
		t.Fatal(err)
	}
	if r.OK || len(r.Clients) != len(allClients()) || r.Clients[cursor].Verdict != Cannot {
		t.Errorf("%+v", r)
	}
}

func TestEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Check(ctx, Options{URL: "http://127.0.0.1:1/mcp"}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestSlowAnswers(t *testing.T) {
	for _, tt := range []struct {
		took   time.Duration
		status Status
	}{{time.Second, OK}, {4 * time.Second, Warning}, {11 * time.Second, Failed}} {
		c := &checker{slowest: answer{method: "GET", url: mcp, took: tt.took}, reasons: map[client]reason{}}
		c.checkTimes()
		if f := c.report.Findings[0]; f.Status != tt.status {
			t.Errorf("%v: %+v", tt.took, f)
		}
	}
}

// Attack: the server's answers contain control sequences for the terminal.
func TestAttackAnswersThatWriteToTheTerminal(t *testing.T) {
	d := right()
	d.resource["resource"] = "\x1b]0;pwned\x07\u009b31m\u202ehttps://evil\n\nok       all is well"
	r := d.check(t)
	out := text(t, r)
	for _, bad := range []string{"\x1b", "\x07", "\u009b", "\u202e", "\nok       all is well"} {
		if strings.Contains(out, bad) {
			t.Errorf("the text has %q:\n%q", bad, out)
		}
	}
	b, err := json.Marshal(r)
	if err != nil || !json.Valid(b) {
		t.Error(err)
	}
}

func TestJSON(t *testing.T) {
	d := right()
	d.addrs = []string{"2606:2800:220:1::1"}
	b, err := json.Marshal(d.check(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"url":"` + mcp + `"`, `"ok":false`, `{"name":"PKCE","status":"ok","what":"S256"}`, `"clients":["Claude (web, Desktop, mobile)","ChatGPT"]`, `{"name":"Cursor","verdict":"should connect"}`} {
		if !strings.Contains(string(b), want) {
			t.Errorf("no %s in %s", want, b)
		}
	}
}
