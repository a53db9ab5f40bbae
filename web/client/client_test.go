package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"satchel/auth"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/service/servicetest"
	"satchel/internal/space"
	"satchel/sandbox/protocol"
	"satchel/tools"
	"satchel/tools/index"
	"satchel/web/api"
	"satchel/web/client"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// behind is what the real API has behind it here.
type behind struct {
	err   error
	wait  chan struct{} // a command waits for it, where it is set
	space space.SpaceID
}

func (b *behind) Verify(_ context.Context, token string) (auth.Principal, error) {
	if token != "satchel_key" {
		return auth.Principal{}, fault.New(fault.Unauthenticated, "The key is not valid.")
	}
	return auth.Principal{User: "u", UserName: "ann", Grant: "g", Client: "k", Scopes: []space.Scope{space.ScopeRead, space.ScopeWrite}, Space: b.space, Role: space.Owner}, nil
}

func (b *behind) Call(_ context.Context, _ tools.Caller, name string, raw json.RawMessage, _ tools.Progress) (tools.Result, error) {
	switch {
	case b.err != nil:
		return tools.Result{}, b.err
	case name == "fetch" && strings.Contains(string(raw), "x.md"):
		return tools.Result{Structured: []byte(`{"title":"X","text":"# X\n\nquokka\n","metadata":{"path":"docs/aa/x.md","etag":"e","lines":"3"}}`)}, nil
	case name == "fetch" && strings.Contains(string(raw), "a.md"):
		return tools.Result{Structured: []byte(`{"title":"A","text":"# A\n","metadata":{"path":"docs/a.md","etag":"e","lines":"1"}}`)}, nil
	}
	return tools.Result{Content: []tools.Content{{Text: "There is no such file."}}, Meta: map[string]any{"error": "not_found"}, IsError: true}, nil
}

func (b *behind) exec(ctx context.Context, _ servicetest.Box, r protocol.ExecRequest) (protocol.ExecResult, error) {
	if b.wait != nil {
		close(b.wait)
		<-ctx.Done()
		return protocol.ExecResult{}, fault.Wrap(ctx.Err(), fault.Canceled, "The call was cancelled.")
	}
	return protocol.ExecResult{Stdout: protocol.Output{Head: []byte(r.Command + "\n")}, ExitCode: 3}, nil
}

func serve(t *testing.T, b *behind, change ...func(*api.Options)) *httptest.Server {
	t.Helper()
	library := servicetest.New(t, time.Now)
	b.space = library.Space
	library.Write(map[string]string{"a/x.md": "# X\n\nquokka\n", "b/y.md": "Y"})
	aa := library.Publish("aa", "A", "a")
	library.Publish("bb", "B", "b")
	x, err := index.Open(index.Options{Dir: t.TempDir()})
	if err == nil {
		t.Cleanup(func() { _ = x.Close() })
		err = x.Update(t.Context(), aa.Collection, library.Sources)
	}
	if err != nil {
		t.Fatal(err)
	}
	library.Attach(service.Running{Pool: servicetest.Pool(t, b.exec), Index: x})
	o := api.Options{Tools: b, Service: library.Service, Verifier: b, URL: "http://localhost", Version: "v9"}
	for _, f := range change {
		f(&o)
	}
	s, err := api.New(o)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(s.Handler())
	t.Cleanup(func() { srv.Close(); s.Close() })
	return srv
}

