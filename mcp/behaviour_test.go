//go:build !conformance

package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"satchel/auth"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
)

func TestAnswers(t *testing.T) {
	r := newRig(t)
	session := r.session("ann")
	for era, do := range map[string]func(method, params string) reply{
		"legacy": func(method, params string) reply {
			return r.legacy("ann", session, `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{`+params+`}}`)
		},
		"modern": func(method, params string) reply { return r.do(modern("1", method, params)) },
	} {
		for what, c := range map[string]struct{ method, params, want string }{
			"text":        {"tools/call", `"name":"echo","arguments":{"text":"<b>&"}`, `"content":[{"type":"text","text":"<b>&"}]`},
			"tool error":  {"tools/call", `"name":"echo"`, `"isError":true`},
			"null args":   {"tools/call", `"name":"echo","arguments":null`, `"isError":true`},
			"structured":  {"tools/call", `"name":"structured"`, `"content":[{"type":"text","text":"{\"ok\":true}"}],"structuredContent":{"ok":true}`},
			"image":       {"tools/call", `"name":"image"`, `"content":[{"type":"image","data":"AQI=","mimeType":"image/png"}]`},
			"metadata":    {"tools/call", `"name":"image"`, `"satchel/result":{"etag":"x"}`},
			"quota":       {"tools/call", `"name":"limited"`, `"text":"You have used it all."}],"isError":true`},
			"resources":   {"resources/list", ``, `"uri":"satchel://resources/context.md"`},
			"resource":    {"resources/read", `"uri":"satchel://resources/context.md"`, `"contents":[{"uri":"satchel://resources/context.md","mimeType":"text/markdown","text":"Hello"}]`},
			"templates":   {"resources/templates/list", ``, `"uriTemplate":"satchel://{+path}"`},
			"prompts":     {"prompts/list", ``, `"name":"onboarding"`},
			"prompt":      {"prompts/get", `"name":"onboarding","arguments":{"name":"Ann"}`, `"messages":[{"role":"user","content":{"type":"text","text":"Hello Ann"}}]`},
			"completion":  {"completion/complete", `"ref":{"type":"ref/resource","uri":"satchel://{+path}"},"argument":{"name":"path","value":"kn"}`, `"completion":{"values":["kn.md"],"total":3,"hasMore":true}`},
			"no values":   {"completion/complete", `"ref":{"type":"ref/prompt","name":"onboarding"},"argument":{"name":"name","value":"A"}`, `"completion":{"values":[],"total":0,"hasMore":false}`},
			"tools":       {"tools/list", ``, `"name":"echo"`},
			"empty lists": {"tools/list", `"cursor":""`, `"name":"echo"`},
		} {
			p := do(c.method, c.params)
			if p.status != 200 || !strings.Contains(p.body, c.want) {
				t.Errorf("%s, %s: status %d, %s; want %s", era, what, p.status, p.body, c.want)
			}
			result := p.last(t).Result
			if modern := era == "modern"; (result["resultType"] == "complete") != modern {
				t.Errorf("%s, %s: resultType %v", era, what, result["resultType"])
			}
			cacheable := strings.HasSuffix(c.method, "/list") || c.method == "resources/read"
			if want := era == "modern" && cacheable; (result["cacheScope"] == "private") != want || (result["ttlMs"] != nil) != want {
				t.Errorf("%s, %s: caching hints %v %v", era, what, result["ttlMs"], result["cacheScope"])
			}
		}
	}
	p := r.do(call{body: initialize})
	for _, want := range []string{`"protocolVersion":"2025-11-25"`, `"instructions":"Call instructions first."`, `"name":"satchel"`, `"title":"Satchel"`, `"completions":{}`,
		`"logging":{}`, `"prompts":{"listChanged":true}`, `"resources":{"subscribe":true,"listChanged":true}`, `"tools":{}`} {
		if !strings.Contains(p.body, want) {
			t.Errorf("initialize has no %s: %s", want, p.body)
		}
	}
}

