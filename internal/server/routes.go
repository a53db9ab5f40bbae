package server

import (
	"fmt"
	"net"
	"net/http"
	"net/url"

	"satchel/mcp"
)

// routes returns the handler of the public address.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	// watched notes the refused requests of clients that connect, so that the pages can say why
	// a client fails.
	watched := func(next http.Handler) http.Handler { return s.signals.refused.watch(s.addressOf, next) }
	mux.Handle("/mcp", watched(s.mcp))
	metadata := s.named(s.resourceMetadata())
	mux.Handle("/.well-known/oauth-protected-resource", metadata)
	mux.Handle("/.well-known/oauth-protected-resource/mcp", metadata)
	if s.oauth != nil {
		h := s.named(s.oauth.Handler())
		mux.Handle("/.well-known/oauth-authorization-server", h)
		mux.Handle("/.well-known/oauth-authorization-server/mcp", h)
		mux.Handle("/oauth/token", watched(h))
		mux.Handle("/oauth/register", watched(h))
		mux.Handle("/oauth/revoke", h)
	}
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "ok")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if !s.ready.Load() {
			http.Error(w, "not ready", http.StatusServiceUnavailable)
			return
		}
		if s.limitDiscovery(w, r) {
			return
		}
		if err := s.DB.Ping(r.Context()); err != nil {
			s.Log.WarnContext(r.Context(), "the database does not answer", "err", err)
			http.Error(w, "the database does not answer", http.StatusServiceUnavailable)
			return
		}
		if why := s.unwritable.why(r.Context(), s.Core); why != "" {
			http.Error(w, why, http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	s.routeWebhook(mux)
	s.routeAPI(mux)
	mux.Handle("/", s.named(s.pages.Handler()))
	return mux
}

// allowedHosts returns the host names that requests may have: the configured ones and the
// host of the public URL.
func (s *Server) allowedHosts() []string {
	hosts := append([]string(nil), s.Config.Server.AllowedHosts...)
	if u, err := url.Parse(s.issuer); err == nil && u.Hostname() != "" && net.ParseIP(u.Hostname()) == nil {
		hosts = append(hosts, u.Hostname())
	}
	return hosts
}

// hostNames returns the host names that a request may have if it is not for the MCP endpoint: the
// allowed hosts, and the hosts of the addresses on which the server listens.
func (s *Server) hostNames() []string {
	allowed := s.allowedHosts()
	for _, addr := range []string{s.Config.Server.Listen, s.Config.Server.Metrics} {
		if host, _, err := net.SplitHostPort(addr); err == nil && host != "" {
			allowed = append(allowed, host)
		}
	}
	return allowed
}

// named refuses requests with an unknown Host, as the MCP endpoint does. With DNS
// rebinding, a page could otherwise reach the server under the name of the page's site and
// read what needs no key.
func (s *Server) named(next http.Handler) http.Handler {
	allowed := s.hostNames()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !mcp.HostAllowed(r.Host, allowed) {
			http.Error(w, "The server is not known under this name; see server.allowed_hosts.", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}
