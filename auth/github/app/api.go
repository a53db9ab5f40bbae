package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"satchel/auth"
	"satchel/auth/github"
	"satchel/internal/fault"
)

const (
	perPage = 100
	// maxErrorBody is the maximum number of bytes that are read from an error response.
	maxErrorBody = 64 << 10
)

var errOversized = errors.New("github: the answer is too long")

// statusError is the error for a response with an error status or a redirect.
type statusError struct {
	status  int
	message string        // for the log, without tokens
	wait    time.Duration // the wait that GitHub requests; 0 for none
}

func (e *statusError) Error() string {
	return fmt.Sprintf("github: the answer was %d: %q", e.status, e.message)
}

// statusOf returns the status of the statusError that err wraps. It returns 0 if err wraps no
// statusError, or one that reports a rate limit.
func statusOf(err error) int {
	var e *statusError
	if errors.As(err, &e) && e.wait == 0 {
		return e.status
	}
	return 0
}

// send sends a request, and decodes the answer into v unless v is nil. more reports whether
// a list has another page.
func (c *Client) send(r *http.Request, v any) (more bool, err error) {
	r.Header.Set("User-Agent", "satchel")
	r.Header.Set("X-GitHub-Api-Version", "2022-11-28")
	if r.Header.Get("Accept") == "" {
		r.Header.Set("Accept", "application/vnd.github+json")
	}
	resp, err := c.client.Do(r)
	if err != nil {
		return false, transportError(r, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, c.o.MaxResponse+1))
	switch {
	case err != nil:
		return false, transportError(r, err)
	case int64(len(body)) > c.o.MaxResponse:
		return false, errOversized
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return false, c.statusError(resp, body)
	case v != nil:
		if err := json.Unmarshal(body, v); err != nil {
			return false, errors.New("github: the answer has an unexpected form") // without err, which may contain parts of the answer
		}
	}
	// The header only shows whether there is a next page. The URL in it is not followed.
	return strings.Contains(strings.Join(resp.Header.Values("Link"), ","), `rel="next"`), nil
}

// transportError returns an error without the URL, because the path may contain a code.
func transportError(r *http.Request, err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return fmt.Errorf("github: %s at %s: %w", r.Method, r.URL.Host, err)
}

func (c *Client) statusError(resp *http.Response, body []byte) error {
	var e struct {
		Message string `json:"message"`
		Errors  []struct {
			Message string `json:"message"`
		} `json:"errors"`
	}
	text := string(body)
	if json.Unmarshal(body, &e) == nil && e.Message != "" {
		text = e.Message
		for _, more := range e.Errors[:min(len(e.Errors), 5)] {
			text += "; " + more.Message
		}
	}
	out := &statusError{status: resp.StatusCode, message: github.Redact(text)}
	if limited(resp) {
		out.wait = c.wait(resp)
	}
	return out
}

// limited reports whether a response says that a rate limit is exceeded. GitHub uses 403 for
// other refusals too.
func limited(resp *http.Response) bool {
	return resp.StatusCode == http.StatusTooManyRequests ||
		resp.StatusCode == http.StatusForbidden && (resp.Header.Get("Retry-After") != "" || resp.Header.Get("X-RateLimit-Remaining") == "0")
}

// wait returns how long GitHub asks this server to wait: at least a second, at most an hour.
func (c *Client) wait(resp *http.Response) time.Duration {
	d := time.Minute // the default in GitHub's documentation
	if s, err := strconv.ParseInt(resp.Header.Get("Retry-After"), 10, 32); err == nil {
		d = time.Duration(s) * time.Second
	} else if s, err := strconv.ParseInt(resp.Header.Get("X-RateLimit-Reset"), 10, 64); err == nil {
		d = time.Unix(s, 0).Sub(c.o.Now())
	}
	return min(max(d, time.Second), time.Hour)
}

// call calls the REST API. If token is not empty, it is sent as the bearer token. If in is not
// nil, it is sent as JSON.
func (c *Client) call(ctx context.Context, token, method, path string, in, out any) (more bool, err error) {
	r, err := c.request(ctx, method, c.o.API+path, in)
	if err != nil {
		return false, err
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return c.send(r, out)
}

func (c *Client) request(ctx context.Context, method, address string, in any) (*http.Request, error) {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return nil, fmt.Errorf("github: %w", err)
		}
		body = bytes.NewReader(b)
	}
	r, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		return nil, errors.New("github: the address of the request is invalid")
	}
	if in != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	return r, nil
}

// callAsApp calls the REST API as the App itself.
func (c *Client) callAsApp(ctx context.Context, a auth.GitHubApp, path string, out any) error {
	signer, err := c.signer(a)
	if err != nil {
		return err
	}
	r, err := c.request(ctx, http.MethodGet, c.o.API+path, nil)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.o.Timeout)
	defer cancel()
	// Call RoundTrip, because an HTTP client made from the signer would follow redirects.
	resp, err := signer.RoundTrip(r.WithContext(ctx))
	if err != nil {
		return transportError(r, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return transportError(r, err)
	case resp.StatusCode != http.StatusOK:
		return c.statusError(resp, body)
	}
	if json.Unmarshal(body, out) != nil {
		return errors.New("github: the answer has an unexpected form")
	}
	return nil
}

// errBadKey returns the error for an invalid key. It does not wrap the cause, which could
// contain the key.
func errBadKey() error {
	return fault.New(fault.Invalid, "The GitHub App's private key is not an RSA key in PEM form. It must begin with -----BEGIN RSA PRIVATE KEY-----.")
}

// bounded returns a transport that reads whole responses, up to a limit. ghinstallation itself
// reads without a limit, and does not close the bodies of error responses.
func (c *Client) bounded() http.RoundTripper { return boundedTransport{c} }

type boundedTransport struct{ c *Client }

func (t boundedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Header.Set("User-Agent", "satchel")
	r.Header.Set("X-GitHub-Api-Version", "2022-11-28")
	resp, err := t.c.o.Transport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	limit := t.c.o.MaxResponse
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		limit = min(limit, maxErrorBody)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(body)) > limit {
		if resp.StatusCode < 300 {
			return nil, errOversized
		}
		body = body[:limit]
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// failure returns the fault for a failed request. It logs the failure, unless err already is a
// fault or the request was canceled. what names the action for the log.
func (c *Client) failure(what string, err error) error {
	var status *statusError
	var known *fault.Error
	switch {
	case errors.As(err, &known):
		return err
	case errors.Is(err, context.Canceled):
		return fault.Wrap(err, fault.Canceled, "The request was cancelled.")
	case errors.As(err, &status) && status.wait > 0:
		c.log.Warn("GitHub asks this server to wait", "what", what, "wait", status.wait, "error", err)
		return &fault.Error{Code: fault.Limited, Err: err, RetryAfter: status.wait, Public: "GitHub asks this server to wait. Please try again in a few minutes."}
	case errors.As(err, &status) && status.status < 500:
		c.log.Warn("GitHub refused a request", "what", what, "error", err)
		return fault.Wrap(err, fault.Unavailable, "GitHub refused the request (%d). The server's log has its answer.", status.status)
	}
	c.log.Warn("GitHub cannot be asked", "what", what, "url", c.o.URL, "error", err)
	return fault.Wrap(err, fault.Unavailable, "GitHub does not answer at the moment. Please try again later.")
}
