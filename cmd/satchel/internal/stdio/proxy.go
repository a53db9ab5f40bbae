package stdio

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"sync"
	"syscall"
	"time"
)

// Options says between what a proxy carries messages.
type Options struct {
	URL   string // the server's MCP endpoint
	Token string // an API key
	In    io.Reader
	Out   io.Writer
	Log   *slog.Logger

	// MaxMessage bounds one line of In, in bytes. Default 8 MiB.
	MaxMessage int
	// Patience is how long a request waits for a server that refuses
	// connections (it may be restarting) before it fails. Default 10 s.
	Patience time.Duration
	// Drain is how long requests may still run once In has ended. Default 30 s.
	Drain time.Duration
	// Client makes the requests. Default: a client without a time limit, since
	// a command may take minutes.
	Client *http.Client
}

// Run carries messages until In ends or ctx does, and returns after every
// goroutine of its own. Its error is In's or Out's.
func Run(ctx context.Context, o Options) error {
	if o.MaxMessage == 0 {
		o.MaxMessage = 8 << 20
	}
	if o.Patience == 0 {
		o.Patience = 10 * time.Second
	}
	if o.Drain == 0 {
		o.Drain = 30 * time.Second
	}
	if o.Client == nil {
		o.Client = &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}
		defer o.Client.CloseIdleConnections()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	p := &proxy{Options: o, inflight: map[string]context.CancelFunc{}, fail: cancel}
	defer p.wg.Wait()
	defer cancel(nil)

	lines := p.readLines(ctx)
	for {
		select {
		case <-ctx.Done():
			return p.reason(ctx)
		case line, ok := <-lines:
			if !ok {
				p.drain(ctx)
				p.endSession()
				return p.reason(ctx)
			}
			p.handle(ctx, parse(line))
		}
	}
}

// proxy is the state of one Run.
type proxy struct {
	Options
	fail context.CancelCauseFunc // ends Run with an error
	wg   sync.WaitGroup          // every goroutine
	busy sync.WaitGroup          // requests that have no answer yet

	out      sync.Mutex // serialises lines of Out
	renewing sync.Mutex // serialises renew

	mu         sync.Mutex
	session    string
	version    string // that initialize agreed on
	initialize []byte // the client's, to begin a session anew
	listening  bool
	inflight   map[string]context.CancelFunc // by request id
}

// reason is Run's error: nil where it was asked to end.
func (p *proxy) reason(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// readLines reads In in a goroutine of its own, since a read of standard input
// cannot be interrupted; that goroutine alone may outlive Run, until In ends.
func (p *proxy) readLines(ctx context.Context) <-chan []byte {
	lines := make(chan []byte)
	go func() {
		defer close(lines)
		s := bufio.NewScanner(p.In)
		s.Buffer(make([]byte, 0, 64<<10), p.MaxMessage)
		for s.Scan() {
			line := bytes.TrimSpace(s.Bytes())
			if len(line) == 0 {
				continue
			}
			select {
			case lines <- bytes.Clone(line):
			case <-ctx.Done():
				return
			}
		}
		if err := s.Err(); err != nil {
			p.fail(fmt.Errorf("read a message: %w", err))
		}
	}()
	return lines
}

// handle passes one message on. Requests run beside each other; initialize
// and notifications keep their order.
func (p *proxy) handle(ctx context.Context, m message) {
	switch {
	case m.Method == "initialize":
		p.mu.Lock()
		p.initialize, p.session, p.version = m.raw, "", ""
		p.mu.Unlock()
		p.request(ctx, m)
		p.listen(ctx)
	case m.isRequest():
		ctx, cancel := context.WithCancel(ctx)
		p.mu.Lock()
		p.inflight[string(m.ID)] = cancel
		p.mu.Unlock()
		p.busy.Add(1)
		p.wg.Go(func() {
			defer p.busy.Done()
			defer cancel()
			p.request(ctx, m)
			p.mu.Lock()
			delete(p.inflight, string(m.ID))
			p.mu.Unlock()
		})
	case m.Method == "notifications/cancelled" && p.sessionless():
		// Without a session a cancellation is the end of the request's
		// connection (2026-07-28, "Cancellation"): the server must not believe
		// an id that any client may use.
		p.mu.Lock()
		if cancel, ok := p.inflight[string(m.Params.RequestID)]; ok {
			cancel()
		}
		p.mu.Unlock()
	default:
		p.request(ctx, m)
	}
}

func (p *proxy) sessionless() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.session == ""
}

