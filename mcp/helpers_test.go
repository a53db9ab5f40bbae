package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"satchel/auth"
	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/tools"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeTools is a Toolset whose tools do what a test needs of a tool.
type fakeTools struct {
	mu    sync.Mutex
	calls []tools.Caller
	// block, where set, is what the tool "wait" does until its context ends.
	started chan struct{}
	ended   chan error
	// lists is the error of every list.
	lists error
}

func newFakeTools() *fakeTools {
	return &fakeTools{started: make(chan struct{}, 100), ended: make(chan error, 100)}
}

func (f *fakeTools) ServerInstructions() string { return "Call instructions first." }

const echoSchema = `{"type":"object","properties":{"text":{"type":"string","description":"What to say."}},"required":["text"],"additionalProperties":false}`

func (f *fakeTools) all() []tools.Tool {
	schema := json.RawMessage(echoSchema)
	return []tools.Tool{
		{Name: "echo", Title: "Echo", Description: "Says it back.", InputSchema: schema, Scope: space.ScopeRead, ReadOnly: true, Idempotent: true},
		{Name: "write", Title: "Write", Description: "Needs the write scope.", InputSchema: schema, Scope: space.ScopeWrite, Destructive: true},
		{Name: "structured", Title: "Structured", Description: "Answers JSON.", InputSchema: schema, OutputSchema: json.RawMessage(`{"type":"object"}`), Scope: space.ScopeRead, ReadOnly: true},
		{Name: "wait", Title: "Wait", Description: "Waits for its end.", InputSchema: schema, Scope: space.ScopeRead, ReadOnly: true},
		{Name: "partial", Title: "Partial", Description: "Answers with what it has at its end.", InputSchema: schema, Scope: space.ScopeRead, ReadOnly: true},
		{Name: "progress", Title: "Progress", Description: "Tells how far it is.", InputSchema: schema, Scope: space.ScopeRead, ReadOnly: true},
		{Name: "panic", Title: "Panic", Description: "Panics.", InputSchema: schema, Scope: space.ScopeRead, ReadOnly: true},
		{Name: "broken", Title: "Broken", Description: "Fails inside.", InputSchema: schema, Scope: space.ScopeRead, ReadOnly: true},
		{Name: "limited", Title: "Limited", Description: "Is over a quota.", InputSchema: schema, Scope: space.ScopeRead, ReadOnly: true},
		{Name: "image", Title: "Image", Description: "Answers an image.", InputSchema: schema, Scope: space.ScopeRead, ReadOnly: true},
	}
}

func (f *fakeTools) List(_ context.Context, c tools.Caller) []tools.Tool {
	return slices.DeleteFunc(f.all(), func(t tools.Tool) bool { return !c.Can(t.Scope) })
}

func (f *fakeTools) Find(name string) (tools.Tool, bool) {
	for _, t := range f.all() {
		if t.Name == name {
			return t, true
		}
	}
	return tools.Tool{}, false
}

// secret is in the texts of internal errors, and must be in no answer.
const secret = "/var/lib/satchel/private: permission denied"

func (f *fakeTools) Call(ctx context.Context, c tools.Caller, name string, args json.RawMessage, p tools.Progress) (tools.Result, error) {
	f.mu.Lock()
	f.calls = append(f.calls, c)
	f.mu.Unlock()
	var in struct {
		Text string `json:"text"`
	}
	switch name {
	case "panic":
		panic(secret)
	case "broken":
		return tools.Result{}, errors.New(secret)
	case "limited":
		return tools.Result{}, fault.New(fault.Limited, "You have used it all.")
	case "wait":
		f.started <- struct{}{}
		<-ctx.Done()
		f.ended <- context.Cause(ctx)
		return tools.Result{}, fault.Wrap(ctx.Err(), fault.Canceled, "The call was cancelled.")
	case "partial": // as bash, whose output up to then is a result
		f.started <- struct{}{}
		<-ctx.Done()
		f.ended <- context.Cause(ctx)
		return tools.Result{Content: []tools.Content{{Text: "so far"}}}, nil
	case "progress":
		for i := range 5 {
			p(float64(i), 5, "working")
		}
	case "image":
		return tools.Result{Content: []tools.Content{{Image: []byte{1, 2}, MIME: "image/png"}}, Meta: map[string]any{"etag": "x"}}, nil
	case "structured":
		return tools.Result{Structured: json.RawMessage(`{"ok":true}`)}, nil
	}
	if _, ok := f.Find(name); !ok {
		return tools.Result{}, fault.New(fault.NotFound, "There is no tool %q.", name)
	}
	if err := json.Unmarshal(args, &in); err != nil || in.Text == "" {
		return tools.Result{Content: []tools.Content{{Text: "text is needed, a string."}}, IsError: true}, nil
	}
	return tools.Result{Content: []tools.Content{{Text: in.Text}}}, nil
}

func (f *fakeTools) Resources(context.Context, tools.Caller) ([]tools.Resource, error) {
	return []tools.Resource{{URI: "satchel://resources/context.md", Name: "context", Title: "Context", Description: "Who I am.", MIME: "text/markdown", Size: 5}}, f.lists
}

