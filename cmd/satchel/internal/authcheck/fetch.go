package authcheck

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// maxBody limits how many bytes of an answer are read.
const maxBody = 1 << 20

// tlsState describes the first connection over TLS.
type tlsState struct{ leaf *x509.Certificate }

// answer is the answer to one request.
type answer struct {
	method, url string
	status      int
	header      http.Header
	body        []byte
	took        time.Duration
	err         error // the error if there is no answer
}

// clientOf returns a client that does not follow redirects.
func clientOf(h *http.Client) *http.Client {
	c := http.Client{Timeout: Slow + 5*time.Second}
	if h != nil {
		c = *h
	}
	c.Jar = nil
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &c
}

// ask sends one request. Header fields are in pairs of name and value.
func (c *checker) ask(ctx context.Context, method, target, body string, header ...string) answer {
	a := answer{method: method, url: target}
	req, err := http.NewRequestWithContext(ctx, method, target, strings.NewReader(body))
	if err != nil {
		a.err = err
		return a
	}
	req.Header.Set("User-Agent", "satchel-auth-check")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	started := time.Now()
	res, err := c.http.Do(req)
	a.took = time.Since(started)
	if err != nil {
		a.err = err
		return a
	}
	defer res.Body.Close()
	a.status, a.header = res.StatusCode, res.Header
	// An event stream may stay open, so it is not read.
	if kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); kind != "text/event-stream" {
		a.body, _ = io.ReadAll(io.LimitReader(res.Body, maxBody))
		a.took = time.Since(started)
	}
	c.notice(a, res)
	return a
}

// notice records what each answer shows about the server.
func (c *checker) notice(a answer, res *http.Response) {
	if a.took > c.slowest.took {
		c.slowest = a
	}
	if c.proto == "" {
		c.proto = res.Proto
	}
	if c.tls == nil && res.TLS != nil && len(res.TLS.PeerCertificates) > 0 {
		c.tls = &tlsState{leaf: res.TLS.PeerCertificates[0]}
	}
	if d, err := http.ParseTime(res.Header.Get("Date")); err == nil && !c.dated {
		c.off, c.dated = d.Sub(c.o.Now()).Round(time.Second), true
	}
}

func (c *checker) get(ctx context.Context, target string, header ...string) answer {
	return c.ask(ctx, http.MethodGet, target, "", append([]string{"Accept", "application/json"}, header...)...)
}

func (c *checker) postForm(ctx context.Context, target string, form url.Values) answer {
	return c.ask(ctx, http.MethodPost, target, form.Encode(), "Content-Type", "application/x-www-form-urlencoded", "Accept", "application/json")
}

// is reports whether the answer has the given media type.
func (a answer) is(media string) bool {
	kind, _, _ := mime.ParseMediaType(a.header.Get("Content-Type"))
	return kind == media
}

// html reports whether the answer is a page for people.
func (a answer) html() bool {
	return a.is("text/html") || bytes.HasPrefix(bytes.ToLower(bytes.TrimSpace(a.body)), []byte("<!doctype html"))
}

// location returns the target of a redirect, or nil if the answer is not a redirect.
func (a answer) location() *url.URL {
	if a.status < 300 || a.status > 399 {
		return nil
	}
	base, err := url.Parse(a.url)
	if err != nil {
		return nil
	}
	u, err := base.Parse(a.header.Get("Location"))
	if err != nil || a.header.Get("Location") == "" {
		return nil
	}
	return u
}

// object decodes the answer as a JSON object. If that fails, why says the reason.
func (a answer) object(into any) (why string) {
	switch {
	case a.err != nil:
		return a.said()
	case a.status != http.StatusOK:
		return a.said()
	case !a.is("application/json"):
		return fmt.Sprintf("%s is sent as %s, not application/json", a.url, orNothing(a.header.Get("Content-Type")))
	}
	if err := json.Unmarshal(a.body, into); err != nil {
		return a.url + " is not valid JSON: " + err.Error()
	}
	return ""
}

// said describes the answer in a few words.
func (a answer) said() string {
	if a.err != nil {
		return fmt.Sprintf("%s %s gets no answer: %v", a.method, a.url, reasonOf(a.err))
	}
	s := fmt.Sprintf("%s %s answers %d", a.method, a.url, a.status)
	if t := http.StatusText(a.status); t != "" {
		s += " " + t
	}
	if l := a.location(); l != nil {
		s += " to " + short(l.String())
	}
	if a.html() {
		s += " with a page of HTML"
	}
	return s
}

// oauthError returns the error code in the answer (RFC 6749 section 5.2), or "" if there is none.
func (a answer) oauthError() (code string) {
	var e struct {
		Error string `json:"error"`
	}
	if a.err != nil || !a.is("application/json") || json.Unmarshal(a.body, &e) != nil {
		return ""
	}
	return e.Error
}

// reasonOf removes the method and the URL of the request from an error.
func reasonOf(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

func short(s string) string {
	if len(s) > 200 {
		return strings.ToValidUTF8(s[:200], "") + "…"
	}
	return s
}

func orNothing(s string) string {
	if s == "" {
		return "nothing"
	}
	return short(s)
}
