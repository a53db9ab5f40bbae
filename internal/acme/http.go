package acme

import (
	"io"
	"net/http"
	"strings"
)

// HTTPHandler returns what the plain http listener serves: the authority's http-01
// challenge (RFC 8555 section 8.3), and to everybody else the way to https. GET
// and HEAD are redirected to our own name, whatever Host says; anything else is
// refused, since what it carries, a token among it, has already been sent in the
// clear and must not seem to work. Strict-Transport-Security is never set here
// (RFC 6797 section 7.2). Once this is called, the manager offers that challenge.
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
			target = "/" // an opaque URL would go on with our name
		}
		http.Redirect(w, r, "https://"+m.o.Domain+target, http.StatusMovedPermanently)
	})
}
