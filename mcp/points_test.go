package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The tests of this file are the fifteen things that mcp-go leaves to whoever
// serves with it, in the order of the list that DESIGN section 7 names.

func toolCall(id, name, args string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, id, name, args)
}

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
	if e := (<-answer).last(t).Error; e == nil || e.Code != codeCanceled {
		t.Errorf("the cancelled call was answered %+v, want %d", e, codeCanceled)
	}
	stopModern() // a modern client cancels by going away
	<-r.tools.ended
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
		{"role, which no scope mends", modern("5", "tools/call", `"name":"write"`).as("member"), 403, nil, "Bearer"},
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
	if p := r.do(call{method: "GET"}); p.status != http.StatusBadRequest {
		t.Errorf("GET without a session: status %d, want 400", p.status)
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

func TestPoint8SessionsAreBounded(t *testing.T) {
	now := time.Unix(1e9, 0)
	var mu sync.Mutex
	r := newRig(t, func(o *Options) {
		o.Now = func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
		o.MaxSessions, o.MaxAllSessions, o.SessionTTL = 50, 60, time.Hour
	})
	first := r.session("ann")
	// The handler is called without a network between, to be quick.
	handshake := func(token string, n int) {
		for range n {
			q, _ := http.NewRequest("POST", "http://localhost/mcp", strings.NewReader(initialize))
			q.Header.Set("Content-Type", "application/json")
			q.Header.Set("Authorization", "Bearer "+token)
			r.s.ServeHTTP(&recorder{header: make(http.Header)}, q)
		}
	}
	handshake("ann", 20_000)
	if n := r.s.Sessions(); n != 50 {
		t.Errorf("%d sessions after 20,000 handshakes of one user, want 50", n)
	}
	if p := r.legacy("ann", first, `{"jsonrpc":"2.0","id":1,"method":"ping"}`); p.status != http.StatusNotFound {
		t.Errorf("the oldest session: status %d, want 404", p.status)
	}
	handshake("bob", 40)
	if n := r.s.Sessions(); n != 60 {
		t.Errorf("%d sessions of everyone, want 60", n)
	}
	session := r.session("bob")
	mu.Lock()
	now = now.Add(61 * time.Minute)
	mu.Unlock()
	if p := r.legacy("bob", session, `{"jsonrpc":"2.0","id":1,"method":"ping"}`); p.status != http.StatusNotFound {
		t.Errorf("after its life: status %d, want 404", p.status)
	}
	if n := r.s.Sessions(); n != 0 {
		t.Errorf("%d sessions are left after their life", n)
	}
}

func TestPoint9CodesByEra(t *testing.T) {
	r := newRig(t)
	session := r.session("ann")
	for _, c := range []struct {
		name                       string
		method, params             string
		legacyCode, modernCode     int
		legacyStatus, modernStatus int
	}{
		{"unknown tool", "tools/call", `"name":"nope"`, -32602, -32602, 200, 400},
		{"unknown prompt", "prompts/get", `"name":"nope"`, -32602, -32602, 200, 400},
		{"unknown resource", "resources/read", `"uri":"satchel://nope"`, -32002, -32602, 200, 400},
		{"broken resource", "resources/read", `"uri":"satchel://resources/broken.md"`, -32603, -32603, 200, 200},
		{"unknown skill", "skills/get", `"uri":"skill://nope/SKILL.md"`, -32602, -32602, 200, 400},
		{"unknown method", "nope/nope", ``, -32601, -32601, 200, 404},
		{"broken tool", "tools/call", `"name":"broken"`, -32603, -32603, 200, 200},
		{"panicking tool", "tools/call", `"name":"panic"`, -32603, -32603, 200, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := r.legacy("ann", session, fmt.Sprintf(`{"jsonrpc":"2.0","id":"a","method":%q,"params":{%s}}`, c.method, c.params))
			if e := p.last(t).Error; e == nil || e.Code != c.legacyCode || p.status != c.legacyStatus {
				t.Errorf("legacy: status %d, %s; want %d, %d", p.status, p.body, c.legacyStatus, c.legacyCode)
			}
			m := r.do(modern(`"a"`, c.method, c.params))
			if e := m.last(t).Error; e == nil || e.Code != c.modernCode || m.status != c.modernStatus {
				t.Errorf("modern: status %d, %s; want %d, %d", m.status, m.body, c.modernStatus, c.modernCode)
			}
			if strings.Contains(p.body+m.body, secret) || strings.Contains(p.body+m.body, "goroutine") {
				t.Errorf("an internal error's text left the server: %s %s", p.body, m.body)
			}
			if string(p.last(t).ID) != `"a"` {
				t.Errorf("the answer has the id %s", p.last(t).ID)
			}
		})
	}
}