func TestMalformedCompletions(t *testing.T) {
	r := newRig(t)
	for name, params := range map[string]string{
		"no ref":                  `"argument":{"name":"path","value":"k"}`,
		"an unknown kind":         `"ref":{"type":"ref/tool","name":"echo"},"argument":{"name":"path","value":"k"}`,
		"an unknown template":     `"ref":{"type":"ref/resource","uri":"file://{path}"},"argument":{"name":"path","value":"k"}`,
		"an unknown prompt":       `"ref":{"type":"ref/prompt","name":"x"},"argument":{"name":"path","value":"k"}`,
		"no argument":             `"ref":{"type":"ref/resource","uri":"satchel://{+path}"}`,
		"no value":                `"ref":{"type":"ref/resource","uri":"satchel://{+path}"},"argument":{"name":"path"}`,
		"a value of another type": `"ref":{"type":"ref/resource","uri":"satchel://{+path}"},"argument":{"name":"path","value":5}`,
	} {
		if e := r.do(modern("1", "completion/complete", params)).last(t).Error; e == nil || e.Code != -32602 {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

// The calls of a session belong to one conversation. A call without a session belongs to none.
func TestConversationOfASession(t *testing.T) {
	r := newRig(t)
	first, second := r.session("ann"), r.session("ann")
	for _, session := range []string{first, second, first} {
		r.legacy("ann", session, toolCall("1", "echo", `{"text":"x"}`))
	}
	r.do(modern("1", "tools/call", `"name":"echo","arguments":{"text":"x"}`))
	got := r.tools.calls
	if len(got) != 4 || got[0].Conversation == nil || got[0].Conversation == got[1].Conversation || got[0].Conversation != got[2].Conversation || got[3].Conversation != nil {
		t.Errorf("%+v", got)
	}
}

func TestCallerIsWhoTheTokenAndTheClientSay(t *testing.T) {
	r := newRig(t)
	r.legacy("ann", r.session("ann"), toolCall("1", "echo", `{"text":"x"}`))
	info := func(name string) call {
		c := modern("1", "tools/call", `"name":"echo","arguments":{"text":"x"}`)
		c.body = strings.Replace(c.body, `{"name":"tester","version":"2"}`, `{"name":"`+name+`","version":"9\nSatchel-Tool: forged"}`, 1)
		return c
	}
	r.do(info("openai-mcp"))
	r.do(info(strings.Repeat("n", 500)).as("bob"))
	got := r.tools.calls
	if len(got) != 3 {
		t.Fatalf("%d calls", len(got))
	}
	if c := got[0]; c.User() != "u_ann" || c.Label() != "tester/1" || c.Author().Name != "ann" || c.Space() != (service.SpaceRef{ID: "s_1", Name: "home"}) || !c.Can(space.ScopeWrite) || c.ChatGPT {
		t.Errorf("legacy: %+v", c)
	}
	if c := got[1]; !c.ChatGPT || c.Label() != "openai-mcp/9-Satchel-Tool:-forged" {
		t.Errorf("ChatGPT: %+v", c)
	}
	if c := got[2]; c.User() != "u_bob" || len(c.Label()) > 100 {
		t.Errorf("a long name: %+v", c)
	}
}

func TestClaudeMayLagBehindWithItsHeader(t *testing.T) {
	stale := modern("1", "tools/call", `"name":"echo","arguments":{"text":"x"}`).with("MCP-Protocol-Version", "2025-11-25")
	claude := stale
	claude.body = strings.Replace(stale.body, `"name":"tester"`, `"name":"claude-code"`, 1)
	for _, c := range []struct {
		name   string
		call   call
		strict bool
		want   int
	}{
		{"by its name", claude, false, 200},
		{"by its user agent", stale.with("User-Agent", "Claude-User/1.0"), false, 200},
		{"another client", stale, false, 400},
		{"switched off", claude, true, 400},
		{"a version that never was", claude.with("MCP-Protocol-Version", "2025-01-01"), false, 400},
		{"the same version twice", modern("1", "tools/list", "").with("MCP-Protocol-Version", "2026-07-28, 2026-07-28"), true, 200},
		{"a list, which mcp-go answers", call{body: strings.Replace(modern("1", "tools/list", "").body, "tester", "claude-code", 1),
			header: map[string]string{"Mcp-Method": "tools/list", "MCP-Protocol-Version": "2025-11-25"}}, false, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, func(o *Options) { o.StrictVersionHeader = c.strict })
			if p := r.do(c.call); p.status != c.want {
				t.Errorf("status %d, want %d: %s", p.status, c.want, p.body)
			}
		})
	}
}

func TestALegacyClientThatDisconnectsHasNotCancelled(t *testing.T) {
	r := newRig(t)
	session := r.session("ann")
	ctx, cancel := context.WithCancel(context.Background())
	answer := r.waiting(call{session: session, body: toolCall("1", "wait", "{}"), ctx: ctx})
	cancel()
	<-answer
	// It can still cancel, and did not before.
	select {
	case <-r.tools.ended:
		t.Fatal("the call ended with its connection")
	default:
	}
	r.legacy("ann", session, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	<-r.tools.ended
}

func TestBatchOf20250326(t *testing.T) {
	r := newRig(t)
	session := r.do(call{body: strings.Replace(initialize, "2025-11-25", "2025-03-26", 1)}).header.Get("Mcp-Session-Id")
	p := r.legacy("ann", session, `[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/initialized"},`+toolCall("2", "echo", `{"text":"x"}`)+`,{"jsonrpc":"2.0","id":3,"method":"nope"},5,`+initialize+`]`)
	var answers []struct {
		ID    any
		Error *struct{ Code int }
	}
	if err := json.Unmarshal([]byte(p.body), &answers); err != nil || len(answers) != 5 {
		t.Fatalf("%v: %s", err, p.body)
	}
	if answers[0].Error != nil || answers[1].Error != nil || answers[2].Error.Code != -32601 || answers[3].Error.Code != -32600 || answers[4].Error == nil {
		t.Errorf("got %s", p.body)
	}
	if p := r.legacy("ann", session, `[{"jsonrpc":"2.0","method":"notifications/initialized"}]`); p.status != 202 || p.body != "" {
		t.Errorf("notifications alone: status %d, %q", p.status, p.body)
	}
	// A client of this version whose session has ended learns so, and initializes again.
	if p := r.legacy("ann", "gone", `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`); p.status != 404 {
		t.Errorf("a session that ended: status %d, %q", p.status, p.body)
	}
}

func TestProgressIsLimitedAndIncreases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []progressParams
		p := &progress{gap: 100 * time.Millisecond, send: func(v progressParams) { got = append(got, v) }}
		for i := range 100 { // one second
			p.update(float64(i/10), 20, "step "+string(rune('a'+i%26)))
			time.Sleep(10 * time.Millisecond)
		}
		p.stop()
		synctest.Wait()
		p.update(19, 20, "too late")
		time.Sleep(time.Second)
		if len(got) < 9 || len(got) > 11 {
			t.Errorf("%d notifications in a second", len(got))
		}
		if !slices.IsSortedFunc(got, func(a, b progressParams) int {
			if a.Progress < b.Progress {
				return -1
			}
			return 1
		}) {
			t.Errorf("progress does not increase: %+v", got)
		}
	})
}

