package oauth_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"satchel/auth"
	"satchel/auth/oauth"
	"satchel/internal/egress"
	"satchel/internal/egress/egresstest"
)

const documentID = "https://example.com/oauth/client.json"

func documentOf(id string) string {
	return `{"client_id":"` + id + `","client_name":"App","redirect_uris":["` + callback + `","http://localhost/cb"],"token_endpoint_auth_method":"none"}`
}

// vendor serves documents under every name. It counts the requests of its clients,
// including those that end before they arrive.
type vendor struct {
	*httptest.Server
	asked atomic.Int64
}

func newVendor(t *testing.T, h http.HandlerFunc) *vendor {
	t.Helper()
	v := &vendor{}
	v.Server = httptest.NewUnstartedServer(h)
	v.Config.ErrorLog = log.New(io.Discard, "", 0)
	v.StartTLS()
	t.Cleanup(v.Close)
	return v
}

// client returns a client that connects to the vendor for every URL.
func (v *vendor) client(t *testing.T) *http.Client {
	t.Helper()
	tr := v.Client().Transport.(*http.Transport).Clone()
	tr.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", v.Listener.Addr().String())
	}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: counted{tr, &v.asked}}
}

type counted struct {
	*http.Transport
	n *atomic.Int64
}

func (c counted) RoundTrip(r *http.Request) (*http.Response, error) {
	c.n.Add(1)
	return c.Transport.RoundTrip(r)
}

type clock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *clock) now() time.Time { c.mu.Lock(); defer c.mu.Unlock(); return c.t }

func (c *clock) add(d time.Duration) { c.mu.Lock(); defer c.mu.Unlock(); c.t = c.t.Add(d) }

func withDocuments(c *http.Client, clk *clock) func(*oauth.Options) {
	return func(o *oauth.Options) {
		o.Documents, o.HTTP, o.DocumentCache, o.Now = true, c, 24*time.Hour, clk.now
	}
}

func good(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, documentOf("https://"+r.Host+r.URL.RequestURI()))
}

