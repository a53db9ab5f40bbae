package stdio

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"satchel/internal/testenv"
)

const ask = `{"jsonrpc":"2.0","id":7,"method":"tools/list"}`

// A request has exactly one answer with its id, whatever the server does.
func TestEveryRequestHasOneAnswer(t *testing.T) {
	plain := func(status int, kind, body string) func(w http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			io.WriteString(w, body)
		}
	}
	refusal := `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"told why"}}`
	for name, c := range map[string]struct {
		server func(w http.ResponseWriter)
		says   string
	}{
		"a result":                         {plain(200, "application/json", `{"jsonrpc":"2.0","id":7,"result":{}}`), `"result":{}`},
		"a result over several lines":      {plain(200, "application/json; charset=utf-8", "{\"jsonrpc\":\"2.0\",\n\"id\":7,\n\"result\":{}}\n"), `"result":{}`},
		"an error without an id":           {plain(400, "application/json", refusal), "told why"},
		"401 that says why":                {plain(401, "application/json", refusal), "told why"},
		"401 without a body":               {plain(401, "", ""), "satchel token create"},
		"429 that says why":                {plain(429, "application/json", refusal), "told why"},
		"429 without a body":               {plain(429, "", ""), "try again in a moment"},
		"413":                              {plain(413, "application/json", refusal), "told why"},
		"500 without a body":               {plain(500, "", ""), "status 500"},
		"a proxy's page":                   {plain(502, "text/html", "<html>bad gateway</html>"), "status 502"},
		"404 without a session":            {plain(404, "text/plain", "404 page not found"), "status 404"},
		"no body":                          {plain(200, "application/json", ""), "before the result"},
		"202 to a request":                 {plain(202, "", ""), "before the result"},
		"JSON of another kind":             {plain(200, "application/json", `{"error":"nope"}`), "before the result"},
		"no JSON":                          {plain(200, "application/json", `{"jsonrpc"`), "before the result"},
		"an empty batch":                   {plain(200, "application/json", `[]`), "before the result"},
		"events without a result":          {plain(200, "text/event-stream", ": hello\n\n"), "before the result"},
		"an event that is cut off":         {plain(200, "text/event-stream", `data: {"jsonrpc":"2.0","id":7,"result":{}}`+"\n"), "before the result"},
		"a result that is too long":        {plain(200, "application/json", `{"jsonrpc":"2.0","id":7,"result":"`+strings.Repeat("x", 2000)+`"}`), "more than 1000 bytes"},
		"an event that is too long":        {plain(200, "text/event-stream", `data: {"jsonrpc":"2.0","id":7,"result":"`+strings.Repeat("x", 2000)+`"}`+"\n\n"), "more than 1000 bytes"},
		"an event of many lines, too long": {plain(200, "text/event-stream", strings.Repeat("data: xxxxxxxxx\n", 200)+"\n"), "more than 1000 bytes"},
		"another place": {func(w http.ResponseWriter) {
			w.Header().Set("Location", "https://elsewhere.example/mcp")
			w.WriteHeader(301)
		}, "https://elsewhere.example/mcp"},
		"a broken connection": {func(w http.ResponseWriter) {
			c, _, _ := w.(http.Hijacker).Hijack()
			c.Close()
		}, "connection to Satchel broke"},
		"a broken stream": {func(w http.ResponseWriter) {
			event(w, `{"jsonrpc":"2.0","method":"notifications/progress"}`)
			panic(http.ErrAbortHandler)
		}, "connection to Satchel broke"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, r *http.Request, m rpc) { c.server(w) })
			p := connect(t, Options{Target: Target{URL: s.URL}, MaxMessage: 1000})
			p.send(ask)
			rest, err := p.end()
			rest = slices.DeleteFunc(rest, func(l string) bool { return strings.Contains(l, "notifications/") })
			if err != nil || len(rest) != 1 {
				t.Fatalf("%d answers, %v: %q", len(rest), err, rest)
			}
			var a rpc
			if err := json.Unmarshal([]byte(rest[0]), &a); err != nil || string(a.ID) != "7" || !strings.Contains(rest[0], c.says) {
				t.Errorf("got %s, which does not say %q", rest[0], c.says)
			}
			if n := s.count("POST tools/list"); n != 1 {
				t.Errorf("the request was sent %d times", n)
			}
		})
	}
}

