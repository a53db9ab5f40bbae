package app

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
)

// routes are what the public address serves.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/mcp", s.mcp)
	mux.Handle("/.well-known/oauth-protected-resource", s.mcp)
	mux.Handle("/.well-known/oauth-protected-resource/mcp", s.mcp)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "ok")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if !s.ready.Load() {
			http.Error(w, "not ready", http.StatusServiceUnavailable)
			return
		}
		if err := s.DB.Ping(r.Context()); err != nil {
			s.Log.WarnContext(r.Context(), "the database does not answer", "err", err)
			http.Error(w, "the database does not answer", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "Satchel serves MCP at %s\n", s.URL())
	})
	return mux
}

// allowedHosts are the names under which requests are taken: the configured
// ones, and the public URL's.
func (s *Server) allowedHosts() []string {
	hosts := append([]string(nil), s.Config.Server.AllowedHosts...)
	if u, err := url.Parse(s.Config.Server.PublicURL); err == nil && u.Hostname() != "" && net.ParseIP(u.Hostname()) == nil {
		hosts = append(hosts, u.Hostname())
	}
	return hosts
}
