package mcp

import (
	"container/list"
	"context"
	"sync"
	"time"

	protocol "github.com/mark3labs/mcp-go/mcp"

	"satchel/auth"
	"satchel/internal/space"
	"satchel/tools"
)

// session is what the server keeps after a legacy client's initialize handshake, such as the
// client's description of itself. mcp-go keeps nothing.
type session struct {
	id         string
	user       space.UserID
	grant      space.GrantID
	version    string
	client     clientInfo
	subscriber *subscriber
	// conversation is the state that the tools keep for the session.
	conversation tools.Conversation

	// The fields below are guarded by sessions.mu.
	used   time.Time
	active int                              // calls and streams in progress; an active session does not expire
	calls  map[string]context.CancelFunc    // cancel functions of the calls, by request id
	ends   map[*context.CancelFunc]struct{} // cancel functions of the calls and streams in progress
	stream context.CancelFunc               // ends the listening stream; nil if there was none
	least  protocol.LoggingLevel            // lowest level of log messages to send; empty for none
	mine   *list.Element                    // the session's element in sessions.byUser
	all    *list.Element                    // the session's element in sessions.order
}

// sessions holds the legacy sessions. Their number is limited for each user and in total. create
// and get remove the expired sessions at the front of order, so no goroutine has to.
type sessions struct {
	o           Options
	subscribers *subscribers
	mu          sync.Mutex
	byID        map[string]*session
	byUser      map[space.UserID]*list.List // of *session, least recently used first
	order       *list.List                  // sessions of all users, least recently used first
}

func newSessions(o Options, w *subscribers) *sessions {
	return &sessions{o: o, subscribers: w, byID: make(map[string]*session), byUser: make(map[space.UserID]*list.List), order: list.New()}
}

// create creates a session of p's grant. If p's user or the server has too many sessions,
// the least recently used one ends.
func (t *sessions) create(p auth.Principal, version string, c clientInfo) *session {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.expire()
	s := &session{id: newToken(), user: p.User, grant: p.Grant, version: version, client: c, used: t.o.Now(),
		subscriber: newSubscriber(p.Space, resourceListChanged(), promptListChanged()),
		calls:      make(map[string]context.CancelFunc), ends: make(map[*context.CancelFunc]struct{})}
	l := t.byUser[p.User]
	if l == nil {
		l = list.New()
		t.byUser[p.User] = l
	}
	s.mine, s.all = l.PushBack(s), t.order.PushBack(s)
	t.byID[s.id] = s
	t.subscribers.add(s.subscriber)
	for l.Len() > t.o.MaxSessions {
		t.remove(l.Front().Value.(*session))
	}
	for t.order.Len() > t.o.MaxAllSessions {
		t.remove(t.order.Front().Value.(*session))
	}
	return s
}

// get returns the session with this id if p's grant created it.
func (t *sessions) get(p auth.Principal, id string) (*session, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.expire()
	s := t.byID[id]
	if s == nil || s.user != p.User || s.grant != p.Grant {
		return nil, false
	}
	s.used = t.o.Now()
	t.byUser[s.user].MoveToBack(s.mine)
	t.order.MoveToBack(s.all)
	return s, true
}

// end removes a session and cancels its calls and streams.
func (t *sessions) end(s *session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.remove(s)
}

func (t *sessions) remove(s *session) {
	if t.byID[s.id] != s {
		return
	}
	delete(t.byID, s.id)
	t.subscribers.remove(s.subscriber)
	l := t.byUser[s.user]
	l.Remove(s.mine)
	if l.Len() == 0 {
		delete(t.byUser, s.user)
	}
	t.order.Remove(s.all)
	for cancel := range s.ends {
		(*cancel)()
	}
}

func (t *sessions) expire() {
	for e := t.order.Front(); e != nil; {
		s := e.Value.(*session)
		if t.o.Now().Sub(s.used) < t.o.SessionTTL {
			return
		}
		e = e.Next()
		if s.active == 0 {
			t.remove(s)
		}
	}
}

// begin adds a call or stream to the session. When the session ends, cancel is called. If
// requestID is given, withdraw is called when the client cancels that request. The returned
// function removes the call or stream.
func (t *sessions) begin(s *session, requestID string, cancel, withdraw context.CancelFunc) func() {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := &cancel
	if t.byID[s.id] != s {
		cancel() // the session ended after get
		return func() {}
	}
	s.active++
	s.ends[key] = struct{}{}
	if requestID != "" {
		s.calls[requestID] = withdraw
	}
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		s.active--
		s.used = t.o.Now()
		delete(s.ends, key)
		if requestID != "" {
			delete(s.calls, requestID)
		}
	}
}

// cancel ends the request with this id in the session, if there is one.
func (t *sessions) cancel(s *session, requestID string) {
	t.mu.Lock()
	cancel := s.calls[requestID]
	t.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// listen begins a listening stream, which cancel ends. A session has one stream at a time: a
// client that opens another stream has lost the previous one.
func (t *sessions) listen(s *session, cancel context.CancelFunc) (end func()) {
	t.mu.Lock()
	if s.stream != nil {
		s.stream()
	}
	s.stream = cancel
	t.mu.Unlock()
	return t.begin(s, "", cancel, nil)
}

func (t *sessions) setLevel(s *session, least protocol.LoggingLevel) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.least = least
}

func (t *sessions) level(s *session) protocol.LoggingLevel {
	t.mu.Lock()
	defer t.mu.Unlock()
	return s.least
}

func (t *sessions) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.byID)
}
