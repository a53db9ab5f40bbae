package stdio

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"syscall"
	"time"
)

// post sends m. It waits if the server refuses connections, and tries once more with another
// key if the server refuses the key.
func (p *proxy) post(ctx context.Context, m message) (*http.Response, error) {
	deadline := time.Now().Add(p.Patience)
	rekeyed := false
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		to := p.target()
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, to.URL, bytes.NewReader(m.raw))
		if err != nil {
			return nil, err
		}
		p.header(req.Header, to, m)
		res, err := p.Client.Do(req)
		switch {
		case err == nil && res.StatusCode == http.StatusUnauthorized && !rekeyed:
			rekeyed = true
			if !p.reconnect(ctx, to, true) {
				return res, nil
			}
			res.Body.Close()
			continue
		case err == nil || !isRefused(err) || time.Now().After(deadline):
			return res, err
		case p.reconnect(ctx, to, false):
			continue
		}
		pause := time.NewTimer(wait)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return nil, ctx.Err()
		}
	}
}

// wsaRefused is ECONNREFUSED on Windows, which package syscall does not map to its own error.
// On other systems, no error has this number.
const wsaRefused = syscall.Errno(10061)

func isRefused(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, wsaRefused)
}

func (p *proxy) target() Target {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.at
}

// reconnect looks for the server again. It reports whether the target now differs from the
// failed one.
func (p *proxy) reconnect(ctx context.Context, failed Target, keyRefused bool) bool {
	if p.Reconnect == nil {
		return false
	}
	p.connecting.Lock()
	defer p.connecting.Unlock()
	if p.target() != failed {
		return true // another request has already reconnected
	}
	next, err := p.Reconnect(ctx, failed, keyRefused)
	if err != nil {
		p.Log.Warn("find the server again", "err", err)
		return false
	}
	p.mu.Lock()
	p.at = next
	p.mu.Unlock()
	return next != failed
}

func (p *proxy) header(h http.Header, to Target, m message) {
	p.mu.Lock()
	session, version := p.session, p.version
	p.mu.Unlock()
	h.Set("Authorization", "Bearer "+to.Token)
	h.Set("Content-Type", "application/json")
	h.Set("Accept", "application/json, text/event-stream")
	if v := m.version(); v != "" {
		h.Set("MCP-Protocol-Version", headerValue(v))
		h.Set("Mcp-Method", headerValue(m.Method))
		if t := m.target(); t != "" {
			h.Set("Mcp-Name", headerValue(t))
		}
		return
	}
	if m.Method == "initialize" {
		return // initialize begins a session
	}
	if version != "" {
		h.Set("MCP-Protocol-Version", version)
	}
	if session != "" {
		h.Set("Mcp-Session-Id", session)
	}
}

// copyAnswers writes the messages of a response. why is empty if one of them answers m, and
// otherwise says why none does.
func (p *proxy) copyAnswers(m message, res *http.Response) (why string) {
	why = explainStatus(res)
	emit := func(data []byte) {
		a := parse(data)
		if a.batch != nil || a.isResponse() {
			why = ""
		}
		if m.Method == "initialize" && a.Result != nil {
			p.mu.Lock()
			p.session, p.version = res.Header.Get("Mcp-Session-Id"), agreedVersion(a)
			p.mu.Unlock()
		}
		p.write(data)
	}
	var err error
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	switch kind {
	case "text/event-stream":
		err = readEvents(res.Body, p.MaxMessage, emit)
	case "application/json":
		var body []byte
		if body, err = readAll(res.Body, p.MaxMessage); err == nil && m.wantsAnswer() {
			if data := withID(body, m.ID); data != nil {
				emit(data)
			}
		}
	}
	if err != nil && why != "" {
		return p.explainError(err)
	}
	return why
}

// readAll reads all of r. If r has more than most bytes, the error is errTooLong.
func readAll(r io.Reader, most int) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r, int64(most)+1))
	if err == nil && len(body) > most {
		err = errTooLong
	}
	return body, err
}

// explainError returns, for the client, why err left its request without an answer.
func (p *proxy) explainError(err error) string {
	switch {
	case errors.Is(err, errTooLong):
		return fmt.Sprintf("Satchel's answer has more than %d bytes. Ask for less at once.", p.MaxMessage)
	case isRefused(err):
		return fmt.Sprintf("No Satchel server answers at %s. Start one with: satchel serve", p.target().URL)
	}
	return "The connection to Satchel broke before the answer came. Check whether the request took effect before you repeat it."
}

// explainStatus returns, for the client, what an answer without a message means.
func explainStatus(res *http.Response) string {
	switch s := res.StatusCode; {
	case s == http.StatusUnauthorized:
		return "Satchel refused the API key. Make a new one with: satchel token create --user NAME"
	case s == http.StatusTooManyRequests:
		return "Satchel is asked too often; try again in a moment."
	case s/100 == 3:
		return fmt.Sprintf("The server is at another URL: %s. Pass that URL to satchel stdio --url.", res.Header.Get("Location"))
	case s/100 == 2:
		return "Satchel ended its answer before the result."
	}
	return fmt.Sprintf("The server answered with HTTP status %d and no message. Is its URL the one of Satchel's MCP endpoint?", res.StatusCode)
}