func (f *fakeTools) ReadResource(_ context.Context, _ tools.Caller, uri string) ([]tools.Content, string, error) {
	switch uri {
	case "satchel://resources/context.md":
		return []tools.Content{{Text: "Hello"}}, "text/markdown", nil
	case "satchel://resources/broken.md":
		return nil, "", errors.New(secret)
	}
	return nil, "", fault.New(fault.NotFound, "There is no such resource.")
}

func (f *fakeTools) ResourcePath(_ context.Context, _ tools.Caller, uri string) (space.Path, error) {
	switch p, ok := strings.CutPrefix(uri, "satchel://"); {
	case strings.HasPrefix(p, "/library/"):
		return "", fault.New(fault.Invalid, "Only files of the space.")
	case ok && p != "none.md":
		return space.Path(p), nil
	}
	return "", fault.New(fault.NotFound, "There is no such resource.")
}

func (f *fakeTools) ResourceTemplates() []tools.ResourceTemplate {
	return []tools.ResourceTemplate{{URI: "satchel://{+path}", Name: "page", Title: "A page", Description: "Any page.", MIME: "text/markdown"}}
}

func (f *fakeTools) CompletePath(_ context.Context, _ tools.Caller, value string) (tools.Completion, error) {
	if value == "none" {
		return tools.Completion{}, f.lists
	}
	return tools.Completion{Values: []string{value + ".md"}, Total: 3}, f.lists
}

func (f *fakeTools) Prompts(_ context.Context, c tools.Caller) ([]tools.Prompt, error) {
	if c.User() == "u_bob" {
		panic(secret)
	}
	return []tools.Prompt{{Name: "onboarding", Title: "Onboarding", Description: "Begin.", Arguments: []tools.PromptArgument{{Name: "name", Description: "Yours."}}}}, f.lists
}

func (f *fakeTools) GetPrompt(_ context.Context, _ tools.Caller, name string, args map[string]string) (string, string, error) {
	if name == "panic" {
		panic(secret)
	}
	if name != "onboarding" {
		return "", "", fault.New(fault.NotFound, "There is no prompt %q.", name)
	}
	return "Begin.", "Hello " + args["name"], nil
}

func (f *fakeTools) Skills(context.Context, tools.Caller) ([]tools.Skill, error) {
	return []tools.Skill{f.skill()}, f.lists
}

func (f *fakeTools) skill() tools.Skill {
	return tools.Skill{URI: "skill://tidy/SKILL.md", Frontmatter: map[string]any{"name": "tidy", "description": "Tidies."},
		Resources: []tools.SkillResource{{URI: "skill://tidy/SKILL.md", Digest: "sha256:" + strings.Repeat("0", 64), Size: 12}}}
}

func (f *fakeTools) GetSkill(_ context.Context, _ tools.Caller, uri string) (tools.Skill, error) {
	if uri != f.skill().URI {
		return tools.Skill{}, fault.New(fault.NotFound, "There is no such skill.")
	}
	return f.skill(), nil
}

// people is a Verifier that knows the tokens ann, ann2 (another grant of
// hers), bob and reader.
type people struct{}

func (people) Verify(_ context.Context, token string) (auth.Principal, error) {
	p := auth.Principal{Space: "s_1", SpaceName: "home", Role: space.Owner, Scopes: []space.Scope{space.ScopeRead, space.ScopeWrite}, Client: "laptop"}
	switch token {
	case "ann", "ann2", "readonly":
		p.User, p.UserName = "u_ann", "ann"
	case "bob":
		p.User, p.UserName = "u_bob", "bob"
	case "member":
		p.User, p.UserName, p.Role = "u_member", "member", space.Reader
	case "down":
		return p, errors.New(secret)
	case "busy":
		return p, &fault.Error{Code: fault.Limited, Public: "Too many failed tries.", RetryAfter: 90 * time.Second}
	case "away":
		return p, fault.Wrap(errors.New(secret), fault.Unavailable, "The issuer does not answer.")
	case "scopeless":
		return p, auth.Principal{}.Require(space.ScopeRead)
	case "banned":
		return p, fault.New(fault.Forbidden, "You are not allowed here any more.")
	default:
		return p, fault.New(fault.Unauthenticated, "The token is not known.")
	}
	if token == "readonly" || token == "member" {
		p.Scopes = []space.Scope{space.ScopeRead}
	}
	p.Grant = space.GrantID("g_" + token)
	return p, nil
}

// rig is a server on loopback.
type rig struct {
	t     testing.TB
	tools *fakeTools
	s     *Server
	http  *httptest.Server
}

