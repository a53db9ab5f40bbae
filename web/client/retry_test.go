package client_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"satchel/web/client"
)

// answers is a transport that gives one answer after another, and repeats the last.
type answers struct {
	list []func() (*http.Response, error)
	got  []string // bodies of the requests
}

func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	body := ""
	if r.Body != nil {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		body = string(b)
	}
	a.got = append(a.got, body)
	next := a.list[0]
	if len(a.list) > 1 {
		a.list = a.list[1:]
	}
	return next()
}

func answer(status int, body string, header ...string) func() (*http.Response, error) {
	return func() (*http.Response, error) {
		h := http.Header{"Content-Type": {"application/json"}}
		for i := 0; i+1 < len(header); i += 2 {
			h.Set(header[i], header[i+1])
		}
		return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body))}, nil
	}
}

func broken(err error) func() (*http.Response, error) {
	return func() (*http.Response, error) { return nil, err }
}

func refused(code string) string {
	return `{"error": {"code": "` + code + `", "message": "No."}, "message": "No.", "statusCode": 500}`
}

var (
	errReset   = &net.OpError{Op: "read", Err: errors.New("connection reset")}
	errNoOne   = &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	fine       = answer(200, `{"results": [], "total": 0, "facts": [], "runs": []}`)
	retryLater = "Retry-After"
)

// Requests are repeated if the server has done nothing, or if they have the same effect twice.
func TestRetries(t *testing.T) {
	search := func(ctx context.Context, c *client.Client) error {
		_, err := c.Search(ctx, client.Query{Query: "x"})
		return err
	}
	bash := func(ctx context.Context, c *client.Client) error {
		_, err := c.Shell(ctx, "x")
		return err
	}
	remember := func(base string) func(context.Context, *client.Client) error {
		return func(ctx context.Context, c *client.Client) error {
			_, err := c.Remember(ctx, client.Statement{Type: "a", Key: "b", Value: "c", BaseETag: base})
			return err
		}
	}
	forget := func(ctx context.Context, c *client.Client) error { return c.Forget(ctx, "a", "b", "") }
	syncOne := func(ctx context.Context, c *client.Client) error {
		_, err := c.Sync(ctx, "a", client.SyncOptions{})
		return err
	}
	list := func(f ...func() (*http.Response, error)) []func() (*http.Response, error) { return f }
	for _, c := range []struct {
		name    string
		call    func(context.Context, *client.Client) error
		answers []func() (*http.Response, error)
		sent    int
		is      error // nil for success
		waited  time.Duration
	}{
		{"a broken connection", search, list(broken(errReset), fine), 2, nil, -1},
		{"an unavailable server", search, list(answer(503, refused("unavailable")), answer(503, refused("unavailable")), fine), 3, nil, -1},
		{"a proxy without a server", search, list(answer(502, "<html>", "Content-Type", "text/html"), fine), 2, nil, -1},
		{"a server that stays away", search, list(broken(errNoOne)), 4, client.ErrNetwork, -1},
		{"a server that asks to wait", search, list(answer(429, refused("limited"), retryLater, "7"), fine), 2, nil, 7 * time.Second},
		{"a server that asks to wait for long", search, list(answer(429, refused("limited"), retryLater, "3600"), fine), 1, client.ErrLimited, 0},
		{"a key that is not valid", search, list(answer(401, refused("unauthenticated")), fine), 1, client.ErrUnauthorized, 0},
		{"a command that was limited", bash, list(answer(429, refused("limited"), retryLater, "2"), fine), 2, nil, 2 * time.Second},
		{"a command before a server is there", bash, list(broken(errNoOne), fine), 2, nil, -1},
		{"a command that may have run", bash, list(broken(errReset), fine), 1, client.ErrNetwork, 0},
		{"a command without a sandbox", bash, list(answer(503, refused("unavailable")), fine), 1, client.ErrSandbox, 0},
		{"a fact", remember(""), list(broken(errReset), fine), 2, nil, -1},
		{"a fact of a version", remember("e"), list(broken(errReset), fine), 1, client.ErrNetwork, 0},
		{"a removed fact", forget, list(broken(errReset), fine), 1, client.ErrNetwork, 0},
		{"a sync", syncOne, list(broken(errReset), fine), 1, client.ErrNetwork, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				transport := &answers{list: c.answers}
				x, err := client.New(client.Options{URL: "https://satchel.test", Key: "k", Transport: transport})
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				if err := c.call(t.Context(), x); !errors.Is(err, c.is) {
					t.Errorf("%v, want %v", err, c.is)
				}
				if len(transport.got) != c.sent {
					t.Errorf("sent %d times, want %d", len(transport.got), c.sent)
				}
				for _, body := range transport.got {
					if body != transport.got[0] {
						t.Errorf("sent %q, and then %q", transport.got[0], body)
					}
				}
				if waited := time.Since(began); c.waited >= 0 && waited != c.waited {
					t.Errorf("waited %s, want %s", waited, c.waited)
				}
			})
		})
	}
}

// A context ends a request that waits for its repetition.
func TestCancelingBetweenRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		x, err := client.New(client.Options{URL: "https://satchel.test", Key: "k", Transport: &answers{list: []func() (*http.Response, error){func() (*http.Response, error) {
			cancel()
			return answer(429, refused("limited"), retryLater, "20")()
		}}}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := x.Sources(ctx); codeOf(err) != client.CodeCanceled {
			t.Errorf("%v", err)
		}
	})
}

// One connection carries all requests that follow each other, refused ones too.
func TestConnectionsAreUsedAgain(t *testing.T) {
	var connections atomic.Int64
	var mu sync.Mutex
	n := 0
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		if n++; n%2 == 0 {
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(refused("not_found")))
			return
		}
		_, _ = w.Write([]byte(`{"sources": []}`))
	}))
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			connections.Add(1)
		}
	}
	srv.Start()
	defer srv.Close()
	c, err := client.New(client.Options{URL: srv.URL, Key: "k"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for i := range 10 {
		if _, err := c.Sources(t.Context()); (codeOf(err) == client.CodeNotFound) != (i%2 == 1) {
			t.Fatal(err)
		}
	}
	if got := connections.Load(); got != 1 {
		t.Errorf("%d connections", got)
	}
}