// A message that is not a request is never answered. A line that is not a message always is.
func TestWhatIsNoRequest(t *testing.T) {
	for name, c := range map[string]struct {
		line    string
		want    string // a part of the answer; empty: there is none
		reaches bool   // the line reaches the server
	}{
		"a notification":            {`{"jsonrpc":"2.0","method":"notifications/x"}`, "", true},
		"a response":                {`{"jsonrpc":"2.0","id":1,"result":{}}`, "", true},
		"an error response":         {`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}`, "", true},
		"an empty line":             {"  ", "", false},
		"malformed JSON":            {`{"jsonrpc":`, `{"error":{"code":-32700,`, false},
		"a bare word":               {`hello`, `-32700`, false},
		"two values":                {`{} {}`, `-32700`, false},
		"a number":                  {`5`, `no good`, true},
		"an empty object":           {`{}`, `no good`, true},
		"a null id":                 {`{"jsonrpc":"2.0","id":null,"method":"x"}`, `no good`, true},
		"an id that is an object":   {`{"jsonrpc":"2.0","id":{},"method":"x"}`, `"id":{}`, true},
		"a method that is a number": {`{"jsonrpc":"2.0","id":4,"method":7}`, `"id":4`, true},
		"an empty batch":            {`[]`, `no good`, true},
		"a batch of notifications":  {`[{"jsonrpc":"2.0","method":"a"}]`, "", true},
		"a batch":                   {`[{"jsonrpc":"2.0","id":1,"method":"a"}]`, `no good`, true},

		"a message that is too long": {`{"jsonrpc":"2.0","id":1,"method":"x","params":"` + strings.Repeat("x", 3000) + `"}`, `"id":null`, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, r *http.Request, m rpc) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(400)
				io.WriteString(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no good"}}`)
			})
			p := connect(t, Options{Target: Target{URL: s.URL}, MaxMessage: 1000})
			p.send(c.line)
			rest, err := p.end()
			if err != nil {
				t.Fatal(err)
			}
			if c.want == "" && len(rest) > 0 || c.want != "" && (len(rest) != 1 || !strings.Contains(rest[0], c.want)) {
				t.Errorf("answers %q, want %q", rest, c.want)
			}
			if reached := len(s.asked()) > 0; reached != c.reaches {
				t.Errorf("reached the server: %v", reached)
			}
		})
	}
}

// If no server answers, every request of a batch gets an error.
func TestABatchWithoutAServer(t *testing.T) {
	p := connect(t, Options{Target: Target{URL: closedPort(t)}, Patience: time.Millisecond})
	p.send(`[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","method":"n"},{"jsonrpc":"2.0","id":"b","method":"a"}]`)
	rest, _ := p.end()
	if len(rest) != 2 || !strings.Contains(rest[0], `"id":1`) || !strings.Contains(rest[1], `"id":"b"`) {
		t.Errorf("%q", rest)
	}
}

func TestASession(t *testing.T) {
	var ss sessions
	var version atomic.Value
	s := serve(t, func(w http.ResponseWriter, r *http.Request, m rpc) {
		ss.handle(w, r, m, func() {
			version.Store(r.Header.Get("MCP-Protocol-Version") + " " + r.Header.Get("Authorization") + " " + r.Header.Get("Mcp-Method"))
			if len(m.ID) == 0 {
				return
			}
			event(w, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}`)
			event(w, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":2}}`)
			event(w, result(m.ID, "done"))
		})
	})
	p := connect(t, Options{Target: Target{URL: s.URL, Token: "secret"}})
	p.send(hello, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, ask)
	p.wants(welcome,
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}`,
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":2}}`,
		result(json.RawMessage("7"), "done"))
	if rest, err := p.end(); err != nil || len(rest) > 0 {
		t.Errorf("%q, %v", rest, err)
	}
	if got := version.Load(); got != "2025-11-25 Bearer secret " {
		t.Errorf("headers %q", got)
	}
	seen := slices.DeleteFunc(s.asked(), func(l string) bool { return l == "GET  s1" })
	want := []string{"POST initialize", "POST notifications/initialized s1", "POST tools/list s1", "DELETE  s1"}
	if !slices.Equal(seen, want) {
		t.Errorf("the server saw %q", seen)
	}
}

