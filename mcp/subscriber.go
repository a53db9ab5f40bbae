package mcp

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"sync"

	protocol "github.com/mark3labs/mcp-go/mcp"

	"satchel/auth"
	"satchel/internal/space"
	"satchel/tools"
)

// notification is a notification about a change. Only notifications/resources/updated has a
// URI.
type notification struct{ method, uri string }

// The notifications of changed lists.
func resourceListChanged() notification {
	return notification{method: protocol.MethodNotificationResourcesListChanged}
}

func promptListChanged() notification {
	return notification{method: protocol.MethodNotificationPromptsListChanged}
}

func resourceUpdated(uri string) notification {
	return notification{method: protocol.MethodNotificationResourceUpdated, uri: uri}
}

// subscriber holds the notifications that a client wants and those that are pending. Before
// protocol version 2026-07-28, each session is a subscriber. Since then, each
// subscriptions/listen request is a subscriber. A notification that is pending twice is sent
// once, so a slow client needs no queue.
type subscriber struct {
	space space.SpaceID
	// wake receives a value when a notification becomes pending.
	wake chan struct{}

	mu      sync.Mutex
	wanted  map[notification]space.Path // the path is empty for lists
	pending map[notification]bool
}

func newSubscriber(id space.SpaceID, wanted ...notification) *subscriber {
	w := &subscriber{space: id, wake: make(chan struct{}, 1), wanted: make(map[notification]space.Path), pending: make(map[notification]bool)}
	for _, n := range wanted {
		w.wanted[n] = ""
	}
	return w
}

// subscribe adds the notification of a changed file. It returns false if the subscriber already
// has max files.
func (w *subscriber) subscribe(uri string, p space.Path, max int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := resourceUpdated(uri)
	if _, ok := w.wanted[n]; !ok {
		files := 0
		for _, p := range w.wanted {
			if p != "" {
				files++
			}
		}
		if files >= max {
			return false
		}
	}
	w.wanted[n] = p
	return true
}

func (w *subscriber) unsubscribe(uri string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.wanted, resourceUpdated(uri))
	delete(w.pending, resourceUpdated(uri))
}

// note marks the wanted notifications of a change as pending.
func (w *subscriber) note(c changes) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for n, p := range w.wanted {
		if n == resourceListChanged() && c.resources || n == promptListChanged() && c.prompts || p != "" && c.paths[p] {
			w.pending[n] = true
		}
	}
	if len(w.pending) > 0 {
		w.wakeUp()
	}
}

func (w *subscriber) wakeUp() {
	select {
	case w.wake <- struct{}{}:
	default: // a value is already waiting
	}
}

// take returns the pending notifications, lists first, and marks them as no longer pending.
func (w *subscriber) take() []notification {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make([]notification, 0, len(w.pending))
	for n := range w.pending {
		all = append(all, n)
	}
	clear(w.pending)
	slices.SortFunc(all, func(a, b notification) int { return cmp.Or(cmp.Compare(a.uri, b.uri), cmp.Compare(a.method, b.method)) })
	return all
}

// changes are the parts of a commit that matter to subscribers.
type changes struct {
	resources, prompts bool
	paths              map[space.Path]bool
}

// subscribers holds all subscribers by space.
type subscribers struct {
	mu sync.Mutex
	of map[space.SpaceID]map[*subscriber]bool
}

func (t *subscribers) add(w *subscriber) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of[w.space] == nil {
		t.of[w.space] = make(map[*subscriber]bool)
	}
	t.of[w.space][w] = true
}

func (t *subscribers) remove(w *subscriber) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if delete(t.of[w.space], w); len(t.of[w.space]) == 0 {
		delete(t.of, w.space)
	}
}

var _ space.Events = (*Server)(nil)

// Publish marks the notifications of a commit as pending. It implements space.Events.
func (s *Server) Publish(e space.Event) {
	s.subscribers.mu.Lock()
	defer s.subscribers.mu.Unlock()
	if len(s.subscribers.of[e.Space]) == 0 {
		return
	}
	c := changes{paths: make(map[space.Path]bool, len(e.Commit.Files))}
	for _, f := range e.Commit.Files {
		c.paths[f.Path] = true
		resources, prompts := tools.InLists(f.Path)
		c.resources, c.prompts = c.resources || resources, c.prompts || prompts
	}
	for w := range s.subscribers.of[e.Space] {
		w.note(c)
	}
}

// deliver sends the notifications of w to out until ctx ends, or until the client may no longer
// read the space. id is the id of a subscriptions/listen request, and nil for a session.
func (s *Server) deliver(ctx context.Context, r *http.Request, p auth.Principal, w *subscriber, out *stream, id any) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
		}
		if ctx.Err() != nil || !s.mayStillRead(ctx, r, p) {
			w.wakeUp() // the session's next stream sends the notifications
			return
		}
		for _, n := range w.take() {
			out.notify(n.method, n.params(id))
		}
	}
}

// mayStillRead checks the token of a stream again. The server ends the streams of former
// members, but only after it has noticed the change. With this check, former members get no
// notification in the meantime.
func (s *Server) mayStillRead(ctx context.Context, r *http.Request, p auth.Principal) bool {
	now, err := auth.Authenticate(ctx, r, s.o.Verifier)
	return err == nil && now.User == p.User && now.Grant == p.Grant && now.Space == p.Space && now.Can(space.ScopeRead)
}

func (n notification) params(id any) map[string]any {
	params := map[string]any{}
	if id != nil {
		params["_meta"] = map[string]any{protocol.MetaKeySubscriptionID: id}
	}
	if n.uri != "" {
		params["uri"] = n.uri
	}
	return params
}
