package api_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"satchel/auth"
	"satchel/internal/fault"
	"satchel/sandbox/protocol"
	"satchel/tools"
	"satchel/web/api"
)

func TestAttackNoTokenOrABadOne(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*http.Request)
		err    string // of the challenge
	}{
		{"none", func(r *http.Request) {}, ""},
		{"one that proves nobody", func(r *http.Request) { r.Header.Set("Authorization", "Bearer nobody") }, "invalid_token"},
		{"in the query", func(r *http.Request) { r.URL.RawQuery = "access_token=ann&api_key=ann&token=ann" }, ""},
		{"in another header", func(r *http.Request) { r.Header.Set("X-Api-Key", "ann") }, ""},
		{"in a cookie of a browser that is signed in", func(r *http.Request) {
			for _, n := range []string{"__Host-satchel", "satchel", "Authorization", "token"} {
				r.AddCookie(&http.Cookie{Name: n, Value: "ann"})
			}
		}, ""},
		{"as a password", func(r *http.Request) { r.SetBasicAuth("ann", "ann") }, ""},
		{"two", func(r *http.Request) { r.Header["Authorization"] = []string{"Bearer ann", "Bearer bob"} }, "invalid_request"},
		{"with a line end", func(r *http.Request) { r.Header.Set("Authorization", "Bearer ann\r\nX: y") }, "invalid_request"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			for _, q := range w.doc.requests(t) {
				a := w.ask(q.method, q.path, "", q.body, c.change)
				want(t, q.path, a, 401, "unauthenticated")
				ch := a.Header.Get("WWW-Authenticate")
				if !strings.HasPrefix(ch, "Bearer ") || !strings.Contains(ch, `resource_metadata="`+origin+`/.well-known/`) || c.err != "" && !strings.Contains(ch, `error="`+c.err+`"`) || c.err == "" && strings.Contains(ch, "error=") {
					t.Errorf("%s: the challenge %q", q.path, ch)
				}
			}
			if len(w.tools.calls)+len(w.shells.ran) > 0 {
				t.Errorf("it did something: %v %v", w.tools.calls, w.shells.ran)
			}
		})
	}
}

func TestAttackGuessingTokensIsLimited(t *testing.T) {
	var limited atomic.Bool
	w := newWorld(t, func(o *api.Options) {
		o.LimitUnauthenticated = func(*http.Request) (time.Duration, bool) { return 7 * time.Second, !limited.Load() }
	})
	limited.Store(true)
	want(t, "the document", w.ask("GET", "/api/openapi.json", "", nil), 429, "limited")
	a := w.ask("GET", "/api", "guess", nil)
	want(t, "a guess", a, 429, "limited")
	if a.Header.Get("Retry-After") != "7" || a.Header.Get("WWW-Authenticate") == "" {
		t.Errorf("%v", a.Header)
	}
	want(t, "who has a token", w.ask("GET", "/api", "ann", nil), 200, "")
}

func TestAttackAKeyWithoutTheScope(t *testing.T) {
	w := newWorld(t)
	for _, q := range w.doc.requests(t) {
		a := w.ask(q.method, q.path, "none", q.body)
		want(t, "no scope, "+q.path, a, 403, "forbidden")
		if !strings.Contains(a.Header.Get("WWW-Authenticate"), `error="insufficient_scope"`) {
			t.Errorf("%s: %q", q.path, a.Header.Get("WWW-Authenticate"))
		}
	}
	for _, q := range w.doc.requests(t) {
		if q.scope == "write" {
			want(t, "read alone, "+q.path, w.ask(q.method, q.path, "ann-reads", q.body), 403, "forbidden")
		}
	}
}

// The tools never get a space of the caller.
func TestAttackToolsAreNeverGivenTheSpace(t *testing.T) {
	w := newWorld(t)
	w.ask("POST", "/api/sandbox/search-and-read", "ann", `{"query": "useAsyncData"}`)
	if c := w.tools.last; c.Space().ID != tools.LibraryOnly || c.User() != "ann" {
		t.Errorf("%+v", c)
	}
}

func TestAttackAKeyThatIsRevokedOrOver(t *testing.T) {
	w := newWorld(t)
	want(t, "before", w.ask("GET", "/api", "ann", nil), 200, "")
	w.revoke("ann")
	for _, q := range w.doc.requests(t) {
		want(t, q.path, w.ask(q.method, q.path, "ann", q.body), 401, "unauthenticated")
	}
}

