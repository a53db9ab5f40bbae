package app_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"satchel/auth/github/app"
	"satchel/auth/github/apptest"
)

// stalled is a body that reports when it is read, and ends only when the test lets it.
type stalled struct {
	ctx  context.Context
	read func() // called once
}

func (s stalled) Read([]byte) (int, error) {
	s.read()
	<-s.ctx.Done()
	return 0, io.ErrUnexpectedEOF
}

// forged returns an event with a signature of the right form.
func forged(from string, body io.Reader, length int64) *http.Request {
	r := httptest.NewRequest(http.MethodPost, app.PathWebhook, body)
	r.ContentLength, r.RemoteAddr = length, from
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Hub-Signature-256", "sha256="+strings.Repeat("a", 64))
	return r
}

func answer(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	return rec
}

// delivered returns a signed event from an address.
func delivered(d apptest.Delivery, from string) *http.Request {
	r := forged(from, bytes.NewReader(d.Body), int64(len(d.Body)))
	r.Header.Set("X-Hub-Signature-256", d.Signature)
	r.Header.Set("X-GitHub-Event", d.Event)
	r.Header.Set("X-GitHub-Delivery", d.ID)
	return r
}

// Attack: a server without an App receives bodies, although it expects no events.
func TestAttackWebhookBodyWithoutApp(t *testing.T) {
	w := newWorld(t)
	if rec := answer(w.Webhook(), forged("a", untouched{t}, 1<<20)); rec.Code != http.StatusNotFound {
		t.Errorf("%d", rec.Code)
	}
}

// Attack: bodies with a signature of the right form never end. The server holds only a
// limited count and size of them. One address gets a quarter. GitHub's own events find room.
func TestAttackWebhookBodiesHeld(t *testing.T) {
	for _, c := range []struct {
		name                string
		most                int
		bytes               int64
		size                int64
		ofOne, ofAll, addrs int // bodies that are held
	}{
		{"places", 8, 1 << 30, 1000, 2, 8, 6},
		{"bytes", 1000, 80_000, 10_000, 2, 8, 6},
		{"of no length", 1000, 8 << 20, -1, 2, 8, 6},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, d, _ := suspensionWith(t, func(o *app.Options) {
				o.MaxWebhooks, o.MaxWebhookBytes, o.WebhookTimeout = c.most, c.bytes, 50*time.Millisecond
				o.Address = func(r *http.Request) string { return r.RemoteAddr }
			})
			ctx, let := context.WithCancel(t.Context())
			var work sync.WaitGroup
			defer work.Wait()
			defer let()
			h := w.Webhook()
			// try sends an event, and returns when it is held or refused.
			try := func(from string) (held bool) {
				done := make(chan bool, 2)
				work.Go(func() {
					rec := answer(h, forged(from, stalled{ctx, sync.OnceFunc(func() { done <- true })}, c.size))
					if rec.Code == http.StatusServiceUnavailable {
						if rec.Header().Get("Retry-After") == "" {
							t.Error("it is not said when to come again")
						}
						done <- false
					}
				})
				return <-done
			}
			n := 0
			for range 5 {
				if try("one") {
					n++
				}
			}
			if n != c.ofOne {
				t.Errorf("%d bodies of one address are held", n)
			}
			// GitHub's events meanwhile come from another address.
			if rec := answer(h, delivered(d, "github")); rec.Code != http.StatusAccepted {
				t.Errorf("GitHub's own: %d %s", rec.Code, rec.Body)
			}
			for i := range c.addrs {
				from := strings.Repeat("x", i+1)
				for range 2 {
					if try(from) {
						n++
					}
				}
			}
			if n != c.ofAll {
				t.Errorf("%d bodies of all are held", n)
			}
			let()
			work.Wait()
			d.ID = "once they are gone"
			if rec := answer(h, delivered(d, "one")); rec.Code != http.StatusAccepted {
				t.Errorf("once they are gone: %d %s", rec.Code, rec.Body)
			}
		})
	}
}

// Attack: an address guesses signatures, sends events where there is no App, or never ends
// its bodies. After some of them, the server reads no more from this address, but still
// reads from others.
func TestAttackWebhookGuessesAreCounted(t *testing.T) {
	limit := map[string]int{}
	change := func(o *app.Options) {
		o.Limit = func(r *http.Request, count bool) (time.Duration, bool) {
			ok := limit[r.RemoteAddr] < 3
			if ok && count {
				limit[r.RemoteAddr]++
			}
			return 7 * time.Second, ok
		}
	}
	w, d, _ := suspensionWith(t, change)
	for name, c := range map[string]struct {
		handler http.Handler
		body    func() (io.Reader, int64)
		want    int
	}{
		"a wrong signature": {w.Webhook(), func() (io.Reader, int64) { return strings.NewReader("{}"), 2 }, http.StatusUnauthorized},
		"half a body":       {w.Webhook(), func() (io.Reader, int64) { return strings.NewReader("{}"), 3 }, http.StatusBadRequest},
		"too much": {w.Webhook(), func() (io.Reader, int64) {
			return io.LimitReader(zeros{}, 2<<20), -1
		}, http.StatusRequestEntityTooLarge},
		"no App": {newWorld(t, change).Webhook(), func() (io.Reader, int64) { return untouched{t}, 2 }, http.StatusNotFound},
	} {
		for i := range 3 {
			body, n := c.body()
			if rec := answer(c.handler, forged(name, body, n)); rec.Code != c.want {
				t.Errorf("%s, %d: %d", name, i, rec.Code)
			}
		}
		rec := answer(c.handler, forged(name, untouched{t}, 2))
		if rec.Code != http.StatusTooManyRequests || rec.Header().Get("Retry-After") != "8" {
			t.Errorf("%s, after three: %d %v", name, rec.Code, rec.Header())
		}
	}
	for i := range 10 { // GitHub's events are not counted
		d.ID = strings.Repeat("g", i+1)
		if rec := answer(w.Webhook(), delivered(d, "github")); rec.Code != http.StatusAccepted {
			t.Errorf("GitHub's own, %d: %d %s", i, rec.Code, rec.Body)
		}
	}
	if limit["github"] != 0 {
		t.Errorf("%d of GitHub's own are counted", limit["github"])
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }
