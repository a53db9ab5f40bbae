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
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Target is where messages are sent: a server's MCP endpoint, with an API key.
type Target struct{ URL, Token string }

// Options describe the two ends of a proxy.
type Options struct {
	Target
	In  io.Reader
	Out io.Writer
	Log *slog.Logger

	// Reconnect returns the target to try next when the server refuses connections, or refuses
	// the key (keyRefused). It may be called many times, but never concurrently. It may return
	// the failed target. If Reconnect is nil, only Target is used.
	Reconnect func(ctx context.Context, failed Target, keyRefused bool) (Target, error)

	// MaxMessage limits one message in either direction, in bytes. Default 64 MiB, well above
	// what a server accepts.
	MaxMessage int
	// Patience is how long a request waits for a server that refuses connections, because the
	// server may be restarting. Default 10 s.
	Patience time.Duration
	// Drain is how long requests may still run after In has ended. Default 30 s.
	Drain time.Duration
	// Client sends the requests. Default: a client without a time limit, because a command may
	// take minutes.
	Client *http.Client
}

func (o Options) withDefaults() Options {
	if o.MaxMessage == 0 {
		o.MaxMessage = 64 << 20
	}
	if o.Patience == 0 {
		o.Patience = 10 * time.Second
	}
	if o.Drain == 0 {
		o.Drain = 30 * time.Second
	}
	if o.Client == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.MaxIdleConnsPerHost = 16 // enough for the concurrent calls of one client
		// If a kept HTTP/1 connection ends during a request, nobody knows whether the server
		// processed the request. A new connection is refused if the server has ended, so the
		// request can be sent again. HTTP/2 says which requests the server accepted.
		t.DisableKeepAlives = strings.HasPrefix(o.URL, "http:")
		o.Client = &http.Client{Transport: t}
	}
	if o.Client.CheckRedirect == nil {
		c := *o.Client
		// Following a redirect would turn a POST into a GET, and send the key elsewhere.
		c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		o.Client = &c
	}
	return o
}

// Run passes messages on until In or ctx ends. It returns after all its goroutines have ended,
// except the one that reads In: a read cannot be interrupted, so that goroutine ends with In.
// The error is that of In or Out.
func Run(ctx context.Context, o Options) error {
	o = o.withDefaults()
	defer o.Client.CloseIdleConnections()
	ctx, cancel := context.WithCancelCause(ctx)
	p := &proxy{Options: o, at: o.Target, inflight: map[string]*exchange{}, fail: cancel}
	defer p.endSession()
	defer p.wg.Wait()
	defer cancel(nil)

	lines := p.readLines(ctx)
	for {
		select {
		case <-ctx.Done():
			return p.reason(ctx)
		case l, ok := <-lines:
			if !ok {
				p.drain(ctx)
				return p.reason(ctx)
			}
			p.take(ctx, l)
		}
	}
}

// proxy is the state of one Run.
type proxy struct {
	Options
	fail context.CancelCauseFunc // ends Run with an error
	wg   sync.WaitGroup          // every goroutine except the one that reads In
	busy sync.WaitGroup          // requests that have no answer yet

	out        sync.Mutex // serialises lines of Out
	renewing   sync.Mutex // serialises renew
	connecting sync.Mutex // serialises reconnect

	mu         sync.Mutex
	at         Target
	session    string
	version    string // the protocol version that initialize agreed on
	initialize []byte // the client's initialize message, which can begin another session
	listening  bool
	inflight   map[string]*exchange // by request id
}

// exchange is a request that waits for its answer.
type exchange struct {
	cancel   context.CancelFunc
	canceled atomic.Bool   // the client no longer wants an answer
	sent     chan struct{} // closed when the server has the request, or when the request is over
	sentOnce sync.Once
}

func (e *exchange) wasSent() { e.sentOnce.Do(func() { close(e.sent) }) }

