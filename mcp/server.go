package mcp

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	protocol "github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"satchel/auth"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// Server is an http.Handler for the MCP endpoint and its RFC 9728 documents. It is safe for
// concurrent use.
type Server struct {
	o           Options
	inner       http.Handler
	sessions    *sessions
	subscribers *subscribers
	limits      *limits
	own         map[string]method
	// fixtures are additional tools, resources and prompts for the conformance suite. They
	// are nil in all other builds.
	fixtures *fixtures

	// Close cancels both contexts when no call is in progress, or when it stops waiting for calls.
	calls, streams             context.Context
	endCalls, endStreams       context.CancelFunc
	mu                         sync.Mutex
	closing                    bool
	callsRunning, allRunning   int
	callsFinished, allFinished chan struct{} // closed when closing is set and the count is zero
}

// New returns a server. Call Close when the server is no longer used.
func New(o Options) (*Server, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	w := &subscribers{of: make(map[space.SpaceID]map[*subscriber]bool)}
	s := &Server{o: o, sessions: newSessions(o, w), subscribers: w, limits: newLimits(o), fixtures: newFixtures(),
		callsFinished: make(chan struct{}), allFinished: make(chan struct{})}
	s.calls, s.endCalls = context.WithCancel(context.Background())
	s.streams, s.endStreams = context.WithCancel(context.Background())
	s.own = s.methods()
	s.inner = s.newInner()
	return s, nil
}

// newInner returns mcp-go's transport. This package itself checks sessions, hosts and limits, so
// mcp-go keeps nothing between requests.
func (s *Server) newInner() http.Handler {
	hooks := &server.Hooks{}
	hooks.AddAfterListTools(s.listTools)
	hooks.AddAfterListResources(s.listResources)
	hooks.AddAfterListPrompts(s.listPrompts)
	options := []server.ServerOption{
		server.WithTitle(s.o.Title),
		server.WithWebsiteURL(s.o.WebsiteURL),
		server.WithInstructions(s.o.Tools.ServerInstructions()),
		server.WithToolCapabilities(false),
		server.WithPromptCapabilities(true),
		server.WithResourceCapabilities(true, true),
		server.WithCompletions(),
		server.WithLogging(),
		server.WithExtensions(map[string]any{skillsExtension: map[string]any{}}),
		server.WithCacheHints(s.o.CacheTTL.Milliseconds(), protocol.CacheScopePrivate),
		server.WithMethodCacheHints(protocol.MethodResourcesRead, 0, protocol.CacheScopePrivate),
		server.WithHooks(hooks),
	}
	m := server.NewMCPServer(s.o.Name, s.o.Version, append(options, s.fixtures.options()...)...)
	for _, t := range s.o.Tools.ResourceTemplates() {
		m.AddResourceTemplate(protocol.NewResourceTemplate(t.URI, t.Name, protocol.WithTemplateTitle(t.Title), protocol.WithTemplateDescription(t.Description), protocol.WithTemplateMIMEType(t.MIME)),
			func(context.Context, protocol.ReadResourceRequest) ([]protocol.ResourceContents, error) {
				return nil, errors.New("readResource answers every read")
			})
	}
	s.fixtures.register(m)
	return server.NewStreamableHTTPServer(m,
		server.WithSessionIdManager(&server.StatelessSessionIdManager{}),
		server.WithDisableLocalhostProtection(true),
		server.WithStreamableHTTPLogger(s.o.Logger),
	)
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.enter(&s.allRunning) {
		s.refuse(w, "closing", errorf(codeServer, "The server is stopping. Try again.").withStatus(http.StatusServiceUnavailable), retryAfter(nil))
		return
	}
	defer s.leave(&s.allRunning, s.allFinished)
	defer func() {
		if v := recover(); v != nil {
			if v == http.ErrAbortHandler {
				panic(v)
			}
			s.log(r.Context()).Error("panic", "panic", v, "stack", string(debug.Stack()))
			s.refuse(w, "panic", internalError("").withStatus(http.StatusInternalServerError), nil)
		}
	}()
	if !HostAllowed(r.Host, s.o.AllowedHosts) {
		s.refuse(w, "host", errorf(codeServer, "This server does not accept requests for this host name.").withStatus(http.StatusForbidden), nil)
		return
	}
	origin := r.Header.Get("Origin")
	if values := r.Header.Values("Origin"); len(values) > 1 || len(values) == 1 && !s.originAllowed(origin, r.Host) {
		s.refuse(w, "origin", errorf(codeServer, "Pages of this origin may not call this server.").withStatus(http.StatusForbidden), nil)
		return
	}
	if cors(w, r, origin) {
		return
	}
	if strings.HasPrefix(r.URL.Path, "/.well-known/oauth-protected-resource") {
		if s.o.ResourceMetadata == nil {
			http.NotFound(w, r)
			return
		}
		s.o.ResourceMetadata.ServeHTTP(w, r)
		return
	}
	switch r.Method {
	case http.MethodPost, http.MethodGet, http.MethodDelete:
	default:
		w.Header().Set("Allow", "POST, GET, DELETE, OPTIONS")
		s.refuse(w, "malformed", errorf(codeServer, "The method must be POST, GET or DELETE.").withStatus(http.StatusMethodNotAllowed), nil)
		return
	}
	p, e, header := s.authenticate(r)
	if e != nil {
		reason := "unauthenticated"
		if e.status != http.StatusUnauthorized {
			reason = "verifier"
		}
		s.refuse(w, reason, e, header)
		return
	}
	if wait, ok := s.limits.take(p.User); !ok {
		s.refuse(w, "rate", errorf(codeServer, "Too many requests. Try again in %s s.", seconds(wait)).withStatus(http.StatusTooManyRequests),
			http.Header{"Retry-After": {seconds(wait)}})
		return
	}
	switch r.Method {
	case http.MethodPost:
		s.post(w, r, p)
	case http.MethodGet:
		s.listen(w, r, p)
	case http.MethodDelete:
		s.terminate(w, r, p)
	}
}

