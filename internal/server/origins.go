package server

import (
	"net"
	"net/url"
	"strings"

	"satchel/internal/config"
)

// origins are the URLs of a server. They come from the configuration and the listener. A
// request's host selects one of them and never adds one.
type origins struct {
	// base is the URL for clients on this machine. issuer is the URL of people's pages and
	// of the authorization server. base and issuer differ only for a server on loopback, whose
	// pages need a single name that cookies and passkeys accept.
	base, issuer string
	// local are further loopback URLs of the server.
	local []string
}

// originsOf returns the origins of a server that listens at addr.
func originsOf(cfg config.Server, addr net.Addr) origins {
	if cfg.PublicURL != "" {
		return origins{base: cfg.PublicURL, issuer: cfg.PublicURL}
	}
	if cfg.Domain != "" {
		// The certificate authority and clients use port 443, whatever port the server
		// listens on.
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

// PagesURL returns the URL of the pages from a configuration, as far as it is known before
// the server listens.
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

// resource returns the MCP endpoint as the audience of tokens (RFC 8707).
func (o origins) resource() string { return o.issuer + "/mcp" }

// aliases returns the MCP endpoint under the other loopback names of the server.
func (o origins) aliases() []string {
	var out []string
	for _, l := range o.local {
		out = append(out, l+"/mcp")
	}
	return out
}

// at returns the origin for a request's host. Clients compare it with the URL that their
// user typed. For an unknown host it returns the issuer.
func (o origins) at(host string) string {
	for _, l := range o.local {
		if u, err := url.Parse(l); err == nil && strings.EqualFold(u.Host, host) {
			return l
		}
	}
	return o.issuer
}
