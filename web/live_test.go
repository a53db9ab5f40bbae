package web_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"satchel/auth/store"
	"satchel/internal/space"
	"satchel/web"
)

// sessionOf returns the ID of the only session of a browser's user.
func (a *active) sessionOf(u store.User) string {
	a.t.Helper()
	all, err := a.Sessions(a.t.Context(), u.ID)
	must(a.t, err)
	if len(all) != 1 {
		a.t.Fatalf("%d sessions", len(all))
	}
	return all[0].ID
}

func TestStreamTellsOfCommits(t *testing.T) {
	a := newActive(t, web.LiveOptions{})
	base := a.serve()
	start := a.head()
	s := a.as(a.bob).stream(base, a.in("events?since=%s", start))
	if s.header.Get("Content-Type") != "text/event-stream" || s.header.Get("Cache-Control") != "no-store" {
		t.Error(s.header)
	}
	c := a.by("claude\ncode\u202e\"<b>", "A message that is nobody's business here", "a.md", "secret text")
	if got := s.until("id: "); got != "id: "+string(c.ID) {
		t.Error(got)
	}
	if got := s.until("data: "); got != `data: {"commit":"`+string(c.ID)+`","tool":"bash","client":"claude code\"\u003cb\u003e","files":1}` {
		t.Error(got)
	}
	// Events of other spaces are not sent.
	_, err := a.git.Commit(t.Context(), a.evil.ID, space.ChangeSet{Changes: []space.Change{{Path: "x", Content: []byte("x")}}}, space.Meta{Client: "eves"})
	must(t, err)
	last := a.by("cursor", "", "b.md", "b")
	if got := s.until("id: "); got != "id: "+string(last.ID) {
		t.Error(got)
	}
	// A browser that reconnects gets the commits that it missed, in order and once.
	for name, how := range map[string]func(*http.Request){
		"as browsers do": func(r *http.Request) { r.Header.Set("Last-Event-ID", string(c.ID)) },
		"as a page does": func(r *http.Request) { r.URL.RawQuery = "since=" + string(c.ID) },
	} {
		s := a.as(a.ada).stream(base, a.in("events"), how)
		if got := s.until("id: "); got != "id: "+string(last.ID) {
			t.Errorf("%s: %s", name, got)
		}
	}
	for name, since := range map[string]string{"a commit that is none": strings.Repeat("0", 40), "another's": "x\u2028y", "a name": "HEAD"} {
		s := a.as(a.ada).stream(base, a.in("events"), func(r *http.Request) { r.Header.Set("Last-Event-ID", since) })
		if got := s.until("event: "); got != "event: reload" {
			t.Errorf("%s: %s", name, got)
		}
	}
	for i := range 60 {
		a.by("claude-code", "", "n.md", fmt.Sprint(i))
	}
	s = a.as(a.ada).stream(base, a.in("events?since=%s", start))
	if got := s.until("event: "); got != "event: reload" {
		t.Errorf("too many: %s", got)
	}
}

// Attack: a stream continues after access is lost. Nothing is written then, even if nobody
// ends the stream.
func TestStreamEndsWithTheRight(t *testing.T) {
	for name, end := range map[string]func(a *active){
		"signed out": func(a *active) {
			must(t, a.EndSession(t.Context(), cli, a.bob.ID, a.sessionOf(a.bob)))
		},
		"the session is over": func(a *active) { a.pass(365 * 24 * time.Hour) },
		"no longer a member":  func(a *active) { must(t, a.RemoveMember(t.Context(), cli, a.space.ID, a.bob.ID)) },
		"removed": func(a *active) {
			must(t, a.RemoveUser(t.Context(), cli, a.bob.ID))
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := newActive(t, web.LiveOptions{})
			s := a.as(a.bob).stream(a.serve(), a.in("events"))
			end(a)
			c := a.by("claude-code", "", "a.md", "a")
			if rest := s.rest(); strings.Contains(rest, string(c.ID)) {
				t.Errorf("it goes on: %s", rest)
			}
		})
	}
	t.Run("ended by the server", func(t *testing.T) {
		a := newActive(t, web.LiveOptions{})
		base := a.serve()
		bob, ada := a.as(a.bob).stream(base, a.in("events")), a.as(a.ada).stream(base, a.in("events"))
		a.live.End(a.bob.ID, a.evil.ID) // another space's
		a.live.End(a.bob.ID, a.space.ID)
		bob.rest()
		c := a.by("claude-code", "", "a.md", "a")
		if got := ada.until("id: "); got != "id: "+string(c.ID) {
			t.Errorf("others' streams end too: %q", got)
		}
		a.live.End(a.ada.ID, "")
		ada.rest()
	})
	t.Run("of all other sessions", func(t *testing.T) {
		a := newActive(t, web.LiveOptions{})
		base := a.serve()
		here, there := a.as(a.bob), a.as(a.bob)
		kept, ended, ada := here.stream(base, a.in("events")), there.stream(base, a.in("events")), a.as(a.ada).stream(base, a.in("events"))
		want(t, "end others", here.send("/account/sessions/end-others", nil), http.StatusSeeOther)
		ended.rest()
		c := a.by("claude-code", "", "a.md", "a")
		for name, s := range map[string]*stream{"of this browser": kept, "of somebody else": ada} {
			if got := s.until("id: "); got != "id: "+string(c.ID) {
				t.Errorf("the stream %s ends too: %q", name, got)
			}
		}
	})
	t.Run("the heartbeat looks too", func(t *testing.T) {
		a := newActive(t, web.LiveOptions{Heartbeat: time.Millisecond})
		s := a.as(a.bob).stream(a.serve(), a.in("events"))
		if s.until(": here") == "" {
			t.Error("there is none")
		}
		must(t, a.EndSession(t.Context(), cli, a.bob.ID, a.sessionOf(a.bob)))
		s.rest()
	})
}

