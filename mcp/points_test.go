//go:build !conformance

package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// The tests of this file cover the fifteen things that mcp-go leaves to its users.

// waiting starts the tool "wait" and returns once it runs.
func (r *rig) waiting(c call) (answer chan reply) {
	r.t.Helper()
	answer = make(chan reply, 1)
	go func() {
		resp, err := r.start(c)
		if err != nil {
			answer <- reply{}
			return
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		events := readEvents(bytes.NewReader(b))
		if len(events) == 0 {
			events = []json.RawMessage{b}
		}
		answer <- reply{status: resp.StatusCode, header: resp.Header, body: string(b), events: events}
	}()
	<-r.tools.started
	return answer
}

func TestPoint1CancelReachesOnlyTheSameSession(t *testing.T) {
	r := newRig(t)
	annSession, bobSession := r.session("ann"), r.session("bob")
	cancelled := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`
	modernCancel := modern("1", "notifications/cancelled", `"requestId":1`)
	modernCancel.body = strings.Replace(modernCancel.body, `"id":1,`, "", 1)

	modernWait, stopModern := context.WithCancel(context.Background())
	defer stopModern()
	m := modern("1", "tools/call", `"name":"wait"`)
	m.ctx = modernWait
	r.waiting(m)
	answer := r.waiting(call{session: annSession, body: toolCall("1", "wait", "{}")})
	other := r.session("ann")

	for what, c := range map[string]call{
		"another user's modern request": modernCancel.as("bob"),
		"another user's session":        {token: "bob", session: bobSession, body: cancelled},
		"another session of the user":   {session: other, body: cancelled},
	} {
		if p := r.do(c); p.status != http.StatusAccepted {
			t.Errorf("%s: status %d, want 202", what, p.status)
		}
	}
	select {
	case err := <-r.tools.ended:
		t.Fatalf("a call ended by another client's cancellation: %v", err)
	default:
	}
	if p := r.do(call{session: annSession, body: cancelled}); p.status != http.StatusAccepted {
		t.Fatalf("cancel: status %d", p.status)
	}
	<-r.tools.ended
	if p := <-answer; p.status != 200 || p.body != "" || p.header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("the cancelled call was answered %d, %q; want a stream without a result", p.status, p.body)
	}
	stopModern() // a modern client cancels by going away
	<-r.tools.ended
}

// A cancelled call has no response, whatever its tool made of the cancellation and
// however its client takes answers.
func TestCancelledCallsHaveNoResponse(t *testing.T) {
	r := newRig(t)
	session := r.session("ann")
	for _, tool := range []string{"wait", "partial"} {
		for accept, want := range map[string]int{"application/json, text/event-stream": http.StatusOK, "application/json": http.StatusAccepted} {
			answer := r.waiting(call{session: session, body: toolCall("1", tool, "{}"), header: map[string]string{"Accept": accept}})
			r.do(call{session: session, body: `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`})
			<-r.tools.ended
			if p := <-answer; p.status != want || p.body != "" {
				t.Errorf("%s of a client that accepts %s was answered %d, %q; want %d and nothing", tool, accept, p.status, p.body, want)
			}
		}
		// In 2026-07-28 the end of the connection cancels. Half of it is enough, so that
		// the client could still read.
		conn, err := net.Dial("tcp", r.http.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		c := modern("1", "tools/call", `"name":"`+tool+`"`)
		q, err := http.NewRequest(http.MethodPost, r.http.URL+"/mcp", strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Authorization", "Bearer ann")
		q.Header.Set("Content-Type", "application/json")
		q.Header.Set("Accept", "application/json, text/event-stream")
		for name, value := range c.header {
			q.Header.Set(name, value)
		}
		if err := q.Write(conn); err != nil {
			t.Fatal(err)
		}
		<-r.tools.started
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		<-r.tools.ended
		if rest, err := io.ReadAll(conn); err != nil || bytes.Contains(rest, []byte("jsonrpc")) {
			t.Errorf("%s of a client that went was answered %q, %v", tool, rest, err)
		}
	}
}

func TestPoint2NoNotificationIsLost(t *testing.T) {
	r := newRig(t, func(o *Options) { o.ProgressInterval = time.Nanosecond })
	session := r.session("ann")
	for i := range 300 {
		c := call{session: session, body: `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"_meta":{"progressToken":"p"},"name":"progress","arguments":{"text":"x"}}}`}
		if i%2 == 0 {
			c = modern("7", "tools/call", `"name":"progress","arguments":{"text":"x"}`, `"progressToken":"p"`)
		}
		p := r.do(c)
		if len(p.events) != 6 {
			t.Fatalf("call %d: %d messages, want 5 notifications and the result:\n%s", i, len(p.events), p.body)
		}
		if p.text(t) != "x" {
			t.Fatalf("the result is not last:\n%s", p.body)
		}
	}
}

func TestPoint2SubscriptionAcknowledgementIsNotLost(t *testing.T) {
	r := newRig(t)
	for range 100 {
		p := r.do(modern("3", "subscriptions/listen", `"notifications":{"toolsListChanged":true}`))
		if len(p.events) != 2 || !strings.Contains(string(p.events[0]), "notifications/subscriptions/acknowledged") ||
			!strings.Contains(string(p.events[0]), `"io.modelcontextprotocol/subscriptionId":3`) {
			t.Fatalf("got %s", p.body)
		}
	}
}

func TestPoint3Origin(t *testing.T) {
	r := newRig(t, func(o *Options) {
		o.AllowedOrigins = []string{"https://app.example.com"}
		o.AllowedHosts = []string{"satchel.example.com"}
	})
	for _, c := range []struct {
		name, origin, host string
		allowed            bool
	}{
		{"none", "", "", true},
		{"listed", "https://app.example.com", "", true},
		{"loopback name", "http://localhost:5173", "", true},
		{"loopback address", "http://127.0.0.1:9", "", true},
		{"own", "https://satchel.example.com", "satchel.example.com", true},
		{"evil", "https://evil.example.com", "", false},
		{"listed with a port", "https://app.example.com:8443", "", false},
		{"listed over http", "http://app.example.com", "", false},
		{"listed as a prefix", "https://app.example.com.evil.com", "", false},
		{"localhost as a prefix", "http://localhost.evil.com", "", false},
		{"user info", "https://app.example.com@evil.com", "", false},
		{"null", "null", "", false},
		{"another scheme", "file://localhost", "", false},
		{"another's name as own", "https://other.example.com", "satchel.example.com", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := r.do(call{body: initialize, host: c.host, header: map[string]string{"Origin": c.origin}})
			if got := p.status == 200; got != c.allowed {
				t.Errorf("status %d", p.status)
			}
			if !c.allowed && p.status != http.StatusForbidden {
				t.Errorf("status %d, want 403", p.status)
			}
		})
	}
}

func TestPoint4Host(t *testing.T) {
	r := newRig(t, func(o *Options) { o.AllowedHosts = []string{"satchel.example.com"} })
	for host, want := range map[string]int{
		"satchel.example.com":      200, // a proxy on the same machine that keeps Host
		"satchel.example.com:8443": 200,
		"Satchel.Example.COM":      200,
		"localhost:8080":           200,
		"127.0.0.1:8080":           200,
		"[::1]:8080":               200,
		"192.168.1.7:8080":         200, // an address cannot be rebound
		"evil.example.com":         403,
		"satchel.example.com.evil": 403,
		"127.0.0.1.evil.com":       403,
	} {
		if p := r.do(call{body: initialize, host: host}); p.status != want {
			t.Errorf("Host %s: status %d, want %d", host, p.status, want)
		}
	}
}

// endless is a body without end that counts what is read of it.
type endless struct{ read atomic.Int64 }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	e.read.Add(int64(len(p)))
	return len(p), nil
}

func TestPoint5BodyLimit(t *testing.T) {
	r := newRig(t, func(o *Options) { o.MaxBody = 1 << 20 })
	pad := strings.Repeat("x", 1<<20)
	if p := r.do(call{session: r.session("ann"), body: toolCall("1", "echo", `{"text":"`+pad+`"}`)}); p.status != http.StatusRequestEntityTooLarge || p.last(t).Error.Code != -32600 {
		t.Errorf("a body of known size: status %d, %.200s", p.status, p.body)
	}
	body := &endless{}
	const size = 200 << 20
	resp, err := r.start(call{reader: io.LimitReader(body, size)})
	if err == nil {
		resp.Body.Close()
		if resp.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("200 MB in chunks: status %d, want 413", resp.StatusCode)
		}
	}
	// The client sends until it sees the answer; the server reads no further
	// than the limit, and buffers on the way hold the rest.
	if n := body.read.Load(); n > 64<<20 {
		t.Errorf("%d MB of a 200 MB body went over", n>>20)
	}
}

func TestPoint6Challenges(t *testing.T) {
	r := newRig(t)
	metadata := `resource_metadata="http://` + strings.TrimPrefix(r.http.URL, "http://") + `/.well-known/oauth-protected-resource"`
	session := r.session("readonly")
	for _, c := range []struct {
		name   string
		call   call
		status int
		header []string // parts of WWW-Authenticate
		not    string
	}{
		{"no token", call{token: "-", body: initialize}, 401, []string{`scope="read write"`, metadata}, "error="},
		{"unknown token", call{token: "stranger", body: initialize}, 401, []string{`error="invalid_token"`, metadata}, ""},
		{"GET", call{method: "GET", token: "-"}, 401, []string{metadata}, ""},
		{"DELETE", call{method: "DELETE", token: "-"}, 401, []string{metadata}, ""},
		{"scope, legacy", call{token: "readonly", session: session, body: toolCall("5", "write", "{}")}, 403,
			[]string{`error="insufficient_scope"`, `scope="read write"`, metadata}, ""},
		{"scope, modern", modern("5", "tools/call", `"name":"write"`).as("readonly"), 403,
			[]string{`error="insufficient_scope"`, `scope="read write"`, metadata}, ""},
		{"role, which no scope can fix", modern("5", "tools/call", `"name":"write"`).as("member"), 403, nil, "Bearer"},
		{"verifier busy", call{token: "busy", body: initialize}, 429, nil, "Bearer"},
		{"issuer away", call{token: "away", body: initialize}, 503, nil, "Bearer"},
		{"a token without a scope of ours", call{token: "scopeless", body: initialize}, 403, []string{`error="insufficient_scope"`, `scope="read write"`, metadata}, ""},
		{"banned", call{token: "banned", body: initialize}, 403, nil, "Bearer"},
		{"verifier down", call{token: "down", body: initialize}, 500, nil, "Bearer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := r.do(c.call)
			got := p.header.Get("WWW-Authenticate")
			if p.status != c.status {
				t.Errorf("status %d, want %d", p.status, c.status)
			}
			for _, part := range c.header {
				if !strings.HasPrefix(got, "Bearer ") || !strings.Contains(got, part) {
					t.Errorf("WWW-Authenticate %q has no %s", got, part)
				}
			}
			if c.not != "" && strings.Contains(got, c.not) {
				t.Errorf("WWW-Authenticate %q has %s", got, c.not)
			}
			if p.last(t).Error == nil || strings.Contains(p.body, secret) {
				t.Errorf("body %s", p.body)
			}
		})
	}
	if len(r.tools.calls) != 0 {
		t.Error("a refused call reached its tool")
	}
	// A token in the query, or two of them, are none.
	q, _ := http.NewRequest("POST", r.http.URL+"/mcp?access_token=ann", strings.NewReader(initialize))
	q.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 401 {
		t.Errorf("a token in the query: status %d", resp.StatusCode)
	}
}