// reason returns the error of Run. It is nil if Run was asked to end.
func (p *proxy) reason(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// readLines reads In in a separate goroutine, because a read of standard input cannot be
// interrupted.
func (p *proxy) readLines(ctx context.Context) <-chan []byte {
	lines := make(chan []byte)
	go func() {
		defer close(lines)
		r := lineReader{bufio.NewReaderSize(p.In, 64<<10), p.MaxMessage}
		for {
			l, err := r.next()
			if err != nil {
				if !errors.Is(err, io.EOF) {
					p.fail(fmt.Errorf("read a message: %w", err))
				}
				return
			}
			select {
			case lines <- l:
			case <-ctx.Done():
				return
			}
		}
	}()
	return lines
}

// take answers lines that need no server, and passes the rest on.
func (p *proxy) take(ctx context.Context, line []byte) {
	switch {
	case line == nil:
		p.write(failure(nil, codeInvalid, fmt.Sprintf("The message has more than %d bytes. Send less at once.", p.MaxMessage)))
	case !json.Valid(line):
		p.write(failure(nil, codeParse, "The line is not valid JSON. Send each message as JSON on one line."))
	default:
		p.handle(ctx, parse(line))
	}
}

// handle passes one message on. Requests run concurrently. initialize and notifications keep
// their order.
func (p *proxy) handle(ctx context.Context, m message) {
	switch {
	case m.Method == "initialize":
		p.mu.Lock()
		p.initialize, p.session, p.version = m.raw, "", ""
		p.mu.Unlock()
		p.request(ctx, m, nil)
		p.listen(ctx)
	case m.wantsAnswer():
		ctx, e := p.begin(ctx, string(m.ID))
		// A listening stream does not end by itself, so drain does not wait for it.
		ends := m.Method != "subscriptions/listen"
		if ends {
			p.busy.Add(1)
		}
		p.wg.Go(func() {
			if ends {
				defer p.busy.Done()
			}
			defer p.end(string(m.ID), e)
			p.request(ctx, m, e)
		})
	case m.Method == "notifications/cancelled":
		p.cancelRequest(ctx, m)
	default:
		p.request(ctx, m, nil)
	}
}

func (p *proxy) begin(ctx context.Context, id string) (context.Context, *exchange) {
	e := &exchange{sent: make(chan struct{})}
	ctx, e.cancel = context.WithCancel(ctx)
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteRequest: func(httptrace.WroteRequestInfo) { e.wasSent() },
	})
	p.mu.Lock()
	p.inflight[id] = e
	p.mu.Unlock()
	return ctx, e
}

func (p *proxy) end(id string, e *exchange) {
	e.cancel()
	e.wasSent()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.inflight[id] == e { // otherwise, the client has used the id again
		delete(p.inflight, id)
	}
}

// cancelRequest ends a request. In a session, it notifies the server, but only after the server
// has the request. Without a session, the end of the request's connection is the cancellation
// (2026-07-28, "Cancellation"), because the server must not trust an id that any client may
// use.
func (p *proxy) cancelRequest(ctx context.Context, m message) {
	p.mu.Lock()
	e, inSession := p.inflight[string(m.Params.RequestID)], p.session != ""
	p.mu.Unlock()
	if e == nil {
		return // it already has an answer
	}
	e.canceled.Store(true)
	if !inSession || m.version() != "" {
		e.cancel()
		return
	}
	late := time.NewTimer(time.Second)
	defer late.Stop()
	select {
	case <-e.sent:
		p.request(ctx, m, nil)
	case <-late.C: // no server answers, so none has the request
		e.cancel()
	case <-ctx.Done():
	}
}

// request posts one message and writes every message that answers it. If no answer comes and the
// client still wants one, it writes an error. e is nil if m cannot be cancelled.
func (p *proxy) request(ctx context.Context, m message, e *exchange) {
	res, err := p.post(ctx, m)
	if err == nil && res.StatusCode == http.StatusNotFound && m.Method != "initialize" && p.renew(ctx, res) {
		res, err = p.post(ctx, m)
	}
	why := ""
	if err != nil {
		why = p.explainError(err)
	} else {
		defer res.Body.Close()
		why = p.copyAnswers(m, res)
	}
	if why == "" || !m.wantsAnswer() || ctx.Err() != nil || e != nil && e.canceled.Load() {
		return
	}
	p.Log.Warn("no answer", "method", m.Method, "why", why, "err", err)
	for _, f := range failures(m, codeServer, why) {
		p.write(f)
	}
}

// write writes one message on a line of Out. If the write fails, Run ends.
func (p *proxy) write(data []byte) {
	p.out.Lock()
	defer p.out.Unlock()
	if _, err := p.Out.Write(append(bytes.Clone(data), '\n')); err != nil {
		p.fail(fmt.Errorf("write a message: %w", err))
	}
}

// drain waits for running requests, at most for Drain.
func (p *proxy) drain(ctx context.Context) {
	done := make(chan struct{})
	p.wg.Go(func() { p.busy.Wait(); close(done) })
	late := time.NewTimer(p.Drain)
	defer late.Stop()
	select {
	case <-done:
	case <-ctx.Done():
	case <-late.C:
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, e := range p.inflight {
			e.cancel()
		}
	}
}
