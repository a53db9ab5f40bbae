package endpoint

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Options are the address of a model and the limits of requests. The zero value of a field
// means its default.
type Options struct {
	// URL is the base address, such as http://127.0.0.1:11434/v1. The operator sets it, so it
	// may be in any network. "unix:/path" is a socket on this machine.
	URL string
	// Key is sent as a bearer token, unless it is empty.
	Key string
	// Timeout bounds one request. Default 60 s.
	Timeout time.Duration
	// Tries is how often a request is sent if it fails temporarily. Default 6.
	Tries int
	// Backoff is the longest wait before the second try. It doubles with each further try. A
	// wait is longer if the endpoint asks for a longer one. Default 500 ms.
	Backoff time.Duration
	// MaxWait limits every wait between tries, even if the endpoint asks for more. Default 2
	// min.
	MaxWait time.Duration
	// MaxAnswer limits every answer, in bytes. Default 64 MiB. Most requests have a lower
	// limit: the size of the requested data plus Spare, which is 64 KiB by default.
	MaxAnswer int64
	Spare     int64
	// Transport is for tests. The default only connects to the host of URL, or to the proxy
	// that the environment names.
	Transport http.RoundTripper
}

// The defaults of Options.
const (
	DefaultTimeout   = time.Minute
	DefaultTries     = 6
	DefaultBackoff   = 500 * time.Millisecond
	DefaultMaxWait   = 2 * time.Minute
	DefaultMaxAnswer = 64 << 20
	DefaultSpare     = 64 << 10
)

func (o Options) withDefaults() Options {
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Tries <= 0 {
		o.Tries = DefaultTries
	}
	if o.Backoff <= 0 {
		o.Backoff = DefaultBackoff
	}
	if o.MaxWait <= 0 {
		o.MaxWait = DefaultMaxWait
	}
	if o.MaxAnswer <= 0 {
		o.MaxAnswer = DefaultMaxAnswer
	}
	if o.Spare <= 0 {
		o.Spare = DefaultSpare
	}
	return o
}

// Error is an answer other than success, or the lack of an answer.
type Error struct {
	// Status is the status of the answer, or 0 if there was none.
	Status int
	// Message is short and safe to show to an operator.
	Message string
	// After is how long the endpoint asks us to wait, or 0 if it does not say.
	After time.Duration
	// broken reports that the content of the request may have caused the answer, for example
	// because the endpoint cannot encode a NaN. The request is still tried again, because the
	// cause may also be temporary.
	broken bool
}

func (e *Error) Error() string {
	if e.Status == 0 {
		return "model endpoint: " + e.Message
	}
	if e.Message == "" {
		return fmt.Sprintf("model endpoint: status %d", e.Status)
	}
	return fmt.Sprintf("model endpoint: status %d: %s", e.Status, e.Message)
}

// passing reports whether the same request may succeed later.
func (e *Error) passing() bool {
	switch e.Status {
	case 0, http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return e.Status >= 500 && e.Status != http.StatusNotImplemented
}

// refused reports whether the endpoint rejected the content.
func (e *Error) refused() bool {
	switch e.Status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return true
	}
	return false
}

// client sends requests. It is safe for concurrent use.
type client struct {
	o    Options
	base string
	http *http.Client
}

func newClient(o Options) (*client, error) {
	o = o.withDefaults()
	c := &client{o: o}
	transport := o.Transport
	if socket, ok := strings.CutPrefix(o.URL, "unix:"); ok {
		c.base = "http://localhost/v1"
		d := &net.Dialer{Timeout: 10 * time.Second}
		transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return d.DialContext(ctx, "unix", socket)
		}, MaxIdleConnsPerHost: 4, IdleConnTimeout: time.Minute}
	} else {
		u, err := url.Parse(o.URL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
			return nil, errors.New("model endpoint: the URL must be an http or https address, such as http://127.0.0.1:11434/v1")
		}
		if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			return nil, errors.New("model endpoint: the URL must have no user, no query and no fragment")
		}
		c.base = strings.TrimSuffix(u.String(), "/")
	}
	if transport == nil {
		transport = &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			DialContext:            (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
			TLSHandshakeTimeout:    10 * time.Second,
			ForceAttemptHTTP2:      true,
			MaxIdleConnsPerHost:    4,
			IdleConnTimeout:        time.Minute,
			MaxResponseHeaderBytes: 64 << 10,
		}
	}
	c.http = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return c, nil
}

