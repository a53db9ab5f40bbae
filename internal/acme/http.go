package acme

import (
	"io"
	"net/http"
	"strings"
)

// HTTPHandler returns the handler of the plain http listener. It answers the authority's
// http-01 challenge (RFC 8555 section 8.3). It redirects other GET and HEAD requests to
// https at our own name, whatever their Host is. It refuses all other requests: their
// content, such as a token, has already been sent unencrypted, and must not seem to work.
// It never sets Strict-Transport-Security (RFC 6797 section 7.2). After the call of HTTPHandler,
// the manager also uses the http-01 challenge.
func (m *Manager) HTTPHandler() http.Handler {
	m.http01.Store(true)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Connection", "close")
			http.Error(w, "Use https://"+m.o.Domain+". What was sent here could be read on its way: replace the token, if there was one.", http.StatusBadRequest)
			return
		}
		if strings.HasPrefix(r.URL.Path, "/.well-known/acme-challenge/") {
			c := m.challenge.Load()
			if c == nil || c.path == "" || c.path != r.URL.Path {
				http.NotFound(w, r)
				return
			}
			w.Header().Set("Content-Type", "application/octet-stream")
			w.Header().Set("Cache-Control", "no-store")
			io.WriteString(w, c.body)
			return
		}
		target := r.URL.RequestURI()
		if !strings.HasPrefix(target, "/") {
			target = "/" // an opaque URL would become part of the host name
		}
		http.Redirect(w, r, "https://"+m.o.Domain+target, http.StatusMovedPermanently)
	})
}
