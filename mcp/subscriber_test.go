//go:build !conformance

package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	protocol "github.com/mark3labs/mcp-go/mcp"

	"satchel/auth"
	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/internal/testenv"
)

// commits publishes a commit to ann's space that changes files.
func (r *rig) commits(paths ...space.Path) {
	e := space.Event{Space: "s_1"}
	for _, p := range paths {
		e.Commit.Files = append(e.Commit.Files, space.FileChange{Path: p, Status: space.Modified})
	}
	r.s.Publish(e)
}

// listening is an open stream of a client.
type listening struct {
	t     *testing.T
	body  io.ReadCloser
	lines *bufio.Scanner
}

func (r *rig) listens(t *testing.T, c call) *listening {
	t.Helper()
	c.ctx = testenv.Context(t)
	resp, err := r.start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != http.StatusOK || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		b, _ := io.ReadAll(resp.Body)
		t.Fatalf("listening: status %d, %s", resp.StatusCode, b)
	}
	return &listening{t, resp.Body, bufio.NewScanner(resp.Body)}
}

// next returns the next message, or "" after the end of the stream.
func (l *listening) next() string {
	for l.lines.Scan() {
		if msg, ok := strings.CutPrefix(l.lines.Text(), "data: "); ok {
			return msg
		}
	}
	return ""
}

func (l *listening) wants(messages ...string) {
	l.t.Helper()
	for _, want := range messages {
		if got := l.next(); got != want {
			l.t.Fatalf("got  %s\nwant %s", got, want)
		}
	}
}

const (
	resourcesChanged = `{"jsonrpc":"2.0","method":"notifications/resources/list_changed","params":{}}`
	promptsChanged   = `{"jsonrpc":"2.0","method":"notifications/prompts/list_changed","params":{}}`
)

func updated(uri string) string {
	return `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"` + uri + `"}}`
}

func inSession(method, params string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{` + params + `}}`
}

func TestSessionsAreNotifiedOfChanges(t *testing.T) {
	r := newRig(t)
	session := r.session("ann")
	l := r.listens(t, call{method: "GET", session: session})
	r.commits("knowledge/a.md", "resources/deep/b.md")
	r.commits("skills/tidy/SKILL.md")
	l.wants(promptsChanged, resourcesChanged)
	r.commits("resources/context.md")
	l.wants(resourcesChanged)

	for _, uri := range []string{"satchel://knowledge/a.md", "satchel://resources/context.md", "satchel://knowledge/a.md"} {
		if p := r.legacy("ann", session, inSession("resources/subscribe", `"uri":"`+uri+`"`)); p.body != `{"jsonrpc":"2.0","id":1,"result":{}}`+"\n" {
			t.Fatalf("subscribe: %s", p.body)
		}
	}
	r.s.Publish(space.Event{Space: "s_2", Commit: space.Commit{Files: []space.FileChange{{Path: "knowledge/a.md"}}}})
	r.commits("knowledge/b.md", "resources/context.md", "knowledge/a.md")
	l.wants(resourcesChanged, updated("satchel://knowledge/a.md"), updated("satchel://resources/context.md"))

	r.legacy("ann", session, inSession("resources/unsubscribe", `"uri":"satchel://knowledge/a.md"`))
	r.commits("knowledge/a.md")
	r.commits("resources/context.md")
	l.wants(resourcesChanged, updated("satchel://resources/context.md"))
}

func TestChangesWaitForTheStreamOfTheirSession(t *testing.T) {
	r := newRig(t)
	session := r.session("ann")
	for range 3 {
		r.commits("resources/context.md")
	}
	l := r.listens(t, call{method: "GET", session: session})
	l.wants(resourcesChanged)
	r.commits("skills/tidy/SKILL.md")
	l.wants(promptsChanged, resourcesChanged)
}

func TestASessionHasOneStream(t *testing.T) {
	r := newRig(t)
	session := r.session("ann")
	old := r.listens(t, call{method: "GET", session: session})
	l := r.listens(t, call{method: "GET", session: session})
	old.wants("")
	r.commits("resources/context.md")
	l.wants(resourcesChanged)
}

func TestAListenerGetsWhatItAskedFor(t *testing.T) {
	r := newRig(t)
	l := r.listens(t, modern(`"l1"`, "subscriptions/listen",
		`"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourceSubscriptions":["satchel://a.md","satchel://none.md","satchel:///library/docs/x.md"]}`))
	tagged := func(method, more string) string {
		return `{"jsonrpc":"2.0","method":"notifications/` + method + `","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"l1"}` + more + `}}`
	}
	l.wants(tagged("subscriptions/acknowledged", `,"notifications":{"promptsListChanged":true,"resourceSubscriptions":["satchel://a.md"]}`))
	r.commits("resources/context.md", "none.md") // not asked for
	r.commits("skills/tidy/SKILL.md")
	l.wants(tagged("prompts/list_changed", ""))
	r.commits("a.md")
	l.wants(tagged("resources/updated", `,"uri":"satchel://a.md"`))

	closed := make(chan error, 1)
	go func() { closed <- r.s.Close(context.Background()) }()
	var end struct {
		ID     string
		Result struct {
			ResultType string
			Meta       map[string]any `json:"_meta"`
		}
	}
	if err := json.Unmarshal([]byte(l.next()), &end); err != nil || end.ID != "l1" || end.Result.ResultType != "complete" ||
		end.Result.Meta["io.modelcontextprotocol/subscriptionId"] != "l1" {
		t.Errorf("the end of the stream: %+v, %v", end, err)
	}
	if err := testenv.Receive(t, "the end of Close", closed); err != nil {
		t.Error(err)
	}
}

