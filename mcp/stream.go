package mcp

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// stream writes the answer to one request: one JSON document, or server-sent events if
// notifications precede the result. It is also mcp-go's http.ResponseWriter, and passes
// mcp-go's messages through rewrite.
//
// Calls write their own notifications and results, under one lock. So no message can be
// lost or overtake another.
type stream struct {
	w     http.ResponseWriter
	rc    *http.ResponseController
	write time.Duration // limit for one write
	// events reports that the client accepts text/event-stream.
	events bool
	// rewrite returns the message to send in place of each message of mcp-go, and its
	// status. If it is nil, messages are sent unchanged.
	rewrite func(status int, msg []byte) (int, []byte)
	// extra holds headers for every answer.
	extra http.Header
	// gone is closed when the client disconnects. Since protocol version 2026-07-28,
	// disconnecting cancels the request. For earlier versions, gone is nil.
	gone <-chan struct{}
	// withdrawn is set when the client cancels the request by a notification, as it does before
	// protocol version 2026-07-28. It needs no lock, so that a slow write does not delay it.
	withdrawn atomic.Bool

	mu      sync.Mutex
	state   streamState
	inner   http.Header // mcp-go's view of the header
	status  int         // the status that mcp-go wrote; not sent yet
	sse     bool        // mcp-go writes events
	beat    *time.Timer
	beatGap time.Duration
}

type streamState uint8

const (
	fresh  streamState = iota // nothing was sent
	events                    // the header of an event stream was sent
	done                      // nothing more is sent
)

func (s *Server) newStream(w http.ResponseWriter, r *http.Request) *stream {
	_, flushes := w.(http.Flusher)
	return &stream{w: w, rc: http.NewResponseController(w), write: s.o.WriteTimeout,
		events: flushes && accepts(r, "text/event-stream"), extra: make(http.Header), inner: make(http.Header)}
}

// accepts reports whether the request's Accept header allows the media type. Without the
// header, every type is allowed.
func accepts(r *http.Request, mediaType string) bool {
	values := r.Header.Values("Accept")
	if len(values) == 0 {
		return true
	}
	for part := range strings.SplitSeq(strings.Join(values, ","), ",") {
		name, _, _ := strings.Cut(part, ";")
		name = strings.ToLower(strings.TrimSpace(name))
		kind, _, _ := strings.Cut(mediaType, "/")
		if name == mediaType || name == "*/*" || name == kind+"/*" {
			return true
		}
	}
	return false
}

// notify sends a notification before the result. It does nothing if the client does not accept
// events or has cancelled the request, or if the answer was sent already.
func (t *stream) notify(method string, params any) {
	msg, err := encode(struct {
		JSONRPC string `json:"jsonrpc"`
		Method  string `json:"method"`
		Params  any    `json:"params"`
	}{"2.0", method, params})
	if err != nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state == done || !t.events || t.cancelled() {
		return
	}
	t.event(msg)
}

// reply sends the answer and ends the stream.
func (t *stream) reply(status int, msg []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.finish(status, msg)
}

func (t *stream) finish(status int, msg []byte) {
	switch cancelled := t.cancelled(); {
	case cancelled && t.state == fresh && t.events:
		t.raw(nil)
	case cancelled && t.state == fresh:
		t.header("", http.StatusAccepted)
	case cancelled:
	case t.state == events:
		t.event(msg)
	case t.state == fresh:
		t.header("application/json", status)
		t.bound()
		t.w.Write(append(msg, '\n'))
	}
	t.close()
}

// cancelled reports whether the client cancelled the request. Such a request has no
// response (2025-11-25, basic/utilities/cancellation; 2026-07-28,
// basic/patterns/cancellation), and an event stream ends without a response. A client that
// does not accept events still needs an HTTP answer. It gets 202 without a body, which is the
// transport's answer to messages without a response. The TypeScript and Python SDKs accept it.
func (t *stream) cancelled() bool {
	select {
	case <-t.gone:
		return true
	default:
		return t.withdrawn.Load()
	}
}

