package api

import (
	"cmp"
	"net/http"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"satchel/auth"
	"satchel/internal/fault"
	"satchel/internal/ratelimit"
	"satchel/internal/space"
)

// Server serves the API. It is safe for concurrent use, and starts no goroutine that
// outlives a request.
type Server struct {
	o      Options
	rate   *ratelimit.Limiter
	doc    []byte
	routes []route
	mux    *http.ServeMux

	mu       sync.Mutex
	running  map[space.UserID]int // the number of requests in progress
	all      int                  // sum of running
	closed   bool
	finished chan struct{} // closed once the server is closed and no request is in progress
}

// New returns a Server.
func New(o Options) (*Server, error) {
	if err := o.setDefaults(); err != nil {
		return nil, err
	}
	s := &Server{
		o: o, rate: ratelimit.New(ratelimit.Options{PerMinute: o.Limits.Rate, Burst: o.Limits.Burst, Now: o.Now}),
		running: map[space.UserID]int{}, finished: make(chan struct{}),
	}
	s.routes = s.allRoutes()
	var err error
	if s.doc, err = document(o.URL, s.routes, o.Limits); err != nil {
		return nil, err
	}
	s.mux = s.newMux()
	return s, nil
}

// Close rejects new requests and returns when none is in progress. It does not close
// connections.
func (s *Server) Close() {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		if s.all == 0 {
			close(s.finished)
		}
	}
	s.mu.Unlock()
	<-s.finished
}

// route is a route of the API, with its description for the OpenAPI document.
type route struct {
	method, path string
	scope        space.Scope // required scope; empty if no token is needed
	about
	in, out reflect.Type // types of the JSON bodies; nil for none
	handle  func(c *call) error
}

// about describes a route in the OpenAPI document.
type about struct {
	id, summary, detail string
	answer              string // description of the answer
	example             string // a valid body, if one is required
	status              int    // HTTP status of the answer; 0 means 200
	notFound            bool   // the route can answer 404
	conflict            bool   // the route can answer 409
	ifMatch             bool   // the route reads the header If-Match
	optionalBody        bool
	media               string            // media type of a body that is not JSON
	query, optional     map[string]string // required and optional parameters, with their descriptions
}

// on makes a route from a function that takes the decoded body and returns the answer.
func on[In body, Out any](method, path string, scope space.Scope, a about, f func(c *call, in In) (Out, error)) route {
	r := route{method: method, path: path, scope: scope, about: a, out: reflect.TypeFor[Out]()}
	if in := reflect.TypeFor[In](); in != reflect.TypeFor[noBody]() {
		r.in = in
	}
	r.status = cmp.Or(a.status, http.StatusOK)
	r.handle = func(c *call) error {
		var in In
		if r.in != nil && (!r.optionalBody || c.r.ContentLength != 0) {
			if err := c.decode(&in); err != nil {
				return err
			}
			if err := in.check(); err != nil {
				return err
			}
		}
		out, err := f(c, in)
		if err != nil {
			return err
		}
		return c.answer(r.status, out)
	}
	return r
}

// noBody is the request type of a route without a body.
type noBody struct{}

func (noBody) check() error { return nil }

// allRoutes lists every route. The routes of a subject are in its file.
func (s *Server) allRoutes() []route {
	return slices.Concat([]route{
		on(http.MethodGet, "/api", space.ScopeRead, about{id: "index", summary: "What there is", detail: "Also checks whether a token is valid.", answer: "The links and the caller."}, s.index),
		{
			method: http.MethodGet, path: "/api/openapi.json", handle: s.openAPI,
			about: about{id: "document", summary: "The OpenAPI document", answer: "The document.", status: http.StatusOK},
		},
	}, s.sourceRoutes(), s.syncRoutes(), s.uploadRoutes(), s.memoryRoutes(), s.fileRoutes(), s.searchRoutes(), s.readRoutes(), s.shellRoutes())
}

// Handler serves /api and everything under it.
func (s *Server) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; sandbox")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Referrer-Policy", "no-referrer")
		c := &call{s: s, w: w, r: r}
		defer func() {
			if v := recover(); v != nil {
				if v == http.ErrAbortHandler {
					panic(v)
				}
				s.o.Logger.ErrorContext(r.Context(), "a request panicked", "panic", v, "stack", string(debug.Stack()))
				c.fail(fault.New(fault.Internal, "Something went wrong in the server. Its log has the details."))
			}
		}()
		if !s.o.HostAllowed(r.Host) {
			c.fail(fault.New(fault.Forbidden, "The server is not known under this name; see server.allowed_hosts."))
			return
		}
		s.mux.ServeHTTP(w, r)
	})
}

