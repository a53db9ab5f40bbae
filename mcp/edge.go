package mcp

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// HostAllowed reports whether a request with this Host may reach a server with these names.
// A hostile page can point a host name of its own at the server (DNS rebinding), but not an
// IP address or localhost. So these are always allowed. The server's other handlers use the
// same rule.
func HostAllowed(host string, names []string) bool {
	name := hostname(host)
	if name == "" {
		return false
	}
	if _, err := netip.ParseAddr(name); err == nil || isLocalhost(name) {
		return true
	}
	return slices.ContainsFunc(names, func(h string) bool { return strings.EqualFold(h, name) })
}

// originAllowed reports whether a page of this origin may call the server. Requests without an
// Origin do not come from a page, and are not checked.
func (s *Server) originAllowed(origin, host string) bool {
	if slices.Contains(s.o.AllowedOrigins, origin) {
		return true
	}
	u, err := url.Parse(origin)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Scheme+"://"+u.Host != origin || u.Host == "" {
		return false
	}
	if isLocalhost(u.Hostname()) {
		return true
	}
	if a, err := netip.ParseAddr(u.Hostname()); err == nil && a.IsLoopback() {
		return true
	}
	return strings.EqualFold(u.Host, host)
}

func hostname(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	return strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"), ".")
}

func isLocalhost(name string) bool {
	name = strings.ToLower(name)
	return name == "localhost" || strings.HasSuffix(name, ".localhost")
}

// corsHeaders are the request headers that pages may send.
const corsHeaders = "Authorization, Content-Type, Accept, MCP-Protocol-Version, Mcp-Method, Mcp-Name, Mcp-Session-Id, Last-Event-ID"

// cors sets the headers that let pages of an allowed origin call the server. If the request is a
// preflight, cors answers it and returns true.
func cors(w http.ResponseWriter, r *http.Request, origin string) bool {
	h := w.Header()
	h.Add("Vary", "Origin")
	if origin != "" {
		h.Set("Access-Control-Allow-Origin", origin)
		h.Set("Access-Control-Expose-Headers", "Mcp-Session-Id, WWW-Authenticate, Retry-After")
	}
	if r.Method != http.MethodOptions {
		return false
	}
	h.Set("Allow", "POST, GET, DELETE, OPTIONS")
	if origin != "" {
		h.Set("Access-Control-Allow-Methods", "POST, GET, DELETE")
		h.Set("Access-Control-Allow-Headers", allowedHeaders(r.Header.Get("Access-Control-Request-Headers")))
		h.Set("Access-Control-Max-Age", "600")
	}
	w.WriteHeader(http.StatusNoContent)
	return true
}

// allowedHeaders adds the Mcp-Param-* headers that a page asks for to the fixed headers.
// The tools decide which Mcp-Param-* headers there are.
func allowedHeaders(asked string) string {
	allowed := corsHeaders
	for name := range strings.SplitSeq(asked, ",") {
		name = strings.TrimSpace(name)
		if len(name) <= 64 && strings.HasPrefix(strings.ToLower(name), "mcp-param-") && isToken(name) {
			allowed += ", " + name
		}
	}
	return allowed
}

func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_')
	})
}
