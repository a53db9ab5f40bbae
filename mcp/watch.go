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

// notice is a notification about a change. Only a notice of
// notifications/resources/updated has a URI.
type notice struct{ method, uri string }

// The notices of changed lists.
func resourcesNotice() notice {
	return notice{method: protocol.MethodNotificationResourcesListChanged}
}

func promptsNotice() notice { return notice{method: protocol.MethodNotificationPromptsListChanged} }

func updatedNotice(uri string) notice {
	return notice{method: protocol.MethodNotificationResourceUpdated, uri: uri}
}

// watch holds the notices that a client wants and those that are due. Before protocol version
// 2026-07-28, each session has a watch. Since then, each subscriptions/listen request has one. If
// a notice becomes due twice before it is sent, it is sent once, so a slow client needs no queue.
type watch struct {
	space space.SpaceID
	// wake holds a value while a notice is due.
	wake chan struct{}

	mu     sync.Mutex
	wanted map[notice]space.Path // the path is empty for lists
	due    map[notice]bool
}

func newWatch(id space.SpaceID, wanted ...notice) *watch {
	w := &watch{space: id, wake: make(chan struct{}, 1), wanted: make(map[notice]space.Path), due: make(map[notice]bool)}
	for _, n := range wanted {
		w.wanted[n] = ""
	}
	return w
}

// subscribe adds the notice of a changed file. It returns false if the watch already has max
// files.
func (w *watch) subscribe(uri string, p space.Path, max int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := updatedNotice(uri)
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

func (w *watch) unsubscribe(uri string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.wanted, updatedNotice(uri))
	delete(w.due, updatedNotice(uri))
}

// note marks the wanted notices of a change as due.
func (w *watch) note(c changes) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for n, p := range w.wanted {
		if n == resourcesNotice() && c.resources || n == promptsNotice() && c.prompts || p != "" && c.paths[p] {
			w.due[n] = true
		}
	}
	if len(w.due) > 0 {
		w.rouse()
	}
}

func (w *watch) rouse() {
	select {
	case w.wake <- struct{}{}:
	default: // it is awake already
	}
}

// take returns the notices that are due, lists first, and marks them as no longer due.
func (w *watch) take() []notice {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make([]notice, 0, len(w.due))
	for n := range w.due {
		all = append(all, n)
	}
	clear(w.due)
	slices.SortFunc(all, func(a, b notice) int { return cmp.Or(cmp.Compare(a.uri, b.uri), cmp.Compare(a.method, b.method)) })
	return all
}

// changes are the parts of a commit that matter to watches.
type changes struct {
	resources, prompts bool
	paths              map[space.Path]bool
}

// watches holds all watches by space.
type watches struct {
	mu sync.Mutex
	of map[space.SpaceID]map[*watch]bool
}

func (t *watches) add(w *watch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of[w.space] == nil {
		t.of[w.space] = make(map[*watch]bool)
	}
	t.of[w.space][w] = true
}

func (t *watches) remove(w *watch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if delete(t.of[w.space], w); len(t.of[w.space]) == 0 {
		delete(t.of, w.space)
	}
}

var _ space.Events = (*Server)(nil)

// Publish marks the notices of a commit as due. It implements space.Events.
func (s *Server) Publish(e space.Event) {
	s.watches.mu.Lock()
	defer s.watches.mu.Unlock()
	if len(s.watches.of[e.Space]) == 0 {
		return
	}
	c := changes{paths: make(map[space.Path]bool, len(e.Commit.Files))}
	for _, f := range e.Commit.Files {
		c.paths[f.Path] = true
		resources, prompts := tools.InLists(f.Path)
		c.resources, c.prompts = c.resources || resources, c.prompts || prompts
	}
	for w := range s.watches.of[e.Space] {
		w.note(c)
	}
}

// deliver sends the notices of w to out until ctx ends, or until the client's right ends. id
// is the id of a subscriptions/listen request, and nil for a session.
func (s *Server) deliver(ctx context.Context, r *http.Request, p auth.Principal, w *watch, out *stream, id any) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
		}
		if ctx.Err() != nil || !s.mayStillRead(ctx, r, p) {
			w.rouse() // the session's next stream sends the notices
			return
		}
		for _, n := range w.take() {
			out.notify(n.method, n.params(id))
		}
	}
}

// mayStillRead checks the token of a stream again. The server ends the streams of former
// members, but only after it has noticed the change. No notification is sent in between.
func (s *Server) mayStillRead(ctx context.Context, r *http.Request, p auth.Principal) bool {
	now, err := auth.Authenticate(ctx, r, s.o.Verifier)
	return err == nil && now.User == p.User && now.Grant == p.Grant && now.Space == p.Space && now.Can(space.ScopeRead)
}

func (n notice) params(id any) map[string]any {
	params := map[string]any{}
	if id != nil {
		params["_meta"] = map[string]any{protocol.MetaKeySubscriptionID: id}
	}
	if n.uri != "" {
		params["uri"] = n.uri
	}
	return params
}