// The server's own messages arrive on the stream that GET opens.
func TestTheServersOwnMessages(t *testing.T) {
	var ss sessions
	s := serve(t, func(w http.ResponseWriter, r *http.Request, m rpc) {
		if r.Method == http.MethodGet {
			event(w, `{"jsonrpc":"2.0","id":"srv-1","method":"ping"}`)
			<-r.Context().Done()
			return
		}
		ss.handle(w, r, m, func() { w.WriteHeader(http.StatusAccepted) })
	})
	p := connect(t, Options{Target: Target{URL: s.URL}})
	p.send(hello)
	p.wants(welcome, `{"jsonrpc":"2.0","id":"srv-1","method":"ping"}`)
	p.send(`{"jsonrpc":"2.0","id":"srv-1","result":{}}`)
	if rest, err := p.end(); err != nil || len(rest) > 0 {
		t.Errorf("%q, %v", rest, err)
	}
	if s.count("POST  s1") != 1 {
		t.Errorf("the answer did not reach the server: %q", s.asked())
	}
}

// A slow request does not delay others.
func TestRequestsRunBesideEachOther(t *testing.T) {
	second := make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, r *http.Request, m rpc) {
		if m.Method == "slow" {
			<-second
		} else {
			close(second)
		}
		answerJSON(w, result(m.ID, m.Method))
	})
	p := connect(t, Options{Target: Target{URL: s.URL}})
	p.send(`{"jsonrpc":"2.0","id":1,"method":"slow"}`, `{"jsonrpc":"2.0","id":2,"method":"quick"}`)
	got := []string{p.next(), p.next()}
	slices.Sort(got)
	if got[0] != result(json.RawMessage("1"), "slow") || got[1] != result(json.RawMessage("2"), "quick") {
		t.Errorf("%q", got)
	}
}