// When a key ends, its command ends, and the output is not returned.
func TestAttackAKeyThatIsRevokedWhileItsCommandRuns(t *testing.T) {
	w := newWorld(t, func(o *api.Options) { o.Limits.Recheck = time.Millisecond })
	w.shells.run = func(ctx context.Context, _ string) (protocol.ExecResult, error) {
		w.revoke("ann")
		<-ctx.Done()
		return protocol.ExecResult{Stdout: protocol.Output{Head: []byte("secret")}, End: protocol.Canceled}, nil
	}
	a := w.ask("POST", "/api/sandbox/shell", "ann", `{"commands": ["a", "b"]}`)
	want(t, "revoked", a, 401, "unauthenticated")
	if strings.Contains(string(a.body), "secret") || len(w.shells.ran) != 1 {
		t.Errorf("%s %v", a.body, w.shells.ran)
	}
}

// A failing database does not end commands.
func TestACheckThatFailsEndsNothing(t *testing.T) {
	v := &failing{}
	w := newWorld(t, func(o *api.Options) {
		o.Limits.Recheck = time.Millisecond
		v.Verifier, o.Verifier = o.Verifier, v
	})
	w.shells.run = func(ctx context.Context, _ string) (protocol.ExecResult, error) {
		checked := make(chan struct{})
		v.fail.Store(&checked)
		<-checked
		return protocol.ExecResult{}, ctx.Err()
	}
	want(t, "", w.ask("POST", "/api/sandbox/shell", "ann", `{"command": "a"}`), 200, "")
}

type failing struct {
	auth.Verifier
	fail atomic.Pointer[chan struct{}]
}

func (f *failing) Verify(ctx context.Context, token string) (auth.Principal, error) {
	checked := f.fail.Load()
	if checked == nil {
		return f.Verifier.Verify(ctx, token)
	}
	select {
	case <-*checked:
	default:
		close(*checked)
	}
	return auth.Principal{}, fault.New(fault.Unavailable, "The database is away.")
}

func TestAttackAnothersSession(t *testing.T) {
	w := newWorld(t)
	for _, token := range []string{"ann", "ann-reads", "bob"} {
		want(t, token, w.ask("POST", "/api/sandbox/shell", token, `{"command": "x", "sessionId": "same"}`), 200, "")
	}
	if want := []string{"1: x", "2: x", "3: x"}; !slices.Equal(w.shells.ran, want) {
		t.Errorf("%v, want %v", w.shells.ran, want)
	}
}

// No path reaches the caller's own space or anything else outside the library.
func TestAttackPathTricks(t *testing.T) {
	for _, p := range []string{
		"/space/knowledge/secret.md", "/space", "/", "/etc/passwd", "//library/docs/x", "/libraryx/a", "/library/../space/knowledge/secret.md",
		"..", "../knowledge/secret.md", "docs/../../knowledge/secret.md", "./../x", "docs/..", "docs/./x", "docs//x",
		"/library//space/x", `docs\..\..\space`, "docs/nuxt\x00.md", ".git/config", "docs/.git/config", "docs/nuxt/.GIT/x",
		"docs/nuxt/guide.md#../../x", "docs/\u2028x", "docs/" + strings.Repeat("x/", 40), strings.Repeat("x", 2000),
	} {
		w := newWorld(t)
		a := w.ask("POST", "/api/sandbox/read", "ann", map[string]any{"paths": []string{p}})
		if s := string(a.body); a.StatusCode != 200 || !strings.Contains(s, `"kind":"error"`) || !strings.Contains(s, `"code":"invalid"`) || len(w.tools.calls) > 0 {
			t.Errorf("read %.60q: %d %.300s %v", p, a.StatusCode, s, w.tools.calls)
		}
		a = w.ask("POST", "/api/sandbox/search", "ann", map[string]any{"query": "x", "paths": []string{p}})
		want(t, "search in "+p[:min(len(p), 60)], a, 400, "invalid")
	}
}

// A path that the tools could take for one of a space is always in the library.
func TestAttackARelativePathIsNotOneOfTheSpace(t *testing.T) {
	w := newWorld(t)
	a := w.ask("POST", "/api/sandbox/read", "ann", map[string]any{"paths": []string{"knowledge/secret.md", " knowledge/secret.md", "./knowledge/secret.md"}})
	if strings.Contains(string(a.body), "own") {
		t.Errorf("%s", a.body)
	}
	for _, c := range w.tools.calls {
		if !strings.Contains(c, `"/library/knowledge/secret.md"`) {
			t.Errorf("the tools were asked for %s", c)
		}
	}
}