// request posts one message and writes every message that answers it.
func (p *proxy) request(ctx context.Context, m message) {
	res, err := p.post(ctx, m)
	if err == nil && res.StatusCode == http.StatusNotFound && m.Method != "initialize" && p.renew(ctx, res) {
		res, err = p.post(ctx, m)
	}
	if err != nil {
		if ctx.Err() == nil && m.isRequest() {
			p.Log.Warn("request failed", "method", m.Method, "err", err)
			p.write(failure(m.ID, fmt.Sprintf("No Satchel server answers at %s. Start one with: satchel serve", p.URL)))
		}
		return
	}
	defer res.Body.Close()
	answered := p.copyAnswers(ctx, m, res)
	if !answered && m.isRequest() && ctx.Err() == nil {
		p.write(failure(m.ID, explain(res.StatusCode)))
	}
}

func explain(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "Satchel refused the API key. Make a new one with: satchel token create --user NAME"
	case http.StatusTooManyRequests:
		return "Satchel is asked too often; try again in a moment."
	}
	return fmt.Sprintf("Satchel answered with HTTP status %d and no message.", status)
}

// post sends m, waiting for a server that refuses connections.
func (p *proxy) post(ctx context.Context, m message) (*http.Response, error) {
	deadline := time.Now().Add(p.Patience)
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL, bytes.NewReader(m.raw))
		if err != nil {
			return nil, err
		}
		p.header(req.Header, m)
		res, err := p.Client.Do(req)
		if err == nil || !errors.Is(err, syscall.ECONNREFUSED) || time.Now().After(deadline) {
			return res, err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (p *proxy) header(h http.Header, m message) {
	p.mu.Lock()
	session, version := p.session, p.version
	p.mu.Unlock()
	h.Set("Authorization", "Bearer "+p.Token)
	h.Set("Content-Type", "application/json")
	h.Set("Accept", "application/json, text/event-stream")
	if v := m.version(); v != "" {
		h.Set("MCP-Protocol-Version", v)
		h.Set("Mcp-Method", headerValue(m.Method))
		if t := m.target(); t != "" {
			h.Set("Mcp-Name", headerValue(t))
		}
		return
	}
	if m.Method == "initialize" {
		return // it begins a session
	}
	if version != "" {
		h.Set("MCP-Protocol-Version", version)
	}
	if session != "" {
		h.Set("Mcp-Session-Id", session)
	}
}

// copyAnswers writes the messages of a response and tells whether one of them
// answers m.
func (p *proxy) copyAnswers(ctx context.Context, m message, res *http.Response) bool {
	answered := false
	emit := func(data []byte) {
		a := parse(data)
		if a.Method == "" && (a.hasID() || res.StatusCode >= 400) {
			answered = true
		}
		if m.Method == "initialize" && a.Result != nil {
			p.mu.Lock()
			p.session, p.version = res.Header.Get("Mcp-Session-Id"), a.Result.ProtocolVersion
			p.mu.Unlock()
		}
		p.write(data)
	}
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	switch kind {
	case "text/event-stream":
		if err := readEvents(res.Body, p.MaxMessage, emit); err != nil && ctx.Err() == nil {
			p.Log.Warn("stream broke", "method", m.Method, "err", err)
		}
	case "application/json":
		body, err := io.ReadAll(io.LimitReader(res.Body, int64(p.MaxMessage)+1))
		if err != nil || len(body) > p.MaxMessage {
			return false
		}
		if data := withID(body, m.ID); data != nil && m.isRequest() {
			emit(data)
		}
	}
	return answered
}

// withID returns a JSON-RPC message on one line, and nil where body is none. An
// error without an id (the server refused the request before it read it) gets
// the request's, since standard output has no other way to tell which one it
// answers.
func withID(body []byte, id json.RawMessage) []byte {
	var m map[string]json.RawMessage
	if json.Unmarshal(body, &m) != nil || m["jsonrpc"] == nil {
		var batch []json.RawMessage
		if json.Unmarshal(body, &batch) != nil {
			return nil
		}
	} else if _, isError := m["error"]; isError && (len(m["id"]) == 0 || string(m["id"]) == "null") && len(id) > 0 {
		m["id"] = id
		body, _ = json.Marshal(m)
	}
	var line bytes.Buffer
	if json.Compact(&line, body) != nil {
		return nil
	}
	return line.Bytes()
}

// write puts one message on a line of Out. A client that is gone ends Run.
func (p *proxy) write(data []byte) {
	p.out.Lock()
	defer p.out.Unlock()
	if _, err := p.Out.Write(append(data, '\n')); err != nil {
		p.fail(fmt.Errorf("write a message: %w", err))
	}
}

// drain waits for requests that still run, but not for ever.
func (p *proxy) drain(ctx context.Context) {
	done := make(chan struct{})
	p.wg.Go(func() { p.busy.Wait(); close(done) })
	select {
	case <-done:
	case <-ctx.Done():
	case <-time.After(p.Drain):
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, cancel := range p.inflight {
			cancel()
		}
	}
}
