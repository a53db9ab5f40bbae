package server

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// bodies limits the time that the body of a request may take to arrive. Without a limit,
// one address could use every file descriptor of the server with bodies that never arrive:
// net/http waits for the body even before it sends an answer that does not need the body,
// such as a refusal.
type bodies struct {
	within time.Duration

	mu    sync.Mutex
	ended bool
	// unread holds the connections, and the streams of HTTP/2, whose request is still
	// incomplete. Each has a function that ends the wait for the request.
	unread map[any]func()
}

func newBodies(within time.Duration) *bodies {
	return &bodies{within: within, unread: map[any]func(){}}
}

// server returns a server. b limits the time that the bodies of its requests may take.
func (b *bodies) server(g *signals, h http.Handler) *http.Server {
	srv := g.server(b.bound(h, b.within))
	srv.ConnState = b.changed
	srv.ConnContext = func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) }
	return srv
}

type connKey struct{}

// changed follows the state of connections. The request of a new connection is incomplete.
// An idle or closed connection has no request.
func (b *bodies) changed(c net.Conn, state http.ConnState) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case state != http.StateNew:
		delete(b.unread, c)
	case b.ended:
		_ = c.Close()
	default:
		b.unread[c] = func() { _ = c.Close() }
	}
}

// end ends the wait for incomplete requests, including requests that begin later. Handlers
// that read such a request get a deadline error.
func (b *bodies) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	for _, end := range b.unread {
		end()
	}
	clear(b.unread)
}

// bound limits the time that the body of a request may take. If the handler does not read
// the whole body, the deadline stays, because net/http then reads the rest.
func (b *bodies) bound(next http.Handler, within time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength == 0 || r.Body == nil || r.Body == http.NoBody {
			next.ServeHTTP(w, r)
			return
		}
		// The stream of an HTTP/2 request leaves b.unread when the handler returns. An HTTP/1
		// connection leaves it when the state of the connection changes.
		var from deadlined = http.NewResponseController(w)
		if c, ok := r.Context().Value(connKey{}).(net.Conn); ok && r.ProtoMajor == 1 {
			from = c
		} else {
			defer b.read(from)
		}
		if b.begin(from, within) == nil {
			r.Body = &boundBody{r.Body, b, from}
		}
		next.ServeHTTP(w, r)
	})
}

// deadlined is the source of a body: a connection or a stream.
type deadlined interface{ SetReadDeadline(time.Time) error }

func (b *bodies) begin(from deadlined, within time.Duration) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	past := func() { _ = from.SetReadDeadline(time.Unix(1, 0)) }
	if b.ended {
		past()
		return nil
	}
	b.unread[from] = past
	return from.SetReadDeadline(time.Now().Add(within))
}

// read removes the connection or stream of a body that has arrived.
func (b *bodies) read(from deadlined) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.unread, from)
}

type boundBody struct {
	io.ReadCloser
	b    *bodies
	from deadlined
}

// Read implements io.Reader. At the end of the body, it removes the deadline, because the
// answer may take longer.
func (r *boundBody) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if err == io.EOF {
		r.b.read(r.from)
		_ = r.from.SetReadDeadline(time.Time{})
	}
	return n, err
}