func TestDocumentIsFetched(t *testing.T) {
	v := newVendor(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != "GET" || r.Header.Get("Accept") != "application/json" || r.Header.Get("Authorization")+r.Header.Get("Cookie") != "" {
			t.Errorf("asked with %s %v", r.Method, r.Header)
		}
		good(w, r)
	})
	s := serve(t, newMemory(), withDocuments(v.client(t), &clock{t: now()}))
	for _, redirect := range []string{callback, "http://localhost:4711/cb"} {
		r, err := s.Authorize(t.Context(), request("client_id", documentID, "redirect_uri", redirect))
		if err != nil || r.Client.ID != documentID || r.Client.Kind != auth.ClientDocument || r.Client.Name != "App" || r.Known {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	if _, err := s.Authorize(t.Context(), request("client_id", documentID, "redirect_uri", "https://evil.example/")); err == nil {
		t.Error("Attack: a redirect that is not in the document was taken")
	}
	if n := v.asked.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

func TestDocumentsThatAreRefused(t *testing.T) {
	serveBody := func(contentType, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			fmt.Fprint(w, body)
		}
	}
	with := func(old, new string) http.HandlerFunc {
		return serveBody("application/json", strings.Replace(documentOf(documentID), old, new, 1))
	}
	for _, tt := range []struct {
		name   string
		h      http.HandlerFunc
		status int
	}{
		{"not there", http.NotFound, 503},
		{"an error", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, 503},
		{"another 2xx", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(203); good(w, r) }, 503},
		{"Attack: a redirect", func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/oauth/client.json" {
				http.Redirect(w, r, "https://example.com/other.json", http.StatusFound)
				return
			}
			t.Error("the redirect was followed")
			serveBody("application/json", documentOf(documentID))(w, r)
		}, 503},
		{"HTML", serveBody("text/html", documentOf(documentID)), 400},
		{"no type", serveBody("", documentOf(documentID)), 400},
		{"no JSON", serveBody("application/json", "<html>"), 400},
		{"Attack: another's id", with(documentID, "https://claude.ai/oauth/claude-code-client-metadata"), 400},
		{"Attack: an id that differs by a slash", with(documentID, documentID+"/"), 400},
		{"no id", with("client_id", "id"), 400},
		{"a shared secret", with(`"client_name"`, `"client_secret":"x","client_name"`), 400},
		{"a shared secret's end", with(`"client_name"`, `"client_secret_expires_at":0,"client_name"`), 400},
		{"client_secret_basic", with(`"none"`, `"client_secret_basic"`), 400},
		{"client_secret_post", with(`"none"`, `"client_secret_post"`), 400},
		{"client_secret_jwt", with(`"none"`, `"client_secret_jwt"`), 400},
		{"no redirects", with("redirect_uris", "x"), 400},
		{"redirects that cannot be used", serveBody("application/json", `{"client_id":"`+documentID+`","redirect_uris":["javascript:alert(1)","http://evil.example/"]}`), 400},
		{"another flow", with(`"client_name"`, `"grant_types":["client_credentials"],"client_name"`), 400},
		{"Attack: too large", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, documentOf(documentID), strings.Repeat(" ", 64<<10))
		}, 400},
		{"Attack: no end", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			for r.Context().Err() == nil {
				if _, err := fmt.Fprint(w, strings.Repeat(" ", 4096)); err != nil {
					return
				}
			}
		}, 400},
		{"Attack: no answer", func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			panic(http.ErrAbortHandler) // otherwise the document would be empty
		}, 503},
		{"Attack: half an answer", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, "{")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			panic(http.ErrAbortHandler) // otherwise the document would look complete
		}, 503},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := newVendor(t, tt.h)
			clk := &clock{t: now()}
			s := serve(t, newMemory(), withDocuments(v.client(t), clk), func(o *oauth.Options) {
				if strings.Contains(tt.name, " answer") {
					o.DocumentTimeout = 2 * time.Second // the request to the vendor must arrive within this time
				}
			})
			q := request("client_id", documentID)
			var p *oauth.PageError
			if _, err := s.Authorize(t.Context(), q); !errors.As(err, &p) || p.Status != tt.status || p.Text == "" {
				t.Fatalf("got %v", err)
			}
			if _, err := s.Authorize(t.Context(), q); !errors.As(err, &p) || p.Status != 503 || v.asked.Load() != 1 {
				t.Errorf("asked again at once: %v", err)
			}
			clk.add(5 * time.Second)
			if _, err := s.Authorize(t.Context(), q); !errors.As(err, &p) || p.Status != tt.status || v.asked.Load() != 2 {
				t.Errorf("kept an error: %v", err)
			}
		})
	}
}