// accept answers with only a status, for notifications and DELETE.
func (t *stream) accept(status int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state == fresh {
		t.header("", status)
	}
	t.close()
}

// end is called when the handler returns. Nothing is written afterwards.
func (t *stream) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state == fresh {
		t.header("", max(t.status, http.StatusAccepted))
	}
	t.close()
}

func (t *stream) close() {
	t.state = done
	if t.beat != nil {
		t.beat.Stop()
	}
}

// keepAlive sends a comment whenever nothing was sent for gap, so that the client and
// proxies do not close the connection during a long call.
func (t *stream) keepAlive(gap time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.events || t.state == done {
		return
	}
	t.beatGap = gap
	t.beat = time.AfterFunc(gap, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.state != done {
			t.raw([]byte(": keep-alive\n\n"))
		}
	})
}

// open begins an event stream before its first event.
func (t *stream) open() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state == fresh {
		t.raw(nil)
	}
}

// header sends the status and the HTTP header, with the fields of extra.
func (t *stream) header(contentType string, status int) {
	h := t.w.Header()
	for name, values := range t.extra {
		h[name] = values
	}
	if contentType != "" {
		h.Set("Content-Type", contentType)
	}
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	t.w.WriteHeader(status)
}

// event sends one message as an event.
func (t *stream) event(msg []byte) {
	b := make([]byte, 0, len(msg)+32)
	b = append(b, "event: message\ndata: "...)
	b = append(b, msg...)
	t.raw(append(b, "\n\n"...))
}

// raw sends a part of an event stream. It starts the stream if nothing was sent before.
func (t *stream) raw(b []byte) {
	if t.state == fresh {
		// Without this header, proxies such as nginx buffer the answer.
		t.w.Header().Set("X-Accel-Buffering", "no")
		t.header("text/event-stream", http.StatusOK)
		t.state = events
	}
	t.bound()
	t.w.Write(b)
	t.rc.Flush()
	if t.beat != nil {
		t.beat.Reset(t.beatGap)
	}
}

// bound limits how long a client that does not read can block the next write. An error only means
// that the writer of a test has no deadlines.
func (t *stream) bound() { t.rc.SetWriteDeadline(time.Now().Add(t.write)) }

// Header implements http.ResponseWriter for mcp-go.
func (t *stream) Header() http.Header { return t.inner }

// WriteHeader implements http.ResponseWriter for mcp-go. It starts an event stream at once.
// For other answers it waits for the message, which decides the status.
func (t *stream) WriteHeader(status int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.status = status
	if strings.HasPrefix(t.inner.Get("Content-Type"), "text/event-stream") {
		t.sse = true
		if t.state == fresh {
			t.raw(nil)
		}
	}
}

// Write implements http.ResponseWriter for mcp-go, which writes each message and each
// plain-text error with one call.
func (t *stream) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state == done {
		return 0, http.ErrHandlerTimeout
	}
	if t.sse {
		_, data, _ := bytes.Cut(p, []byte("data: "))
		_, msg := t.rewritten(http.StatusOK, bytes.TrimRight(data, "\n"))
		if !t.cancelled() {
			t.event(msg)
		}
		return len(p), nil
	}
	msg := bytes.TrimSpace(p)
	if !json.Valid(msg) {
		msg = nil // plain text: rewrite turns it into an error
	}
	status, msg := t.rewritten(max(t.status, http.StatusOK), msg)
	t.finish(status, msg)
	return len(p), nil
}

func (t *stream) rewritten(status int, msg []byte) (int, []byte) {
	if t.rewrite == nil {
		return status, msg
	}
	return t.rewrite(status, msg)
}

// Flush implements http.Flusher for mcp-go. It does nothing, because every write is already
// flushed.
func (t *stream) Flush() {}
