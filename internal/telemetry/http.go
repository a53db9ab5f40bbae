package telemetry

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// HTTP measures and logs the requests of one server.
type HTTP struct {
	log      *slog.Logger
	latency  Histogram
	inFlight Gauge
}

// NewHTTP registers the metrics of a server's requests: satchel_http_request_duration_seconds
// by method, route and status, and satchel_http_requests_in_flight. log receives a debug record
// for each request; nil discards them.
func NewHTTP(m *Metrics, log *slog.Logger) *HTTP {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &HTTP{
		log: log,
		latency: m.Histogram("http_request_duration_seconds",
			"Time from a request's header to the end of its answer; listening event streams are not counted.",
			LatencyBuckets(), "method", "route", "status"),
		inFlight: m.Gauge("http_requests_in_flight", "Requests that are being answered, event streams included."),
	}
}

// Wrap gives each request an id (see RequestID), measures it and logs it. next should be the
// http.ServeMux itself, because the route is the pattern that it matched. The route is unknown
// if a handler in between passes a copy of the request to the mux.
//
// The http.ResponseWriter that next receives is an http.Flusher, and works with
// http.ResponseController.
func (h *HTTP) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begin := time.Now()
		r = withRequestID(w, r)
		rec := &recorder{ResponseWriter: w}
		h.inFlight.Add(1)
		ended := false
		defer func() {
			h.inFlight.Add(-1)
			if !ended && rec.status == 0 {
				rec.status = http.StatusInternalServerError // net/http turns the panic into a broken connection
			}
			h.done(r, rec, time.Since(begin))
		}()
		next.ServeHTTP(rec, r)
		ended = true
	})
}

func (h *HTTP) done(r *http.Request, rec *recorder, took time.Duration) {
	status := rec.status
	if status == 0 {
		status = http.StatusOK // the handler wrote nothing
	}
	method, route := r.Method, r.Pattern
	switch method {
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS":
	default:
		method = "other" // a client may send any method
	}
	if route == "" {
		route = "unmatched"
	}
	// How long a client listens says nothing about the server.
	if !(method == "GET" && strings.HasPrefix(rec.Header().Get("Content-Type"), "text/event-stream")) {
		h.latency.Observe(took.Seconds(), method, route, strconv.Itoa(status))
	}
	if !h.log.Enabled(r.Context(), slog.LevelDebug) {
		return
	}
	// The request's context may have ended, but its values are needed.
	h.log.LogAttrs(context.WithoutCancel(r.Context()), slog.LevelDebug, "request",
		slog.String("method", method), slog.String("route", route), slog.Int("status", status),
		slog.Int64("bytes", rec.bytes), slog.Duration("took", took))
}

// recorder records the status and the size of an answer.
type recorder struct {
	http.ResponseWriter
	status int
	bytes  int64
}

var _ http.Flusher = (*recorder)(nil)

func (r *recorder) WriteHeader(status int) {
	// A 1xx status comes before the answer, except 101, which is the answer.
	if r.status == 0 && (status >= 200 || status == http.StatusSwitchingProtocols) {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	n, err := r.ResponseWriter.Write(b)
	r.bytes += int64(n)
	return n, err
}

// Flush sends what was written, if the connection supports flushing.
func (r *recorder) Flush() {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	_ = http.NewResponseController(r.ResponseWriter).Flush() // fails only if the connection cannot flush
}

// Unwrap gives http.ResponseController access to the connection.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
