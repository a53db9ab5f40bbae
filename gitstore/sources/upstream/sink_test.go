package upstream_test

import (
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"satchel/gitstore/gitcmd"
	"satchel/gitstore/sources/upstream"
	"satchel/gitstore/transport"
	"satchel/internal/fault"
	"satchel/internal/testenv"
)

// sink is a Sink in memory. next begins a sync that knows the files of the one before.
type sink struct {
	expected      int
	known         map[string]upstream.File // by URL
	files         map[string]upstream.File // by path
	content       map[string]string        // by path
	old           map[string]string
	put, kept     int
	skipped       map[string]upstream.Reason
	afterEachFile func() // if not nil
}

func (s *sink) next() {
	s.known = map[string]upstream.File{}
	for _, f := range s.files {
		s.known[f.URL] = f
	}
	s.old, s.content, s.files = s.content, map[string]string{}, map[string]upstream.File{}
	s.skipped = map[string]upstream.Reason{}
	s.put, s.kept, s.expected = 0, 0, 0
}

func (s *sink) Expect(files int) { s.expected = files }

func (s *sink) Progress(int) {}

func (s *sink) Known(url string) (upstream.File, bool) {
	f, ok := s.known[url]
	return f, ok
}

func (s *sink) Files() iter.Seq[upstream.File] { return maps.Values(s.known) }

func (s *sink) Keep(_ context.Context, f upstream.File) error {
	s.kept++
	return s.take(f, s.old[string(f.Path)])
}

func (s *sink) Put(_ context.Context, f upstream.File, content []byte) error {
	s.put++
	return s.take(f, string(content))
}

func (s *sink) take(f upstream.File, content string) error {
	if _, ok := s.files[string(f.Path)]; ok {
		return fault.New(fault.Conflict, "There are two files %s.", f.Path)
	}
	s.files[string(f.Path)], s.content[string(f.Path)] = f, content
	if s.afterEachFile != nil {
		s.afterEachFile()
	}
	return nil
}

func (s *sink) Skip(_ context.Context, url string, r upstream.Reason) error {
	s.skipped[url] = r
	if f, ok := s.known[url]; ok {
		return s.take(f, s.old[string(f.Path)])
	}
	return nil
}

func (s *sink) paths() []string { return slices.Sorted(maps.Keys(s.content)) }

// newEnv returns an Env that trusts every address.
func newEnv(t *testing.T) *upstream.Env {
	git := testenv.NeedProgram(t, "git")
	c := transport.New(transport.Options{Git: gitcmd.Runner{Program: git}})
	t.Cleanup(func() { c.Close() })
	return &upstream.Env{
		Remotes: c, Git: gitcmd.Runner{Program: git}, Scratch: t.TempDir(),
		Trusted: func(string) bool { return true }, MaxFileBytes: 1 << 20, MaxBytes: 64 << 20,
	}
}

// open returns an upstream with settings.
func open(t *testing.T, kind, settings string) upstream.Upstream {
	t.Helper()
	u, err := upstream.Open(kind, []byte(settings))
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// newDocument serves a document at the path /v1/document. It returns a source that reads the document,
// with further settings, and its address.
func newDocument(t *testing.T, kind, settings string, body *string) (*upstream.Env, upstream.Upstream, string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, *body) }))
	t.Cleanup(server.Close)
	env := newEnv(t)
	env.HTTP, env.Now = server.Client(), time.Now
	address := server.URL + "/v1/document"
	return env, open(t, kind, fmt.Sprintf(`{"url": %q%s}`, address, settings)), address
}