func TestPoint11TasksAreOff(t *testing.T) {
	r := newRig(t)
	for _, method := range []string{"tasks/get", "tasks/list", "tasks/result", "tasks/cancel"} {
		if p := r.do(modern("1", method, `"taskId":"x"`)); p.status != 404 || p.last(t).Error.Code != -32601 {
			t.Errorf("%s: status %d, %s", method, p.status, p.body)
		}
	}
	if p := r.do(call{body: initialize}); strings.Contains(p.body, `"tasks"`) {
		t.Errorf("tasks are declared: %s", p.body)
	}
	// A call that asks to be a task is a call.
	if p := r.do(modern("1", "tools/call", `"name":"echo","arguments":{"text":"x"},"task":{"ttl":1000}`)); p.text(t) != "x" {
		t.Errorf("got %s", p.body)
	}
}

func TestPoint12Skills(t *testing.T) {
	r := newRig(t)
	session := r.session("ann")
	if p := r.do(call{body: initialize}); !strings.Contains(p.body, skillsExtension) {
		t.Errorf("initialize does not declare the extension: %s", p.body)
	}
	if p := r.do(modern("1", "server/discover", "")); !strings.Contains(p.body, skillsExtension) {
		t.Errorf("discovery does not declare the extension: %s", p.body)
	}
	for era, do := range map[string]func(method, params string) reply{
		"legacy": func(method, params string) reply {
			return r.legacy("ann", session, `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{`+params+`}}`)
		},
		"modern": func(method, params string) reply { return r.do(modern("1", method, params)) },
	} {
		list := do("skills/list", "").last(t).Result
		found, _ := list["skills"].([]any)
		if len(found) != 1 {
			t.Fatalf("%s: %v", era, list)
		}
		entry, _ := json.Marshal(found[0])
		want := `{"frontmatter":{"description":"Tidies.","name":"tidy"},"resources":[{"digest":"sha256:` + strings.Repeat("0", 64) + `","size":12,"uri":"skill://tidy/SKILL.md"}],"uri":"skill://tidy/SKILL.md"}`
		if string(entry) != want {
			t.Errorf("%s: entry %s, want %s", era, entry, want)
		}
		got := do("skills/get", `"uri":"skill://tidy/SKILL.md"`).last(t).Result
		if got["skill"] == nil {
			t.Errorf("%s: skills/get answered %v", era, got)
		}
		for _, name := range []string{"resultType", "ttlMs", "cacheScope", "_meta"} {
			if _, has := list[name]; has != (era == "modern") {
				t.Errorf("%s: skills/list has %s: %v", era, name, has)
			}
		}
	}
}

func TestPoint13StreamsStayAlive(t *testing.T) {
	r := newRig(t, func(o *Options) { o.KeepAlive = time.Millisecond })
	session := r.session("ann")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	wait := modern("1", "tools/call", `"name":"wait"`)
	wait.ctx = ctx
	for what, c := range map[string]call{
		"a call":             wait,
		"a listening stream": {method: "GET", session: session, ctx: ctx},
	} {
		resp, err := r.start(c)
		if err != nil {
			t.Fatal(err)
		}
		if got := resp.Header.Get("X-Accel-Buffering"); got != "no" {
			t.Errorf("%s: X-Accel-Buffering %q", what, got)
		}
		b := make([]byte, len(": keep-alive\n\n"))
		if _, err := io.ReadFull(resp.Body, b); err != nil || string(b) != ": keep-alive\n\n" {
			t.Errorf("%s: %q, %v", what, b, err)
		}
		defer resp.Body.Close()
	}
	cancel()
	<-r.tools.ended
}

func TestPoint13NothingIsSubscribedTo(t *testing.T) {
	r := newRig(t)
	session := r.session("ann")
	p := r.legacy("ann", session, `{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"satchel://another-users"}}`)
	if e := p.last(t).Error; e == nil || e.Code != -32601 {
		t.Errorf("resources/subscribe: %s", p.body)
	}
	m := r.do(modern("1", "subscriptions/listen", `"notifications":{"resourceSubscriptions":["satchel://another-users"],"toolsListChanged":true}`))
	if !strings.Contains(string(m.events[0]), `"notifications":{}`) {
		t.Errorf("subscriptions/listen acknowledged more than nothing: %s", m.body)
	}
}

