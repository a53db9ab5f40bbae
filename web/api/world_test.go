package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"satchel/auth"
	"satchel/gitstore/sources"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/service/servicetest"
	"satchel/internal/space"
	"satchel/sandbox/protocol"
	"satchel/tools"
	"satchel/tools/index"
	"satchel/web/api"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const origin = "https://satchel.test"

// world is the API with fakes. Every request and answer is checked against the document
// that it serves.
type world struct {
	t      *testing.T
	server *api.Server
	doc    *described

	mu     sync.Mutex
	tokens map[string]auth.Principal
	now    time.Time

	tools   fakeTools
	shells  fakeShells
	library *servicetest.World
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func newWorld(t *testing.T, change ...func(*api.Options)) *world {
	t.Helper()
	w := &world{t: t, now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), tokens: map[string]auth.Principal{}}
	w.tools.files = map[string]string{
		"/library/docs/nuxt/guide.md": "# Guide\n\nuseAsyncData\n", "/library/docs/nuxt/other.md": "other\n",
		"knowledge/secret.md": "the space's own\n",
	}
	// The source vue exceeded the limit after it was published.
	w.library = servicetest.New(t, w.clock, func(o *sources.Options) { o.MaxFiles = 2 })
	w.library.Write(map[string]string{"nuxt/guide.md": "# Guide\n\nuseAsyncData\n", "nuxt/other.md": "other\n", "vue/a.md": "A", "knowledge/secret.md": "the space's own\n"})
	nuxt := w.library.Publish("nuxt", "Nuxt", "nuxt")
	w.library.Publish("vue", "Vue", "vue")
	w.library.Write(map[string]string{"vue/b.md": "B", "vue/c.md": "C"})
	if _, err := w.library.Sources.Sync(t.Context(), w.library.Owner.ID, "vue"); err != nil {
		t.Fatal(err)
	}
	x, err := index.Open(index.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.Close() })
	if err := x.Update(t.Context(), nuxt.Collection, w.library.Sources); err != nil {
		t.Fatal(err)
	}
	w.library.Attach(service.Running{Pool: servicetest.Pool(t, w.shells.exec), Index: x})
	w.now = w.now.Add(time.Minute)
	w.login("ann", "ann", "g_1", space.ScopeRead, space.ScopeWrite)
	w.login("ann-reads", "ann", "g_2", space.ScopeRead)
	w.login("bob", "bob", "g_3", space.ScopeRead, space.ScopeWrite)
	w.login("none", "ann", "g_4")
	o := api.Options{
		Tools: &w.tools, Service: w.library.Service, Verifier: w, URL: origin, Version: "1.2.3", Now: w.clock,
		HostAllowed:         func(host string) bool { return host == "satchel.test" },
		ResourceMetadataURL: func(*http.Request) string { return origin + "/.well-known/oauth-protected-resource/mcp" },
	}
	for _, f := range change {
		f(&o)
	}
	if w.server, err = api.New(o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.server.Close)
	rec := httptest.NewRecorder()
	w.server.Handler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, origin+"/api/openapi.json", nil))
	w.doc = describe(t, rec.Body.Bytes())
	return w
}

func (w *world) login(token, user, grant string, scopes ...space.Scope) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tokens[token] = auth.Principal{User: space.UserID(user), UserName: user, Grant: space.GrantID(grant), Client: "key of " + user, Scopes: scopes, Space: w.library.Space, Role: space.Owner}
}

// Verify implements auth.Verifier.
func (w *world) Verify(_ context.Context, token string) (auth.Principal, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p, ok := w.tokens[token]; ok {
		return p, nil
	}
	return auth.Principal{}, fault.New(fault.Unauthenticated, "The token is not valid.")
}

func (w *world) revoke(token string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.tokens, token)
}

type answer struct {
	*http.Response
	body []byte
}

func (a answer) into(t *testing.T, v any) {
	t.Helper()
	if err := json.Unmarshal(a.body, v); err != nil {
		t.Fatalf("%v: %s", err, a.body)
	}
}

func (a answer) code() string {
	var e struct{ Error struct{ Code string } }
	_ = json.Unmarshal(a.body, &e)
	return e.Error.Code
}

// ask sends a request and checks its answer against the document, and the request if it
// should be valid.
func (w *world) ask(method, path, token string, body any, change ...func(*http.Request)) answer {
	w.t.Helper()
	r, raw, a := w.send(method, path, token, body, change...)
	w.judge(r, raw, a)
	return a
}

// askLoosely is ask for an answer that nobody receives.
func (w *world) askLoosely(method, path, token string, body any, change ...func(*http.Request)) answer {
	w.t.Helper()
	_, _, a := w.send(method, path, token, body, change...)
	return a
}

