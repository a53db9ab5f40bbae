package server

import (
	"net/http"
	"sync"
)

// gate counts the running requests of a handler. A closed http.Server does not wait for
// requests whose connection it closed.
type gate struct {
	mu      sync.Mutex
	running int
	closed  bool
	empty   chan struct{} // made by wait, closed when no request runs
}

// wrap counts next's requests. Once wait is called, it refuses new requests.
func (g *gate) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !g.enter() {
			http.Error(w, "the server is stopping", http.StatusServiceUnavailable)
			return
		}
		defer g.leave()
		next.ServeHTTP(w, r)
	})
}

func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.running++
	return true
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.running--; g.running == 0 && g.closed {
		close(g.empty)
	}
}

// wait refuses new requests, and returns when none runs. It is called once.
func (g *gate) wait() {
	g.mu.Lock()
	g.closed, g.empty = true, make(chan struct{})
	if g.running == 0 {
		close(g.empty)
	}
	g.mu.Unlock()
	<-g.empty
}
