package web

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"satchel/internal/service"
	"satchel/internal/space"
)

// Follow answers with server-sent events about the space with an ID. next blocks until there is
// news, and returns the event's name and its data for JSON. If ctx ends first, next returns the
// error of ctx, and the stream goes on. The stream ends when next returns another error, or when
// the visitor leaves or is signed out.
func (s *Site) Follow(v *Visit, id space.SpaceID, next func(ctx context.Context) (event string, data any, err error)) error {
	if v.R.Method == http.MethodHead {
		return nil
	}
	ctx, sub, leave := s.Live.subscribe(v.R.Context(), v.User.ID, v.Session.ID, id)
	if sub == nil {
		return tooManyStreams(v)
	}
	defer leave()
	t := newEventStream(v.W)
	t.say("retry: 5000\n: hello\n\n")
	for t.err == nil && ctx.Err() == nil {
		beat, end := context.WithTimeout(ctx, s.Live.o.Heartbeat)
		name, data, err := next(beat)
		end()
		if !s.stillSignedIn(ctx, v) {
			return nil
		}
		switch {
		case err == nil:
			t.event(name, data)
		case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
			t.say(": here\n\n")
		default:
			return nil
		}
	}
	return nil
}

// stepEvery limits how often a page learns of progress.
const stepEvery = 200 * time.Millisecond

// Work performs a long operation of a form. If a script of the page sent the form, the answer is a
// stream with the operation's steps in words. The stream ends with the next page or its address.
// Without the script, the answer is the next page. The operation ends if the visitor leaves.
func (s *Site) Work(v *Visit, do Handler) error {
	if !strings.Contains(v.R.Header.Get("Accept"), "text/event-stream") {
		return do(v)
	}
	t := newEventStream(v.W)
	var mu sync.Mutex
	var last time.Time
	ctx := service.WithProgress(v.R.Context(), func(step string) {
		mu.Lock()
		defer mu.Unlock()
		if now := time.Now(); now.Sub(last) >= stepEvery {
			last = now
			t.event("step", step)
		}
	})
	kept := &keptPage{header: http.Header{}}
	inner := *v
	inner.W, inner.R = kept, v.R.WithContext(ctx)
	inner.R.Header = v.R.Header.Clone()
	inner.R.Header.Del("Accept-Encoding") // the page is part of a stream
	if err := do(&inner); err != nil {
		s.Fail(&inner, err)
	}
	mu.Lock()
	defer mu.Unlock()
	if to := kept.header.Get("Location"); to != "" {
		t.event("go", to)
	} else {
		t.event("page", kept.body.String())
	}
	return nil
}

// keptPage keeps an answer, to send it in an event.
type keptPage struct {
	header http.Header
	body   bytes.Buffer
}

func (k *keptPage) Header() http.Header         { return k.header }
func (k *keptPage) WriteHeader(int)             {}
func (k *keptPage) Write(p []byte) (int, error) { return k.body.Write(p) }
