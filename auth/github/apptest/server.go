package apptest

import (
	"crypto/rand"
	"fmt"
	"io"
	"log"
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

// Options configure a Server. Zero fields take the defaults.
type Options struct {
	// Address is where to listen; default a free port of 127.0.0.1.
	Address string
}

// Server is a running GitHub. Its methods are safe for concurrent use; those that
// change the world panic where what they name is not there, since that is a
// mistake of the test.
type Server struct {
	// URL is its origin, as config has it.
	URL string

	dir     string
	backend string
	check   checker
	srv     *http.Server
	served  chan struct{}
	closed  chan struct{}
	once    sync.Once
	ended   *sync.Cond // on mu: a request or a delivery ended
	hooks   *http.Client

	mu         sync.Mutex
	running    int // requests and deliveries
	closing    bool
	ahead      time.Duration
	world      world
	behaviour  Behaviour
	requests   []Request
	violations []string
}

// Request is one that came, without its secrets.
type Request struct {
	Method, Path string // the path without /api/v3
	Query        string
	Kind         string // what authenticated it: "app", "installation", "user", "client", "page", or ""
	Status       int
}

// Start starts a server that ends with the test, and fails it where there are
// violations. It needs git with its http-backend, and skips the test where that
// is missing.
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

// New starts a server, which Close ends.
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
		backend: backend, check: check,
		served: make(chan struct{}), closed: make(chan struct{}),
		hooks: &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{}},
		world: newWorld(),
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

// Close ends the server, its deliveries and its git processes.
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

// begin counts a request or a delivery, which end ends, unless the server closes.
func (s *Server) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.beginLocked()
}

func (s *Server) beginLocked() bool {
	if !s.closing {
		s.running++
	}
	return !s.closing
}

func (s *Server) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running--
	s.ended.Broadcast()
}

// Idle waits until no request and no delivery is under way.
func (s *Server) Idle() { s.idleBut(0) }

// idleBut waits until no more than n are.
func (s *Server) idleBut(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.running > n {
		s.ended.Wait()
	}
}

// API is the address of the REST API.
func (s *Server) API() string { return s.URL + "/api/v3" }

// Violations are what did not fit GitHub's description, or the rule that git is
// reached with a token for one repository alone.
func (s *Server) Violations() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.violations)
}

// ForgetViolations empties the list, for tests of the stand-in.
func (s *Server) ForgetViolations() { s.mu.Lock(); s.violations = nil; s.mu.Unlock() }

func (s *Server) violate(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.violations = append(s.violations, fmt.Sprintf(format, args...))
}

// Requests are those that came, in the order in which they were answered.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Count tells how many requests came to a path such as "/user", or one that
// begins so where it ends in "*".
func (s *Server) Count(method, path string) int {
	n := 0
	for _, r := range s.Requests() {
		prefix, cut := strings.CutSuffix(path, "*")
		if r.Method == method && (r.Path == path || cut && strings.HasPrefix(r.Path, prefix)) {
			n++
		}
	}
	return n
}

// Advance moves the clock on, so that codes and tokens expire.
func (s *Server) Advance(d time.Duration) { s.mu.Lock(); s.ahead += d; s.mu.Unlock() }

// now is the time. The lock is held.
func (s *Server) now() time.Time { return time.Now().Add(s.ahead).UTC().Truncate(time.Second) }

func fresh(prefix string) string { return prefix + rand.Text() }