// revocable is a Verifier that refuses every token after revoke.
type revocable struct {
	people
	revoked atomic.Bool
}

func (v *revocable) Verify(ctx context.Context, token string) (auth.Principal, error) {
	if v.revoked.Load() {
		return auth.Principal{}, fault.New(fault.Unauthenticated, "The token was revoked.")
	}
	return v.people.Verify(ctx, token)
}

func TestPeopleWithoutAccessAreNotNotified(t *testing.T) {
	v := &revocable{}
	r := newRig(t, func(o *Options) { o.Verifier = v })
	legacy := r.listens(t, call{method: "GET", session: r.session("ann")})
	now := r.listens(t, modern("1", "subscriptions/listen", `"notifications":{"resourcesListChanged":true}`))
	if !strings.Contains(now.next(), "acknowledged") {
		t.Fatal("no acknowledgement")
	}
	v.revoked.Store(true)
	r.commits("resources/context.md")
	legacy.wants("")
	if last := now.next(); strings.Contains(last, "list_changed") || now.next() != "" {
		t.Errorf("a former member got %s", last)
	}
}

// A stream ends when its token cannot be checked. The session's next stream sends what was pending.
func TestChangesOutliveAnEndedStream(t *testing.T) {
	v := &revocable{}
	r := newRig(t, func(o *Options) { o.Verifier = v })
	session := r.session("ann")
	old := r.listens(t, call{method: "GET", session: session})
	v.revoked.Store(true)
	r.commits("resources/context.md")
	old.wants("")
	v.revoked.Store(false)
	r.listens(t, call{method: "GET", session: session}).wants(resourcesChanged)
}

// Attack: sessions are many, and each would keep a description of many bytes.
func TestAttackLongDescriptionOfAClient(t *testing.T) {
	long := strings.Repeat("ä", 1<<20)
	c := readClient([]byte(`{"name":"` + long + `","version":"` + long + `"}`))
	if len(c.Name)+len(c.Version) > 400 {
		t.Errorf("the session keeps %d bytes", len(c.Name)+len(c.Version))
	}
}

func TestSubscriptionsAreLimited(t *testing.T) {
	r := newRig(t, func(o *Options) { o.MaxSubscriptions, o.MaxStreams = 2, 1 })
	session := r.session("ann")
	subscribe := func(uri string) reply {
		return r.legacy("ann", session, inSession("resources/subscribe", `"uri":"`+uri+`"`))
	}
	for _, uri := range []string{"satchel://a", "satchel://b", "satchel://a"} {
		if e := subscribe(uri).last(t).Error; e != nil {
			t.Fatalf("%s: %+v", uri, e)
		}
	}
	if e := subscribe("satchel://c").last(t).Error; e == nil || e.Code != codeServer {
		t.Errorf("a third subscription: %+v", e)
	}
	r.legacy("ann", session, inSession("resources/unsubscribe", `"uri":"satchel://a"`))
	if e := subscribe("satchel://c").last(t).Error; e != nil {
		t.Errorf("after an end: %+v", e)
	}
	listen := func(list string) call {
		return modern("1", "subscriptions/listen", `"notifications":{"resourceSubscriptions":[`+list+`]}`)
	}
	if e := r.do(listen(`"satchel://a","satchel://b","satchel://c"`)).last(t).Error; e == nil || e.Code != -32602 {
		t.Errorf("listening to three: %+v", e)
	}
	r.listens(t, listen(`"satchel://a"`))
	if p := r.do(listen(`"satchel://a"`)); p.status != http.StatusTooManyRequests {
		t.Errorf("a second stream: status %d, %s", p.status, p.body)
	}
}