func (w *world) send(method, path, token string, body any, change ...func(*http.Request)) (*http.Request, []byte, answer) {
	w.t.Helper()
	var raw []byte
	switch b := body.(type) {
	case nil:
	case string:
		raw = []byte(b)
	default:
		var err error
		if raw, err = json.Marshal(b); err != nil {
			w.t.Fatal(err)
		}
	}
	r := httptest.NewRequest(method, origin+path, bytes.NewReader(raw))
	if raw == nil {
		r.Body, r.ContentLength = http.NoBody, 0
	} else {
		r.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for _, f := range change {
		f(r)
	}
	rec := httptest.NewRecorder()
	w.server.Handler().ServeHTTP(rec, r)
	return r, raw, answer{rec.Result(), rec.Body.Bytes()}
}

// judge checks an answer, and an accepted request, against the document.
func (w *world) judge(r *http.Request, raw []byte, a answer) {
	w.t.Helper()
	if a.StatusCode >= 400 {
		w.isError(a)
	}
	if r.Method != http.MethodHead { // as GET, without a body
		w.doc.judge(w.t, r, raw, a)
	}
}

// isError checks that an answer has exactly the form of an error.
func (w *world) isError(a answer) {
	w.t.Helper()
	var e struct {
		Error *struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
		Message    string `json:"message"`
		StatusCode int    `json:"statusCode"`
	}
	d := json.NewDecoder(bytes.NewReader(a.body))
	d.DisallowUnknownFields()
	if err := d.Decode(&e); err != nil || e.Error == nil || e.Error.Code == "" || e.Message == "" || e.Error.Message != e.Message || e.StatusCode != a.StatusCode {
		w.t.Errorf("%d: not the form of an error: %s", a.StatusCode, a.body)
	}
	if ct := a.Header.Get("Content-Type"); ct != "application/json" {
		w.t.Errorf("an error of the type %q", ct)
	}
}

func want(t *testing.T, what string, a answer, status int, code string) {
	t.Helper()
	if a.StatusCode != status || a.code() != code {
		t.Errorf("%s: %d %q, want %d %q: %s", what, a.StatusCode, a.code(), status, code, a.body)
	}
}

// fakeTools answers like tools.Registry, with files of a space and of the library.
type fakeTools struct {
	mu    sync.Mutex
	files map[string]string
	calls []string // name and arguments
	last  tools.Caller
	seen  []*tools.Seen // of each call
	err   error
	panic bool
}

func (f *fakeTools) Call(_ context.Context, c tools.Caller, name string, raw json.RawMessage, _ tools.Progress) (tools.Result, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls, f.last = append(f.calls, name+" "+string(raw)), c
	f.seen = append(f.seen, c.Seen)
	if f.panic {
		panic("a secret")
	}
	if f.err != nil {
		return tools.Result{}, f.err
	}
	var a struct {
		ID    string
		Paths []string
	}
	if err := json.Unmarshal(raw, &a); err != nil {
		return tools.Result{}, err
	}
	failed := func(code fault.Code, text string) (tools.Result, error) {
		return tools.Result{Content: []tools.Content{{Text: text}}, Meta: map[string]any{"error": string(code)}, IsError: true}, nil
	}
	structured := func(v any) (tools.Result, error) {
		b, err := json.Marshal(v)
		return tools.Result{Content: []tools.Content{{Text: string(b)}}, Structured: b}, err
	}
	switch name {
	case "fetch":
		text, ok := f.files[a.ID]
		if !ok {
			return failed(fault.NotFound, "There is no "+a.ID)
		}
		return structured(map[string]any{"id": a.ID, "title": "Guide", "text": text, "url": "u", "metadata": map[string]string{"path": a.ID, "etag": "e", "lines": "3", "truncated": "true", "next": a.ID + ":4-"}})
	case "read":
		p := a.Paths[0]
		if !strings.HasSuffix(p, "/") && !strings.Contains(p, "*") {
			return tools.Result{Content: []tools.Content{{Text: "== " + p + "\nThere is no such file.\n"}}, IsError: true,
				Meta: map[string]any{"files": []map[string]any{{"path": p, "error": "not_found"}}}}, nil
		}
		return tools.Result{Content: []tools.Content{{Text: "== " + p + " (directory)\nguide.md\nother.md\n"}}, Meta: map[string]any{"files": []map[string]any{{"path": p}}}}, nil
	}
	return tools.Result{}, fmt.Errorf("no tool %s", name)
}

// fakeShells runs "echo X", "exit N", "wait" and whatever a test adds.
type fakeShells struct {
	mu  sync.Mutex
	ran []string // number of the sandbox: command
	run func(ctx context.Context, command string) (protocol.ExecResult, error)
}

func (f *fakeShells) exec(ctx context.Context, b servicetest.Box, q protocol.ExecRequest) (protocol.ExecResult, error) {
	command := strings.TrimPrefix(q.Command, "cd /library; ")
	f.mu.Lock()
	f.ran = append(f.ran, fmt.Sprintf("%d: %s", b.N, command))
	run := f.run
	f.mu.Unlock()
	if run != nil {
		return run(ctx, command)
	}
	r := protocol.ExecResult{Duration: 1500 * time.Millisecond}
	if text, ok := strings.CutPrefix(command, "echo "); ok {
		r.Stdout.Head = []byte(text + "\n")
	} else if _, err := fmt.Sscanf(command, "exit %d", &r.ExitCode); err == nil {
		r.Stderr.Head = []byte("bad\n")
	}
	return r, nil
}
