package web_test

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"satchel/auth/store"
	"satchel/gitstore"
	"satchel/internal/service/servicetest"
	"satchel/internal/space"
	"satchel/web"
)

// active is a world whose commits are published to the pages, and whose spaces begin with
// instructions.
type active struct {
	*world
	live  *web.Live
	carol store.User // an editor of ada's space
}

func newActive(t *testing.T, o web.LiveOptions, with ...func(*web.Options)) *active {
	t.Helper()
	return newActiveOf(t, servicetest.Setup{}, o, with...)
}

// newActiveOf is newActive with other engines.
func newActiveOf(t *testing.T, s servicetest.Setup, o web.LiveOptions, with ...func(*web.Options)) *active {
	t.Helper()
	a := &active{live: web.NewLive(o)}
	s.Git = func(o *gitstore.Options) { o.Events = a.live }
	a.world = newWorldOf(t, s, append([]func(*web.Options){func(o *web.Options) { o.Live = a.live }}, with...)...)
	for _, id := range []space.SpaceID{a.space.ID, a.evil.ID} {
		a.start(id)
	}
	a.carol, _ = a.user("carol", false)
	must(t, a.AddMember(t.Context(), cli, a.space.ID, a.carol.ID, space.Editor))
	return a
}

// start writes the instructions of a space.
func (a *active) start(id space.SpaceID) {
	a.t.Helper()
	cs := space.ChangeSet{}
	for _, p := range []string{"resources/instructions.md", "skills/a/SKILL.md"} {
		cs.Changes = append(cs.Changes, space.Change{Path: p, Content: []byte("start\n")})
	}
	_, err := a.git.Commit(a.t.Context(), id, cs, space.Meta{Message: "Start the space", Tool: "satchel", Time: a.clock().Add(-time.Hour)})
	must(a.t, err)
}

// newSpace creates another space for a user.
func (a *active) newSpace(owner store.User, name string) store.Space {
	a.t.Helper()
	sp := a.world.newSpace(owner, name)
	a.start(sp.ID)
	return sp
}

// by commits files as a client, a minute after the last commit.
func (a *active) by(client, message string, files ...string) space.Commit {
	a.t.Helper()
	a.pass(time.Minute)
	return a.commitAs(space.Meta{Author: space.Person{Name: "Ada", Email: "ada@example.com"}, Message: message, Tool: "bash", Client: client, Time: a.clock()}, files...)
}

func (a *active) head() space.CommitID {
	a.t.Helper()
	h, err := a.git.Head(a.t.Context(), a.space.ID)
	must(a.t, err)
	return h
}

// stream is an open stream of events, over a real connection.
type stream struct {
	t      *testing.T
	status int
	header http.Header
	lines  *bufio.Scanner
	close  func()
}

// serve lets the world be reached over a real connection.
func (a *active) serve() string {
	a.t.Helper()
	srv := httptest.NewServer(a.server.Handler())
	a.t.Cleanup(func() {
		a.live.Close()
		srv.Close()
	})
	return srv.URL
}

func (b *browser) stream(base, target string, change ...func(*http.Request)) *stream {
	b.w.t.Helper()
	ctx, cancel := context.WithCancel(b.w.t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, base+target, nil)
	must(b.w.t, err)
	r.Host = strings.TrimPrefix(issuer, "https://")
	for k, v := range b.cookies {
		r.AddCookie(&http.Cookie{Name: k, Value: v})
	}
	for _, f := range change {
		f(r)
	}
	tr := &http.Transport{}
	res, err := tr.RoundTrip(r)
	must(b.w.t, err)
	s := &stream{t: b.w.t, status: res.StatusCode, header: res.Header, lines: bufio.NewScanner(res.Body), close: func() {
		cancel()
		_ = res.Body.Close()
		tr.CloseIdleConnections()
	}}
	b.w.t.Cleanup(s.close)
	if s.status == http.StatusOK {
		s.until(": hello")
	}
	return s
}

// until reads up to a line with a prefix and returns it; "" if the stream ends.
func (s *stream) until(prefix string) string {
	s.t.Helper()
	for s.lines.Scan() {
		if strings.HasPrefix(s.lines.Text(), prefix) {
			return s.lines.Text()
		}
	}
	return ""
}

// rest reads to the end.
func (s *stream) rest() string {
	s.t.Helper()
	var b strings.Builder
	for s.lines.Scan() {
		b.WriteString(s.lines.Text() + "\n")
	}
	return b.String()
}

// blob is the content that a file of ada's space has.
func (a *active) blob(path string) space.BlobID {
	a.t.Helper()
	b, _, _, err := a.git.Blob(a.t.Context(), a.space.ID, "", space.Path(path))
	must(a.t, err)
	return b
}