func TestProgressOnlyWhereItIsAskedFor(t *testing.T) {
	r := newRig(t)
	if p := r.do(modern("1", "tools/call", `"name":"progress","arguments":{"text":"x"}`)); len(p.events) != 1 || p.header.Get("Content-Type") != "application/json" {
		t.Errorf("without a token: %s", p.body)
	}
	asked := modern("1", "tools/call", `"name":"progress","arguments":{"text":"x"}`, `"progressToken":5`)
	if p := r.do(asked); len(p.events) < 2 || !strings.Contains(string(p.events[0]), `"progressToken":5`) {
		t.Errorf("with one: %s", p.body)
	}
	if p := r.do(asked.with("Accept", "application/json")); len(p.events) != 1 || p.text(t) != "x" {
		t.Errorf("a client that takes no events: %s", p.body)
	}
}

func TestCloseWaitsForCalls(t *testing.T) {
	r := newRig(t)
	session := r.session("ann")
	answer := r.waiting(call{session: session, body: toolCall("1", "wait", "{}")})
	stream, err := r.start(call{method: "GET", session: session})
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	closed := make(chan error, 1)
	go func() { closed <- r.s.Close(context.Background()) }()
	var p reply
	for p = r.do(call{body: initialize}); p.status == 200; { // until Close has begun
		p = r.do(call{body: initialize})
	}
	if p.status != http.StatusServiceUnavailable || p.header.Get("Retry-After") == "" {
		t.Errorf("a new request: status %d", p.status)
	}
	select {
	case <-closed:
		t.Fatal("Close did not wait for the call")
	default:
	}
	// The call ends by itself, which its session's end stands for here.
	found, _ := r.s.sessions.get(principal(t, "ann"), session)
	r.s.sessions.cancel(found, "1")
	<-answer
	if err := <-closed; err != nil {
		t.Errorf("Close: %v", err)
	}
	io.Copy(io.Discard, stream.Body) // has ended
}

