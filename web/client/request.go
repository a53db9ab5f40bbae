package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"mime"
	"net"
	"net/http"
	"time"
)

// request is a call of the API.
type request struct {
	method, path string
	body         any    // nil for none
	etag         string // the value of If-Match; empty for none
	// repeat reports that the request has the same effect if the server gets it twice.
	repeat bool
	// sandbox reports that the request needs a sandbox.
	sandbox bool
}

// call sends a request and decodes its answer. It repeats the request if that is safe.
func call[T any](ctx context.Context, c *Client, r request) (v T, err error) {
	var body []byte
	if r.body != nil {
		if body, err = json.Marshal(r.body); err != nil {
			return v, &Error{Code: CodeInvalid, Message: "The request cannot be encoded as JSON.", Err: err}
		}
	}
	for tries := 0; ; tries++ {
		data, failed := c.send(ctx, r, body)
		if failed == nil {
			if err := json.Unmarshal(data, &v); err != nil {
				return v, &Error{Code: CodeNetwork, Message: "The answer of the server at " + c.base + " has a form that this version does not know.", Err: err}
			}
			return v, nil
		}
		wait := max(failed.RetryAfter, rand.N(c.o.Backoff<<min(tries, 16)))
		if tries >= c.o.Retries || failed.RetryAfter > c.o.MaxWait || !r.mayRepeat(failed) {
			return v, failed
		}
		if err := sleep(ctx, min(wait, c.o.MaxWait)); err != nil {
			return v, canceled(err)
		}
	}
}

// mayRepeat reports whether the request can be sent again after an error.
func (r request) mayRepeat(e *Error) bool {
	var dial *net.OpError
	switch {
	case e.Code == CodeLimited || errors.As(e.Err, &dial) && dial.Op == "dial":
		return true // the server has done nothing
	case e.Code == CodeNetwork && e.Status == 0, e.Code == CodeUnavailable:
		return r.repeat
	case e.Status == http.StatusBadGateway, e.Status == http.StatusServiceUnavailable, e.Status == http.StatusGatewayTimeout:
		return r.repeat // a proxy answered
	}
	return false
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

func canceled(err error) *Error {
	return &Error{Code: CodeCanceled, Message: "The request was stopped.", Err: err}
}

// send sends a request once, and returns the body of its answer.
func (c *Client) send(ctx context.Context, r request, body []byte) ([]byte, *Error) {
	var reader io.Reader
	if body != nil {
		reader = bytes.NewReader(body)
	}
	q, err := http.NewRequestWithContext(ctx, r.method, c.base+"/api"+r.path, reader)
	if err != nil {
		return nil, &Error{Code: CodeInvalid, Message: "The request cannot be made.", Err: err}
	}
	q.Header.Set("Authorization", "Bearer "+c.o.Key)
	q.Header.Set("Accept", "application/json")
	q.Header.Set("User-Agent", c.o.UserAgent)
	if body != nil {
		q.Header.Set("Content-Type", "application/json")
	}
	if r.etag != "" {
		q.Header.Set("If-Match", `"`+r.etag+`"`)
	}
	res, err := c.http.Do(q)
	if err != nil {
		if ctx.Err() != nil {
			return nil, canceled(ctx.Err())
		}
		return nil, &Error{Code: CodeNetwork, Message: fmt.Sprintf("The server at %s cannot be reached (%s).", c.base, cause(err)), Err: err}
	}
	defer res.Body.Close()
	data, err := io.ReadAll(io.LimitReader(res.Body, c.o.MaxAnswer+1))
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, canceled(ctx.Err())
	case err != nil:
		return nil, &Error{Code: CodeNetwork, Message: "The answer of " + c.base + " ended early.", Err: err}
	case int64(len(data)) > c.o.MaxAnswer:
		return nil, &Error{Code: CodeTooLarge, Status: res.StatusCode, Message: fmt.Sprintf("The answer is larger than %d bytes.", c.o.MaxAnswer)}
	}
	if t, _, err := mime.ParseMediaType(res.Header.Get("Content-Type")); err != nil || t != "application/json" {
		return nil, c.stranger(res)
	}
	if res.StatusCode < http.StatusMultipleChoices {
		return data, nil
	}
	e := refusal(res, data)
	if e == nil {
		return nil, c.stranger(res)
	}
	e.Sandbox = r.sandbox && (e.Code == CodeUnavailable || e.Code == CodeInternal)
	return nil, e
}

// stranger returns the error for an answer that is not from Satchel's API.
func (c *Client) stranger(res *http.Response) *Error {
	e := &Error{Code: CodeNetwork, Status: res.StatusCode, Message: fmt.Sprintf("There is no Satchel with an API at %s: it answered with %d.", c.base, res.StatusCode)}
	if res.Header.Get("Location") != "" && res.StatusCode < http.StatusBadRequest {
		e.Message = fmt.Sprintf("The server at %s redirects to another address (%d). Use that address.", c.base, res.StatusCode)
	}
	return e
}
