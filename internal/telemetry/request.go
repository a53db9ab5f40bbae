package telemetry

import (
	"context"
	"crypto/rand"
	"net/http"
)

// RequestIDHeader is the header in which an answer carries its request's id, so
// that a person can name it when they ask about it.
const RequestIDHeader = "X-Request-Id"

type requestIDKey struct{}

// NewRequestID returns a fresh random id.
func NewRequestID() string { return rand.Text() }

// WithRequestID returns a context whose log records carry the id.
func WithRequestID(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, requestIDKey{}, id)
}

// RequestID returns the id of the request that ctx belongs to, or "".
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

// withRequestID gives a request a fresh id, in its context and in the answer.
// One that the client sent is dropped: it could repeat another's, or carry text
// into logs.
func withRequestID(w http.ResponseWriter, r *http.Request) *http.Request {
	id := NewRequestID()
	w.Header().Set(RequestIDHeader, id)
	r = r.WithContext(WithRequestID(r.Context(), id))
	if r.Header.Get(RequestIDHeader) != "" {
		r.Header = r.Header.Clone()
		r.Header.Del(RequestIDHeader)
	}
	return r
}