// Guessing tokens is rate-limited by address; a valid token is not.
func TestPoint6GuessingTokensIsLimited(t *testing.T) {
	left := 2
	r := newRig(t, func(o *Options) {
		o.LimitUnauthenticated = func(*http.Request) (time.Duration, bool) {
			left--
			return 90 * time.Second, left >= 0
		}
	})
	for i, want := range []int{401, 401, 429} {
		p := r.do(call{token: "stranger", body: initialize})
		if p.status != want || (want == 429) != (p.header.Get("Retry-After") == "90") {
			t.Errorf("try %d: status %d, Retry-After %q", i+1, p.status, p.header.Get("Retry-After"))
		}
		if !strings.Contains(p.header.Get("WWW-Authenticate"), "resource_metadata=") {
			t.Errorf("try %d: no challenge", i+1)
		}
	}
	if p := r.do(call{body: initialize}); p.status != 200 || left != -1 {
		t.Errorf("a good token: status %d, counted %d times", p.status, -1-left)
	}
}

func TestPoint6RateAndConcurrency(t *testing.T) {
	now := time.Unix(1e9, 0)
	r := newRig(t, func(o *Options) {
		o.Rate, o.Burst, o.MaxConcurrent = 1, 3, 2
		o.Now = func() time.Time { return now }
	})
	limited := func(p reply) bool {
		return p.status == http.StatusTooManyRequests && p.header.Get("Retry-After") == "1"
	}
	for range 3 {
		if p := r.do(call{body: initialize}); p.status != 200 {
			t.Fatalf("status %d within the burst", p.status)
		}
	}
	if p := r.do(call{body: initialize}); !limited(p) {
		t.Errorf("over the rate: status %d, Retry-After %q", p.status, p.header.Get("Retry-After"))
	}
	if p := r.do(call{token: "bob", body: initialize}); p.status != 200 {
		t.Errorf("another user: status %d", p.status)
	}

	r = newRig(t, func(o *Options) { o.MaxConcurrent = 2 })
	session := r.session("ann")
	one := r.waiting(call{session: session, body: toolCall("1", "wait", "{}")})
	two := r.waiting(call{session: session, body: toolCall("2", "wait", "{}")})
	if p := r.legacy("ann", session, toolCall("3", "echo", `{"text":"x"}`)); !limited(p) {
		t.Errorf("a third call at once: status %d", p.status)
	}
	if p := r.legacy("bob", r.session("bob"), toolCall("3", "echo", `{"text":"x"}`)); p.status != 200 {
		t.Errorf("another user's call: status %d", p.status)
	}
	for id, answer := range map[string]chan reply{"1": one, "2": two} {
		r.legacy("ann", session, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+id+`}}`)
		<-answer
	}
	if p := r.legacy("ann", session, toolCall("3", "echo", `{"text":"x"}`)); p.status != 200 {
		t.Errorf("once both ended: status %d", p.status)
	}
}

