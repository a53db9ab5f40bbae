//go:build !conformance

package mcp

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/tools"
)

// shelf is a Workspace with one file.
type shelf struct{}

const (
	shelfHead = space.CommitID("1111111111111111111111111111111111111111")
	shelfBlob = space.BlobID("2222222222222222222222222222222222222222")
	shelfPath = space.Path("knowledge/a.md")
)

func (shelf) entry() space.Entry { return space.Entry{Path: shelfPath, Blob: shelfBlob, Size: 6} }

func (shelf) Head(context.Context, space.SpaceID) (space.CommitID, error) { return shelfHead, nil }

func (s shelf) Lookup(_ context.Context, _ space.SpaceID, _ space.CommitID, p space.Path) (space.Entry, error) {
	switch p {
	case "", "knowledge":
		return space.Entry{Path: p, Dir: true}, nil
	case shelfPath:
		return s.entry(), nil
	}
	return space.Entry{}, fault.New(fault.NotFound, "There is no %s.", p)
}

func (s shelf) Children(_ context.Context, _ space.SpaceID, _ space.CommitID, dir space.Path) ([]space.Entry, error) {
	switch dir {
	case "":
		return []space.Entry{{Path: "knowledge", Dir: true}}, nil
	case "knowledge":
		return []space.Entry{s.entry()}, nil
	}
	return nil, fault.New(fault.NotFound, "There is no %s.", dir)
}

func (s shelf) Files(_ context.Context, _ space.SpaceID, _ space.CommitID, dir space.Path) ([]space.Entry, error) {
	if dir == "" || dir == "knowledge" {
		return []space.Entry{s.entry()}, nil
	}
	return nil, nil
}

func (shelf) ReadBlob(context.Context, space.SpaceID, space.BlobID) ([]byte, error) {
	return []byte("Hello\n"), nil
}