// A restarted server has forgotten the session. The proxy begins one new session, even if many
// requests notice.
func TestAForgottenSessionIsBegunAnew(t *testing.T) {
	var ss sessions
	s := serve(t, func(w http.ResponseWriter, r *http.Request, m rpc) {
		ss.handle(w, r, m, func() {
			if len(m.ID) > 0 {
				answerJSON(w, result(m.ID, r.Header.Get("Mcp-Session-Id")))
			}
		})
	})
	p := connect(t, Options{Target: Target{URL: s.URL}})
	p.send(hello)
	p.wants(welcome)
	ss.forget()
	const n = 12
	for i := range n {
		p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"m"}`, i))
	}
	for range n {
		if got := p.next(); !strings.Contains(got, `"text":"s2"`) {
			t.Errorf("got %s", got)
		}
	}
	if got := s.count("POST initialize"); got != 2 {
		t.Errorf("%d times initialize", got)
	}
	if got := s.count("POST notifications/initialized s2"); got != 1 {
		t.Errorf("%d times initialized", got)
	}
	p.end()
	if s.count("DELETE  s2") != 1 {
		t.Errorf("the new session was not ended: %q", s.asked())
	}
}

// A 404 that is not about a session is the answer.
func TestASessionThatCannotBeBegunAnew(t *testing.T) {
	first := true
	s := serve(t, func(w http.ResponseWriter, r *http.Request, m rpc) {
		if m.Method == "initialize" && first {
			first = false
			w.Header().Set("Mcp-Session-Id", "s1")
			answerJSON(w, welcome)
			return
		}
		w.WriteHeader(http.StatusNotFound)
	})
	p := connect(t, Options{Target: Target{URL: s.URL}})
	p.send(hello, ask)
	p.wants(welcome)
	if got := p.next(); !strings.Contains(got, `"id":7`) || !strings.Contains(got, "404") {
		t.Errorf("got %s", got)
	}
}

// closedPort returns the URL of a port at which nobody listens. The port is that of a
// connected client until the test ends, so no other server can get it.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return "http://" + c.LocalAddr().String()
}

func TestNoServer(t *testing.T) {
	p := connect(t, Options{Target: Target{URL: closedPort(t)}, Patience: time.Millisecond})
	p.send(ask)
	if got := p.next(); !strings.Contains(got, `"id":7`) || !strings.Contains(got, "satchel serve") {
		t.Errorf("got %s", got)
	}
}

// refusals reports each refused connection on a channel.
type refusals struct {
	http.RoundTripper
	refused chan struct{}
}

func (r refusals) RoundTrip(q *http.Request) (*http.Response, error) {
	res, err := r.RoundTripper.RoundTrip(q)
	if isRefused(err) {
		select {
		case r.refused <- struct{}{}:
		default:
		}
	}
	return res, err
}

// The proxy waits for a server that restarts.
func TestAServerThatComesBack(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answerJSON(w, result(json.RawMessage("7"), "back"))
	}))
	defer s.Close()
	var back atomic.Bool
	transport := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		if !back.Load() { // a port that was free a moment ago may belong to another process now
			return nil, &net.OpError{Op: "dial", Net: network, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
		}
		return new(net.Dialer).DialContext(ctx, network, addr)
	}}
	gone := refusals{transport, make(chan struct{}, 1)}
	p := connect(t, Options{Target: Target{URL: s.URL}, Client: &http.Client{Transport: gone}, Patience: time.Hour})
	t.Cleanup(transport.CloseIdleConnections)
	p.send(ask)
	<-gone.refused
	back.Store(true)
	p.wants(result(json.RawMessage("7"), "back"))
}

// A server that ends closes its kept connections, perhaps exactly when the next request is
// written to one. Then nobody could know whether the server got the request.
func TestARequestUsesNoKeptConnection(t *testing.T) {
	var used sync.Map
	s := serve(t, func(w http.ResponseWriter, r *http.Request, m rpc) {
		if _, again := used.LoadOrStore(r.RemoteAddr, true); again {
			panic(http.ErrAbortHandler)
		}
		answerJSON(w, result(m.ID, ""))
	})
	p := connect(t, Options{Target: Target{URL: s.URL}})
	for range 3 {
		p.send(ask)
		p.wants(result(json.RawMessage("7"), ""))
	}
}

// If the server has another address, or the key has expired, Reconnect returns the next target,
// once for all requests.
func TestReconnect(t *testing.T) {
	for name, at := range map[string]Target{
		"the server has moved": {URL: closedPort(t), Token: "good"},
		"the key has ended":    {Token: "bad"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, r *http.Request, m rpc) {
				if r.Header.Get("Authorization") != "Bearer good" {
					w.WriteHeader(http.StatusUnauthorized)
					return
				}
				answerJSON(w, result(m.ID, "ok"))
			})
			at := at
			if at.URL == "" {
				at.URL = s.URL
			}
			var times atomic.Int32
			p := connect(t, Options{Target: at, Patience: time.Hour, Reconnect: func(_ context.Context, failed Target, keyRefused bool) (Target, error) {
				times.Add(1)
				if failed != at || keyRefused != (at.Token == "bad") {
					t.Errorf("asked for %v, %v", failed, keyRefused)
				}
				return Target{URL: s.URL, Token: "good"}, nil
			}})
			for i := range 8 {
				p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"m"}`, i))
			}
			for range 8 {
				if got := p.next(); !strings.Contains(got, `"text":"ok"`) {
					t.Errorf("got %s", got)
				}
			}
			if n := times.Load(); n != 1 {
				t.Errorf("asked %d times", n)
			}
		})
	}
}