// refuse answers an HTTP request before any of its messages is processed.
func (s *Server) refuse(w http.ResponseWriter, reason string, e *rpcError, header http.Header) {
	if s.o.Observer.Refused != nil {
		s.o.Observer.Refused(reason)
	}
	h := w.Header()
	for name, values := range header {
		h[name] = values
	}
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	status := e.status
	if status == 0 {
		status = http.StatusBadRequest
	}
	w.WriteHeader(status)
	msg := errorAnswer(nil, e)
	w.Write(append(msg, '\n'))
}

func (s *Server) log(ctx context.Context) *slog.Logger {
	return s.o.Logger.With("request_id", s.o.RequestID(ctx))
}

func (s *Server) enter(n *int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return false
	}
	*n++
	return true
}

func (s *Server) leave(n *int, finished chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if *n--; *n == 0 && s.closing {
		close(finished)
	}
}

// Close refuses new requests, waits for the calls in progress, and then ends the listening streams.
// If ctx ends first, Close cancels the calls and returns ctx's error when they have returned, or
// after WriteTimeout. Close may be called only once.
func (s *Server) Close(ctx context.Context) error {
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		return errors.New("mcp: closed twice")
	}
	s.closing = true
	if s.callsRunning == 0 {
		close(s.callsFinished)
	}
	if s.allRunning == 0 {
		close(s.allFinished)
	}
	s.mu.Unlock()
	var err error
	select {
	case <-s.callsFinished:
	case <-ctx.Done():
		err = ctx.Err()
	}
	s.endCalls()
	s.endStreams()
	last := time.NewTimer(s.o.WriteTimeout)
	defer last.Stop()
	select {
	case <-s.allFinished:
	case <-last.C:
		err = errors.Join(err, errors.New("mcp: some requests did not end"))
	}
	return err
}

// InProgress returns the principal of each call and listening stream in progress. With it, callers
// can check whether each principal may still use the server. A principal can occur several times.
func (s *Server) InProgress() []auth.Principal { return s.limits.inProgress() }

// End cancels the calls and listening streams of matching principals. match must be fast.
func (s *Server) End(match func(auth.Principal) bool) { s.limits.end(match) }

// Sessions reports how many legacy sessions are open, for metrics.
func (s *Server) Sessions() int { return s.sessions.count() }

func asFault(err error) (*fault.Error, bool) {
	var f *fault.Error
	ok := errors.As(err, &f)
	return f, ok
}

func internalError(requestID string) *rpcError {
	if requestID == "" {
		return errorf(protocol.INTERNAL_ERROR, "Something went wrong in the server. Its log has the details.")
	}
	return errorf(protocol.INTERNAL_ERROR, "Something went wrong in the server. Its log has the details under request %s.", requestID)
}