// Pages of other sites cannot use the API or read its answers.
func TestAttackCrossSite(t *testing.T) {
	w := newWorld(t)
	from := func(r *http.Request) {
		r.Header.Set("Origin", "https://evil.test")
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		r.Header.Set("Access-Control-Request-Method", "POST")
		r.Header.Set("Access-Control-Request-Headers", "authorization, content-type")
	}
	for _, q := range w.doc.requests(t) {
		for _, a := range []answer{
			w.ask(http.MethodOptions, q.path, "", nil, from),
			w.ask(q.method, q.path, "ann", q.body, from),
		} {
			for name := range a.Header {
				if strings.HasPrefix(name, "Access-Control-") || name == "Set-Cookie" {
					t.Errorf("%s answers with %s", q.path, name)
				}
			}
			if h := a.Header; h.Get("Cache-Control") != "no-store" || h.Get("X-Content-Type-Options") != "nosniff" || !strings.Contains(h.Get("Content-Security-Policy"), "default-src 'none'") || h.Get("Cross-Origin-Resource-Policy") != "same-origin" {
				t.Errorf("%s: %v", q.path, h)
			}
		}
	}
}

func TestAttackAnotherHost(t *testing.T) {
	w := newWorld(t)
	for _, q := range append(w.doc.requests(t), request{method: "GET", path: "/api/openapi.json"}) {
		a := w.ask(q.method, q.path, "ann", q.body, func(r *http.Request) { r.Host = "evil.test" })
		want(t, q.path, a, 403, "forbidden")
	}
}

func TestAttackAPanicTellsNothing(t *testing.T) {
	w := newWorld(t)
	w.tools.panic = true
	a := w.ask("POST", "/api/sandbox/read", "ann", `{"paths": ["docs/nuxt/guide.md"]}`)
	want(t, "", a, 500, "internal")
	if strings.Contains(string(a.body), "secret") {
		t.Errorf("%s", a.body)
	}
}

// If a caller disconnects, their command ends.
func TestACallerWhoGoesAway(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	var ended error
	w.shells.run = func(in context.Context, _ string) (protocol.ExecResult, error) {
		cancel()
		<-in.Done()
		ended = in.Err()
		return protocol.ExecResult{}, fault.Wrap(in.Err(), fault.Canceled, "The call was cancelled.")
	}
	r, _ := http.NewRequestWithContext(ctx, "POST", "", nil)
	a := w.askLoosely("POST", "/api/sandbox/shell", "ann", `{"command": "x"}`, func(q *http.Request) { *q = *q.WithContext(r.Context()) })
	if a.StatusCode != 499 || ended == nil {
		t.Errorf("%d %v", a.StatusCode, ended)
	}
}

func FuzzPaths(f *testing.F) {
	for _, s := range []string{"docs/x.md:1-2", "../x", "/library/./a", "/space/x", "a#b/../c", `a\..\b`, ".//", "/library//", "//"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, p string) {
		got, err := api.InLibrary(p)
		if err != nil {
			if fault.CodeOf(err) != fault.Invalid {
				t.Errorf("%q: %v", p, err)
			}
			return
		}
		rel, ok := strings.CutPrefix(got, "/library/")
		if !ok || strings.HasPrefix(rel, "/") || slices.Contains(strings.Split(rel, "/"), "..") || strings.ContainsAny(rel, "\x00\\") {
			t.Errorf("%q became %q", p, got)
		}
	})
}

// A request reads the same snapshots in all of its calls, and the next request reads the
// newest.
func TestOneRequestReadsTheSameSnapshots(t *testing.T) {
	for _, c := range []struct {
		path, body string
	}{
		{"/api/sandbox/read", `{"paths": ["docs/nuxt/guide.md", "docs/nuxt/other.md", "docs/nuxt/", "docs/nuxt/none.md"]}`},
		{"/api/sandbox/search-and-read", `{"query": "useAsyncData", "read": 1}`},
	} {
		w := newWorld(t)
		for range 2 {
			if a := w.ask(http.MethodPost, c.path, "ann", c.body); a.StatusCode != http.StatusOK {
				t.Fatal(c.path, a.StatusCode, string(a.body))
			}
		}
		n := len(w.tools.seen) / 2
		if n < 1 {
			t.Fatalf("%s: %d calls prove nothing", c.path, n)
		}
		for i, s := range w.tools.seen {
			if s == nil || (s == w.tools.seen[0]) != (i < n) {
				t.Errorf("%s: call %d shares what it saw with the wrong ones", c.path, i)
			}
		}
	}
}