func TestPoint7SessionsBelongToTheirGrant(t *testing.T) {
	r := newRig(t)
	session := r.session("ann")
	ping := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	for _, token := range []string{"bob", "ann2"} {
		for what, c := range map[string]call{
			"POST":         {body: ping},
			"notification": {body: `{"jsonrpc":"2.0","method":"notifications/initialized"}`},
			"GET":          {method: "GET"},
			"DELETE":       {method: "DELETE"},
		} {
			c.token, c.session = token, session
			if p := r.do(c); p.status != http.StatusNotFound {
				t.Errorf("%s of %s in ann's session: status %d, want 404", what, token, p.status)
			}
		}
	}
	if p := r.do(call{method: "GET", session: "never-was"}); p.status != http.StatusNotFound {
		t.Errorf("GET of an unknown session: status %d, want 404", p.status)
	}
	if p := r.do(call{method: "GET"}); p.status != http.StatusMethodNotAllowed || p.header.Get("Allow") != "POST, OPTIONS" {
		t.Errorf("GET without a session: status %d, Allow %q, want 405 and POST", p.status, p.header.Get("Allow"))
	}
	if p := r.legacy("ann", session, ping); p.status != 200 {
		t.Errorf("ann's own: status %d: %s", p.status, p.body)
	}
	if p := r.do(call{method: "DELETE", session: session}); p.status/100 != 2 {
		t.Errorf("ann's DELETE: status %d", p.status)
	}
	if p := r.legacy("ann", session, ping); p.status != http.StatusNotFound {
		t.Errorf("after DELETE: status %d, want 404", p.status)
	}
}

func TestPoint7DeleteEndsWhatIsInProgress(t *testing.T) {
	r := newRig(t)
	session := r.session("ann")
	answer := r.waiting(call{session: session, body: toolCall("1", "wait", "{}")})
	stream, err := r.start(call{method: "GET", session: session})
	if err != nil || stream.StatusCode != 200 || !strings.HasPrefix(stream.Header.Get("Content-Type"), "text/event-stream") {
		t.Fatalf("GET: %v, %v", stream, err)
	}
	defer stream.Body.Close()
	r.do(call{method: "DELETE", session: session})
	<-r.tools.ended
	<-answer
	io.Copy(io.Discard, stream.Body) // returns once the stream ends
}
