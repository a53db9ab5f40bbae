package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"satchel/auth/store"
	"satchel/internal/service"
	"satchel/internal/space"
)

const (
	// streamWrite is the maximum time of a write to a browser that does not read.
	streamWrite = 30 * time.Second
	// missedEvents is how many missed commits a page can get when it reconnects. If a page
	// missed more, it must reload.
	missedEvents = 50
)

// liveEvent is a commit in a stream. The page loads the rest from the server.
type liveEvent struct {
	Commit space.CommitID `json:"commit"`
	Tool   string         `json:"tool,omitempty"`
	Client string         `json:"client,omitempty"`
	Files  int            `json:"files,omitempty"` // 0 if unknown
}

// Events is GET /spaces/{id}/events: a server-sent event for each commit, with its ID. A
// browser that reconnects sends the last ID that it saw; a new page sends, in ?since=, the
// commit that it shows.
func (s *Site) Events(v *Visit) error {
	m, err := s.Space(v)
	if err != nil {
		return err
	}
	if v.R.Method == http.MethodHead {
		return nil
	}
	ctx, sub, leave := s.Live.subscribe(v.R.Context(), v.User.ID, v.Session.ID, m.ID)
	if sub == nil {
		return tooManyStreams(v)
	}
	defer leave()
	since := v.R.Header.Get("Last-Event-ID")
	if since == "" {
		since = v.R.URL.Query().Get("since")
	}
	// The history is read after the subscription, so that no commit is missed in between.
	missed, whole := missedSince(ctx, m, since)

	t := newEventStream(v.W)
	t.say("retry: 5000\n: hello\n\n")
	if !whole {
		t.say("event: reload\ndata: {}\n\n")
	}
	for _, c := range slices.Backward(missed) {
		t.commit(c)
	}
	beat := time.NewTicker(s.Live.o.Heartbeat)
	defer beat.Stop()
	for t.err == nil {
		var e *space.Event
		select {
		case <-ctx.Done():
			return nil
		case <-sub.lost:
			t.say("event: reload\ndata: {}\n\n")
			return nil
		case <-beat.C:
		case got := <-sub.events:
			e = &got
		}
		if !s.StillIn(ctx, v, m.ID) {
			return nil
		}
		if e == nil {
			t.say(": here\n\n")
		} else if !slices.ContainsFunc(missed, func(c space.Commit) bool { return c.ID == e.Commit.ID }) {
			t.commit(e.Commit)
		}
	}
	return nil
}

// missedSince returns the commits after since, newest first. whole is false if there are too
// many, since is not in the history, or the history cannot be read.
func missedSince(ctx context.Context, m service.View, since string) (_ []space.Commit, whole bool) {
	if since == "" {
		return nil, true
	}
	list, err := m.Log(ctx, space.LogQuery{Limit: missedEvents + 1})
	if err != nil {
		return nil, false
	}
	i := slices.IndexFunc(list, func(c space.Commit) bool { return string(c.ID) == since })
	if i < 0 {
		return nil, false
	}
	return list[:i], true
}

// StillIn reports whether the visitor's session and membership are still valid. It does
// not count as a visit, so that an open page does not keep a session alive.
func (s *Site) StillIn(ctx context.Context, v *Visit, id space.SpaceID) bool {
	if !s.stillSignedIn(ctx, v) {
		return false
	}
	all, err := s.Accounts.SpacesOf(ctx, v.User.ID)
	return err == nil && slices.ContainsFunc(all, func(m store.Membership) bool { return m.ID == id })
}

// stillSignedIn reports whether the visitor's session is still valid, without counting as a visit.
func (s *Site) stillSignedIn(ctx context.Context, v *Visit) bool {
	sessions, err := s.Accounts.Sessions(ctx, v.User.ID)
	return err == nil && slices.ContainsFunc(sessions, func(o store.Session) bool { return o.ID == v.Session.ID })
}

// eventStream writes events until a write fails.
type eventStream struct {
	w   http.ResponseWriter
	rc  *http.ResponseController
	err error
}

// newEventStream begins the answer.
func newEventStream(w http.ResponseWriter) *eventStream {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // keeps nginx from buffering
	w.WriteHeader(http.StatusOK)
	return &eventStream{w: w, rc: http.NewResponseController(w)}
}

func tooManyStreams(v *Visit) error {
	v.W.Header().Set("Retry-After", "60")
	http.Error(v.W, "You have too many pages open that update automatically. Reload this one to see what changed.", http.StatusServiceUnavailable)
	return nil
}

// event writes an event whose data is JSON, which has no line breaks.
func (t *eventStream) event(name string, data any) {
	text, err := json.Marshal(data)
	if err != nil {
		t.err = err
		return
	}
	t.say(fmt.Sprintf("event: %s\ndata: %s\n\n", name, text))
}

func (t *eventStream) say(text string) {
	if t.err != nil {
		return
	}
	_ = t.rc.SetWriteDeadline(time.Now().Add(streamWrite)) // not every connection supports deadlines
	if _, t.err = fmt.Fprint(t.w, text); t.err == nil {
		t.err = t.rc.Flush()
	}
}

func (t *eventStream) commit(c space.Commit) {
	data, err := json.Marshal(liveEvent{Commit: c.ID, Tool: Shorten(c.Tool, 80), Client: Shorten(c.Client, 80), Files: len(c.Files)})
	if err != nil || strings.ContainsAny(string(data), "\r\n") {
		return
	}
	t.say(fmt.Sprintf("id: %s\nevent: commit\ndata: %s\n\n", c.ID, data))
}
