package stdio

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"time"
)

// initialized is what a client says after initialize.
var initialized = []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)

// renew begins a new session where the server no longer knows the old one (it
// was restarted), with the client's own initialize. It tells whether there is
// one now, and closes res's body then.
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
	if current == stale {
		again, err := p.post(ctx, parse(first))
		if err != nil {
			return false
		}
		defer again.Body.Close()
		_, _ = io.Copy(io.Discard, io.LimitReader(again.Body, int64(p.MaxMessage)))
		id := again.Header.Get("Mcp-Session-Id")
		if again.StatusCode != http.StatusOK || id == "" {
			return false
		}
		p.mu.Lock()
		p.session = id
		p.mu.Unlock()
		if ack, err := p.post(ctx, parse(initialized)); err == nil {
			ack.Body.Close()
		}
	}
	res.Body.Close()
	return true
}

// listen opens the stream on which a server with sessions sends messages of
// its own. There is one for the whole Run.
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
			select {
			case <-time.After(wait):
			case <-ctx.Done():
			}
		}
	})
}

// listenOnce reads the stream to its end and tells whether another may be
// opened.
func (p *proxy) listenOnce(ctx context.Context) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.URL, nil)
	if err != nil {
		return false
	}
	p.header(req.Header, message{})
	req.Header.Set("Accept", "text/event-stream")
	res, err := p.Client.Do(req)
	if err != nil {
		return ctx.Err() == nil
	}
	defer res.Body.Close()
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if res.StatusCode != http.StatusOK || kind != "text/event-stream" {
		// 405: the server sends nothing of its own. 404: the session is gone,
		// and the next request renews it.
		return res.StatusCode == http.StatusNotFound || res.StatusCode >= 500
	}
	_ = readEvents(res.Body, p.MaxMessage, p.write)
	return ctx.Err() == nil
}

// endSession tells the server that the client is gone.
func (p *proxy) endSession() {
	p.mu.Lock()
	session := p.session
	p.mu.Unlock()
	if session == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodDelete, p.URL, nil)
	if err != nil {
		return
	}
	p.header(req.Header, message{})
	if res, err := p.Client.Do(req); err == nil {
		res.Body.Close()
	}
}

// readEvents calls emit with the data of every server-sent event (HTML
// Standard, section 9.2) that carries a JSON-RPC message.
func readEvents(r io.Reader, most int, emit func([]byte)) error {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 0, 64<<10), most)
	var data []byte
	for s.Scan() {
		line := s.Bytes()
		if len(line) == 0 {
			if line := withID(data, nil); line != nil {
				emit(line)
			}
			data = nil
			continue
		}
		if rest, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			if len(data)+len(rest) > most {
				return errors.New("an event is too long")
			}
			if data != nil {
				data = append(data, '\n')
			}
			data = append(data, bytes.TrimPrefix(rest, []byte(" "))...)
		}
	}
	return s.Err()
}
