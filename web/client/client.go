package client

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Options configure a Client. URL and Key are required.
type Options struct {
	// URL is the server's address, such as https://example.com. The address of its MCP
	// endpoint or of its API works too.
	URL string
	// Key is an API key or an access token.
	Key string
	// Session names the sandbox of Bash and Shell; empty for the key's own.
	Session string
	// Transport sends the requests; nil for a transport that keeps connections.
	Transport http.RoundTripper
	// Retries is how often a request is repeated; default 3, negative: never.
	Retries int
	// Backoff is the longest wait before the first repetition; default 250 ms. It doubles with
	// each repetition, and the client waits for a random part of it. MaxWait limits every wait;
	// default 30 s. If the server asks for a longer wait, the request fails at once.
	Backoff, MaxWait time.Duration
	// MaxAnswer limits an answer, in bytes; default 64 MiB.
	MaxAnswer int64
	// UserAgent is the name that the client sends; default "satchel".
	UserAgent string
}

// idleConnections is how many connections to the server are kept.
const idleConnections = 16

// Client calls a server. It is safe for concurrent use.
type Client struct {
	o    Options
	base string
	http *http.Client
}

// New returns a client. The error is an *Error with the code invalid.
func New(o Options) (*Client, error) {
	u, err := url.Parse(strings.TrimSpace(o.URL))
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, invalid("The address of the server must be of the form https://example.com.")
	}
	switch strings.Trim(u.Path, "/") {
	case "", "api", "mcp":
	default:
		return nil, invalid("The address of the server must have no path.")
	}
	// Anyone on the network path could read the key.
	if u.Scheme == "http" && !loopback(u.Hostname()) {
		return nil, invalid("The key would be sent in the clear: use https for a server that is not on this machine.")
	}
	o.Key = strings.TrimSpace(o.Key)
	if o.Key == "" || strings.ContainsFunc(o.Key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, invalid("The key is missing, or has characters that a key cannot have.")
	}
	if o.Transport == nil {
		t := &http.Transport{}
		if usual, ok := http.DefaultTransport.(*http.Transport); ok {
			t = usual.Clone()
		}
		t.MaxIdleConnsPerHost = idleConnections
		o.Transport = t
	}
	o.Retries = max(0, cmp.Or(o.Retries, 3))
	o.Backoff = cmp.Or(o.Backoff, 250*time.Millisecond)
	o.MaxWait = cmp.Or(o.MaxWait, 30*time.Second)
	o.MaxAnswer = cmp.Or(o.MaxAnswer, 64<<20)
	o.UserAgent = cmp.Or(o.UserAgent, "satchel")
	return &Client{o: o, base: u.Scheme + "://" + u.Host, http: &http.Client{
		Transport: o.Transport,
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse // a redirect would take the key along
		},
	}}, nil
}

func invalid(message string) *Error { return &Error{Code: CodeInvalid, Message: message} }

func loopback(host string) bool {
	if ip := net.ParseIP(host); ip != nil {
		return ip.IsLoopback()
	}
	return strings.EqualFold(host, "localhost")
}

// InSession returns a client with another session, which shares the connections of c.
func (c *Client) InSession(name string) *Client {
	other := *c
	other.o.Session = name
	return &other
}

// Close closes the connections that are kept.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Sources lists the sources of the library, sorted by label.
func (c *Client) Sources(ctx context.Context) ([]Source, error) {
	r, err := call[struct{ Sources []Source }](ctx, c, request{method: http.MethodGet, path: "/sources", repeat: true})
	return r.Sources, err
}

// Sync updates a source, or all sources if source is "".
func (c *Client) Sync(ctx context.Context, source string, o SyncOptions) ([]Run, error) {
	path := "/sync"
	if source != "" {
		path += "/" + url.PathEscape(source)
	}
	r, err := call[struct{ Runs []Run }](ctx, c, request{method: http.MethodPost, path: path, body: o})
	return r.Runs, err
}

// Search finds pages of the library.
func (c *Client) Search(ctx context.Context, q Query) (Results, error) {
	return call[Results](ctx, c, request{method: http.MethodPost, path: "/sandbox/search", body: q, repeat: true})
}

// Read reads files of the library and lists directories. The result has an entry for each path,
// in order. The entry of a path that cannot be read has an Error.
func (c *Client) Read(ctx context.Context, paths ...string) ([]File, error) {
	r, err := call[struct{ Files []File }](ctx, c, request{method: http.MethodPost, path: "/sandbox/read", repeat: true, body: struct {
		Paths []string `json:"paths"`
	}{paths}})
	return r.Files, err
}

// SearchAndRead finds pages and reads the best of them. read is how many pages it reads; 0 means
// the server's default.
func (c *Client) SearchAndRead(ctx context.Context, q Query, read int) (ResultsAndFiles, error) {
	return call[ResultsAndFiles](ctx, c, request{method: http.MethodPost, path: "/sandbox/search-and-read", repeat: true, body: struct {
		Query
		Read int `json:"read,omitempty"`
	}{q, read}})
}

// Bash runs a command over the library. A command that fails is a result with an exit code, and
// not an error. If the sandbox ends before the command, the error is an ErrSandbox.
func (c *Client) Bash(ctx context.Context, command string) (Ran, error) {
	r, err := c.Shell(ctx, command)
	switch {
	case err != nil:
		return Ran{}, err
	case len(r.Results) == 0:
		return Ran{}, &Error{Code: CodeNetwork, Message: "The answer of the server has no result."}
	case r.Results[0].End == "lost":
		return r.Results[0], &Error{Code: CodeUnavailable, Sandbox: true, Message: "The sandbox ended before the command. Run the command again."}
	}
	return r.Results[0], nil
}

// Shell runs commands over the library in order, in the same sandbox. If a later command cannot
// run, ShellResults.Error says why.
func (c *Client) Shell(ctx context.Context, commands ...string) (ShellResults, error) {
	return call[ShellResults](ctx, c, request{method: http.MethodPost, path: "/sandbox/shell", sandbox: true, body: struct {
		Commands  []string `json:"commands"`
		SessionID string   `json:"sessionId,omitempty"`
	}{commands, c.o.Session}})
}

// Facts lists the facts of the key's space.
func (c *Client) Facts(ctx context.Context) ([]Fact, error) {
	r, err := call[struct{ Facts []Fact }](ctx, c, request{method: http.MethodGet, path: "/memory", repeat: true})
	return r.Facts, err
}

// Remember saves facts. The result has an entry for each fact, in order, which says what became of
// the fact.
func (c *Client) Remember(ctx context.Context, facts ...Statement) ([]Remembered, error) {
	repeat := true
	for _, f := range facts {
		repeat = repeat && f.BaseETag == "" // the first try may have changed the etag
	}
	r, err := call[struct{ Facts []Remembered }](ctx, c, request{method: http.MethodPut, path: "/memory", repeat: repeat, body: struct {
		Facts []Statement `json:"facts"`
	}{facts}})
	return r.Facts, err
}

// Forget removes a fact. If etag is not empty, the fact must have this version.
func (c *Client) Forget(ctx context.Context, kind, key, etag string) error {
	_, err := call[struct{}](ctx, c, request{method: http.MethodDelete, path: "/memory/" + url.PathEscape(kind) + "/" + url.PathEscape(key), etag: etag})
	return err
}
