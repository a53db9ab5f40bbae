package stdio

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"satchel/internal/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// client is the program that starts `satchel stdio`. It writes and reads lines.
type client struct {
	t     *testing.T
	in    *io.PipeWriter
	lines chan string
	ended chan error
}

func connect(t *testing.T, o Options) *client {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	c := &client{t: t, in: inW, lines: make(chan string, 100), ended: make(chan error, 1)}
	o.In, o.Out, o.Log = inR, outW, slog.New(slog.DiscardHandler)
	if o.Token == "" {
		o.Token = "key"
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		c.ended <- Run(ctx, o)
		close(c.ended)
		inR.Close()
		outW.Close()
	}()
	go func() {
		defer close(c.lines)
		s := bufio.NewScanner(outR)
		s.Buffer(nil, 16<<20)
		for s.Scan() {
			c.lines <- s.Text()
		}
	}()
	t.Cleanup(func() {
		cancel()
		inW.Close()
		<-c.ended
		for range c.lines { // until the channel is closed
		}
	})
	return c
}

func (c *client) send(lines ...string) {
	c.t.Helper()
	for _, l := range lines {
		if _, err := io.WriteString(c.in, l+"\n"); err != nil {
			c.t.Fatal(err)
		}
	}
}

// next returns the next line.
func (c *client) next() string {
	c.t.Helper()
	l := testenv.Receive(c.t, "a line", c.lines)
	if l == "" {
		c.t.Fatal("the proxy has ended")
	}
	return l
}

func (c *client) wants(lines ...string) {
	c.t.Helper()
	for _, want := range lines {
		if got := c.next(); got != want {
			c.t.Fatalf("got  %s\nwant %s", got, want)
		}
	}
}

// end ends the input. It returns the remaining lines and the error of Run.
func (c *client) end() ([]string, error) {
	c.t.Helper()
	c.in.Close()
	var rest []string
	for l := range c.lines {
		rest = append(rest, l)
	}
	return rest, testenv.Receive(c.t, "the end of the proxy", c.ended)
}

// endpoint is a test server that records its requests.
type endpoint struct {
	*httptest.Server
	mu   sync.Mutex
	seen []string // "METHOD rpc-method session"
}

type rpc struct {
	ID     json.RawMessage
	Method string
	Params struct{ RequestID json.RawMessage }
}

func serve(t *testing.T, h func(w http.ResponseWriter, r *http.Request, m rpc)) *endpoint {
	t.Helper()
	e := &endpoint{}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var m rpc
		_ = json.Unmarshal(body, &m)
		e.mu.Lock()
		e.seen = append(e.seen, strings.TrimSpace(r.Method+" "+m.Method+" "+r.Header.Get("Mcp-Session-Id")))
		e.mu.Unlock()
		h(w, r, m)
	}))
	t.Cleanup(e.Close)
	return e
}

func (e *endpoint) asked() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]string(nil), e.seen...)
}

func (e *endpoint) count(what string) (n int) {
	for _, s := range e.asked() {
		if s == what {
			n++
		}
	}
	return n
}

func result(id json.RawMessage, text string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"text":%q}}`, id, text)
}

func answerJSON(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "application/json")
	io.WriteString(w, text)
}

func event(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(w, "event: message\ndata: %s\n\n", text)
	w.(http.Flusher).Flush()
}

const hello = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`

const welcome = `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25"}}`

// sessions is a server with sessions: initialize begins s1, s2 and so on, and only the newest
// is valid. It passes other requests to h.
type sessions struct {
	mu  sync.Mutex
	n   int
	bad bool // it has forgotten the session
}

func (s *sessions) handle(w http.ResponseWriter, r *http.Request, m rpc, h func()) {
	s.mu.Lock()
	if m.Method == "initialize" {
		s.n++
		s.bad = false
	}
	id, known := fmt.Sprintf("s%d", s.n), !s.bad && r.Header.Get("Mcp-Session-Id") == fmt.Sprintf("s%d", s.n)
	s.mu.Unlock()
	switch {
	case m.Method == "initialize":
		w.Header().Set("Mcp-Session-Id", id)
		answerJSON(w, welcome)
	case r.Method == http.MethodDelete:
	case !known:
		w.WriteHeader(http.StatusNotFound)
	case r.Method == http.MethodGet:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case len(m.ID) == 0:
		w.WriteHeader(http.StatusAccepted)
		h()
	default:
		h()
	}
}

func (s *sessions) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bad = true
}