func (c *client) close() { c.http.CloseIdleConnections() }

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// post sends a request as JSON and decodes an answer of at most about need bytes. It retries
// after temporary failures, and after answers that check rejects, unless the request is urgent.
func post[T any](ctx context.Context, c *client, path string, in any, need int64, urgent bool, check func(*T) error) error {
	body, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("model endpoint: %w", err)
	}
	delay := c.o.Backoff
	for try := 1; ; try++ {
		out := new(T) // a new value, so that no field of an earlier try's answer remains
		err := c.once(ctx, path, body, min(need+c.o.Spare, c.o.MaxAnswer), out)
		if err == nil {
			err = check(out)
		}
		var e *Error
		if err == nil || ctx.Err() != nil || urgent || try >= c.o.Tries || errors.As(err, &e) && !e.passing() {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return err
		}
		wait := delay/2 + rand.N(delay/2+1)
		if e != nil && e.After > 0 {
			wait = max(wait, e.After)
		}
		if err := sleep(ctx, min(wait, c.o.MaxWait)); err != nil {
			return err
		}
		delay = min(2*delay, c.o.MaxWait)
	}
}

func (c *client) once(ctx context.Context, path string, body []byte, most int64, out any) error {
	ctx, cancel := context.WithTimeout(ctx, c.o.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+path, bytes.NewReader(body))
	if err != nil {
		return &Error{Message: "the request cannot be made"}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "satchel")
	if c.o.Key != "" {
		req.Header.Set("Authorization", "Bearer "+c.o.Key)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return &Error{Message: c.reason(err)}
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		e := &Error{Status: res.StatusCode, After: retryAfter(res.Header.Get("Retry-After"), time.Now())}
		if res.StatusCode >= 300 && res.StatusCode < 400 {
			e.Message = "it redirects, which is not followed; configure the URL that it redirects to"
			return e
		}
		e.Message = c.message(res.Body)
		e.broken = res.StatusCode == http.StatusInternalServerError
		return e
	}
	// One byte more than allowed shows that an answer is too large.
	limited := &io.LimitedReader{R: res.Body, N: most + 1}
	if err := json.NewDecoder(limited).Decode(out); err != nil {
		if limited.N <= 0 {
			return &Error{Status: http.StatusRequestEntityTooLarge, Message: fmt.Sprintf("the answer has more than %d bytes", most)}
		}
		return &Error{Message: "the answer is cut or is not JSON of the form that was asked for", broken: true}
	}
	return nil
}

// reason returns why there is no answer, without the URL that net/http adds.
func (c *client) reason(err error) string {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Sprintf("no answer within %v", c.o.Timeout)
	}
	return c.clean(err.Error())
}

// maxMessage limits how much of an endpoint's message is repeated, in bytes.
const maxMessage = 200

// message returns the endpoint's own message: {"error": {"message": …}}, {"error": …},
// {"message": …} or {"detail": …}. It ignores the rest of the answer, which may contain what we
// sent.
func (c *client) message(body io.Reader) string {
	var m struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
		Detail  json.RawMessage `json:"detail"`
	}
	if json.NewDecoder(io.LimitReader(body, 16<<10)).Decode(&m) != nil {
		return ""
	}
	var inner struct {
		Message string `json:"message"`
	}
	text := m.Message
	for _, raw := range []json.RawMessage{m.Error, m.Detail} {
		if text == "" && json.Unmarshal(raw, &text) != nil && json.Unmarshal(raw, &inner) == nil {
			text = inner.Message
		}
	}
	return c.clean(text)
}

// clean shortens a text of the endpoint to one line and removes the key.
func (c *client) clean(s string) string {
	if c.o.Key != "" {
		s = strings.ReplaceAll(s, c.o.Key, "[redacted]")
		// Some endpoints repeat a part of the key.
		if n := len(c.o.Key); n >= 16 {
			s = strings.ReplaceAll(s, c.o.Key[n-8:], "[redacted]")
			s = strings.ReplaceAll(s, c.o.Key[:8], "[redacted]")
		}
	}
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
	if len(s) > maxMessage {
		s = strings.ToValidUTF8(s[:maxMessage], "") + "…"
	}
	return strings.TrimSpace(s)
}

// retryAfter reads the Retry-After header, in seconds or as a date (RFC 9110 section 10.2.3).
func retryAfter(s string, now time.Time) time.Duration {
	if s == "" {
		return 0
	}
	if n, err := strconv.ParseFloat(s, 64); err == nil {
		if !(n > 0) || n > 86400 {
			n = min(max(n, 0), 86400)
		}
		return time.Duration(n * float64(time.Second))
	}
	if t, err := http.ParseTime(s); err == nil {
		return max(0, t.Sub(now))
	}
	return 0
}
