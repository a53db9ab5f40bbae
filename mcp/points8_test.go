//go:build !conformance

package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"satchel/auth"
	"satchel/internal/testenv"
)

// The points of points_test.go from the eighth on.

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
		{"panicking prompt", "prompts/get", `"name":"panic"`, -32603, -32603, 200, 200},
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

// expired is a Verifier of tokens whose time is over just after they are verified.
type expired struct{ people }

func (e expired) Verify(ctx context.Context, token string) (auth.Principal, error) {
	p, err := e.people.Verify(ctx, token)
	p.Expires = time.Now()
	return p, err
}

func TestPoint13StreamsEndWithTheirToken(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Verifier = expired{} })
	resp, err := r.start(call{method: "GET", session: r.session("ann"), ctx: testenv.Context(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("status %d, and the stream does not end: %v", resp.StatusCode, err)
	}
}

func TestPoint14SchemasAndHints(t *testing.T) {
	set := realTools(t)
	for what, change := range map[string]func(*Options){
		"fake": func(*Options) {},
		"real": func(o *Options) { o.Tools = set },
	} {
		list, _ := newRig(t, change).do(modern("1", "tools/list", "")).last(t).Result["tools"].([]any)
		if len(list) < 4 {
			t.Fatalf("%s: %d tools are listed", what, len(list))
		}
		for _, entry := range list {
			tool := entry.(map[string]any)
			hints, _ := tool["annotations"].(map[string]any)
			for _, name := range []string{"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint", "title"} {
				if _, ok := hints[name]; !ok {
					t.Errorf("%s has no %s", tool["name"], name)
				}
			}
			// One name that a client does not like makes it refuse them all.
			if name, _ := tool["name"].(string); !regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`).MatchString(name) {
				t.Errorf("the name %q", name)
			}
			for _, schema := range []string{"inputSchema", "outputSchema"} {
				if b, _ := json.Marshal(tool[schema]); tool[schema] != nil && bytes.Contains(b, []byte("null")) {
					t.Errorf("%s of %s has null: %s", schema, tool["name"], b)
				}
			}
		}
	}
	r := newRig(t)
	// Read-only callers do not see tools that write.
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