func connect(t *testing.T, url, key string) *client.Client {
	t.Helper()
	c, err := client.New(client.Options{URL: url, Key: key, Transport: &http.Transport{}, Retries: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// Everything that the API can do, by the client.
func TestTheWholeAPI(t *testing.T) {
	ctx := t.Context()
	c := connect(t, serve(t, &behind{}).URL+"/api", " satchel_key\n")
	if v, err := c.Sources(ctx); err != nil || len(v) != 2 || v[0].ID != "aa" || v[0].Age == nil || v[0].Files != 1 {
		t.Errorf("%+v %v", v, err)
	}
	for id, synced := range map[string]int{"": 2, "aa": 1} {
		if v, err := c.Sync(ctx, id, client.SyncOptions{}); err != nil || len(v) != synced || v[0].Source != "aa" || v[0].Started.IsZero() {
			t.Errorf("sync %q: %+v %v", id, v, err)
		}
	}
	for _, id := range []string{"b/c", "b?x#y", ".."} {
		if v, err := c.Sync(ctx, id, client.SyncOptions{}); err == nil {
			t.Errorf("sync %q: %+v", id, v)
		}
	}
	if v, err := c.Search(ctx, client.Query{Query: "quokka", Limit: 5, Paths: []string{"docs"}}); err != nil || v.Total != 1 || v.Truncated || v.Results[0].Path != "docs/aa/x.md" || len(v.Matches) != 1 || v.Matches[0].Line != 3 || !slices.Equal(v.Paths, []string{"docs/aa/x.md"}) {
		t.Errorf("%+v %v", v, err)
	}
	if v, err := c.Read(ctx, "docs/a.md", "docs/none"); err != nil || len(v) != 2 || v[0].Content != "# A\n" || v[1].Error.Code != "not_found" {
		t.Errorf("%+v %v", v, err)
	}
	if v, err := c.SearchAndRead(ctx, client.Query{Query: "quokka"}, 1); err != nil || len(v.Files) != 1 || v.Files[0].Path != "docs/aa/x.md" || v.Total != 1 {
		t.Errorf("%+v %v", v, err)
	}
	v, err := c.InSession("s").Shell(ctx, "ls", "pwd")
	var out []string
	for _, r := range v.Results {
		out = append(out, r.Stdout)
	}
	if err != nil || !slices.Equal(out, []string{"cd /library; ls\n", "cd /library; pwd\n"}) || !v.Fresh || v.SessionID != "s" || v.Results[0].ExitCode != 3 {
		t.Errorf("%+v %v", v, err)
	}
	if r, err := c.Bash(ctx, "ls"); err != nil || r.Stdout != "cd /library; ls\n" || r.ExitCode != 3 {
		t.Errorf("%+v %v", r, err)
	}
	saved, err := c.Remember(ctx, client.Statement{Type: "preference", Key: "seat", Value: "Window", Explicit: true})
	if err != nil || len(saved) != 1 || saved[0].Outcome != "added" {
		t.Errorf("%+v %v", saved, err)
	}
	facts, err := c.Facts(ctx)
	if err != nil || len(facts) != 1 || facts[0].Value != "Window" {
		t.Fatalf("%+v %v", facts, err)
	}
	if err := c.Forget(ctx, "preference", "seat", "another"); codeOf(err) != client.CodeConflict {
		t.Errorf("another version: %v", err)
	}
	if err := c.Forget(ctx, "preference", "seat", facts[0].ETag); err != nil {
		t.Error(err)
	}
	if facts, err := c.Facts(ctx); err != nil || len(facts) != 0 {
		t.Errorf("%+v %v", facts, err)
	}
}

// codeOf returns the code of a client's error, or "".
func codeOf(err error) string {
	if e, ok := errors.AsType[*client.Error](err); ok {
		return e.Code
	}
	return ""
}

func TestErrorsHaveTheServersCode(t *testing.T) {
	b := &behind{}
	srv := serve(t, b)
	c := connect(t, srv.URL, "satchel_key")
	_, err := connect(t, srv.URL, "wrong").Sources(t.Context())
	check := func(what string, err error, code, text string) {
		t.Helper()
		if codeOf(err) != code || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v (%s), want %s %q", what, err, codeOf(err), code, text)
		}
	}
	if !errors.Is(err, client.ErrUnauthorized) || errors.Is(err, client.ErrNetwork) {
		t.Errorf("a wrong key: %v", err)
	}
	check("a wrong key", err, client.CodeUnauthenticated, "The key is not valid.")
	_, err = c.Sync(t.Context(), "gone", client.SyncOptions{})
	check("no such source", err, client.CodeNotFound, `"gone"`)
	_, err = c.Search(t.Context(), client.Query{})
	check("no query", err, client.CodeInvalid, "Give a query")
	b.err = &fault.Error{Code: fault.Limited, Public: "Later.", RetryAfter: 7 * time.Second}
	_, err = c.Read(t.Context(), "docs/a.md")
	check("limited", err, client.CodeLimited, "Later.")
	if e, _ := errors.AsType[*client.Error](err); !errors.Is(err, client.ErrLimited) || e.RetryAfter != 7*time.Second || e.Status != http.StatusTooManyRequests {
		t.Errorf("%+v", e)
	}
	b.err = errors.New("ours")
	_, err = c.Read(t.Context(), "docs/a.md")
	check("ours", err, client.CodeInternal, "Something went wrong")
}

func TestCancelling(t *testing.T) {
	b := &behind{wait: make(chan struct{})}
	c := connect(t, serve(t, b).URL, "satchel_key")
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-b.wait; cancel() }()
	if _, err := c.Bash(ctx, "x"); codeOf(err) != client.CodeCanceled {
		t.Errorf("%v", err)
	}
}

// What answers may be no Satchel, or one who wants the key.
func TestAttackStrangeServers(t *testing.T) {
	var got []string
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = append(got, r.Header.Get("Authorization")) }))
	defer other.Close()
	for name, h := range map[string]http.HandlerFunc{
		"a page":  func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) },
		"nothing": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) },
		"JSON of another kind": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`[1]`))
		},
		"an error of another kind": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(500)
			_, _ = w.Write([]byte(`{"error": {"code": "own\u001b[31m", "message": "x"}}`))
		},
		"a redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		},
		"half an answer": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "99")
			_, _ = w.Write([]byte(`{`))
		},
		"too much of one": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(make([]byte, 2000))
		},
	} {
		srv := httptest.NewServer(h)
		c, err := client.New(client.Options{URL: srv.URL, Key: "k", Transport: &http.Transport{}, MaxAnswer: 1000, Retries: -1})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Sources(t.Context())
		if code := codeOf(err); code != client.CodeNetwork && (name != "too much of one" || code != client.CodeTooLarge) || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%s: %v", name, err)
		}
		c.Close()
		srv.Close()
	}
	if len(got) > 0 {
		t.Errorf("the key went elsewhere: %v", got)
	}
}

func TestOptions(t *testing.T) {
	for _, url := range []string{"https://a.test", "https://a.test/", "https://a.test/mcp", "https://a.test/api/", "http://localhost:1", "http://127.0.0.1:1", "http://[::1]:1"} {
		if _, err := client.New(client.Options{URL: url, Key: "k"}); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
	for _, url := range []string{"", "a.test", "ftp://a.test", "http://a.test", "http://10.0.0.1", "https://a.test/other", "https://u:p@a.test", "https://a.test?x=y", "https://a.test#x"} {
		if _, err := client.New(client.Options{URL: url, Key: "k"}); codeOf(err) != client.CodeInvalid {
			t.Errorf("%s: %v", url, err)
		}
	}
	for _, key := range []string{"", " \n", "a b", "a\nb", "é"} {
		if _, err := client.New(client.Options{URL: "https://a.test", Key: key}); codeOf(err) != client.CodeInvalid {
			t.Errorf("%q: %v", key, err)
		}
	}
}
