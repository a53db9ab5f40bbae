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
	"satchel/internal/space"
)

const (
	// streamWrite bounds one write to a browser that does not read.
	streamWrite = 30 * time.Second
	// missedEvents is how many commits a page that comes back is told of; where
	// there are more it is to load again.
	missedEvents = 50
)

// liveEvent is what a stream says of a commit. The page gets the rest from the
// server, as anybody does who looks.
type liveEvent struct {
	Commit space.CommitID `json:"commit"`
	Tool   string         `json:"tool,omitempty"`
	Client string         `json:"client,omitempty"`
	Files  int            `json:"files,omitempty"` // 0: it is not told
}

// Events is GET /spaces/{id}/events: server-sent events, one for each commit, with
// its id. A browser that comes back says which it saw last; a page says by
// ?since= at which commit it was made.
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
		v.W.Header().Set("Retry-After", "60")
		http.Error(v.W, "Too many pages of yours are told at once what changes. Load this one again to see it.", http.StatusServiceUnavailable)
		return nil
	}
	defer leave()
	since := v.R.Header.Get("Last-Event-ID")
	if since == "" {
		since = v.R.URL.Query().Get("since")
	}
	// After the subscription, so that nothing falls in between.
	missed, whole := s.missed(ctx, m.ID, since)

	h := v.W.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // nginx would keep it back
	v.W.WriteHeader(http.StatusOK)
	t := &eventStream{w: v.W, rc: http.NewResponseController(v.W)}
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

// missed returns the commits after one, newest first; whole is false if there
// are too many, or where what since names is no commit of the history.
func (s *Site) missed(ctx context.Context, id space.SpaceID, since string) (_ []space.Commit, whole bool) {
	if since == "" {
		return nil, true
	}
	list, err := s.History.Log(ctx, id, space.LogQuery{Limit: missedEvents + 1})
	if err != nil {
		return nil, false
	}
	i := slices.IndexFunc(list, func(c space.Commit) bool { return string(c.ID) == since })
	if i < 0 {
		return nil, false
	}
	return list[:i], true
}

// StillIn reports whether the visitor's session and membership are good now. It does
// not count as a visit, so that an open page keeps no session alive.
func (s *Site) StillIn(ctx context.Context, v *Visit, id space.SpaceID) bool {
	sessions, err := s.Accounts.Sessions(ctx, v.User.ID)
	if err != nil || !slices.ContainsFunc(sessions, func(o store.Session) bool { return o.ID == v.Session.ID }) {
		return false
	}
	all, err := s.Accounts.SpacesOf(ctx, v.User.ID)
	return err == nil && slices.ContainsFunc(all, func(m store.Membership) bool { return m.ID == id })
}

// eventStream writes until that fails.
type eventStream struct {
	w   http.ResponseWriter
	rc  *http.ResponseController
	err error
}

func (t *eventStream) say(text string) {
	if t.err != nil {
		return
	}
	_ = t.rc.SetWriteDeadline(time.Now().Add(streamWrite)) // where the connection has any
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
