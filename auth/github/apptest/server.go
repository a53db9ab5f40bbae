// Package apptest simulates GitHub for tests, on one loopback origin: people,
// organizations, repositories, Apps and their installations, the pages on which a
// browser submits forms, the REST API under /api/v3, webhooks, and git over HTTP.
//
//	gh := apptest.Start(t, apptest.Options{})
//	gh.AddPerson("ada")
//	gh.AddRepository(apptest.Repository{Owner: "ada", Name: "notes", Private: true})
//	back, err := gh.CreateApp("ada", action, manifest)
//	gh.Install(apptest.Installing{App: slug, Account: "ada", By: "ada"})
//	back, err = gh.Authorize("ada", location)
//
// It is as strict as GitHub. Every request and response of the REST API is validated
// against GitHub's OpenAPI description (see README.md), and a mismatch fails the test.
// Its git server is stricter: it accepts only tokens that are restricted to one
// repository, and to contents and metadata.
package apptest

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"satchel/internal/testenv"
)

// Options configures a Server. Zero fields mean the defaults.
type Options struct {
	// Address is the address to listen on. The default is a free port of 127.0.0.1.
	Address string
}

// Server is a running simulation of GitHub. It is safe for concurrent use. Methods that
// change its state panic if the test names something that does not exist.
type Server struct {
	URL string // the origin of the server, such as http://127.0.0.1:8080

	dir, backend string
	check        checker
	srv          *http.Server
	served       chan struct{}
	closed       chan struct{}
	once         sync.Once
	ended        *sync.Cond // uses mu; signalled when a request or a delivery ends
	hooks        *http.Client

	mu         sync.Mutex
	running    int // requests and deliveries in progress
	closing    bool
	ahead      time.Duration
	world      world
	behaviour  Behaviour
	requests   []Request
	violations []string
}

// Request describes a request that the server answered, without its secrets.
type Request struct {
	Method, Path string // the path is without /api/v3
	Query        string
	Kind         string // the kind of its credential: "app", "installation", "user" or "client"
	Status       int
}

// Behaviour makes the server deviate from a healthy GitHub. The keys of the maps are paths
// without /api/v3. A key that ends in "*" matches every path with that prefix. Answers from Down,
// Status and Body are not validated.
type Behaviour struct {
	Down    bool            // every answer is 503
	Stall   <-chan struct{} // every response waits to receive from this channel
	Status  map[string]int  // the status to answer with, by path; the text of the answer is Message
	Header  map[string]http.Header
	Message string
	Body    map[string]string // the body to answer with, by path; the status is 200
	// Garble changes an answer of the API before it is validated.
	Garble     func(path string, body map[string]any)
	TokenError string // the error code that every answer of the token endpoint has
	PerPage    int    // maximum number of entries on a page of a list
	NoHooks    bool   // webhooks are recorded and not sent
}

// Start starts a server. When the test ends, Start closes the server and fails the test
// if there were violations.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	testenv.NeedProgram(t, "git")
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Close()
		for _, v := range s.Violations() {
			t.Errorf("violation: %s", v)
		}
	})
	return s
}

// New starts a server. The caller must call Close.
func New(o Options) (*Server, error) {
	if o.Address == "" {
		o.Address = "127.0.0.1:0"
	}
	backend, err := findBackend()
	if err != nil {
		return nil, err
	}
	check, err := loadChecker()
	if err != nil {
		return nil, fmt.Errorf("apptest: %w", err)
	}
	s := &Server{
		backend: backend, check: check, served: make(chan struct{}), closed: make(chan struct{}),
		hooks: &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{}}, world: newWorld(),
	}
	s.ended = sync.NewCond(&s.mu)
	ln, err := net.Listen("tcp", o.Address)
	if err != nil {
		return nil, fmt.Errorf("apptest: %w", err)
	}
	if s.dir, err = os.MkdirTemp("", "satchel-github-"); err != nil {
		ln.Close()
		return nil, fmt.Errorf("apptest: %w", err)
	}
	s.URL = "http://" + ln.Addr().String()
	s.srv = &http.Server{Handler: s.handler(), ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(s.served)
		s.srv.Serve(ln)
	}()
	return s, nil
}

// Close stops the server, and waits until its requests, deliveries and git processes have
// ended.
func (s *Server) Close() {
	s.once.Do(func() {
		close(s.closed)
		s.with(func(*world) { s.closing = true })
		s.srv.Close()
		<-s.served
		s.Idle()
		s.hooks.CloseIdleConnections()
		os.RemoveAll(s.dir)
	})
}

// begin counts a request or a delivery as running until end is called. If the server is
// closing, it counts nothing and returns false. The caller must hold mu.
func (s *Server) begin() bool {
	if !s.closing {
		s.running++
	}
	return !s.closing
}

func (s *Server) end() { s.with(func(*world) { s.running--; s.ended.Broadcast() }) }

// Idle waits until no request or delivery is in progress.
func (s *Server) Idle() {
	s.with(func(*world) {
		for s.running > 0 {
			s.ended.Wait()
		}
	})
}

// API returns the URL of the REST API.
func (s *Server) API() string { return s.URL + "/api/v3" }

// with runs f under the lock.
func (s *Server) with(f func(w *world)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.world)
}

// read returns the result of f, which runs under the lock.
func read[T any](s *Server, f func(w *world) T) T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return f(&s.world)
}