func TestMalformedSubscriptions(t *testing.T) {
	r := newRig(t)
	session := r.session("ann")
	for params, want := range map[string]int{
		`"uri":"satchel://none.md"`:            -32002,
		`"uri":"file:///etc/passwd"`:           -32002,
		`"uri":"satchel:///library/docs/x.md"`: -32602,
		`"uri":""`:                             -32602,
		`"uri":5`:                              -32602,
	} {
		if e := r.legacy("ann", session, inSession("resources/subscribe", params)).last(t).Error; e == nil || e.Code != want {
			t.Errorf("subscribe %s: %+v, want %d", params, e, want)
		}
	}
	for _, params := range []string{`"notifications":{"resourceSubscriptions":"satchel://a"}`, `"notifications":{"promptsListChanged":1}`, `"notifications":{"PromptsListChanged":true}`} {
		if e := r.do(modern("1", "subscriptions/listen", params)).last(t).Error; e == nil || e.Code != -32602 {
			t.Errorf("listen %s: %+v", params, e)
		}
	}
	if p := r.do(modern("1", "subscriptions/listen", "").with("Accept", "application/json")); p.status != http.StatusNotAcceptable {
		t.Errorf("listening without events: status %d", p.status)
	}
}

// logged returns the level, tool and outcome of each log message in an answer.
func logged(t *testing.T, p reply) (all []string) {
	for _, e := range p.events {
		var m struct {
			Method string
			Params struct {
				Level string
				Data  struct{ Tool, Outcome string }
			}
		}
		if err := json.Unmarshal(e, &m); err != nil {
			t.Fatal(err)
		}
		if m.Method == "notifications/message" {
			all = append(all, m.Params.Level+" "+m.Params.Data.Tool+" "+m.Params.Data.Outcome)
		}
	}
	return all
}

func TestClientsChooseWhatIsLogged(t *testing.T) {
	calls := []struct{ name, args, log string }{
		{"echo", `{"text":"x"}`, "info echo ok"},
		{"echo", `{}`, "warning echo tool_error"},
		{"broken", `{}`, "error broken internal"},
	}
	for level, first := range map[string]int{"": 3, "debug": 0, "info": 0, "notice": 1, "warning": 1, "error": 2, "critical": 3} {
		r := newRig(t)
		session := r.session("ann")
		var meta []string
		if level != "" {
			meta = []string{`"io.modelcontextprotocol/logLevel":"` + level + `"`}
			if p := r.legacy("ann", session, inSession("logging/setLevel", `"level":"`+level+`"`)); p.body != `{"jsonrpc":"2.0","id":1,"result":{}}`+"\n" {
				t.Fatalf("setLevel: %s", p.body)
			}
		}
		for i, c := range calls {
			var want []string
			if i >= first {
				want = []string{c.log}
			}
			if got := logged(t, r.legacy("ann", session, toolCall("1", c.name, c.args))); !slices.Equal(got, want) {
				t.Errorf("level %q in a session: %q, want %q", level, got, want)
			}
			if got := logged(t, r.do(modern("1", "tools/call", `"name":"`+c.name+`","arguments":`+c.args, meta...))); !slices.Equal(got, want) {
				t.Errorf("level %q of a request: %q, want %q", level, got, want)
			}
		}
	}
	r := newRig(t)
	for _, level := range []string{`"loud"`, `5`, `""`} {
		if e := r.legacy("ann", r.session("ann"), inSession("logging/setLevel", `"level":`+level)).last(t).Error; e == nil || e.Code != -32602 {
			t.Errorf("setLevel %s: %+v", level, e)
		}
	}
}

func TestMcpGoClientIsNotified(t *testing.T) {
	r := newRig(t)
	to, err := transport.NewStreamableHTTP(r.http.URL+"/mcp", transport.WithContinuousListening(),
		transport.WithHTTPHeaders(map[string]string{"Authorization": "Bearer ann"}))
	if err != nil {
		t.Fatal(err)
	}
	c := client.NewClient(to)
	t.Cleanup(func() { c.Close() })
	got := make(chan protocol.JSONRPCNotification, 10)
	c.OnNotification(func(n protocol.JSONRPCNotification) { got <- n })
	ctx := testenv.Context(t)
	if err := c.Start(ctx); err != nil {
		t.Fatal(err)
	}
	hello, err := c.Initialize(ctx, protocol.InitializeRequest{Params: protocol.InitializeParams{
		ProtocolVersion: protocol.ProtocolVersion20251125, ClientInfo: protocol.Implementation{Name: "tester", Version: "1"}}})
	if err != nil {
		t.Fatal(err)
	}
	if can := hello.Capabilities; !can.Resources.Subscribe || !can.Resources.ListChanged || !can.Prompts.ListChanged || can.Tools.ListChanged || can.Logging == nil {
		t.Errorf("the capabilities are %+v", can)
	}
	if err := c.Subscribe(ctx, protocol.SubscribeRequest{Params: protocol.SubscribeParams{URI: "satchel://a.md"}}); err != nil {
		t.Fatal(err)
	}
	r.commits("a.md", "skills/tidy/SKILL.md")
	for _, want := range []string{protocol.MethodNotificationPromptsListChanged, protocol.MethodNotificationResourcesListChanged, protocol.MethodNotificationResourceUpdated} {
		if n := testenv.Receive(t, want, got); n.Method != want {
			t.Errorf("got %s, want %s", n.Method, want)
		}
	}
}