// realTools is the real Set over a shelf, without a sandbox.
func realTools(t testing.TB) *tools.Registry {
	t.Helper()
	set, err := tools.New(tools.Options{Service: service.New(service.Options{}), Workspace: shelf{},
		PublicURL: func() string { return "http://localhost:8080" }})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// expectation is what a malformed request is answered.
type expectation struct {
	status int
	code   int // of the JSON-RPC error; zero: a tool's result that says what is wrong
}

var (
	parseError   = expectation{400, -32700}
	badRequest   = expectation{400, -32600}
	badParams    = expectation{400, -32602}
	badHeader    = expectation{400, -32020}
	badVersion   = expectation{400, -32022}
	noMethod     = expectation{404, -32601}
	toolSaysSo   = expectation{200, 0}
	legacyParams = expectation{200, -32602} // before 2026-07-28, an answer to a request is 200
	legacyMethod = expectation{200, -32601}
	wrongMedia   = expectation{415, -32600}
	gone         = expectation{404, -32600}
	tooLarge     = expectation{413, -32600}
)

// TestMalformedRequests sends what no client should, in both eras, to the real
// tools: each is answered with the code that the specification of its era
// names, and leaves the server as it was.
func TestMalformedRequests(t *testing.T) {
	set := realTools(t)
	r := newRig(t, func(o *Options) { o.Tools, o.MaxBody = set, 1<<20 })
	session := r.session("ann")
	old := r.do(call{body: strings.Replace(initialize, "2025-11-25", "2025-03-26", 1)}).header.Get("Mcp-Session-Id")

	in := func(body string) call { return call{session: session, body: body} } // a message in the session
	req := func(method, params string) call {
		return in(`{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":` + params + `}`)
	}
	tool := func(name, args string) call {
		return req("tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, name, args))
	}
	list := modern("1", "tools/list", "")
	read := modern("1", "tools/call", `"name":"read","arguments":{"paths":["knowledge/a.md"]}`)
	long := strings.Repeat("a", 300)
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	z.Write([]byte(list.body))
	z.Close()

	table := []struct {
		name string
		call call
		want expectation
	}{
		// JSON
		{"empty body", in(""), parseError},
		{"white space", in(" \r\n"), parseError},
		{"truncated", in(`{"jsonrpc":"2.0","id":1,"method":"pi`), parseError},
		{"trailing comma", in(`{"jsonrpc":"2.0","id":1,"method":"ping",}`), parseError},
		{"two messages", in(`{"jsonrpc":"2.0","id":1,"method":"ping"}{"jsonrpc":"2.0","id":2,"method":"ping"}`), parseError},
		{"single quotes", in(`{'jsonrpc':'2.0'}`), parseError},
		{"form data", in("method=ping&id=1"), parseError},
		{"XML", in("<methodCall/>"), parseError},
		{"a comment", in(`{"jsonrpc":"2.0",/* hi */"id":1,"method":"ping"}`), parseError},
		{"NUL byte", in("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"pi\x00ng\"}"), parseError},
		{"NaN", in(`{"jsonrpc":"2.0","id":NaN,"method":"ping"}`), parseError},
		{"too deep", in(`{"jsonrpc":"2.0","id":1,"method":"ping","params":` + strings.Repeat(`{"a":`, 20_000) + `1` + strings.Repeat(`}`, 20_000) + `}`), parseError},
		// Encodings
		{"invalid UTF-8", in("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{\"x\":\"\xff\"}}"), parseError},
		{"overlong UTF-8", in("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xc0\xaf\"}"), parseError},
		{"UTF-16", in("\xff\xfe{\x00}\x00"), parseError},
		{"byte order mark", in("\ufeff" + `{"jsonrpc":"2.0","id":1,"method":"ping"}`), parseError},
		{"charset of Latin 1", in(`{"jsonrpc":"2.0","id":1,"method":"ping"}`).with("Content-Type", "application/json; charset=iso-8859-1"), wrongMedia},
		{"gzip", call{session: session, body: zipped.String(), header: map[string]string{"Content-Encoding": "gzip"}}, wrongMedia},
		// Envelope
		{"a string", in(`"ping"`), badRequest},
		{"null", in(`null`), badRequest},
		{"a number", in(`42`), badRequest},
		{"empty object", in(`{}`), badRequest},
		{"no jsonrpc", in(`{"id":1,"method":"ping"}`), badRequest},
		{"jsonrpc 1.0", in(`{"jsonrpc":"1.0","id":1,"method":"ping"}`), badRequest},
		{"jsonrpc as a number", in(`{"jsonrpc":2.0,"id":1,"method":"ping"}`), badRequest},
		{"method as a number", in(`{"jsonrpc":"2.0","id":1,"method":7}`), badRequest},
		{"empty method", in(`{"jsonrpc":"2.0","id":1,"method":""}`), badRequest},
		{"no method", in(`{"jsonrpc":"2.0","id":1,"params":{}}`), badRequest},
		{"id null", in(`{"jsonrpc":"2.0","id":null,"method":"ping"}`), badRequest},
		{"id as an object", in(`{"jsonrpc":"2.0","id":{},"method":"ping"}`), badRequest},
		{"id as a fraction", in(`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`), badRequest},
		{"id as a boolean", in(`{"jsonrpc":"2.0","id":true,"method":"ping"}`), badRequest},
		{"id too long", in(`{"jsonrpc":"2.0","id":"` + long + `","method":"ping"}`), badRequest},
		{"method twice", in(`{"jsonrpc":"2.0","id":1,"method":"ping","method":"initialize"}`), badRequest},
		{"method in another case", in(`{"jsonrpc":"2.0","id":1,"method":"ping","Method":"initialize"}`), badRequest},
		{"method with a Kelvin sign's fold", in(`{"jsonrpc":"2.0","id":1,"method":"ping","paramſ":{}}`), badRequest},
		{"request and response", in(`{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}`), badRequest},
		{"result and error", in(`{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}`), badRequest},
		{"response without id", in(`{"jsonrpc":"2.0","result":{}}`), badRequest},
		// Batches
		{"batch in 2025-11-25", in(`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`), badRequest},
		{"batch in 2026-07-28", call{body: "[" + list.body + "]", header: list.header}, badRequest},
		{"empty batch in 2025-03-26", call{session: old, body: `[]`}, badRequest},
		{"truncated batch", call{session: old, body: `[{"jsonrpc":`}, parseError},
		{"long batch", call{session: old, body: `[` + strings.Repeat(`{},`, 60) + `{}]`}, badRequest},
		// Params, before 2026-07-28
		{"params as a list", req("ping", `[1]`), badParams},
		{"params null", req("tools/list", `null`), badParams},
		{"name twice", req("tools/call", `{"name":"read","name":"bash"}`), badParams},
		{"name in another case", req("tools/call", `{"name":"read","Name":"bash"}`), badParams},
		{"unknown method", req("tools/destroy", `{}`), legacyMethod},
		{"method with a newline", req(`tools\/list\n`, `{}`), legacyMethod},
		{"discovery without its version", req("server/discover", `{}`), legacyMethod},
		{"listening without its version", req("subscriptions/listen", `{}`), legacyMethod},
		{"call without a name", req("tools/call", `{}`), legacyParams},
		{"call of a number", req("tools/call", `{"name":5}`), legacyParams},
		{"call of an unknown tool", tool("rm", `{}`), legacyParams},
		{"call of a tool with a path", tool("../bash", `{}`), legacyParams},
		{"arguments as a list", tool("read", `["a"]`), legacyParams},
		{"arguments as a string", tool("read", `"{}"`), legacyParams},
		{"unknown cursor", req("tools/list", `{"cursor":"AAAA"}`), legacyParams},
		{"cursor as a number", req("resources/list", `{"cursor":1}`), legacyParams},
		{"prompt without a name", req("prompts/get", `{}`), legacyParams},
		{"prompt with an argument of a number", req("prompts/get", `{"name":"onboarding","arguments":{"a":1}}`), legacyParams},
		{"resource without a uri", req("resources/read", `{}`), legacyParams},
		{"resource out of the space", req("resources/read", `{"uri":"satchel://resources/../../etc/passwd"}`), expectation{200, -32002}},
		{"resource of a file", req("resources/read", `{"uri":"file:///etc/passwd"}`), expectation{200, -32002}},
		{"skill out of the space", req("skills/get", `{"uri":"skill://../../SKILL.md"}`), legacyParams},
		{"initialize without a version", call{body: `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{},"clientInfo":{}}}`}, legacyParams},
		{"initialize without params", call{body: `{"jsonrpc":"2.0","id":1,"method":"initialize"}`}, legacyParams},
		{"initialize with capabilities of text", call{body: `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":"all","clientInfo":{}}}`}, legacyParams},
		// Arguments and paths, which the tools report to the model
		{"read without paths", tool("read", `{}`), toolSaysSo},
		{"read with an unknown argument", tool("read", `{"paths":["a"],"mode":"x"}`), toolSaysSo},
		{"read of a number", tool("read", `{"paths":5}`), toolSaysSo},
		{"read above the space", tool("read", `{"paths":["../../etc/passwd"]}`), toolSaysSo},
		{"read of an absolute path", tool("read", `{"paths":["/etc/passwd"]}`), toolSaysSo},
		{"read of git's files", tool("read", `{"paths":[".git/config"]}`), toolSaysSo},
		{"read of a path with NUL", tool("read", `{"paths":["a\u0000b"]}`), toolSaysSo},
		{"read of a long path", tool("read", `{"paths":["`+strings.Repeat("a/", 2000)+`"]}`), toolSaysSo},
		{"read of lines backwards", tool("read", `{"paths":["knowledge/a.md:9-1"]}`), toolSaysSo},
		{"read of too much", tool("read", `{"paths":["knowledge/a.md"],"max_tokens":-1}`), toolSaysSo},
		{"search for nothing", tool("search", `{}`), toolSaysSo},
		{"search for a list", tool("search", `{"query":["a"]}`), toolSaysSo},
		{"bash without a command", tool("bash", `{}`), toolSaysSo},
		{"bash of a list", tool("bash", `{"command":["ls"]}`), toolSaysSo},
		// Sizes
		{"too large", in(`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"` + strings.Repeat("a", 1<<20) + `"}}`), tooLarge},
		{"arguments too large for a tool", tool("bash", `{"command":"`+strings.Repeat("a", 200_000)+`"}`), toolSaysSo},
		// Headers
		{"no content type", in(`{}`).with("Content-Type", ""), wrongMedia},
		{"form content type", in(`{}`).with("Content-Type", "application/x-www-form-urlencoded"), wrongMedia},
		{"text content type", in(`{}`).with("Content-Type", "text/plain"), wrongMedia},
		{"accepts HTML alone", in(`{"jsonrpc":"2.0","id":1,"method":"ping"}`).with("Accept", "text/html"), expectation{406, -32600}},
		{"GET that accepts JSON alone", call{method: "GET", session: session, header: map[string]string{"Accept": "application/json"}}, expectation{406, -32600}},
		{"no session", call{body: `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`}, badRequest},
		{"unknown session", call{session: "nope", body: `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`}, gone},
		{"session with a line", call{session: session + "%0d%0aX: y", body: `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`}, gone},
		{"DELETE without a session", call{method: "DELETE"}, badRequest},
		{"old unknown version", req("ping", `{}`).with("MCP-Protocol-Version", "1999-01-01"), badVersion},
		{"version of text", req("ping", `{}`).with("MCP-Protocol-Version", "latest"), badVersion},
		{"two versions", req("ping", `{}`).with("MCP-Protocol-Version", "2025-11-25, 2025-06-18"), badHeader},
		{"GET in 2026-07-28", call{method: "GET", header: map[string]string{"MCP-Protocol-Version": "2026-07-28"}}, expectation{405, -32600}},
		{"DELETE in 2026-07-28", call{method: "DELETE", header: map[string]string{"MCP-Protocol-Version": "2026-07-28"}}, expectation{405, -32600}},
		{"PUT", call{method: "PUT", body: list.body}, expectation{405, -32000}},
		{"PATCH", call{method: "PATCH", body: list.body}, expectation{405, -32000}},
		// 2026-07-28
		{"modern without version header", list.with("MCP-Protocol-Version", ""), badHeader},
		{"modern with another version header", list.with("MCP-Protocol-Version", "2025-11-25"), badHeader},
		{"modern without Mcp-Method", list.with("Mcp-Method", ""), badHeader},
		{"modern with another Mcp-Method", list.with("Mcp-Method", "ping"), badHeader},
		{"modern without Mcp-Name", read.with("Mcp-Name", ""), badHeader},
		{"modern with another Mcp-Name", read.with("Mcp-Name", "bash"), badHeader},
		{"modern with Mcp-Name in another's base64", read.with("Mcp-Name", "=?base64?"+base64.StdEncoding.EncodeToString([]byte("bash"))+"?="), badHeader},
		{"modern with broken base64", read.with("Mcp-Name", "=?base64?!!?="), badHeader},
		{"modern without _meta", call{body: `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`, header: list.header}, badParams},
		{"modern without capabilities", call{body: `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`, header: list.header}, badParams},
		{"modern with capabilities of a list", call{body: strings.Replace(list.body, `clientCapabilities":{}`, `clientCapabilities":[]`, 1), header: list.header}, badParams},
		{"modern with a version of a number", call{body: strings.Replace(list.body, `"2026-07-28"`, `20260728`, 1), header: list.header}, badParams},
		{"future version", call{body: strings.Replace(list.body, "2026-07-28", "2031-01-01", 1), header: list.header}.with("MCP-Protocol-Version", "2031-01-01"), badVersion},
		{"modern _meta as a list", call{body: `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":[]}}`, header: list.header}, badParams},
		{"modern _meta that says the version twice", call{body: strings.Replace(list.body, `"_meta":{`, `"_meta":{"io.modelcontextprotocol/protocolVersion":"2025-11-25",`, 1), header: list.header}, badParams},
		{"modern initialize", modern("1", "initialize", ""), noMethod},
		{"modern ping", modern("1", "ping", ""), noMethod},
		{"modern logging/setLevel", modern("1", "logging/setLevel", `"level":"info"`), noMethod},
		{"modern resources/subscribe", modern("1", "resources/subscribe", `"uri":"x:y"`), noMethod},
		{"modern unknown method", modern("1", "tools/destroy", ""), noMethod},
		{"modern unknown tool", modern("1", "tools/call", `"name":"rm"`), badParams},
		{"modern call without arguments' shape", modern("1", "tools/call", `"name":"read","arguments":[]`), badParams},
		{"modern resource out of the space", modern("1", "resources/read", `"uri":"satchel://resources/../x"`), badParams},
		{"modern response", call{body: `{"jsonrpc":"2.0","id":1,"result":{"x":1}}`, header: list.header}, badRequest},
		{"modern listening to a list", modern("1", "subscriptions/listen", `"notifications":[]`), badParams},
		{"modern argument that the tool refuses", modern("1", "tools/call", `"name":"read","arguments":{"paths":[".."]}`), toolSaysSo},
	}
	if len(table) < 60 {
		t.Fatalf("only %d requests", len(table))
	}
	before, sessions := r.do(list).body, r.s.Sessions()
	for _, c := range table {
		t.Run(c.name, func(t *testing.T) {
			p := r.do(c.call)
			if p.status != c.want.status {
				t.Errorf("status %d, want %d: %.300s", p.status, c.want.status, p.body)
			}
			a := p.last(t)
			switch {
			case c.want.code == 0 && (a.Error != nil || a.Result["isError"] != true):
				t.Errorf("want a tool's result with isError: %.300s", p.body)
			case c.want.code != 0 && (a.Error == nil || a.Error.Code != c.want.code):
				t.Errorf("want the error %d: %.300s", c.want.code, p.body)
			case c.want == badVersion && (a.Error.Data["supported"] == nil || a.Error.Data["requested"] == nil):
				t.Errorf("the error names no versions: %s", p.body)
			}
			for _, raw := range []string{"json:", "unmarshal", "Go struct", "goroutine", ".go:", "panic"} {
				if strings.Contains(p.body, raw) {
					t.Errorf("%q in %.300s", raw, p.body)
				}
			}
			if got := r.s.Sessions(); got != sessions {
				t.Errorf("%d sessions, before %d", got, sessions)
			}
		})
	}
	if after := r.do(list).body; after != before {
		t.Errorf("the tools changed:\n%s\n%s", before, after)
	}
	if p := r.do(read); p.status != 200 || !strings.Contains(p.text(t), "Hello") {
		t.Errorf("a good call afterwards: %s", p.body)
	}
	if p := r.legacy("ann", session, `{"jsonrpc":"2.0","id":1,"method":"ping"}`); p.status != http.StatusOK {
		t.Errorf("the session afterwards: %s", p.body)
	}
	r.s.limits.mu.Lock()
	defer r.s.limits.mu.Unlock()
	if u := r.s.limits.users["u_ann"]; u.calls != 0 || u.streams != 0 {
		t.Errorf("%d calls and %d streams are still counted", u.calls, u.streams)
	}
}
