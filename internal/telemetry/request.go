package telemetry

import (
	"context"
	"crypto/rand"
	"net/http"
)

// RequestIDHeader is the header of an answer with the id of its request, so that people can
// quote the id when they ask for help.
const RequestIDHeader = "X-Request-Id"

type requestIDKey struct{}

// NewRequestID returns a random id.
func NewRequestID() string { return rand.Text() }

// WithRequestID returns a context whose log records contain the id.
func WithRequestID(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, requestIDKey{}, id)
}

// RequestID returns the id of the request to which ctx belongs, or "".
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

// withRequestID gives a request a new id, in its context and in the answer. It ignores an id
// from the client, which could repeat another id or add text to logs.
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