// An open page is not a visit, and does not keep a session alive.
func TestStreamKeepsNoSessionAlive(t *testing.T) {
	a := newActive(t, web.LiveOptions{Heartbeat: time.Millisecond})
	s := a.as(a.bob).stream(a.serve(), a.in("events"))
	for day := range 60_000 { // a look at the session may be some of them late
		if day < 60 {
			a.pass(24 * time.Hour)
		}
		if s.until(": here") == "" {
			return // the session is over
		}
	}
	t.Error("it lives on by its stream")
}

// Attack: endless streams.
func TestStreamsAreBounded(t *testing.T) {
	a := newActive(t, web.LiveOptions{MaxStreams: 2})
	base := a.serve()
	b := a.as(a.bob)
	first := b.stream(base, a.in("events"))
	b.stream(base, a.in("events"))
	if s := b.stream(base, a.in("events")); s.status != http.StatusServiceUnavailable || s.header.Get("Retry-After") == "" || !strings.HasPrefix(s.header.Get("Content-Type"), "text/plain") {
		t.Errorf("the third: %d %v", s.status, s.header)
	}
	if s := a.as(a.ada).stream(base, a.in("events")); s.status != http.StatusOK {
		t.Error("others have none left")
	}
	first.close()
	for a.live.Streams() > 2 { // until the server has seen it
		a.by("claude-code", "", "a.md", fmt.Sprint(a.clock()))
	}
	if s := b.stream(base, a.in("events")); s.status != http.StatusOK {
		t.Error("one that ended counts")
	}
	none := newActive(t, web.LiveOptions{MaxStreams: -1})
	if s := none.as(none.ada).stream(none.serve(), none.in("events")); s.status != http.StatusServiceUnavailable {
		t.Errorf("none are allowed: %d", s.status)
	}
}

// blocked is a browser that does not read.
type blocked struct {
	header  http.Header
	release chan struct{}
	wrote   chan string
	first   bool
}

func (w *blocked) Header() http.Header { return w.header }
func (w *blocked) WriteHeader(int)     {}
func (w *blocked) Flush()              {}
func (w *blocked) Write(p []byte) (int, error) {
	w.wrote <- string(p)
	if !w.first {
		w.first = true
		<-w.release
	}
	return len(p), nil
}

// Attack: a browser that does not read delays nobody, and must reload.
func TestSlowStreamIsDropped(t *testing.T) {
	a := newActive(t, web.LiveOptions{})
	w := &blocked{header: http.Header{}, release: make(chan struct{}), wrote: make(chan string, 1000)}
	b := a.as(a.bob)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, issuer+a.in("events"), nil)
	must(t, err)
	for k, v := range b.cookies {
		r.AddCookie(&http.Cookie{Name: k, Value: v})
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.server.Handler().ServeHTTP(w, r)
	}()
	<-w.wrote // it is there, and stuck
	for i := range 200 {
		a.live.Publish(space.Event{Space: a.space.ID, Commit: space.Commit{ID: space.CommitID(fmt.Sprintf("%040d", i))}})
	}
	close(w.release)
	<-done
	close(w.wrote)
	var all strings.Builder
	for s := range w.wrote {
		all.WriteString(s)
	}
	if !strings.HasSuffix(all.String(), "event: reload\ndata: {}\n\n") {
		t.Error(all.String())
	}
	if a.live.Streams() != 0 {
		t.Error("it is still there")
	}
}

// When the server closes, streams end, and no new ones begin.
func TestStreamsEndWithTheServer(t *testing.T) {
	a := newActive(t, web.LiveOptions{})
	base := a.serve()
	s := a.as(a.ada).stream(base, a.in("events"))
	a.live.Close()
	s.rest()
	if s := a.as(a.ada).stream(base, a.in("events")); s.status != http.StatusServiceUnavailable {
		t.Error(s.status)
	}
	a.live.Publish(space.Event{Space: a.space.ID})
}
