package api_test

import (
	"context"
	"errors"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/sandbox/protocol"
	"satchel/web/api"
)

// Every route and method is in the document, and the document has no other.
func TestTheDocumentHasEveryRoute(t *testing.T) {
	w := newWorld(t)
	var doc struct {
		Paths map[string]map[string]struct {
			Scope string `json:"x-scope"`
		}
	}
	w.ask("GET", "/api/openapi.json", "", nil).into(t, &doc)
	var documented []string
	for path, item := range doc.Paths {
		for method, op := range item {
			method = strings.ToUpper(method)
			documented = append(documented, strings.TrimSpace(op.Scope+" "+method+" "+path))
		}
	}
	routes := w.server.Routes()
	slices.Sort(documented)
	slices.Sort(routes)
	if !slices.Equal(documented, routes) {
		t.Errorf("documented: %v\nserved:     %v", documented, routes)
	}
}

func TestIndex(t *testing.T) {
	w := newWorld(t)
	a := w.ask("GET", "/api", "ann-reads", nil)
	var v struct {
		Version string
		Links   map[string]string
		You     struct {
			User, Client string
			Scopes       []string
		}
	}
	a.into(t, &v)
	if a.StatusCode != 200 || v.Version != "1.2.3" || v.Links["sandbox/shell"] != origin+"/api/sandbox/shell" || v.You.User != "ann" || !slices.Equal(v.You.Scopes, []string{"read"}) {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if a := w.ask("HEAD", "/api", "ann", nil); a.StatusCode != 200 || len(a.body) != 0 {
		t.Errorf("HEAD: %d %s", a.StatusCode, a.body)
	}
}

func TestSources(t *testing.T) {
	w := newWorld(t)
	a := w.ask("GET", "/api/sources", "ann-reads", nil)
	var v struct {
		Sources []struct {
			ID, State, Problem string
			Age                *int
		}
	}
	a.into(t, &v)
	if a.StatusCode != 200 || len(v.Sources) != 2 || *v.Sources[0].Age != 60 || v.Sources[1].State != "failed" || v.Sources[1].Problem == "" {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	for _, id := range []string{"nuxt", "vue"} {
		if _, err := w.library.UnpublishSource(t.Context(), service.Person(w.library.Owner), service.UnpublishSourceInput{ID: id}); err != nil {
			t.Fatal(err)
		}
	}
	if a := w.ask("GET", "/api/sources", "ann", nil); strings.TrimSpace(string(a.body)) != `{"github":{"count":0,"sources":[]},"sources":[],"total":0,"youtube":{"count":0,"sources":[]}}` {
		t.Errorf("none: %s", a.body)
	}
}

func TestSync(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		name, path string
		body       any
		status     int
		code       string
		synced     []string
	}{
		{"all", "/api/sync", nil, 202, "", []string{"nuxt", "vue"}},
		{"one", "/api/sync/vue", nil, 202, "", []string{"vue"}},
		{"one, with an empty object", "/api/sync/vue", "{}", 202, "", []string{"vue"}},
		{"one that there is not", "/api/sync/nope", nil, 404, "not_found", nil},
		{"a name that leads elsewhere", "/api/sync/..%2fnuxt", nil, 404, "not_found", nil},
		{"a long name", "/api/sync/" + strings.Repeat("x", 5000), nil, 404, "not_found", nil},
		{"a field that there is not", "/api/sync", `{"force": true}`, 400, "invalid", nil},
		{"one, by a filter", "/api/sync", `{"sourceFilter": "vue"}`, 202, "", []string{"vue"}},
		{"a filter that there is not", "/api/sync", `{"sourceFilter": "nope"}`, 404, "not_found", nil},
		{"two different sources", "/api/sync/vue", `{"sourceFilter": "nuxt"}`, 400, "invalid", nil},
		{"as clients of Savoir do", "/api/sync/vue", `{"reset": false, "push": true, "sessionId": "s-1"}`, 202, "", []string{"vue"}},
	} {
		a := w.ask("POST", c.path, "ann", c.body)
		want(t, c.name, a, c.status, c.code)
		var v struct {
			Runs []struct{ Source, State string }
		}
		if c.status == 202 {
			a.into(t, &v)
		}
		var synced []string
		for _, r := range v.Runs {
			synced = append(synced, r.Source)
			if failed := r.Source == "vue"; failed != (r.State == "failed") {
				t.Errorf("%s: the sync of %s is %s", c.name, r.Source, r.State)
			}
		}
		if !slices.Equal(synced, c.synced) {
			t.Errorf("%s: synced %v", c.name, synced)
		}
	}
	want(t, "who only reads", w.ask("POST", "/api/sync", "ann-reads", nil), 403, "forbidden")
	want(t, "a reset", w.ask("POST", "/api/sync", "ann", map[string]any{"reset": true}), 202, "")
}

// Clients of Savoir send the ID of their session with every POST, and expect it in every
// answer.
func TestEveryCallTakesASession(t *testing.T) {
	w := newWorld(t)
	for path, args := range map[string]string{
		"/api/sandbox/search":          `"query": "useAsyncData", `,
		"/api/sandbox/read":            `"paths": ["docs/nuxt/guide.md"], `,
		"/api/sandbox/search-and-read": `"query": "useAsyncData", `,
		"/api/sandbox/shell":           `"command": "echo x", `,
		"/api/sandbox/snapshot":        "",
		"/api/sync":                    "",
		"/api/sync/vue":                `"reset": false, "push": true, `,
	} {
		a := w.ask("POST", path, "ann", `{`+args+`"sessionId": "s_1.a:b-c"}`)
		var v struct{ SessionID string }
		a.into(t, &v)
		if a.StatusCode >= 300 || v.SessionID != "s_1.a:b-c" {
			t.Errorf("%s: %d, session %q: %s", path, a.StatusCode, v.SessionID, a.body)
		}
		if a := w.ask("POST", path, "ann", `{`+args+`"sessionId": ""}`); a.StatusCode >= 300 || !strings.Contains(string(a.body), `"sessionId":"default"`) {
			t.Errorf("%s without a session: %d %s", path, a.StatusCode, a.body)
		}
		for _, bad := range []string{strings.Repeat("x", 129), "a b", "ü"} {
			want(t, path, w.ask("POST", path, "ann", `{`+args+`"sessionId": "`+bad+`"}`), 400, "invalid")
		}
		a = w.ask("POST", path, "ann", `{`+args+`"sessionId": 5}`)
		want(t, path, a, 400, "invalid")
		if !strings.Contains(string(a.body), `(\"sessionId\" must not be`) {
			t.Errorf("%s: a number for a session is told as %s", path, a.body)
		}
	}
}

func TestSearch(t *testing.T) {
	w := newWorld(t)
	a := w.ask("POST", "/api/sandbox/search", "ann", map[string]any{"query": "useAsyncData", "limit": 5, "since": "2026-01-01", "source": "nuxt", "paths": []string{"docs/nuxt"}, "maxTokens": 100})
	var v struct {
		Results []struct {
			ID, Path string
		}
		Total int
	}
	a.into(t, &v)
	if a.StatusCode != 200 || len(v.Results) != 1 || v.Results[0].Path != "docs/nuxt/guide.md" || v.Results[0].ID != "docs/nuxt/guide.md#guide" {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	for _, narrow := range []string{`"paths": ["docs/vue"]`, `"source": "vue"`, `"since": "2999-01-01"`} {
		a := w.ask("POST", "/api/sandbox/search", "ann", `{"query": "useAsyncData", `+narrow+`}`)
		if v.Results = nil; a.StatusCode != 200 {
			t.Errorf("%s: %d", narrow, a.StatusCode)
		}
		if a.into(t, &v); len(v.Results) > 0 {
			t.Errorf("%s finds %s", narrow, a.body)
		}
	}
	if a := w.ask("POST", "/api/sandbox/search", "ann", `{"query": "own"}`); strings.Contains(string(a.body), "secret") {
		t.Errorf("attack: a file of the space: %s", a.body)
	}
}

func TestRead(t *testing.T) {
	w := newWorld(t)
	a := w.ask("POST", "/api/sandbox/read", "ann", map[string]any{"paths": []string{"docs/nuxt/guide.md", "/library/docs/nuxt/other.md", "docs/nuxt/", "docs/**/*.md", "docs/none.md", "/space/knowledge/secret.md"}})
	var v struct {
		Files []struct {
			Path, Kind, Content, ETag, Next string
			Error                           *struct{ Code string }
		}
	}
	a.into(t, &v)
	if a.StatusCode != 200 || len(v.Files) != 6 {
		t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	for i, want := range []struct{ path, kind, content, next, code string }{
		{"docs/nuxt/guide.md", "file", "# Guide\n\nuseAsyncData\n", "docs/nuxt/guide.md:4-", ""},
		{"docs/nuxt/other.md", "file", "other\n", "docs/nuxt/other.md:4-", ""},
		{"docs/nuxt/", "list", "guide.md\nother.md\n", "", ""},
		{"docs/**/*.md", "list", "guide.md\nother.md\n", "", ""},
		{"docs/none.md", "error", "", "", "not_found"},
		{"/space/knowledge/secret.md", "error", "", "", "invalid"},
	} {
		f := v.Files[i]
		code := ""
		if f.Error != nil {
			code = f.Error.Code
		}
		if f.Path != want.path || f.Kind != want.kind || f.Content != want.content || f.Next != want.next || code != want.code {
			t.Errorf("%+v, want %+v", f, want)
		}
	}
}

func TestSearchAndRead(t *testing.T) {
	w := newWorld(t)
	a := w.ask("POST", "/api/sandbox/search-and-read", "ann", `{"query": "useAsyncData", "read": 1}`)
	var v struct {
		Results []struct{ Path string }
		Files   []struct{ Path, Content string }
	}
	a.into(t, &v)
	if a.StatusCode != 200 || len(v.Results) != 1 || len(v.Files) != 1 || v.Files[0].Path != "docs/nuxt/guide.md" || !strings.Contains(v.Files[0].Content, "useAsyncData") {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
}

func TestShell(t *testing.T) {
	w := newWorld(t)
	a := w.ask("POST", "/api/sandbox/shell", "ann", map[string]any{"commands": []string{"echo one", "exit 3", "echo two"}, "sessionId": "my.session-1"})
	var v struct {
		Results []struct {
			Command, Stdout, Stderr, End string
			ExitCode                     int
			Duration                     float64
		}
		Fresh     bool
		SessionID string
	}
	a.into(t, &v)
	if a.StatusCode != 200 || len(v.Results) != 3 || v.Results[0].Stdout != "one\n" || v.Results[1].ExitCode != 3 || v.Results[2].Stdout != "two\n" || v.Results[0].Duration != 1.5 || !v.Fresh || v.SessionID != "my.session-1" {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if want := "1: echo one"; w.shells.ran[0] != want {
		t.Errorf("%q, want %q", w.shells.ran[0], want)
	}
	want(t, "one", w.ask("POST", "/api/sandbox/shell", "ann-reads", `{"command": "echo x"}`), 200, "")
	// The name of an answer without a session leads to the same sandbox.
	w.ask("POST", "/api/sandbox/shell", "ann-reads", `{"command": "echo y", "sessionId": "default"}`)
	if n := len(w.shells.ran); w.shells.ran[n-1] != "2: echo y" {
		t.Errorf("ran %q, want it in the second sandbox", w.shells.ran[n-1])
	}

	t.Run("a later command that cannot run", func(t *testing.T) {
		w := newWorld(t)
		w.shells.run = func(_ context.Context, command string) (protocol.ExecResult, error) {
			if command == "b" {
				return protocol.ExecResult{}, fault.New(fault.Unavailable, "No sandbox.")
			}
			return protocol.ExecResult{}, nil
		}
		a := w.ask("POST", "/api/sandbox/shell", "ann", `{"commands": ["a", "b", "c"]}`)
		if s := string(a.body); a.StatusCode != 200 || strings.Count(s, `"command"`) != 1 || !strings.Contains(s, `"error":{"code":"unavailable"`) {
			t.Errorf("%d %s", a.StatusCode, s)
		}
		a = w.ask("POST", "/api/sandbox/shell", "ann", `{"commands": ["b", "c"]}`)
		want(t, "the first", a, 503, "unavailable")
	})
	t.Run("one that its time ends", func(t *testing.T) {
		w := newWorld(t)
		w.shells.run = func(context.Context, string) (protocol.ExecResult, error) {
			return protocol.ExecResult{End: protocol.TimedOut, ExitCode: 137, Signal: "SIGKILL"}, nil
		}
		a := w.ask("POST", "/api/sandbox/shell", "ann", `{"commands": ["a", "b"]}`)
		if a.StatusCode != 200 || len(w.shells.ran) != 1 || !strings.Contains(string(a.body), `"error"`) {
			t.Errorf("%d %s", a.StatusCode, a.body)
		}
	})
	t.Run("no sandbox at all", func(t *testing.T) {
		w := newWorld(t)
		w.library.Attach(service.Running{})
		want(t, "", w.ask("POST", "/api/sandbox/shell", "ann", `{"command": "x"}`), 503, "unavailable")
	})
}

// Invalid requests are rejected in one form, and do nothing.
func TestRefusals(t *testing.T) {
	many := strings.TrimSuffix(strings.Repeat(`"x",`, 21), ",")
	for _, c := range []struct {
		name, path, body string
		status           int
		code             string
	}{
		{"no query", "search", `{}`, 400, "invalid"},
		{"an empty query", "search", `{"query": "  "}`, 400, "invalid"},
		{"a limit over the most", "search", `{"query": "x", "limit": 51}`, 400, "invalid"},
		{"a limit below zero", "search", `{"query": "x", "limit": -1}`, 400, "invalid"},
		{"a budget below zero", "search", `{"query": "x", "maxTokens": -1}`, 400, "invalid"},
		{"too many paths to search", "search", `{"query": "x", "paths": [` + many + `]}`, 413, "too_large"},
		{"a path upwards to search", "search", `{"query": "x", "paths": ["../space"]}`, 400, "invalid"},
		{"a number for a query", "search", `{"query": 1}`, 400, "invalid"},
		{"a field that there is not", "search", `{"query": "x", "space": "s_1"}`, 400, "invalid"},
		{"an array", "search", `[]`, 400, "invalid"},
		{"no JSON", "search", `query=x`, 400, "invalid"},
		{"half a value", "search", `{"query": "x"`, 400, "invalid"},
		{"two values", "search", `{"query": "x"}{"query": "y"}`, 400, "invalid"},
		{"nothing", "search", ` `, 400, "invalid"},
		{"bytes that are no text", "search", "{\"query\": \"\xff\"}", 400, "invalid"},
		{"half of a surrogate pair", "search", `{"query": "\ud800"}`, 400, "invalid"},
		{"too large a body", "search", `{"query": "` + strings.Repeat("x", 2<<20) + `"}`, 413, "too_large"},
		{"a million brackets", "search", strings.Repeat("[", 1_000_000), 400, "invalid"},
		{"nothing to read", "read", `{"paths": []}`, 400, "invalid"},
		{"too much to read", "read", `{"paths": [` + many + `]}`, 413, "too_large"},
		{"too much to read of a search", "search-and-read", `{"query": "x", "read": 21}`, 400, "invalid"},
		{"no command", "shell", `{}`, 400, "invalid"},
		{"no commands", "shell", `{"commands": []}`, 400, "invalid"},
		{"an empty command", "shell", `{"command": " \n"}`, 400, "invalid"},
		{"an empty one of several", "shell", `{"commands": ["x", ""]}`, 400, "invalid"},
		{"both", "shell", `{"command": "x", "commands": ["y"]}`, 400, "invalid"},
		{"too many commands", "shell", `{"commands": [` + many + `]}`, 413, "too_large"},
		{"too long a command", "shell", `{"command": "` + strings.Repeat("x", 100_001) + `"}`, 413, "too_large"},
		{"a command with NUL", "shell", `{"command": "a\u0000b"}`, 400, "invalid"},
		{"a session with a slash", "shell", `{"command": "x", "sessionId": "a/b"}`, 400, "invalid"},
		{"a session with a separator", "shell", `{"command": "x", "sessionId": "a\u0000b"}`, 400, "invalid"},
		{"too long a session", "shell", `{"command": "x", "sessionId": "` + strings.Repeat("x", 129) + `"}`, 400, "invalid"},
		{"a job", "shell", `{"command": "x", "background": true}`, 400, "invalid"},
		{"a way to write", "shell", `{"command": "x", "readOnly": false}`, 400, "invalid"},
		{"another's grant", "shell", `{"command": "x", "grant": "g_3"}`, 400, "invalid"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			want(t, c.path, w.ask("POST", "/api/sandbox/"+c.path, "ann", c.body), c.status, c.code)
			if len(w.tools.calls)+len(w.shells.ran) > 0 {
				t.Errorf("it did %v %v", w.tools.calls, w.shells.ran)
			}
		})
	}
}

func TestErrorsOfWhatIsBehind(t *testing.T) {
	for _, c := range []struct {
		err    error
		status int
		code   string
	}{
		{fault.New(fault.Limited, "Later."), 429, "limited"},
		{fault.New(fault.Unavailable, "Not now."), 503, "unavailable"},
		{errors.New("a secret of ours"), 500, "internal"},
	} {
		w := newWorld(t)
		w.tools.err = c.err
		a := w.ask("POST", "/api/sandbox/read", "ann", `{"paths": ["docs/nuxt/guide.md"]}`)
		want(t, c.code, a, c.status, c.code)
		if strings.Contains(string(a.body), "secret") {
			t.Errorf("it tells %s", a.body)
		}
	}
}

func TestMethodsAndPaths(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		method, path string
		status       int
		allow        string
	}{
		{"POST", "/api", 405, "GET"},
		{"GET", "/api/sync", 405, "POST"},
		{"PUT", "/api/sync/nuxt", 405, "POST, GET, DELETE"},
		{"PUT", "/api/sandbox/shell", 405, "POST"},
		{"OPTIONS", "/api/sandbox/shell", 405, "POST"},
		{"TRACE", "/api/sources", 405, "GET, POST"},
		{"GET", "/api/nope", 404, ""},
		{"POST", "/api/sandbox", 404, ""},
		{"GET", "/api/sandbox/", 404, ""},
		{"GET", "/apis", 404, ""},
	} {
		a := w.ask(c.method, c.path, "ann", nil)
		if a.StatusCode != c.status || a.Header.Get("Allow") != c.allow {
			t.Errorf("%s %s: %d, Allow: %q", c.method, c.path, a.StatusCode, a.Header.Get("Allow"))
		}
	}
}

func TestMediaTypes(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct{ name, contentType, encoding string }{
		{"a form", "application/x-www-form-urlencoded", ""}, // what a page of another site can send without being asked
		{"text", "text/plain", ""},
		{"a form with files", "multipart/form-data; boundary=x", ""},
		{"none", "", ""},
		{"another charset", "application/json; charset=utf-16", ""},
		{"compressed", "application/json", "gzip"},
	} {
		a := w.ask("POST", "/api/sandbox/search", "ann", `{"query": "x"}`, func(r *http.Request) {
			r.Header.Set("Content-Type", c.contentType)
			r.Header.Set("Content-Encoding", c.encoding)
		})
		want(t, c.name, a, 415, "unsupported_media_type")
	}
	a := w.ask("POST", "/api/sandbox/search", "ann", `{"query": "x"}`, func(r *http.Request) { r.Header.Set("Content-Type", "Application/JSON; charset=UTF-8") })
	want(t, "as some write it", a, 200, "")
}

func TestLimits(t *testing.T) {
	w := newWorld(t, func(o *api.Options) { o.Limits.Rate, o.Limits.Burst = 60, 2 })
	for range 2 {
		want(t, "within", w.ask("GET", "/api", "ann", nil), 200, "")
	}
	a := w.ask("GET", "/api", "ann-reads", nil)
	want(t, "the same person by another key", a, 429, "limited")
	if a.Header.Get("Retry-After") != "1" {
		t.Errorf("Retry-After: %q", a.Header.Get("Retry-After"))
	}
	want(t, "another person", w.ask("GET", "/api", "bob", nil), 200, "")
	w.mu.Lock()
	w.now = w.now.Add(time.Second)
	w.mu.Unlock()
	want(t, "later", w.ask("GET", "/api", "ann", nil), 200, "")
}

func TestConcurrentRequests(t *testing.T) {
	w := newWorld(t, func(o *api.Options) {
		o.Limits.Concurrent = 1
		o.Limits.Burst = math.MaxInt32 // bob asks until the server has closed
	})
	begun, release := make(chan struct{}), make(chan struct{})
	w.shells.run = func(context.Context, string) (protocol.ExecResult, error) {
		close(begun)
		<-release
		return protocol.ExecResult{}, nil
	}
	done := make(chan answer)
	go func() { done <- w.ask("POST", "/api/sandbox/shell", "ann", `{"command": "x"}`) }()
	<-begun
	want(t, "a second", w.ask("GET", "/api", "ann", nil), 429, "limited")
	want(t, "another person", w.ask("GET", "/api", "bob", nil), 200, "")

	// Close waits for requests in progress and rejects new ones.
	closed := make(chan struct{})
	go func() { w.server.Close(); close(closed) }()
	for w.ask("GET", "/api", "bob", nil).StatusCode != 503 {
	}
	select {
	case <-closed:
		t.Error("closed before its requests had ended")
	default:
	}
	close(release)
	want(t, "what was in progress", <-done, 200, "")
	<-closed
}
