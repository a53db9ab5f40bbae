package apiclient

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"satchel/internal/fault"
)

// Options configure a Client.
type Options struct {
	// URL is the server's address, such as https://example.com; what its MCP
	// endpoint or its API is called by is taken for it, too.
	URL string
	// Key is an API key or an access token.
	Key string
	// Transport does the requests; nil for http.DefaultTransport.
	Transport http.RoundTripper
	// MaxAnswer bounds one answer, in bytes; default 64 MiB.
	MaxAnswer int64
	// UserAgent is the name that the client sends to the server; default "satchel".
	UserAgent string
}

const defaultMaxAnswer = 64 << 20

// Client calls one server. It may be used by many goroutines at once.
type Client struct {
	base      string
	key       string
	http      *http.Client
	max       int64
	userAgent string
}

// New returns a client. The error is a fault.Invalid.
func New(o Options) (*Client, error) {
	u, err := url.Parse(strings.TrimSpace(o.URL))
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fault.New(fault.Invalid, "The address of the server must be of the form https://example.com.")
	}
	switch strings.Trim(u.Path, "/") {
	case "", "api", "mcp":
	default:
		return nil, fault.New(fault.Invalid, "The address of the server must have no path.")
	}
	// Anyone on the network path could read the key.
	if u.Scheme == "http" && !loopback(u.Hostname()) {
		return nil, fault.New(fault.Invalid, "The key would be sent in the clear: use https for a server that is not on this machine.")
	}
	key := strings.TrimSpace(o.Key)
	if key == "" || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, fault.New(fault.Invalid, "The key is missing, or has characters that a key cannot have.")
	}
	return &Client{
		base: u.Scheme + "://" + u.Host, key: key, max: cmp.Or(o.MaxAnswer, defaultMaxAnswer), userAgent: cmp.Or(o.UserAgent, "satchel"),
		http: &http.Client{
			Transport: o.Transport,
			CheckRedirect: func(*http.Request, []*http.Request) error {
				return http.ErrUseLastResponse // it would take the key along
			},
		},
	}, nil
}

func loopback(host string) bool {
	if ip := net.ParseIP(host); ip != nil {
		return ip.IsLoopback()
	}
	return strings.EqualFold(host, "localhost")
}

// Close closes connections that are kept.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Sources lists the sources of the library.
func (c *Client) Sources(ctx context.Context) ([]Source, error) {
	r, err := get[struct{ Sources []Source }](ctx, c, "/sources")
	return r.Sources, err
}

// Sync updates a source, or all sources if source is "".
func (c *Client) Sync(ctx context.Context, source string) ([]Run, error) {
	path := "/sync"
	if source != "" {
		path += "/" + url.PathEscape(source)
	}
	r, err := post[struct{ Runs []Run }](ctx, c, path, struct{}{})
	return r.Runs, err
}

// Search finds pages of the library.
func (c *Client) Search(ctx context.Context, q Query) (Results, error) {
	return post[Results](ctx, c, "/sandbox/search", q)
}

// Read reads files of the library and lists directories, in order.
func (c *Client) Read(ctx context.Context, paths ...string) ([]File, error) {
	r, err := post[struct{ Files []File }](ctx, c, "/sandbox/read", struct {
		Paths []string `json:"paths"`
	}{paths})
	return r.Files, err
}

// Shell runs commands over the library, in order, in the sandbox of a session. With "" it
// uses the key's own sandbox.
func (c *Client) Shell(ctx context.Context, session string, commands ...string) (ShellResults, error) {
	return post[ShellResults](ctx, c, "/sandbox/shell", struct {
		Commands  []string `json:"commands"`
		SessionID string   `json:"sessionId,omitempty"`
	}{commands, session})
}

func get[T any](ctx context.Context, c *Client, path string) (T, error) {
	return do[T](ctx, c, http.MethodGet, path, nil)
}

func post[T any](ctx context.Context, c *Client, path string, body any) (T, error) {
	b, err := json.Marshal(body)
	if err != nil {
		var none T
		return none, fmt.Errorf("encode a request: %w", err)
	}
	return do[T](ctx, c, http.MethodPost, path, b)
}

func do[T any](ctx context.Context, c *Client, method, path string, body []byte) (v T, err error) {
	var reader io.Reader
	if body != nil {
		reader = bytes.NewReader(body)
	}
	r, err := http.NewRequestWithContext(ctx, method, c.base+"/api"+path, reader)
	if err != nil {
		return v, fault.Wrap(err, fault.Invalid, "The request cannot be made.")
	}
	r.Header.Set("Authorization", "Bearer "+c.key)
	r.Header.Set("Accept", "application/json")
	r.Header.Set("User-Agent", c.userAgent)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	res, err := c.http.Do(r)
	if err != nil {
		if ctx.Err() != nil {
			return v, fault.Wrap(ctx.Err(), fault.Canceled, "The request was stopped.")
		}
		return v, fault.Wrap(err, fault.Unavailable, "The server at %s cannot be reached (%s).", c.base, cause(err))
	}
	defer res.Body.Close()
	data, err := io.ReadAll(io.LimitReader(res.Body, c.max+1))
	switch {
	case err != nil && ctx.Err() != nil:
		return v, fault.Wrap(ctx.Err(), fault.Canceled, "The request was stopped.")
	case err != nil:
		return v, fault.Wrap(err, fault.Unavailable, "The answer of %s ended early.", c.base)
	case int64(len(data)) > c.max:
		return v, fault.New(fault.TooLarge, "The answer is larger than %d bytes.", c.max)
	}
	if t, _, terr := mime.ParseMediaType(res.Header.Get("Content-Type")); terr != nil || t != "application/json" {
		return v, c.stranger(res)
	}
	if res.StatusCode >= http.StatusMultipleChoices {
		return v, c.refusal(res, data)
	}
	if err := json.Unmarshal(data, &v); err != nil {
		return v, fault.Wrap(err, fault.Unavailable, "The answer of the server at %s has a form that this version does not know.", c.base)
	}
	return v, nil
}

// stranger is the error for what no API of Satchel answers.
func (c *Client) stranger(res *http.Response) error {
	if to := res.Header.Get("Location"); to != "" && res.StatusCode < http.StatusBadRequest {
		return fault.New(fault.Unavailable, "The server at %s redirects to another address (%d). Use that address.", c.base, res.StatusCode)
	}
	return fault.New(fault.Unavailable, "There is no Satchel with an API at %s: it answered with %d.", c.base, res.StatusCode)
}

// codes are those of the server; others are ours to guess.
var codes = map[string]fault.Code{
	"invalid": fault.Invalid, "not_found": fault.NotFound, "conflict": fault.Conflict, "unauthenticated": fault.Unauthenticated,
	"forbidden": fault.Forbidden, "too_large": fault.TooLarge, "limited": fault.Limited, "unavailable": fault.Unavailable, "damaged": fault.Damaged,
	"canceled": fault.Canceled, "internal": fault.Internal, "method_not_allowed": fault.Invalid, "unsupported_media_type": fault.Invalid,
}

func (c *Client) refusal(res *http.Response, data []byte) error {
	var e struct {
		Error Problem `json:"error"`
	}
	code, ok := fault.Code(""), false
	if json.Unmarshal(data, &e) == nil {
		code, ok = codes[e.Error.Code]
	}
	if !ok {
		return c.stranger(res)
	}
	f := fault.New(code, "%s", e.Error.Message)
	if s, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && s > 0 {
		f.RetryAfter = time.Duration(min(s, 24*60*60)) * time.Second
	}
	return f
}

// cause is the innermost error, which for a connection is the system's own word.
func cause(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}
