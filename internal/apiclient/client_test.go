package apiclient_test

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
	"satchel/internal/apiclient"
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

// behind is what the real API has behind it here.
type behind struct {
	err  error
	wait chan struct{} // a command waits for it, where it is set
}

func (b *behind) Verify(_ context.Context, token string) (auth.Principal, error) {
	if token != "satchel_key" {
		return auth.Principal{}, fault.New(fault.Unauthenticated, "The key is not valid.")
	}
	return auth.Principal{User: "u", UserName: "ann", Grant: "g", Client: "k", Scopes: []space.Scope{space.ScopeRead, space.ScopeWrite}}, nil
}

func (b *behind) Call(_ context.Context, _ tools.Caller, name string, raw json.RawMessage, _ tools.Progress) (tools.Result, error) {
	switch {
	case b.err != nil:
		return tools.Result{}, b.err
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

func client(t *testing.T, url, key string) *apiclient.Client {
	t.Helper()
	c, err := apiclient.New(apiclient.Options{URL: url, Key: key, Transport: &http.Transport{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// Everything that the API can do, by the client.
func TestTheWholeAPI(t *testing.T) {
	ctx := t.Context()
	c := client(t, serve(t, &behind{}).URL+"/api", " satchel_key\n")
	if v, err := c.Sources(ctx); err != nil || len(v) != 2 || v[0].ID != "aa" || v[0].Age == nil || v[0].Files != 1 {
		t.Errorf("%+v %v", v, err)
	}
	for id, synced := range map[string]int{"": 2, "aa": 1} {
		if v, err := c.Sync(ctx, id); err != nil || len(v) != synced || v[0].Source != "aa" || v[0].Started.IsZero() {
			t.Errorf("sync %q: %+v %v", id, v, err)
		}
	}
	for _, id := range []string{"b/c", "b?x#y", ".."} {
		if v, err := c.Sync(ctx, id); err == nil {
			t.Errorf("sync %q: %+v", id, v)
		}
	}
	if v, err := c.Search(ctx, apiclient.Query{Query: "quokka", Limit: 5, Paths: []string{"docs"}}); err != nil || v.Total != 1 || v.Truncated || v.Results[0].Path != "docs/aa/x.md" {
		t.Errorf("%+v %v", v, err)
	}
	if v, err := c.Read(ctx, "docs/a.md", "docs/none"); err != nil || len(v) != 2 || v[0].Content != "# A\n" || v[1].Error.Code != "not_found" {
		t.Errorf("%+v %v", v, err)
	}
	v, err := c.Shell(ctx, "s", "ls", "pwd")
	var out []string
	for _, r := range v.Results {
		out = append(out, r.Stdout)
	}
	if err != nil || !slices.Equal(out, []string{"cd /library; ls\n", "cd /library; pwd\n"}) || !v.Fresh || v.SessionID != "s" || v.Results[0].ExitCode != 3 {
		t.Errorf("%+v %v", v, err)
	}
}

func TestErrorsHaveTheServersCode(t *testing.T) {
	b := &behind{}
	srv := serve(t, b)
	c := client(t, srv.URL, "satchel_key")
	_, err := client(t, srv.URL, "wrong").Sources(t.Context())
	check := func(what string, err error, code fault.Code, text string) {
		t.Helper()
		if fault.CodeOf(err) != code || !strings.Contains(fault.PublicOf(err), text) {
			t.Errorf("%s: %v (%s), want %s %q", what, err, fault.CodeOf(err), code, text)
		}
	}
	check("a wrong key", err, fault.Unauthenticated, "The key is not valid.")
	_, err = c.Sync(t.Context(), "gone")
	check("no such source", err, fault.NotFound, `"gone"`)
	_, err = c.Search(t.Context(), apiclient.Query{})
	check("no query", err, fault.Invalid, "Give a query")
	b.err = &fault.Error{Code: fault.Limited, Public: "Later.", RetryAfter: 7 * time.Second}
	_, err = c.Read(t.Context(), "docs/a.md")
	check("limited", err, fault.Limited, "Later.")
	var f *fault.Error
	if !errors.As(err, &f) || f.RetryAfter != 7*time.Second {
		t.Errorf("%+v", f)
	}
	b.err = errors.New("ours")
	_, err = c.Read(t.Context(), "docs/a.md")
	check("ours", err, fault.Internal, "Something went wrong")
}

func TestCancelling(t *testing.T) {
	b := &behind{wait: make(chan struct{})}
	c := client(t, serve(t, b).URL, "satchel_key")
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-b.wait; cancel() }()
	if _, err := c.Shell(ctx, "", "x"); fault.CodeOf(err) != fault.Canceled {
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
		c, err := apiclient.New(apiclient.Options{URL: srv.URL, Key: "k", Transport: &http.Transport{}, MaxAnswer: 1000})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Sources(t.Context())
		if code := fault.CodeOf(err); code != fault.Unavailable && (name != "too much of one" || code != fault.TooLarge) || strings.Contains(fault.PublicOf(err), "\x1b") {
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
		if _, err := apiclient.New(apiclient.Options{URL: url, Key: "k"}); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
	for _, url := range []string{"", "a.test", "ftp://a.test", "http://a.test", "http://10.0.0.1", "https://a.test/other", "https://u:p@a.test", "https://a.test?x=y", "https://a.test#x"} {
		if _, err := apiclient.New(apiclient.Options{URL: url, Key: "k"}); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%s: %v", url, err)
		}
	}
	for _, key := range []string{"", " \n", "a b", "a\nb", "é"} {
		if _, err := apiclient.New(apiclient.Options{URL: "https://a.test", Key: key}); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%q: %v", key, err)
		}
	}
}
