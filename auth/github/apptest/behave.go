package apptest

import (
	"io"
	"maps"
	"net/http"
)

// Behaviour is what the server does otherwise than GitHub does on a good day. The
// zero value is a good day. Paths are such as "/login/oauth/access_token" or
// "/user/installations", without /api/v3; a path that ends in "*" stands for all
// that begin so. What is made up is not validated.
type Behaviour struct {
	Down    bool                   // every answer is 503
	Stall   <-chan struct{}        `json:"-"` // every answer waits for it
	Status  map[string]int         // by path: answer with it, and Message
	Header  map[string]http.Header // by path: with these headers
	Message string                 // of those answers
	Body    map[string]string      // by path: answer 200 with it
	// Garble changes an answer of the API after it was made, and before it is
	// validated.
	Garble func(path string, body map[string]any) `json:"-"`

	TokenError string // the error of the token response, with 200
	PerPage    int    // at most so many entries on a page of a list
	NoHooks    bool   // webhooks are made and not sent
}

// Behave says how the server behaves from now on.
func (s *Server) Behave(b Behaviour) { s.mu.Lock(); s.behaviour = b; s.mu.Unlock() }

// lookup finds what is set for a path.
func lookup[T any](m map[string]T, path string) (v T, ok bool) {
	if v, ok = m[path]; ok {
		return v, true
	}
	for pattern := range maps.Keys(m) {
		if n := len(pattern) - 1; n >= 0 && pattern[n] == '*' && len(path) >= n && path[:n] == pattern[:n] {
			return m[pattern], true
		}
	}
	return v, false
}

// misbehave answers in place of what is there, and tells whether it did.
func (s *Server) misbehave(w http.ResponseWriter, r *http.Request, path string) bool {
	s.mu.Lock()
	b := s.behaviour
	s.mu.Unlock()
	if b.Stall != nil {
		select {
		case <-b.Stall:
		case <-r.Context().Done():
			return true
		case <-s.closed:
			return true
		}
	}
	headers, _ := lookup(b.Header, path)
	maps.Copy(w.Header(), headers)
	status, hasStatus := lookup(b.Status, path)
	body, hasBody := lookup(b.Body, path)
	switch {
	case b.Down:
		http.Error(w, "No server is currently available to service your request.", http.StatusServiceUnavailable)
	case hasStatus:
		reply(w, status, object{"message": b.Message, "documentation_url": "https://docs.github.com/rest"})
	case hasBody:
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		io.WriteString(w, body)
	default:
		return false
	}
	return true
}
