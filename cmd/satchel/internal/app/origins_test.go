package app

import (
	"slices"
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
		{"another loopback address", config.Server{}, "127.0.0.2:80", "http://127.0.0.2:80", "http://localhost:80", []string{"http://127.0.0.1:80/mcp", "http://[::1]:80/mcp", "http://127.0.0.2:80/mcp"}},
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