// Violations returns the mismatches with GitHub's description, requests to endpoints
// that the server does not have, git tokens that give too much access, and secrets in
// the query of the token endpoint.
func (s *Server) Violations() []string {
	return read(s, func(*world) []string { return slices.Clone(s.violations) })
}

// ForgetViolations clears the violations, for tests that cause them on purpose.
func (s *Server) ForgetViolations() { s.with(func(*world) { s.violations = nil }) }

// Requests returns the requests that were answered, oldest first.
func (s *Server) Requests() []Request {
	return read(s, func(*world) []Request { return slices.Clone(s.requests) })
}

// Count returns how many requests had a method and a path. A path that ends in "*" matches
// every path with that prefix.
func (s *Server) Count(method, path string) (n int) {
	for _, r := range s.Requests() {
		if r.Method == method && matches(path, r.Path) {
			n++
		}
	}
	return n
}

func matches(pattern, path string) bool {
	prefix, cut := strings.CutSuffix(pattern, "*")
	return pattern == path || cut && strings.HasPrefix(path, prefix)
}

// Advance moves the server's clock forward, so that codes and tokens expire.
func (s *Server) Advance(d time.Duration) { s.with(func(*world) { s.ahead += d }) }

// now returns the server's time. The caller must hold mu.
func (s *Server) now() time.Time { return time.Now().Add(s.ahead).UTC().Truncate(time.Second) }

func fresh(prefix string) string { return prefix + rand.Text() }

// Behave replaces the Behaviour of the server.
func (s *Server) Behave(b Behaviour) { s.with(func(*world) { s.behaviour = b }) }

func lookup[T any](m map[string]T, path string) (v T, ok bool) {
	for pattern := range m {
		if matches(pattern, path) {
			return m[pattern], true
		}
	}
	return v, false
}

// misbehave answers a request as the Behaviour says. It reports whether the request is
// answered.
func (s *Server) misbehave(w http.ResponseWriter, r *http.Request) bool {
	b := read(s, func(*world) Behaviour { return s.behaviour })
	if b.Stall != nil {
		select {
		case <-b.Stall:
		case <-r.Context().Done():
			return true
		case <-s.closed:
			return true
		}
	}
	headers, _ := lookup(b.Header, r.URL.Path)
	maps.Copy(w.Header(), headers)
	status, hasStatus := lookup(b.Status, r.URL.Path)
	body, hasBody := lookup(b.Body, r.URL.Path)
	switch {
	case b.Down:
		http.Error(w, "No server is currently available to service your request.", http.StatusServiceUnavailable)
	case hasStatus:
		reply(w, status, failed(status, b.Message).body)
	case hasBody:
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		io.WriteString(w, body)
	default:
		return false
	}
	return true
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	if status != http.StatusNoContent {
		json.NewEncoder(w).Encode(v)
	}
}

func (s *Server) handler() http.Handler {
	api, site := http.StripPrefix("/api/v3", s.api()), s.site()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !read(s, func(*world) bool { return s.begin() }) {
			return
		}
		defer s.end()
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		switch {
		case strings.HasPrefix(r.URL.Path, "/api/v3/"):
			api.ServeHTTP(w, r)
		case strings.HasPrefix(r.URL.Path, "/_"):
			s.control(w, r)
		case strings.Contains(r.URL.Path, ".git/"):
			s.git(w, r)
		default:
			site.ServeHTTP(w, r)
		}
	})
}

// order holds the arguments of a command from another process.
type order struct {
	Login, Org, Base, Owner, Name, Repo, Permission, App string
	Members, Collaborators, Files                        map[string]string
	Private                                              bool
	Installation                                         int64
	Args                                                 []string
}

// obey runs a command. It returns a panic as an error, because a panic means that the test
// made a mistake.
func (s *Server) obey(name string, o order) (v any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	switch name {
	case "person":
		return s.AddPerson(o.Login), nil
	case "org":
		return s.AddOrg(o.Login, o.Base, o.Members), nil
	case "repository":
		return s.AddRepository(Repository{Owner: o.Owner, Name: o.Name, Private: o.Private, Collaborators: o.Collaborators}), nil
	case "permission":
		s.SetPermission(o.Repo, o.Login, o.Permission)
		return nil, nil
	case "suspend":
		s.Suspend(o.Installation)
		return nil, nil
	case "push":
		return s.Push(o.Repo, o.Files), nil
	case "git":
		return s.Git(o.Repo, o.Args...)
	case "requests":
		return s.Requests(), nil
	case "issued":
		return read(s, (*world).secrets), nil
	case "app":
		return s.App(o.App), nil
	case "installations":
		all := []object{}
		s.with(func(w *world) {
			for _, i := range sorted(w.installations) {
				all = append(all, object{"id": i.id, "account": i.account.login, "all": i.all})
			}
		})
		return all, nil
	}
	return nil, errors.New("unknown command")
}

// control serves commands from another process (POST /_control/COMMAND) and GET
// /_violations.
func (s *Server) control(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/_violations" {
		reply(w, http.StatusOK, append([]string{}, s.Violations()...))
		return
	}
	var o order
	err := json.NewDecoder(r.Body).Decode(&o)
	var v any
	if err == nil {
		v, err = s.obey(strings.TrimPrefix(r.URL.Path, "/_control/"), o)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	reply(w, http.StatusOK, v)
}
