package web_test

import (
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"satchel/internal/space"
	"satchel/web"
)

// unread is a browser that reads nothing: each write waits for a deadline in the past.
type unread struct {
	header http.Header
	began  chan struct{}
	past   chan struct{}
	once   sync.Once

	deadline time.Time
	took     atomic.Int64 // bytes, of the writes that were let through
	wrote    func(p []byte) bool
	status   atomic.Int64
	told     strings.Builder
}

func newUnread() *unread {
	return &unread{header: http.Header{}, began: make(chan struct{}, 1), past: make(chan struct{})}
}

func (w *unread) Header() http.Header { return w.header }
func (w *unread) WriteHeader(s int)   { w.status.Store(int64(s)) }
func (w *unread) SetWriteDeadline(at time.Time) error {
	w.deadline = at
	if !at.IsZero() && at.Before(time.Unix(2, 0)) {
		w.once.Do(func() { close(w.past) })
	}
	return nil
}

func (w *unread) Write(p []byte) (int, error) {
	if w.status.Load() >= 400 {
		w.told.Write(p)
		return len(p), nil
	}
	if w.wrote != nil && w.wrote(p) {
		w.took.Add(int64(len(p)))
		return len(p), nil
	}
	select {
	case w.began <- struct{}{}:
	default:
	}
	<-w.past
	return 0, net.ErrClosed
}

// download begins a download; done is closed when the handler returns.
func (a *active) download(b *browser, path string, w *unread) (done chan struct{}) {
	a.t.Helper()
	r, err := http.NewRequestWithContext(a.t.Context(), http.MethodGet, issuer+a.in("%s", path), nil)
	must(a.t, err)
	for k, v := range b.cookies {
		r.AddCookie(&http.Cookie{Name: k, Value: v})
	}
	done = make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if e := recover(); e != nil && e != http.ErrAbortHandler {
				a.t.Error(e)
			}
		}()
		a.server.Handler().ServeHTTP(w, r)
	}()
	return done
}

// noise writes a file that does not compress.
func (a *active) noise() {
	a.t.Helper()
	b := make([]byte, 1<<20)
	for i := range b {
		b[i] = byte(rand.Uint32())
	}
	_, err := a.git.Commit(a.t.Context(), a.space.ID, space.ChangeSet{Changes: []space.Change{{Path: "noise.bin", Content: b}}}, space.Meta{})
	must(a.t, err)
}

// Attack: a download continues after the person lost access.
func TestAttackDownloadEndsWithTheRight(t *testing.T) {
	for name, end := range map[string]func(a *active, b *browser){
		"no longer a member": func(a *active, _ *browser) { a.live.End(a.bob.ID, a.space.ID) },
		"removed":            func(a *active, _ *browser) { a.live.End(a.bob.ID, "") },
		"the server stops":   func(a *active, _ *browser) { a.live.Close() },
		"signed out":         func(a *active, b *browser) { want(a.t, "sign out", b.send("/signout", nil), http.StatusSeeOther) },
		"signed out everywhere else": func(a *active, _ *browser) {
			want(a.t, "end others", a.as(a.bob).send("/account/sessions/end-others", nil), http.StatusSeeOther)
		},
	} {
		for _, path := range []string{"download/zip", "download/bundle", "raw/noise.bin"} {
			t.Run(name+", "+path, func(t *testing.T) {
				a := newActive(t, web.LiveOptions{})
				a.noise()
				b, w, others := a.as(a.bob), newUnread(), newUnread()
				done, ada := a.download(b, path, w), a.download(a.as(a.ada), path, others)
				<-w.began
				<-others.began
				a.live.End(a.bob.ID, a.evil.ID) // another space's
				select {
				case <-w.past:
					t.Error("it ends with another space")
				default:
				}
				end(a, b)
				<-done
				if name != "the server stops" {
					select {
					case <-others.past:
						t.Error("another's ended too")
					default:
					}
				}
				a.live.Close()
				<-ada
			})
		}
	}
	t.Run("whether or not anybody ends it", func(t *testing.T) {
		a := newActive(t, web.LiveOptions{Heartbeat: time.Nanosecond})
		a.noise()
		w := newUnread()
		w.wrote = func([]byte) bool {
			if w.took.Load() == 0 {
				must(t, a.RemoveMember(t.Context(), cli, a.space.ID, a.bob.ID))
			}
			return true
		}
		w.wrote = func(w0 func([]byte) bool) func([]byte) bool {
			return func(p []byte) bool { defer a.pass(time.Second); return w0(p) }
		}(w.wrote)
		<-a.download(a.as(a.bob), "download/zip", w)
		if n := w.took.Load(); n == 0 || n > 512<<10 {
			t.Errorf("%d bytes came", n)
		}
	})
}