// A right that was withdrawn ends what it began: the call and the stream of one
// grant, and nobody else's.
func TestEndCancelsWhatIsInProgress(t *testing.T) {
	r := newRig(t)
	mine, theirs := r.session("ann"), r.session("bob")
	answer := r.waiting(call{session: mine, body: toolCall("1", "wait", "{}")})
	other := r.waiting(call{token: "bob", session: theirs, body: toolCall("1", "wait", "{}")})
	stream, err := r.start(call{method: "GET", session: mine})
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	r.s.End(func(p auth.Principal) bool { return p.Grant == "g_ann" })
	<-r.tools.ended
	<-answer
	io.Copy(io.Discard, stream.Body) // has ended
	select {
	case <-r.tools.ended:
		t.Error("another user's call was ended too")
	default:
	}
	r.s.End(func(auth.Principal) bool { return true })
	<-other
}

func TestCloseCancelsWhatDoesNotEnd(t *testing.T) {
	r := newRig(t)
	answer := r.waiting(call{session: r.session("ann"), body: toolCall("1", "wait", "{}")})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := r.s.Close(ctx); err != context.Canceled {
		t.Errorf("Close: %v", err)
	}
	<-r.tools.ended
	<-answer
	if err := r.s.Close(context.Background()); err == nil {
		t.Error("a second Close is no error")
	}
}

func TestWhatIsLoggedAndMeasured(t *testing.T) {
	var mu sync.Mutex
	var log bytes.Buffer
	var calls []CallInfo
	var refused []string
	r := newRig(t, func(o *Options) {
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
		o.RequestID = func(context.Context) string { return "req-7" }
		o.Observer.Call = func(c CallInfo) { mu.Lock(); calls = append(calls, c); mu.Unlock() }
		o.Observer.Refused = func(why string) { mu.Lock(); refused = append(refused, why); mu.Unlock() }
	})
	for _, name := range []string{"panic", "broken"} {
		p := r.do(modern("1", "tools/call", `"name":"`+name+`"`))
		if !strings.Contains(p.body, "req-7") || strings.Contains(p.body, secret) {
			t.Errorf("%s: the client is told %s", name, p.body)
		}
	}
	r.do(modern("1", "tools/call", `"name":"echo"`))
	r.do(modern("1", "tools/call", `"name":"echo","arguments":{"text":"x"}`))
	r.do(modern("1", "made/up", ""))
	r.do(call{token: "-"})
	r.do(call{body: "x"})
	r.do(modern("1", "tools/call", `"name":"write"`).as("readonly"))
	mu.Lock()
	defer mu.Unlock()
	if got := log.String(); strings.Count(got, "request_id=req-7") != 2 || !strings.Contains(got, secret) || strings.Contains(got, "Bearer") {
		t.Errorf("the log has %s", got)
	}
	var got []string
	for _, c := range calls {
		got = append(got, c.Method+" "+c.Tool+" "+c.Outcome)
	}
	want := []string{"tools/call panic internal", "tools/call broken internal", "tools/call echo tool_error", "tools/call echo ok", "other  invalid", "tools/call write forbidden"}
	if !slices.Equal(got, want) {
		t.Errorf("calls %q, want %q", got, want)
	}
	if want := []string{"unauthenticated", "malformed", "scope"}; !slices.Equal(refused, want) {
		t.Errorf("refused %q, want %q", refused, want)
	}
	if calls[3].Client != "tester/2" || !calls[3].Modern || calls[3].User != "u_ann" || calls[3].Grant == "" {
		t.Errorf("%+v", calls[3])
	}
}

