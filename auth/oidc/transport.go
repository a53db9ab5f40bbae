package oidc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
)

var errOversized = errors.New("oidc: the answer is too long")

// outageError is a response in which the issuer reports an outage.
type outageError struct{ status string }

func (e *outageError) Error() string { return "oidc: the issuer answered " + e.status }

// transport limits the size of responses, and returns an error if a response reports an
// outage. Its requests end when its owner closes it. This is necessary because go-oidc
// reads bodies without a limit, and fetches keys in a goroutine without a context.
type transport struct {
	inner http.RoundTripper
	max   int64
	base  context.Context
	end   context.CancelFunc

	mu     sync.Mutex
	closed bool
	wg     sync.WaitGroup
}

func newTransport(inner http.RoundTripper, limit int64) *transport {
	t := &transport{inner: inner, max: limit}
	t.base, t.end = context.WithCancel(context.Background())
	return t
}

func (t *transport) close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.end()
	t.wg.Wait()
	if c, ok := t.inner.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return nil, errors.New("oidc: the provider is closed")
	}
	t.wg.Add(1)
	t.mu.Unlock()

	ctx, cancel := context.WithCancel(r.Context())
	stop := context.AfterFunc(t.base, cancel)
	done := func() { stop(); cancel(); t.wg.Done() }
	r = r.Clone(ctx)
	r.Header.Set("User-Agent", "satchel")
	resp, err := t.inner.RoundTrip(r)
	if err != nil {
		done()
		return nil, err
	}
	// Only the configuration and the keys are fetched without a credential. Any status except
	// 200 for these is an outage. Other responses may be refusals with a reason.
	document := r.Method == http.MethodGet && r.Header.Get("Authorization") == ""
	if resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests || document && resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		done()
		return nil, &outageError{resp.Status}
	}
	if resp.ContentLength > t.max {
		resp.Body.Close()
		done()
		return nil, fmt.Errorf("%w: %d bytes", errOversized, resp.ContentLength)
	}
	body := &bounded{body: resp.Body, left: t.max, done: sync.OnceFunc(done)}
	resp.Body = body
	if document {
		// Read the body here, because go-oidc turns a read error into text, which hides an
		// outage.
		b, err := io.ReadAll(body)
		body.Close()
		if err != nil {
			return nil, err
		}
		resp.Body = io.NopCloser(bytes.NewReader(b))
	}
	return resp, nil
}

type bounded struct {
	body io.ReadCloser
	left int64
	done func()
}

func (b *bounded) Read(p []byte) (int, error) {
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.body.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, errOversized
	}
	return n, err
}

func (b *bounded) Close() error {
	err := b.body.Close()
	b.done()
	return err
}