func TestDocumentsThatSayMore(t *testing.T) {
	for name, doc := range map[string]string{
		"a key, which is not asked for":     strings.Replace(documentOf(documentID), `"none"`, `"private_key_jwt","jwks_uri":"http://127.0.0.1/"`, 1),
		"no method":                         strings.Replace(documentOf(documentID), "token_endpoint_auth_method", "x", 1),
		"a redirect that is not taken here": strings.Replace(documentOf(documentID), `["`, `["http://other.example/","javascript:1","`, 1),
		"more flows":                        strings.Replace(documentOf(documentID), `"client_name"`, `"grant_types":["authorization_code","urn:x"],"response_types":["code","token"],"client_name"`, 1),
	} {
		t.Run(name, func(t *testing.T) {
			v := newVendor(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/oauth-client+json; charset=utf-8")
				fmt.Fprint(w, doc)
			})
			s := serve(t, newMemory(), withDocuments(v.client(t), &clock{t: now()}))
			if r, err := s.Authorize(t.Context(), request("client_id", documentID)); err != nil || len(r.Client.RedirectURIs) != 2 {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
}

func TestDocumentIDs(t *testing.T) {
	v := newVendor(t, good)
	s := serve(t, newMemory(), withDocuments(v.client(t), &clock{t: now()}))
	for _, tt := range []struct {
		name, id string
		ok       bool
	}{
		{"a path", "https://example.com/c", true},
		{"a port", "https://example.com:8443/c", true},
		{"a query", "https://example.com/c?v=1", true},
		{"escapes", "https://example.com/a%20b", true},
		{"no path", "https://example.com", false},
		{"an empty path", "https://example.com/", false},
		{"an empty path and a query", "https://example.com?c", false},
		{"http", "http://example.com/c", false},
		{"another case", "HTTPS://example.com/c", false},
		{"Attack: dots", "https://example.com/a/../c", false},
		{"Attack: a dot", "https://example.com/./c", false},
		{"Attack: escaped dots", "https://example.com/a/%2E%2e/c", false},
		{"Attack: a fragment", "https://example.com/c#claude.ai", false},
		{"Attack: a user", "https://claude.ai@example.com/c", false},
		{"Attack: a backslash", `https://example.com\@claude.ai/c`, false},
		{"Attack: a number", "https://2130706433/c", false},
		{"Attack: bytes", "https://example.com/\xff", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := v.asked.Load()
			_, err := s.Authorize(t.Context(), request("client_id", tt.id))
			if (err == nil) != tt.ok || !tt.ok && v.asked.Load() != before {
				t.Errorf("%v, asked %d times", err, v.asked.Load()-before)
			}
		})
	}
}

func TestDocumentIsKeptAsLongAsItsHostSays(t *testing.T) {
	for _, tt := range []struct {
		name   string
		header http.Header
		kept   time.Duration
	}{
		{"an hour where nothing is said", nil, time.Hour},
		{"max-age", http.Header{"Cache-Control": {"public, max-age=60"}}, time.Minute},
		{"max-age less age", http.Header{"Cache-Control": {"max-age=60"}, "Age": {"20"}}, 40 * time.Second},
		{"no longer than is configured", http.Header{"Cache-Control": {"max-age=99999999"}}, 24 * time.Hour},
		{"no-store", http.Header{"Cache-Control": {"max-age=60, no-store"}}, 0},
		{"no-cache", http.Header{"Cache-Control": {"No-Cache"}}, 0},
		{"an age that is none", http.Header{"Cache-Control": {"max-age=-1"}}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := newVendor(t, func(w http.ResponseWriter, r *http.Request) {
				for k, s := range tt.header {
					w.Header()[k] = s
				}
				good(w, r)
			})
			clk := &clock{t: now()}
			s := serve(t, newMemory(), withDocuments(v.client(t), clk))
			look := func(want int64) {
				t.Helper()
				if _, err := s.Authorize(t.Context(), request("client_id", documentID)); err != nil || v.asked.Load() != want {
					t.Errorf("asked %d times instead of %d: %v", v.asked.Load(), want, err)
				}
			}
			look(1)
			if tt.kept > 0 {
				clk.add(tt.kept - time.Second)
				look(1)
			}
			clk.add(time.Second)
			look(2)
		})
	}
}

func TestDocumentsAreBounded(t *testing.T) {
	v := newVendor(t, good)
	s := serve(t, newMemory(), withDocuments(v.client(t), &clock{t: now()}), func(o *oauth.Options) { o.MaxDocuments = 2 })
	for _, step := range []struct {
		id    string
		asked int64
	}{{"/1", 1}, {"/2", 2}, {"/1", 2}, {"/3", 3}, {"/1", 3}, {"/2", 4}} {
		if _, err := s.Authorize(t.Context(), request("client_id", "https://example.com"+step.id)); err != nil || v.asked.Load() != step.asked {
			t.Errorf("%s: asked %d times instead of %d, %v", step.id, v.asked.Load(), step.asked, err)
		}
	}
}

func TestManyWhoAskAtOnceAreOneFetch(t *testing.T) {
	release := make(chan struct{})
	v := newVendor(t, func(w http.ResponseWriter, r *http.Request) { <-release; good(w, r) })
	s := serve(t, newMemory(), withDocuments(v.client(t), &clock{t: now()}))
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, err := s.Authorize(t.Context(), request("client_id", documentID)); err != nil {
				t.Error(err)
			}
		})
	}
	close(release)
	wg.Wait()
	if n := v.asked.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

