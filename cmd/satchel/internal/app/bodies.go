package app

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// bodies gives the body of every request its time, which nothing else does. Without,
// one address could hold every file descriptor of the server with bodies that
// never come: net/http waits for them also before it sends an answer that was
// written without reading any, such as a refusal.
type bodies struct {
	within time.Duration

	mu    sync.Mutex
	ended bool
	// unread has the connections, and of HTTP/2 the streams, whose request has not
	// come whole, each with what ends the wait for it.
	unread map[any]func()
}

func newBodies(within time.Duration) *bodies {
	return &bodies{within: within, unread: map[any]func(){}}
}

// server returns a server whose requests have the time of b for their bodies.
func (b *bodies) server(g *signals, h http.Handler) *http.Server {
	srv := g.server(b.bound(h, b.within))
	srv.ConnState = b.changed
	srv.ConnContext = func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) }
	return srv
}

type connKey struct{}

// changed follows connections: a new one has sent no request yet, and one that is
// idle or closed owes none.
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

// end waits for no request any more that has not come whole, now or later. Handlers
// that read one get the error of a deadline.
func (b *bodies) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	for _, end := range b.unread {
		end()
	}
	clear(b.unread)
}

// bound lets the body of a request take no longer than within. The deadline stays
// where the handler does not read to the end, since net/http then does.
func (b *bodies) bound(next http.Handler, within time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength == 0 || r.Body == nil || r.Body == http.NoBody {
			next.ServeHTTP(w, r)
			return
		}
		// What is left of a body that no handler read ends with the stream in HTTP/2,
		// and before that only with the connection's next state.
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

// deadlined is what a body is read from: a connection or a stream.
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

// read forgets what a body has come from.
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

// Read implements io.Reader. Once the body has come, an answer may take its time.
func (r *boundBody) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if err == io.EOF {
		r.b.read(r.from)
		_ = r.from.SetReadDeadline(time.Time{})
	}
	return n, err
}