// Attack: a download is read just fast enough to stay open.
func TestAttackSlowDownloadEnds(t *testing.T) {
	for _, tc := range []struct {
		name  string
		every time.Duration // 32 KiB
		ends  bool
	}{{"1 KiB a second", 32 * time.Second, true}, {"32 KiB a second", time.Second, false}} {
		t.Run(tc.name, func(t *testing.T) {
			a := newActive(t, web.LiveOptions{Heartbeat: 1000 * time.Hour})
			a.noise()
			w := newUnread()
			w.wrote = func(p []byte) bool {
				a.pass(tc.every * time.Duration(len(p)) / (32 << 10))
				return true
			}
			<-a.download(a.as(a.bob), "download/zip", w)
			if ended := w.took.Load() < 1<<20; ended != tc.ends {
				t.Errorf("it took %d bytes", w.took.Load())
			}
		})
	}
}

// Attack: a person opens downloads without reading them until the server runs out of
// memory.
func TestAttackManyDownloads(t *testing.T) {
	a := newActive(t, web.LiveOptions{MaxDownloads: 2, MaxAllDownloads: 3})
	a.noise()
	var open []chan struct{}
	unreadBy := func(b *browser) *unread {
		w := newUnread()
		open = append(open, a.download(b, "download/zip", w))
		<-w.began
		return w
	}
	bob, ada := a.as(a.bob), a.as(a.ada)
	unreadBy(bob)
	unreadBy(bob)
	for _, kind := range []string{"zip", "bundle"} {
		r := bob.get(a.in("download/%s", kind))
		want(t, "the third of one person", r, http.StatusTooManyRequests)
		if !strings.Contains(r.body, "2 downloads") || r.Header.Get("Retry-After") == "" {
			t.Error(r.Header, r.body)
		}
	}
	unreadBy(ada)
	r := ada.get(a.in("download/zip"))
	want(t, "the fourth of all", r, http.StatusServiceUnavailable)
	if !strings.Contains(r.body, "Too many people") {
		t.Error(r.body)
	}
	a.live.End(a.bob.ID, "")
	<-open[0]
	<-open[1]
	want(t, "once others ended", ada.get(a.in("download/zip")), http.StatusOK)
	a.live.Close()
	<-open[2]
	want(t, "of a server that stops", ada.get(a.in("download/zip")), http.StatusServiceUnavailable)
}

// The pictures of a page wait for each other instead of failing.
func TestRawFilesWaitForEachOther(t *testing.T) {
	a := newActive(t, web.LiveOptions{MaxDownloads: 1})
	a.noise()
	b := a.as(a.bob)
	var first []*unread
	var done []chan struct{}
	for range 4 {
		w := newUnread()
		first, done = append(first, w), append(done, a.download(b, "raw/noise.bin", w))
		<-w.began
	}
	w := newUnread()
	w.wrote = func([]byte) bool { return true }
	last := a.download(b, "raw/noise.bin", w)
	must(t, first[0].SetWriteDeadline(time.Unix(1, 0)))
	<-last
	if w.took.Load() != 1<<20 {
		t.Errorf("%d bytes, %d", w.took.Load(), w.status.Load())
	}
	a.live.Close()
	for _, d := range done[1:] {
		<-d
	}
}

// A connection can be reused after a download.
func TestConnectionAfterADownload(t *testing.T) {
	a := newActive(t, web.LiveOptions{})
	w := newUnread()
	w.wrote = func([]byte) bool { return true }
	<-a.download(a.as(a.bob), "download/zip", w)
	if w.took.Load() == 0 || w.deadline != (time.Time{}) {
		t.Errorf("after %d bytes it is good until %s", w.took.Load(), w.deadline)
	}
}