// newMux returns a mux with one entry for each path, so that errors about the method are
// JSON too.
func (s *Server) newMux() *http.ServeMux {
	mux := http.NewServeMux()
	byPath := map[string][]route{}
	for _, r := range s.routes {
		byPath[r.path] = append(byPath[r.path], r)
	}
	for path, routes := range byPath {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { s.serve(&call{s: s, w: w, r: r}, routes) })
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		(&call{s: s, w: w, r: r}).fail(fault.New(fault.NotFound, "There is nothing at %s. GET /api lists what there is.", quoted(r.URL.Path)))
	})
	return mux
}

func (s *Server) serve(c *call, routes []route) {
	method := c.r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	i := slices.IndexFunc(routes, func(r route) bool { return r.method == method })
	if i < 0 {
		var allowed []string
		for _, r := range routes {
			allowed = append(allowed, r.method)
		}
		c.w.Header().Set("Allow", strings.Join(allowed, ", "))
		c.refuse(http.StatusMethodNotAllowed, "method_not_allowed", "This path accepts only "+strings.Join(allowed, ", ")+".")
		return
	}
	if err := s.admit(c, routes[i]); err != nil {
		c.fail(err)
		return
	}
	defer c.end()
	if err := routes[i].handle(c); err != nil {
		c.fail(err)
	}
}

// admit authenticates the sender of the request, and counts the request. If the error is nil,
// c.end must be called when the request has ended.
func (s *Server) admit(c *call, r route) error {
	c.end = func() {}
	if r.scope == "" {
		if wait, ok := s.o.LimitUnauthenticated(c.r); !ok {
			return &fault.Error{Code: fault.Limited, Public: "Too many requests without a valid token.", RetryAfter: wait}
		}
		return nil
	}
	p, err := auth.Authenticate(c.r.Context(), c.r, s.o.Verifier)
	if err != nil {
		if fault.CodeOf(err) == fault.Unauthenticated {
			if wait, ok := s.o.LimitUnauthenticated(c.r); !ok {
				// Even over the limit, a client with an expired token must learn where to get
				// another: it may share its address with others.
				c.challenge(err)
				return &fault.Error{Code: fault.Limited, Public: "Too many requests without a valid token.", RetryAfter: wait}
			}
		}
		return err
	}
	c.p = p
	if err := p.Require(r.scope); err != nil {
		return err
	}
	if wait, ok := s.rate.Allow(string(p.User)); !ok {
		return &fault.Error{Code: fault.Limited, Public: "Too many requests in a short time. Wait a moment.", RetryAfter: wait}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return fault.New(fault.Unavailable, "The server is shutting down. Try again in a moment.")
	case s.running[p.User] >= s.o.Limits.Concurrent:
		return fault.New(fault.Limited, "You have %d requests in progress, which is the limit. Wait for one to end.", s.o.Limits.Concurrent)
	}
	s.running[p.User]++
	s.all++
	c.end = func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.running[p.User]--; s.running[p.User] == 0 {
			delete(s.running, p.User)
		}
		if s.all--; s.all == 0 && s.closed {
			close(s.finished)
		}
	}
	return nil
}

type indexView struct {
	Name    string            `json:"name"`
	Version string            `json:"version"`
	Shell   bool              `json:"shell" doc:"Whether commands can run on this server."`
	Links   map[string]string `json:"links" each:"format=uri"`
	You     callerView        `json:"you"`
}

type callerView struct {
	User    string        `json:"user"`
	Client  string        `json:"client" doc:"Name of the token's grant."`
	Scopes  []space.Scope `json:"scopes" each:"enum=read|write"`
	Expires string        `json:"expires,omitempty" api:"format=date-time"`
}

// index is GET /api: the links and the caller.
func (s *Server) index(c *call, _ noBody) (indexView, error) {
	links, origin := map[string]string{}, s.o.Origin(c.r)
	for _, r := range s.routes {
		if !strings.Contains(r.path, "{") {
			links[cmp.Or(strings.TrimPrefix(strings.TrimPrefix(r.path, "/api"), "/"), "self")] = origin + r.path
		}
	}
	you := callerView{User: c.p.UserName, Client: c.p.Client, Scopes: c.p.Scopes, Expires: stamp(c.p.Expires)}
	if you.Scopes == nil {
		you.Scopes = []space.Scope{}
	}
	return indexView{"satchel", s.o.Version, s.o.Service.NoCommands() == "", links, you}, nil
}

// openAPI is GET /api/openapi.json. It needs no token.
func (s *Server) openAPI(c *call) error {
	doc := s.doc
	if at := s.o.Origin(c.r); at != s.o.URL {
		var err error
		if doc, err = document(at, s.routes, s.o.Limits); err != nil {
			return err
		}
	}
	c.w.Header().Set("Cache-Control", "public, max-age=3600")
	c.write(http.StatusOK, doc)
	return nil
}
