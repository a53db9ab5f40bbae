package app

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
)

// bodies limits the memory for the bodies of webhooks. Anybody can send a body, even slowly.
// Only its signature proves the sender, and checking the signature requires the whole body.
type bodies struct {
	most  int   // maximum number of bodies at once
	bytes int64 // maximum size of all bodies together

	mu    sync.Mutex
	all   held
	of    map[string]held // by address: the bodies from this address
	freed chan struct{}   // closed and replaced when a body leaves
}

type held struct {
	n     int
	bytes int64
}

func newBodies(most int, bytes int64) *bodies {
	return &bodies{most: most, bytes: bytes, of: map[string]held{}, freed: make(chan struct{})}
}

// enter waits until there is room for a body of size bytes, or until ctx ends. One address
// gets at most a quarter of the room, or a single larger body, so that other addresses find
// room. A body always fits if there are no others.
func (b *bodies) enter(ctx context.Context, address string, size int64) (leave func(), ok bool) {
	fits := func(h held, n int, bytes int64) bool { return h.n == 0 || h.n < n && h.bytes+size <= bytes }
	for {
		b.mu.Lock()
		if fits(b.all, b.most, b.bytes) && fits(b.of[address], b.most/4, b.bytes/4) {
			b.take(address, 1, size)
			b.mu.Unlock()
			return sync.OnceFunc(func() { b.leave(address, size) }), true
		}
		freed := b.freed
		b.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil, false
		case <-freed:
		}
	}
}

func (b *bodies) leave(address string, size int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.take(address, -1, -size)
	close(b.freed)
	b.freed = make(chan struct{})
}

// take adds n bodies with size bytes to the counts. The caller holds the lock.
func (b *bodies) take(address string, n int, size int64) {
	h := b.of[address]
	b.all, h = held{b.all.n + n, b.all.bytes + size}, held{h.n + n, h.bytes + size}
	if b.of[address] = h; h.n == 0 {
		delete(b.of, address)
	}
}

var errLargeBody = errors.New("the body is larger than any event")

// readBody reads a body of at most size bytes, with one allocation.
func readBody(r *http.Request, size int64) ([]byte, error) {
	buf := make([]byte, size)
	n, err := io.ReadFull(r.Body, buf)
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF) || err == io.EOF:
		if r.ContentLength >= 0 && int64(n) < r.ContentLength {
			return nil, io.ErrUnexpectedEOF
		}
	case err != nil:
		return nil, err
	case r.ContentLength < 0:
		if more, _ := io.ReadFull(r.Body, make([]byte, 1)); more > 0 {
			return nil, errLargeBody
		}
	}
	return buf[:n], nil
}