func TestPoint14SchemasAndHints(t *testing.T) {
	r := newRig(t)
	list := r.do(modern("1", "tools/list", "")).last(t).Result["tools"].([]any)
	if len(list) != len(r.tools.all()) {
		t.Fatalf("%d tools are listed", len(list))
	}
	for _, entry := range list {
		tool := entry.(map[string]any)
		hints, _ := tool["annotations"].(map[string]any)
		for _, name := range []string{"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint", "title"} {
			if _, ok := hints[name]; !ok {
				t.Errorf("%s has no %s", tool["name"], name)
			}
		}
		if b, _ := json.Marshal(tool); bytes.Contains(b, []byte("null")) {
			t.Errorf("null in %s", b)
		}
	}
	// Who may only read is not shown what writes.
	p := r.do(modern("1", "tools/list", "").as("readonly"))
	if strings.Contains(p.body, `"write"`) || !strings.Contains(p.body, `"echo"`) {
		t.Errorf("a reader is listed %s", p.body)
	}
}

func TestPoint14CORS(t *testing.T) {
	r := newRig(t, func(o *Options) { o.AllowedOrigins = []string{"https://app.example.com"} })
	p := r.do(call{method: "OPTIONS", token: "-", header: map[string]string{"Origin": "https://app.example.com",
		"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization, mcp-param-region, x-evil"}})
	allowed := strings.ToLower(p.header.Get("Access-Control-Allow-Headers"))
	for _, name := range []string{"mcp-protocol-version", "mcp-method", "mcp-name", "mcp-session-id", "authorization", "last-event-id", "content-type", "mcp-param-region"} {
		if !strings.Contains(allowed, name) {
			t.Errorf("the preflight does not allow %s: %s", name, allowed)
		}
	}
	if p.status != 204 || p.header.Get("Access-Control-Allow-Origin") != "https://app.example.com" || strings.Contains(allowed, "x-evil") || p.header.Get("Vary") != "Origin" {
		t.Errorf("preflight: status %d, %v", p.status, p.header)
	}
	if p.header.Get("Access-Control-Allow-Credentials") != "" {
		t.Error("cookies are allowed")
	}
	p = r.do(call{body: initialize, header: map[string]string{"Origin": "https://app.example.com"}})
	exposed := p.header.Get("Access-Control-Expose-Headers")
	if !strings.Contains(exposed, "Mcp-Session-Id") || !strings.Contains(exposed, "WWW-Authenticate") {
		t.Errorf("exposed: %s", exposed)
	}
	p = r.do(call{method: "OPTIONS", token: "-", header: map[string]string{"Origin": "https://evil.example.com"}})
	if p.status != 403 || p.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("an evil preflight: status %d, %v", p.status, p.header)
	}
	// A page must see why it was refused, so the challenge is readable too.
	p = r.do(call{token: "-", body: initialize, header: map[string]string{"Origin": "https://app.example.com"}})
	if p.status != 401 || p.header.Get("Access-Control-Allow-Origin") == "" {
		t.Errorf("401 for a page: %v", p.header)
	}
}

func TestPoint15NoRawSchemaErrors(t *testing.T) {
	r := newRig(t)
	session := r.session("ann")
	for name, body := range map[string]string{
		"argument of a wrong type": toolCall("1", "echo", `{"text":5}`),
		"arguments of a list":      toolCall("1", "echo", `[1]`),
		"level of a wrong type":    `{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":{}}}`,
		"ref of a wrong type":      `{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":5}}`,
		"cursor of a wrong type":   `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":{}}}`,
		"meta of a wrong type":     `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":5}}`,
		"capabilities as a list":   `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":[],"clientInfo":{}}}`,
		"roots as text":            `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":"x"},"clientInfo":{}}}`,
	} {
		p := r.legacy("ann", session, body)
		for _, raw := range []string{"json:", "cannot unmarshal", "Go struct", "mcp.", "&{", "unparsable", "base64"} {
			if strings.Contains(p.body, raw) {
				t.Errorf("%s: %q in %s", name, raw, p.body)
			}
		}
		if len(p.events) == 0 {
			t.Errorf("%s: no answer", name)
		}
	}
	// The tools' own words about arguments do reach the model.
	if p := r.legacy("ann", session, toolCall("1", "echo", `{}`)); p.text(t) != "text is needed, a string." || p.last(t).Result["isError"] != true {
		t.Errorf("got %s", p.body)
	}
}