func TestAttackManyDocumentsAtOnceAreBounded(t *testing.T) {
	arrived, release := make(chan struct{}, 10), make(chan struct{})
	v := newVendor(t, func(w http.ResponseWriter, r *http.Request) { arrived <- struct{}{}; <-release; good(w, r) })
	s := serve(t, newMemory(), withDocuments(v.client(t), &clock{t: now()}))
	var wg sync.WaitGroup
	for i := range 2 {
		wg.Go(func() {
			if _, err := s.Authorize(t.Context(), request("client_id", fmt.Sprintf("https://example.com/%d", i))); err != nil {
				t.Error(err)
			}
		})
	}
	<-arrived
	<-arrived
	var p *oauth.PageError
	if _, err := s.Authorize(t.Context(), request("client_id", "https://example.com/3")); !errors.As(err, &p) || p.Status != 503 {
		t.Errorf("a third of one host at once: %v", err)
	}
	close(release)
	wg.Wait()
	if n := v.asked.Load(); n != 2 {
		t.Errorf("asked %d times", n)
	}
}

func TestWhoGoesAwayDoesNotWait(t *testing.T) {
	arrived := make(chan struct{})
	v := newVendor(t, func(_ http.ResponseWriter, r *http.Request) { close(arrived); <-r.Context().Done() })
	s := serve(t, newMemory(), withDocuments(v.client(t), &clock{t: now()}), func(o *oauth.Options) { o.DocumentTimeout = time.Hour })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { _, err := s.Authorize(ctx, request("client_id", documentID)); done <- err }()
	<-arrived
	cancel()
	if err := <-done; err == nil || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	s.Close() // ends the fetch, although nobody waits for it
	if _, err := s.Authorize(t.Context(), request("client_id", documentID+"2")); err == nil {
		t.Error("fetched after it was closed")
	}
}

func TestPinnedDocuments(t *testing.T) {
	for _, tt := range []struct {
		id, redirect, name string
		known              bool
	}{
		{"https://claude.ai/oauth/mcp-oauth-client-metadata", "https://claude.ai/api/mcp/auth_callback", "Claude", true},
		{"https://claude.ai/oauth/mcp-oauth-client-metadata", "https://claude.com/api/mcp/auth_callback", "Claude", true},
		{"https://claude.ai/oauth/claude-code-client-metadata", "http://localhost:52431/callback", "Claude Code", true},
		{"https://claude.ai/oauth/claude-code-client-metadata", "http://127.0.0.1:1/callback", "Claude Code", true},
		{"https://chatgpt.com/oauth/client.json", "https://chatgpt.com/connector_platform_oauth_redirect", "ChatGPT", true},
		{"https://chatgpt.com/oauth/asdk_app_6-x/client.json", "https://chatgpt.com/connector/oauth/asdk_app_6-x", "ChatGPT", true},
		{"https://chatgpt.com/oauth/codex/client.json", "http://127.0.0.1:9999/callback", "Codex", true},
		{"https://vscode.dev/oauth/client-metadata.json", "http://127.0.0.1:33418/", "Visual Studio Code", true},
		{"https://vscode.dev/oauth/client-metadata.json", "http://127.0.0.1:60000/", "Visual Studio Code", true},
		{"https://vscode.dev/oauth/client-metadata.json", "https://vscode.dev/redirect", "Visual Studio Code", true},
		{"https://claude.ai/oauth/mcp-oauth-client-metadata", "https://evil.example/", "", false},
		{"https://claude.ai/oauth/mcp-oauth-client-metadata", "http://localhost/callback", "", false},
		{"https://claude.ai/oauth/claude-code-client-metadata", "https://claude.ai/api/mcp/auth_callback", "", false},
		{"https://chatgpt.com/oauth/a/client.json", "https://chatgpt.com/connector/oauth/b", "", false},
		{"https://chatgpt.com/oauth/../client.json", "https://chatgpt.com/connector/oauth/..", "", false},
		{"https://chatgpt.com/oauth/a/b/client.json", "https://chatgpt.com/connector/oauth/a/b", "", false},
		{"https://chatgpt.com/oauth//client.json", "https://chatgpt.com/connector/oauth/", "", false},
		{"https://chatgpt.com.evil.example/oauth/client.json", "https://chatgpt.com/connector_platform_oauth_redirect", "", false},
		{"https://claude.ai/oauth/mcp-oauth-client-metadata/", "https://claude.ai/api/mcp/auth_callback", "", false},
	} {
		t.Run(tt.id+" "+tt.redirect, func(t *testing.T) {
			v := newVendor(t, http.NotFound)
			for _, s := range []*oauth.Server{serve(t, newMemory()), serve(t, newMemory(), withDocuments(v.client(t), &clock{t: now()}))} {
				r, err := s.Authorize(t.Context(), request("client_id", tt.id, "redirect_uri", tt.redirect))
				// Attack: any program on a person's machine may name the document.
				if tt.known && (err != nil || r.Client.Name != tt.name || r.Known == (r.Loopback || strings.HasSuffix(r.RedirectHost, "vscode.dev")) || r.Client.Kind != auth.ClientDocument || v.asked.Load() != 0) || !tt.known && err == nil {
					t.Errorf("%+v, %v, asked %d times", r, err, v.asked.Load())
				}
			}
		})
	}
}

