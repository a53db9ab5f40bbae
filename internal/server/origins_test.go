package server

import (
	"encoding/json"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"satchel/internal/config"
)

// Where people and clients are told to go comes from the configuration and the
// listener alone.
func TestOrigins(t *testing.T) {
	for _, c := range []struct {
		name         string
		cfg          config.Server
		addr         configured
		base, issuer string
		aliases      []string
	}{
		{"loopback", config.Server{}, "127.0.0.1:8080", "http://127.0.0.1:8080", "http://localhost:8080", []string{"http://127.0.0.1:8080/mcp", "http://[::1]:8080/mcp"}},
		{"loopback of IPv6", config.Server{}, "[::1]:8080", "http://[::1]:8080", "http://localhost:8080", []string{"http://127.0.0.1:8080/mcp", "http://[::1]:8080/mcp"}},
		{"another loopback address", config.Server{}, "127.0.0.2:80", "http://127.0.0.2", "http://localhost", []string{"http://127.0.0.1/mcp", "http://[::1]/mcp", "http://127.0.0.2/mcp"}},
		{"all addresses", config.Server{}, "[::]:8080", "http://127.0.0.1:8080", "http://localhost:8080", []string{"http://127.0.0.1:8080/mcp", "http://[::1]:8080/mcp"}},
		{"an address of a network", config.Server{}, "192.0.2.7:8080", "http://192.0.2.7:8080", "http://192.0.2.7:8080", nil},
		{"a public URL", config.Server{PublicURL: "https://satchel.example"}, "127.0.0.1:8080", "https://satchel.example", "https://satchel.example", nil},
		{"a domain, whatever port it is served on", config.Server{Domain: "satchel.example", HTTPSListen: ":8443"}, "127.0.0.1:8080", "https://satchel.example", "https://satchel.example", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := originsOf(c.cfg, c.addr)
			if o.base != c.base || o.issuer != c.issuer || !slices.Equal(o.aliases(), c.aliases) {
				t.Errorf("base %s, issuer %s, aliases %v", o.base, o.issuer, o.aliases())
			}
			if o.resource() != c.issuer+"/mcp" {
				t.Errorf("resource %s", o.resource())
			}
		})
	}
}

// A client compares the resource with what its user typed, so each name of
// loopback has its own; what a stranger writes into Host is never repeated.
func TestOriginOfAHost(t *testing.T) {
	local := originsOf(config.Server{}, configured("127.0.0.1:8080"))
	public := originsOf(config.Server{PublicURL: "https://satchel.example"}, configured("127.0.0.1:8080"))
	for _, c := range []struct {
		o          origins
		host, want string
	}{
		{local, "127.0.0.1:8080", "http://127.0.0.1:8080"},
		{local, "[::1]:8080", "http://[::1]:8080"},
		{local, "localhost:8080", "http://localhost:8080"},
		{local, "evil.example", "http://localhost:8080"},
		{local, "127.0.0.1:9", "http://localhost:8080"},
		{public, "127.0.0.1:8080", "https://satchel.example"},
		{public, "evil.example", "https://satchel.example"},
	} {
		if got := c.o.at(c.host); got != c.want {
			t.Errorf("under %s it is %s, want %s", c.host, got, c.want)
		}
	}
}

// A server on loopback tells each client of the name by which it came: in metadata, in
// challenges and in links. Any other host gets none of its own into them, and a token
// is good under every name.
func TestEachNameOfLoopbackIsTheWholeServer(t *testing.T) {
	r := boot(t, settings(t))
	_, port, _ := net.SplitHostPort(r.listener.Addr().String())
	token := r.granted("ann", r.resource()).Access.Reveal()
	ask := func(method, host, path, body string, into any) (status int, challenge string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+r.listener.Addr().String()+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		for k, v := range map[string]string{"Content-Type": "application/json", "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "fetch"} {
			req.Header.Set(k, v)
		}
		if method == http.MethodPost || path == "/api" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if into != nil {
			if err := json.NewDecoder(res.Body).Decode(into); err != nil {
				t.Fatalf("%s at %s: %d, %v", path, host, res.StatusCode, err)
			}
		}
		return res.StatusCode, res.Header.Get("WWW-Authenticate")
	}
	const fetch = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"fetch","arguments":{"id":"resources/instructions.md"},"_meta":{
		"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	for host, origin := range map[string]string{
		"localhost:" + port: "http://localhost:" + port, "127.0.0.1:" + port: "http://127.0.0.1:" + port, "[::1]:" + port: "http://[::1]:" + port,
		"127.0.0.1:1": "http://localhost:" + port, "192.0.2.1:" + port: "http://localhost:" + port,
	} {
		var resource struct {
			Resource string   `json:"resource"`
			Servers  []string `json:"authorization_servers"`
		}
		ask(http.MethodGet, host, "/.well-known/oauth-protected-resource/mcp", "", &resource)
		if resource.Resource != origin+"/mcp" || !slices.Equal(resource.Servers, []string{origin}) {
			t.Errorf("at %s the resource is %+v", host, resource)
		}
		var server struct {
			Issuer    string   `json:"issuer"`
			Authorize string   `json:"authorization_endpoint"`
			Token     string   `json:"token_endpoint"`
			Register  string   `json:"registration_endpoint"`
			Revoke    string   `json:"revocation_endpoint"`
			Resources []string `json:"protected_resources"`
		}
		ask(http.MethodGet, host, "/.well-known/oauth-authorization-server", "", &server)
		if server.Issuer != origin || !slices.Equal(server.Resources, []string{resource.Resource}) {
			t.Errorf("at %s the authorization server is %+v", host, server)
		}
		for _, endpoint := range []string{server.Authorize, server.Token, server.Register, server.Revoke} {
			if !strings.HasPrefix(endpoint, origin+"/") {
				t.Errorf("at %s an endpoint is %s", host, endpoint)
			}
		}
		var index struct{ Links map[string]string }
		ask(http.MethodGet, host, "/api", "", &index)
		var document struct{ Servers []struct{ URL string } }
		ask(http.MethodGet, host, "/api/openapi.json", "", &document)
		if index.Links["self"] != origin+"/api" || len(document.Servers) != 1 || document.Servers[0].URL != origin {
			t.Errorf("at %s the API is at %q, %+v", host, index.Links["self"], document.Servers)
		}
		var page struct {
			Result struct{ StructuredContent struct{ URL string } }
		}
		if status, _ := ask(http.MethodPost, host, "/mcp", fetch, &page); status != http.StatusOK || !strings.HasPrefix(page.Result.StructuredContent.URL, origin+"/") {
			t.Errorf("at %s fetch is answered %d with a page at %q", host, status, page.Result.StructuredContent.URL)
		}
		if _, challenge := ask(http.MethodGet, host, "/mcp", "", nil); !strings.Contains(challenge, `resource_metadata="`+origin+"/") {
			t.Errorf("at %s the challenge is %s", host, challenge)
		}
	}
	for _, path := range []string{"/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-authorization-server", "/api/openapi.json", "/mcp"} {
		if status, _ := ask(http.MethodGet, "evil.example:"+port, path, "", nil); status != http.StatusForbidden {
			t.Errorf("%s under a stranger's name is answered %d", path, status)
		}
	}
}