func newRig(t testing.TB, change ...func(*Options)) *rig {
	t.Helper()
	r := &rig{t: t, tools: newFakeTools()}
	o := Options{Tools: r.tools, Verifier: people{}, Name: "satchel", Title: "Satchel", Version: "1.0", Rate: 1e6, Burst: 1e6,
		ResourceMetadataURL: func(q *http.Request) string { return "http://" + q.Host + "/.well-known/oauth-protected-resource" }}
	for _, c := range change {
		c(&o)
	}
	var err error
	if r.s, err = New(o); err != nil {
		t.Fatal(err)
	}
	r.http = httptest.NewServer(r.s)
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		r.s.Close(ctx)
		r.http.CloseClientConnections()
		r.http.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return r
}

// call is one HTTP request in a test.
type call struct {
	method  string // default POST
	token   string // default ann; "-" for none
	session string
	body    string
	host    string
	header  map[string]string
	reader  io.Reader // instead of body
	ctx     context.Context
}

// reply is its answer.
type reply struct {
	status int
	header http.Header
	body   string
	// events are the messages, of a stream or the one of a document.
	events []json.RawMessage
}

func (r *rig) start(c call) (*http.Response, error) {
	r.t.Helper()
	method := c.method
	if method == "" {
		method = http.MethodPost
	}
	body := c.reader
	if body == nil {
		body = strings.NewReader(c.body)
	}
	ctx := c.ctx
	if ctx == nil {
		ctx = context.Background()
	}
	q, err := http.NewRequestWithContext(ctx, method, r.http.URL+"/mcp", body)
	if err != nil {
		r.t.Fatal(err)
	}
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Accept", "application/json, text/event-stream")
	switch c.token {
	case "-":
	case "":
		q.Header.Set("Authorization", "Bearer ann")
	default:
		q.Header.Set("Authorization", "Bearer "+c.token)
	}
	if c.session != "" {
		q.Header.Set("Mcp-Session-Id", c.session)
	}
	if c.host != "" {
		q.Host = c.host
	}
	for k, v := range c.header {
		if v == "" {
			q.Header.Del(k)
			continue
		}
		q.Header.Set(k, v)
	}
	return http.DefaultClient.Do(q)
}

func (r *rig) do(c call) reply {
	r.t.Helper()
	resp, err := r.start(c)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	out := reply{status: resp.StatusCode, header: resp.Header, body: string(b)}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		out.events = readEvents(bytes.NewReader(b))
	} else if len(bytes.TrimSpace(b)) > 0 {
		out.events = []json.RawMessage{bytes.TrimSpace(b)}
	}
	return out
}

func readEvents(r io.Reader) (events []json.RawMessage) {
	for s := bufio.NewScanner(r); s.Scan(); {
		if data, ok := strings.CutPrefix(s.Text(), "data: "); ok {
			events = append(events, json.RawMessage(data))
		}
	}
	return events
}

// last is the answer itself: the last message.
func (p reply) last(t testing.TB) (a struct {
	ID     json.RawMessage
	Result map[string]any
	Error  *struct {
		Code    int
		Message string
		Data    map[string]any
	}
}) {
	t.Helper()
	if len(p.events) == 0 {
		t.Fatalf("no message in the answer: status %d, %q", p.status, p.body)
	}
	if err := json.Unmarshal(p.events[len(p.events)-1], &a); err != nil {
		t.Fatalf("%v in %s", err, p.body)
	}
	return a
}

// text is the text of a tool's answer.
func (p reply) text(t testing.TB) string {
	t.Helper()
	a := p.last(t)
	parts, _ := a.Result["content"].([]any)
	if len(parts) == 0 {
		t.Fatalf("no content in %s", p.body)
	}
	text, _ := parts[0].(map[string]any)["text"].(string)
	return text
}

const initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"tester","version":"1"}}}`

// session does the handshake and returns the session's id.
func (r *rig) session(token string) string {
	r.t.Helper()
	p := r.do(call{token: token, body: initialize})
	id := p.header.Get("Mcp-Session-Id")
	if p.status != 200 || id == "" {
		r.t.Fatalf("initialize: status %d, %s", p.status, p.body)
	}
	return id
}

// legacy is a message in a session.
func (r *rig) legacy(token, session, body string) reply {
	r.t.Helper()
	return r.do(call{token: token, session: session, body: body})
}

// modern is a request of 2026-07-28; params are without _meta, or empty.
func modern(id, method, params string, meta ...string) call {
	members := `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"tester","version":"2"}`
	for _, m := range meta {
		members += "," + m
	}
	all := `{"_meta":{` + members + `}`
	if params != "" {
		all += "," + params
	}
	c := call{body: `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":` + all + `}}`,
		header: map[string]string{"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method}}
	var named struct{ Name, URI string }
	if json.Unmarshal([]byte("{"+params+"}"), &named) == nil && named.Name+named.URI != "" {
		c.header["Mcp-Name"] = named.Name + named.URI
	}
	return c
}

func (c call) with(header, value string) call {
	c.header = maps.Clone(c.header)
	if c.header == nil {
		c.header = map[string]string{}
	}
	c.header[header] = value
	return c
}

func (c call) as(token string) call { c.token = token; return c }

func principal(t testing.TB, token string) auth.Principal {
	t.Helper()
	p, err := people{}.Verify(context.Background(), token)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func toolCall(id, name, args string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, id, name, args)
}