func TestResourceMetadataIsASeam(t *testing.T) {
	r := newRig(t)
	get := func(path string) int {
		resp, err := http.Get(r.http.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	if got := get("/.well-known/oauth-protected-resource"); got != 404 {
		t.Errorf("without a handler: %d", got)
	}
	r = newRig(t, func(o *Options) {
		o.ResourceMetadata = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(299) })
	})
	for _, path := range []string{"", "/mcp"} {
		if got := get("/.well-known/oauth-protected-resource" + path); got != 299 {
			t.Errorf("%s: %d", path, got)
		}
	}
}

// TestWriterThatCannotFlush calls the handler
// without a network, with a writer that cannot flush: the answer is then one document.
func TestWriterThatCannotFlush(t *testing.T) {
	r := newRig(t)
	m := modern("1", "tools/call", `"name":"progress","arguments":{"text":"x"}`, `"progressToken":5`)
	q := httptest.NewRequest("POST", "http://localhost/mcp", strings.NewReader(m.body))
	for k, v := range m.header {
		q.Header.Set(k, v)
	}
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Authorization", "Bearer ann")
	w := &recorder{header: make(http.Header)}
	r.s.ServeHTTP(w, q)
	if !json.Valid(w.body.Bytes()) {
		t.Errorf("got %s", w.body.String())
	}
}

func TestOptionsAreChecked(t *testing.T) {
	good := Options{Tools: newFakeTools(), Verifier: people{}, Name: "n", Version: "1"}
	for name, o := range map[string]Options{
		"nothing":        {},
		"origin as host": {Tools: good.Tools, Verifier: good.Verifier, Name: "n", Version: "1", AllowedOrigins: []string{"example.com"}},
		"origin, path":   {Tools: good.Tools, Verifier: good.Verifier, Name: "n", Version: "1", AllowedOrigins: []string{"https://example.com/"}},
		"host as URL":    {Tools: good.Tools, Verifier: good.Verifier, Name: "n", Version: "1", AllowedHosts: []string{"https://example.com"}},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if s, err := New(good); err != nil || s.Close(context.Background()) != nil {
		t.Error(err)
	}
}

func TestListsThatFail(t *testing.T) {
	r := newRig(t)
	session := r.session("ann")
	for _, c := range []struct {
		err  error
		code int
		says string
	}{
		{errors.New(secret), -32603, "log"},
		{fault.Wrap(errors.New(secret), fault.Unavailable, "The space is being moved."), -32000, "The space is being moved."},
		{fault.New(fault.Canceled, "x"), -32800, "cancelled"},
	} {
		r.tools.lists = c.err
		for _, method := range []string{"resources/list", "prompts/list", "skills/list"} {
			for era, p := range map[string]reply{
				"legacy": r.legacy("ann", session, `{"jsonrpc":"2.0","id":1,"method":"`+method+`"}`),
				"modern": r.do(modern("1", method, "")),
			} {
				e := p.last(t).Error
				if e == nil || e.Code != c.code || !strings.Contains(e.Message, c.says) || strings.Contains(p.body, secret) {
					t.Errorf("%s, %s: %s", era, method, p.body)
				}
			}
		}
	}
}

func TestAPanicInAHookOfTheLibraryIsAnswered(t *testing.T) {
	r := newRig(t)
	for era, p := range map[string]reply{
		"legacy": r.legacy("bob", r.session("bob"), `{"jsonrpc":"2.0","id":1,"method":"prompts/list"}`),
		"modern": r.do(modern("1", "prompts/list", "").as("bob")),
	} {
		if e := p.last(t).Error; p.status != 200 || e == nil || e.Code != -32603 || strings.Contains(p.body, secret) {
			t.Errorf("%s: status %d, %s", era, p.status, p.body)
		}
	}
}
