package upstream

import (
	"context"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"satchel/internal/fault"
	"satchel/internal/testenv"
)

// webSink is a source that remembers the files of its last complete sync.
type webSink struct {
	known   map[string]File // by URL
	files   map[string]File
	content map[string]string // by path
	kept    []string
	put     []string
	skipped map[string]Reason
	expect  int
	done    int // of these
}

func (s *webSink) Expect(n int)                { s.expect = n }
func (s *webSink) Progress(n int)              { s.done = n }
func (s *webSink) Known(u string) (File, bool) { f, ok := s.known[u]; return f, ok }
func (s *webSink) Files() iter.Seq[File]       { return maps.Values(s.known) }
func (s *webSink) Keep(_ context.Context, f File) error {
	s.kept = append(s.kept, f.URL)
	s.files[f.URL] = f
	return nil
}
func (s *webSink) Skip(_ context.Context, u string, r Reason) error {
	s.skipped[u] = r
	if f, ok := s.known[u]; ok {
		s.files[u] = f
	}
	return nil
}

func (s *webSink) Put(_ context.Context, f File, content []byte) error {
	for _, other := range s.files {
		if strings.EqualFold(string(other.Path), string(f.Path)) {
			return fault.New(fault.Conflict, "There are two files %s.", f.Path)
		}
	}
	s.put = append(s.put, f.URL)
	s.files[f.URL] = f
	s.content[string(f.Path)] = string(content)
	return nil
}

// paths returns the paths of the files of the last complete sync.
func (s *webSink) paths() []string {
	var all []string
	for _, f := range s.known {
		all = append(all, string(f.Path))
	}
	slices.Sort(all)
	return all
}

// webWorld is a site on this machine, and a server that syncs it.
type webWorld struct {
	t       *testing.T
	site    *httptest.Server
	web     *web
	env     *Env
	sink    *webSink
	mu      sync.Mutex
	now     time.Time
	waited  []time.Duration
	asked   []string // each request's path, with "?" before the path of a conditional one
	handler http.HandlerFunc
}

// newWebWorld starts a site. The clock moves only when the client waits.
func newWebWorld(t *testing.T, handler http.HandlerFunc) *webWorld {
	w := &webWorld{t: t, handler: handler, now: time.Date(2026, 11, 26, 9, 0, 0, 0, time.UTC), sink: &webSink{content: map[string]string{}}}
	w.site = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		condition := ""
		if r.Header.Get("If-None-Match")+r.Header.Get("If-Modified-Since") != "" {
			condition = "?"
		}
		w.asked = append(w.asked, condition+r.URL.RequestURI())
		h := w.handler
		w.mu.Unlock()
		h(rw, r)
	}))
	t.Cleanup(w.site.Close)
	w.env = &Env{
		HTTP: w.site.Client(), Scratch: t.TempDir(), MaxFileBytes: 1 << 20, Logger: slog.New(slog.DiscardHandler),
		Now: func() time.Time { w.mu.Lock(); defer w.mu.Unlock(); return w.now },
	}
	return w
}

// settings creates the upstream. SITE in the settings is the address of the site.
func (w *webWorld) settings(settings string) {
	w.t.Helper()
	u, err := Open("web", []byte(strings.ReplaceAll(settings, "SITE", w.site.URL)))
	if err != nil {
		w.t.Fatal(err)
	}
	w.web = u.(*web)
	w.web.timeout = 24 * time.Hour
	w.web.wait = func(ctx context.Context, d time.Duration) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if d > 0 {
			w.now = w.now.Add(d)
			w.waited = append(w.waited, d)
		}
		return ctx.Err()
	}
}

// sync runs a sync, and makes its files the known ones unless it fails.
func (w *webWorld) sync(ctx context.Context) (State, error) {
	w.t.Helper()
	w.asked, w.waited = nil, nil
	s := w.sink
	s.files, s.skipped, s.kept, s.put = map[string]File{}, map[string]Reason{}, nil, nil
	state, err := w.web.Fetch(ctx, w.env, s)
	if err == nil {
		s.known = s.files
	}
	return state, err
}

func (w *webWorld) mustSync() State {
	w.t.Helper()
	state, err := w.sync(testenv.Context(w.t))
	if err != nil {
		w.t.Fatal(err)
	}
	return state
}

func (w *webWorld) wantPaths(want ...string) {
	w.t.Helper()
	if got := w.sink.paths(); !slices.Equal(got, want) {
		w.t.Errorf("the files are %q, want %q", got, want)
	}
}

// webPages serves pages by path with an ETag. A value that begins with a digit is a status, and
// one that begins with a slash or http is a redirect.
func webPages(pages map[string]string) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		body, ok := pages[r.URL.RequestURI()]
		if !ok {
			body, ok = pages[r.URL.Path]
		}
		switch {
		case !ok:
			http.NotFound(rw, r)
			return
		case strings.HasPrefix(body, "/") || strings.HasPrefix(body, "http"):
			http.Redirect(rw, r, body, http.StatusMovedPermanently)
			return
		case len(body) == 3 && body[0] >= '1' && body[0] <= '9':
			var status int
			_, _ = fmt.Sscan(body, &status)
			rw.WriteHeader(status)
			return
		}
		tag := `"` + shortHash([]byte(body)) + `"`
		rw.Header().Set("ETag", tag)
		if r.Header.Get("If-None-Match") == tag {
			rw.WriteHeader(http.StatusNotModified)
			return
		}
		switch {
		case strings.HasPrefix(body, "<"):
			rw.Header().Set("Content-Type", "text/html; charset=utf-8")
		case strings.HasPrefix(body, "%PDF"):
			rw.Header().Set("Content-Type", "application/pdf")
		default:
			rw.Header().Set("Content-Type", "text/plain; charset=utf-8")
		}
		_, _ = io.WriteString(rw, body)
	}
}

// webHTML returns a page with a heading, a text and links in the navigation.
func webHTML(title, text string, links ...string) string {
	var nav strings.Builder
	for _, l := range links {
		fmt.Fprintf(&nav, `<a href="%s">x</a>`, l)
	}
	return fmt.Sprintf(`<html><head><title>%[1]s</title></head><body><nav>%[3]s</nav><main><h1>%[1]s</h1><p>%[2]s</p></main></body></html>`, title, text, nav.String())
}