func TestPinnedDocumentThatChangedIsFetched(t *testing.T) {
	const id, moved = "https://claude.ai/oauth/mcp-oauth-client-metadata", "https://claude.example/callback"
	v := newVendor(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"client_id":"`+id+`","client_name":"Claude","redirect_uris":["`+moved+`"]}`)
	})
	c := v.client(t)
	c.Transport.(counted).TLSClientConfig.InsecureSkipVerify = true // the name in the certificate does not matter here
	r, err := serve(t, newMemory(), withDocuments(c, &clock{t: now()})).Authorize(t.Context(), request("client_id", id, "redirect_uri", moved))
	if err != nil || r.Client.Name != "Claude" || r.Known || v.asked.Load() != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestAttackDocumentsOfTheServersOwnNetwork(t *testing.T) {
	var arrived atomic.Int64
	v := newVendor(t, func(w http.ResponseWriter, r *http.Request) {
		arrived.Add(1)
		good(w, r)
	})
	pool := x509.NewCertPool()
	pool.AddCert(v.Certificate())
	_, port, _ := net.SplitHostPort(v.Listener.Addr().String())
	at := netip.MustParseAddrPort(v.Listener.Addr().String())
	names := egresstest.Answers{
		"example.com":          {egresstest.Addrs("127.0.0.1")},
		"private.example.com":  {egresstest.Addrs("10.0.0.1")},
		"metadata.example.com": {egresstest.Addrs("169.254.169.254")},
		"six.example.com":      {egresstest.Addrs("::1")},
		"mapped.example.com":   {egresstest.Addrs("::ffff:127.0.0.1")},
		"unique.example.com":   {egresstest.Addrs("fd00::1")},
	}
	client := func(allow ...netip.Prefix) *http.Client {
		c := egress.NewClient(egress.Options{Ports: []uint16{at.Port()}, Resolver: egresstest.Resolver(t, names), Allow: allow}, &tls.Config{RootCAs: pool})
		t.Cleanup(c.CloseIdleConnections)
		return c
	}
	s := serve(t, newMemory(), withDocuments(client(), &clock{t: now()}))
	for _, host := range append(slices.Collect(maps.Keys(names)), "127.0.0.1", "[::1]", "10.0.0.1", "169.254.169.254", "[fd00::1]") {
		var p *oauth.PageError
		id := "https://" + host + ":" + port + "/client.json"
		_, err := s.Authorize(t.Context(), request("client_id", id))
		if !errors.As(err, &p) || p.Status != 503 {
			t.Errorf("%s: %v", host, err)
		}
		var blocked *egress.BlockedError
		if !errors.As(err, &blocked) {
			t.Errorf("%s: refused for another reason: %v", host, err)
		}
		if p != nil && p.Text != "The application's description could not be fetched from "+id+"." {
			t.Errorf("the page tells about the network: %s", p.Text)
		}
	}
	if n := arrived.Load(); n != 0 {
		t.Errorf("the server's own network was asked %d times", n)
	}
	// If the operator allows the address, the request arrives. Otherwise the test would
	// prove nothing.
	s = serve(t, newMemory(), withDocuments(client(netip.MustParsePrefix("127.0.0.0/8")), &clock{t: now()}))
	if _, err := s.Authorize(t.Context(), request("client_id", "https://example.com:"+port+"/client.json")); err != nil || arrived.Load() != 1 {
		t.Errorf("%v, asked %d times", err, arrived.Load())
	}
}
