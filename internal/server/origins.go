package server

import (
	"net"
	"net/url"
	"strings"

	"satchel/internal/config"
)

// origins are the URLs under which a server is known. They come from the
// configuration and the listener. A request's host selects one of them and never adds
// one.
type origins struct {
	// base is the URL for clients on this machine, and issuer the URL of people's pages and
	// of the authorization server. They differ only for a server on loopback, whose pages
	// need a single name that cookies and passkeys accept.
	base, issuer string
	// local are more URLs of loopback under which clients may reach the server.
	local []string
}

// originsOf returns the origins of a server that listens at addr.
func originsOf(cfg config.Server, addr net.Addr) origins {
	if cfg.PublicURL != "" {
		return origins{base: cfg.PublicURL, issuer: cfg.PublicURL}
	}
	if cfg.Domain != "" {
		// The certificate authority and clients use 443, regardless of the port that we
		// listen on.
		return origins{base: "https://" + cfg.Domain, issuer: "https://" + cfg.Domain}
	}
	host, port, _ := net.SplitHostPort(addr.String())
	ip := net.ParseIP(host)
	if ip != nil && ip.IsUnspecified() {
		host, ip = "127.0.0.1", net.IPv4(127, 0, 0, 1)
	}
	// Clients leave out http's default port.
	at := func(host string) string { return "http://" + strings.TrimSuffix(net.JoinHostPort(host, port), ":80") }
	o := origins{base: at(host), issuer: at(host)}
	if ip != nil && ip.IsLoopback() {
		o.issuer = at("localhost")
		for _, name := range []string{"127.0.0.1", "::1"} {
			o.local = append(o.local, at(name))
		}
		if host != "127.0.0.1" && host != "::1" {
			o.local = append(o.local, at(host))
		}
	}
	return o
}

// PagesURL returns the address of the pages for a configuration, as far as it is known
// before the server listens.
func PagesURL(cfg *config.Config) string {
	return originsOf(cfg.Server, configured(cfg.Server.Listen)).issuer
}

// configured is an address as written in the configuration.
type configured string

func (c configured) Network() string { return "tcp" }
func (c configured) String() string {
	if strings.HasPrefix(string(c), ":") {
		return "127.0.0.1" + string(c)
	}
	return string(c)
}

// resource is the MCP endpoint as tokens name it (RFC 8707): their audience.
func (o origins) resource() string { return o.issuer + "/mcp" }

// aliases are what clients that reach us under another name of this machine call
// the same endpoint.
func (o origins) aliases() []string {
	var out []string
	for _, l := range o.local {
		out = append(out, l+"/mcp")
	}
	return out
}

// at returns the origin under which a request's host is known, which a client
// compares with what its user typed; the issuer for hosts that are none of ours.
func (o origins) at(host string) string {
	for _, l := range o.local {
		if u, err := url.Parse(l); err == nil && strings.EqualFold(u.Host, host) {
			return l
		}
	}
	return o.issuer
}
