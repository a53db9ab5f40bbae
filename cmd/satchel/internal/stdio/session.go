package stdio

import (
	"context"
	"encoding/json"
	"mime"
	"net/http"
	"time"
)

// initialized is the notification that follows initialize.
var initialized = []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)

// agreedVersion returns the protocol version in an answer to initialize.
func agreedVersion(a message) string {
	var r struct {
		ProtocolVersion string `json:"protocolVersion"`
	}
	_ = json.Unmarshal(a.Result, &r) // any other result names no version
	return r.ProtocolVersion
}

// renew begins a new session with the client's own initialize message if the server no longer
// knows the old one, for example after a restart. It reports whether there is a session now. If
// so, it closes the body of res.
func (p *proxy) renew(ctx context.Context, res *http.Response) bool {
	p.renewing.Lock()
	defer p.renewing.Unlock()
	stale := res.Request.Header.Get("Mcp-Session-Id")
	p.mu.Lock()
	current, first := p.session, p.initialize
	p.mu.Unlock()
	if stale == "" || first == nil {
		return false
	}
	if current == stale && !p.begins(ctx, first) {
		return false
	}
	res.Body.Close()
	return true
}

// begins sends initialize and reports whether the server created a session.
func (p *proxy) begins(ctx context.Context, initialize []byte) bool {
	res, err := p.post(ctx, parse(initialize))
	if err != nil {
		return false
	}
	defer res.Body.Close()
	version := ""
	note := func(data []byte) {
		if a := parse(data); a.Result != nil {
			version = agreedVersion(a)
		}
	}
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if kind == "text/event-stream" {
		err = readEvents(res.Body, p.MaxMessage, note)
	} else {
		var body []byte
		if body, err = readAll(res.Body, p.MaxMessage); err == nil && json.Valid(body) {
			note(body)
		}
	}
	id := res.Header.Get("Mcp-Session-Id")
	if err != nil || res.StatusCode != http.StatusOK || id == "" || version == "" {
		return false
	}
	p.mu.Lock()
	p.session, p.version = id, version
	p.mu.Unlock()
	if ack, err := p.post(ctx, parse(initialized)); err == nil {
		ack.Body.Close()
	}
	return true
}

// listen opens the stream on which a server with sessions sends its own messages. There is one
// stream for the whole Run.
func (p *proxy) listen(ctx context.Context) {
	p.mu.Lock()
	skip := p.listening || p.session == ""
	p.listening = p.listening || !skip
	p.mu.Unlock()
	if skip {
		return
	}
	p.wg.Go(func() {
		for wait := time.Second; ctx.Err() == nil; wait = min(2*wait, time.Minute) {
			began := time.Now()
			if !p.listenOnce(ctx) {
				return
			}
			if time.Since(began) > time.Minute {
				wait = time.Second
			}
			pause := time.NewTimer(wait)
			select {
			case <-pause.C:
			case <-ctx.Done():
				pause.Stop()
			}
		}
	})
}

// listenOnce reads the stream to its end, and reports whether another stream may be opened.
func (p *proxy) listenOnce(ctx context.Context) bool {
	to := p.target()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, to.URL, nil)
	if err != nil {
		return false
	}
	p.header(req.Header, to, message{})
	req.Header.Set("Accept", "text/event-stream")
	res, err := p.Client.Do(req)
	if err != nil {
		return ctx.Err() == nil
	}
	defer res.Body.Close()
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if res.StatusCode != http.StatusOK || kind != "text/event-stream" {
		// 405: the server sends no messages of its own. 404 and 401: the session or the key is
		// gone, and the next request renews it.
		switch s := res.StatusCode; {
		case s == http.StatusNotFound, s == http.StatusUnauthorized, s == http.StatusTooManyRequests, s >= 500:
			return true
		}
		return false
	}
	_ = readEvents(res.Body, p.MaxMessage, p.write) // another stream is opened, even after an error
	return ctx.Err() == nil
}

// endSession ends the session at the server after the client has gone.
func (p *proxy) endSession() {
	p.mu.Lock()
	session := p.session
	p.mu.Unlock()
	if session == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	to := p.target()
	req, err := http.NewRequestWithContext(ctx, http.MethodDelete, to.URL, nil)
	if err != nil {
		return
	}
	p.header(req.Header, to, message{})
	if res, err := p.Client.Do(req); err == nil {
		res.Body.Close()
	}
}