// The proxy reports a key that is refused again, and does not ask for keys without end.
func TestAKeyThatIsNoGood(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request, m rpc) { w.WriteHeader(http.StatusUnauthorized) })
	var n atomic.Int32
	p := connect(t, Options{Target: Target{URL: s.URL}, Reconnect: func(context.Context, Target, bool) (Target, error) {
		return Target{URL: s.URL, Token: fmt.Sprint(n.Add(1))}, nil
	}})
	p.send(ask)
	if got := p.next(); !strings.Contains(got, "refused the API key") || n.Load() != 1 {
		t.Errorf("got %s after %d keys", got, n.Load())
	}
}

// The headers of 2026-07-28 repeat values of the body.
func TestModernHeaders(t *testing.T) {
	for _, c := range []struct{ method, params, name string }{
		{"tools/list", ``, ""},
		{"tools/call", `"name":"search",`, "search"},
		{"resources/read", `"uri":"satchel://a/b",`, "satchel://a/b"},
		{"tools/call", `"name":"grüße",`, "=?base64?Z3LDvMOfZQ==?="},
		{"tools/call", `"name":" x",`, "=?base64?IHg=?="},
		{"tools/call", `"name":"a\r\nEvil: 1",`, "=?base64?YQ0KRXZpbDogMQ==?="},
		{"tools/call", `"name":"=?base64?eA==?=",`, "=?base64?PT9iYXNlNjQ/ZUE9PT89?="},
	} {
		t.Run(c.method+" "+c.params, func(t *testing.T) {
			got := make(chan http.Header, 1)
			s := serve(t, func(w http.ResponseWriter, r *http.Request, m rpc) {
				got <- r.Header.Clone()
				answerJSON(w, result(m.ID, ""))
			})
			p := connect(t, Options{Target: Target{URL: s.URL}})
			p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`, c.method, c.params))
			p.next()
			h := <-got
			if h.Get("MCP-Protocol-Version") != "2026-07-28" || h.Get("Mcp-Method") != c.method || h.Get("Mcp-Name") != c.name || h.Get("Evil") != "" || h.Get("Mcp-Session-Id") != "" {
				t.Errorf("%v", h)
			}
		})
	}
}

func TestCancellation(t *testing.T) {
	const cancel = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`
	run := func(t *testing.T, before []string, request string) (*endpoint, *client) {
		var ss sessions
		begun, stop := make(chan struct{}), make(chan struct{})
		var once sync.Once
		s := serve(t, func(w http.ResponseWriter, r *http.Request, m rpc) {
			h := func() {
				switch {
				case m.Method == "notifications/cancelled":
					once.Do(func() { close(stop) })
				case m.Method == "slow":
					close(begun)
					select {
					case <-stop:
					case <-r.Context().Done():
						once.Do(func() { close(stop) })
					}
				default:
					answerJSON(w, result(m.ID, "next"))
				}
			}
			if r.Header.Get("Mcp-Method") != "" {
				h()
				return
			}
			ss.handle(w, r, m, h)
		})
		p := connect(t, Options{Target: Target{URL: s.URL}})
		p.send(before...)
		for range before {
			p.next()
		}
		p.send(request)
		<-begun
		p.send(cancel)
		<-stop
		return s, p
	}
	const meta = `"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}`
	t.Run("in a session the server is told", func(t *testing.T) {
		s, p := run(t, []string{hello}, `{"jsonrpc":"2.0","id":7,"method":"slow"}`)
		p.send(`{"jsonrpc":"2.0","id":8,"method":"m"}`)
		p.wants(result(json.RawMessage("8"), "next")) // the cancelled request has no answer
		if s.count("POST notifications/cancelled s1") != 1 {
			t.Errorf("the server saw %q", s.asked())
		}
		if rest, err := p.end(); err != nil || len(rest) > 0 {
			t.Errorf("%q, %v", rest, err)
		}
	})
	t.Run("without one the connection ends", func(t *testing.T) {
		s, p := run(t, nil, `{"jsonrpc":"2.0","id":7,"method":"slow",`+meta+`}`)
		p.send(`{"jsonrpc":"2.0","id":8,"method":"m",` + meta + `}`)
		p.wants(result(json.RawMessage("8"), "next"))
		if s.count("POST notifications/cancelled") != 0 {
			t.Errorf("the server saw %q", s.asked())
		}
		if rest, err := p.end(); err != nil || len(rest) > 0 {
			t.Errorf("%q, %v", rest, err)
		}
	})
	t.Run("of what has its answer", func(t *testing.T) {
		s := serve(t, func(w http.ResponseWriter, r *http.Request, m rpc) { answerJSON(w, result(m.ID, "")) })
		p := connect(t, Options{Target: Target{URL: s.URL}})
		p.send(ask)
		p.next()
		p.send(cancel)
		if rest, err := p.end(); err != nil || len(rest) > 0 {
			t.Errorf("%q, %v", rest, err)
		}
	})
}

// Requests from before the end of the input are still answered, but only for a limited time.
func TestTheEndOfTheInput(t *testing.T) {
	begun, finish := make(chan struct{}, 1), make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, r *http.Request, m rpc) {
		begun <- struct{}{}
		select {
		case <-finish:
			answerJSON(w, result(m.ID, "late"))
		case <-r.Context().Done():
		}
	})
	t.Run("drains", func(t *testing.T) {
		p := connect(t, Options{Target: Target{URL: s.URL}})
		// The last line may have no line end.
		if _, err := io.WriteString(p.in, ask); err != nil {
			t.Fatal(err)
		}
		p.in.Close()
		<-begun
		finish <- struct{}{}
		if rest, err := p.end(); err != nil || len(rest) != 1 || rest[0] != result(json.RawMessage("7"), "late") {
			t.Errorf("%q, %v", rest, err)
		}
	})
	t.Run("in bounds", func(t *testing.T) {
		p := connect(t, Options{Target: Target{URL: s.URL}, Drain: 10 * time.Millisecond})
		p.send(ask)
		<-begun
		if rest, err := p.end(); err != nil || len(rest) > 0 {
			t.Errorf("%q, %v", rest, err)
		}
	})
	t.Run("does not wait for a listening stream", func(t *testing.T) {
		p := connect(t, Options{Target: Target{URL: s.URL}, Drain: time.Hour})
		p.send(`{"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{}}`)
		<-begun
		if rest, err := p.end(); err != nil || len(rest) > 0 {
			t.Errorf("%q, %v", rest, err)
		}
	})
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

// The client no longer reads, so it is gone.
func TestABrokenOutput(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request, m rpc) { answerJSON(w, result(m.ID, "")) })
	in, w := io.Pipe()
	defer w.Close()
	ended := make(chan error, 1)
	go func() {
		ended <- Run(context.Background(), Options{Target: Target{URL: s.URL}, In: in, Out: brokenPipe{}, Log: slog.New(slog.DiscardHandler)})
	}()
	io.WriteString(w, ask+"\n")
	if err := testenv.Receive(t, "the end", ended); err == nil || !strings.Contains(err.Error(), "broken pipe") {
		t.Errorf("%v", err)
	}
}

// An interrupted Run also ends its session.
func TestAnInterruption(t *testing.T) {
	var ss sessions
	s := serve(t, func(w http.ResponseWriter, r *http.Request, m rpc) { ss.handle(w, r, m, func() {}) })
	ctx, interrupt := context.WithCancel(context.Background())
	in, w := io.Pipe()
	defer w.Close()
	out, lines := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- Run(ctx, Options{Target: Target{URL: s.URL}, In: in, Out: lines, Log: slog.New(slog.DiscardHandler)})
	}()
	io.WriteString(w, hello+"\n")
	out.Read(make([]byte, 1000))
	interrupt()
	if err := <-ended; err != nil || s.count("DELETE  s1") != 1 {
		t.Errorf("%v, %q", err, s.asked())
	}
}
