package remotetest

import (
	"bytes"
	"context"
	"crypto/subtle"
	"crypto/tls"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"satchel/internal/testenv"
)

// Options configure a Server. The zero Options are a server over http that requires no
// credential.
type Options struct {
	// Dir is the directory of the repositories. The default is a temporary directory of the test.
	Dir string
	// If Password is not empty, every request must have Username and Password (HTTP
	// Basic). An empty Username accepts any name, as GitHub does.
	Username, Password string
	// TLS serves https with a certificate of its own authority, for 127.0.0.1, ::1,
	// localhost and Names.
	TLS   bool
	Names []string
	// OldProtocol speaks only protocol 0 of git.
	OldProtocol bool
}

// Server is a git remote. Its methods are safe for concurrent use.
type Server struct {
	t       testing.TB
	dir     string
	git     string
	backend string
	scheme  string
	host    string
	caFile  string
	old     bool
	server  *http.Server
	served  chan struct{} // closed when the listener's loop has ended
	closing chan struct{}
	once    sync.Once

	mu         sync.Mutex
	ended      *sync.Cond // uses mu; signalled when a request ends
	running    int        // number of running requests
	user, pass string
	inject     func(Request) Fault
	requests   []*Request
	logs       bytes.Buffer
}

// New starts a server that ends with the test. It needs the git program with its
// http-backend, and skips the test without it.
func New(t testing.TB, o Options) *Server {
	t.Helper()
	git := testenv.NeedProgram(t, "git")
	out, err := exec.Command(git, "--exec-path").Output()
	backend := filepath.Join(strings.TrimSpace(string(out)), "git-http-backend")
	if _, statErr := os.Stat(backend); err != nil || statErr != nil {
		testenv.SkipOrFail(t, "git has no http-backend")
	}
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{
		t: t, dir: o.Dir, git: git, backend: backend, scheme: "http", host: ln.Addr().String(),
		user: o.Username, pass: o.Password, old: o.OldProtocol, served: make(chan struct{}), closing: make(chan struct{}),
	}
	s.ended = sync.NewCond(&s.mu)
	s.server = &http.Server{
		Handler:  http.HandlerFunc(s.serve),
		ErrorLog: log.New(&lockedLog{s: s}, "", 0),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, c)
		},
		// The server speaks only HTTP/1.1, so that tests can cut single connections.
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
	}
	if o.TLS {
		s.scheme = "https"
		cert, ca := certificate(t, append([]string{"localhost"}, o.Names...))
		s.caFile = filepath.Join(t.TempDir(), "ca.pem")
		if err := os.WriteFile(s.caFile, ca, 0o600); err != nil {
			t.Fatal(err)
		}
		ln = tls.NewListener(ln, &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12})
	}
	go func() {
		defer close(s.served)
		s.server.Serve(ln)
	}()
	t.Cleanup(s.Close)
	return s
}

// Close stops the server and waits for its requests and processes. The end of the test
// calls Close too.
func (s *Server) Close() {
	s.once.Do(func() {
		close(s.closing)
		s.server.Close()
		<-s.served
		s.Idle()
	})
}

// Idle waits until no request runs. A client that was cut off notices this before the
// repository has finished with the client's data.
func (s *Server) Idle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.running > 0 {
		s.ended.Wait()
	}
}

// Host returns the server's address, such as "127.0.0.1:port".
func (s *Server) Host() string { return s.host }

// URL returns the address of a repository.
func (s *Server) URL(name string) string { return s.scheme + "://" + s.host + "/" + name + ".git" }

// CAFile returns a PEM file with the authority of the server's certificate, or "" without
// TLS.
func (s *Server) CAFile() string { return s.caFile }

// SetCredential changes the credential that requests need from now on. An empty password
// requires none.
func (s *Server) SetCredential(username, password string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.user, s.pass = username, password
}

// Inject sets the function f that returns the fault of every later request. If f is nil, there
// are no faults. The server calls f for one request at a time, before it checks the credential.
func (s *Server) Inject(f func(Request) Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inject = f
}

// Requests returns the requests since the last Forget, oldest first.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Request, len(s.requests))
	for i, r := range s.requests {
		out[i] = *r
	}
	return out
}

// Forget empties the list of requests.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = nil
}

// Log returns the errors that the backend and the server logged.
func (s *Server) Log() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.logs.String()
}

type connKey struct{}

// serve answers one request.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	rec := newRequest(r)
	s.mu.Lock()
	s.running++
	inject := s.inject
	s.requests = append(s.requests, rec)
	var f Fault
	if inject != nil {
		f = inject(*rec)
	}
	rec.Fault, rec.Fired = f.Name, f.Answer != nil
	user, pass := s.user, s.pass
	s.mu.Unlock()

	conn, _ := r.Context().Value(connKey{}).(net.Conn)
	in := &stream{s: s, rec: rec, f: f.Request, conn: conn, done: r.Context().Done()}
	out := &stream{s: s, rec: rec, f: f.Response, conn: conn, done: r.Context().Done()}
	body := &faultyBody{stream: in, r: r.Body}
	answer := &faultyWriter{stream: out, w: w, status: http.StatusOK}
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		rec.Status, rec.Received, rec.Sent = answer.status, in.passed, out.passed
		s.running--
		s.ended.Broadcast()
	}()
	if r.ContentLength == 0 {
		in.fire() // there is no body whose end could fire the trouble
	}
	switch {
	case in.ended:
		answer.ended = true
	case f.Answer != nil:
		f.Answer.write(answer, body)
	case pass != "" && !authorized(r, user, pass):
		Unauthorized().Answer.write(answer, body)
	default:
		s.cgi(answer, r, body)
	}
	answer.finish()
}

func authorized(r *http.Request, user, pass string) bool {
	u, p, ok := r.BasicAuth()
	return ok && (user == "" || u == user) && subtle.ConstantTimeCompare([]byte(p), []byte(pass)) == 1
}

// cgi runs the backend. It returns when all processes of the backend have ended: they
// hold standard output open, and cgi reads it to the end even if the client is gone.
func (s *Server) cgi(w http.ResponseWriter, r *http.Request, body *faultyBody) {
	logs := &lockedLog{s: s}
	h := &cgi.Handler{
		Path: s.backend,
		Dir:  s.dir,
		Env: slices.Concat([]string{
			"GIT_PROJECT_ROOT=" + s.dir,
			"GIT_HTTP_EXPORT_ALL=1",
			"GIT_PROTOCOL=" + s.protocol(r),
		}, testenv.GitEnv(), configEnv("http.receivepack=true", "gc.auto=0", "receive.autogc=false", "core.fsync=none", "safe.directory=*")),
		InheritEnv: []string{"PATH"},
		Logger:     log.New(logs, "", 0),
		Stderr:     logs,
	}
	r = r.Clone(r.Context())
	r.Body = body
	if r.ContentLength != 0 {
		// The backend reads a body of unknown length to its end. If it knows the length
		// and the body ends early, it spins forever (git 2.39). Package cgi refuses a
		// body that is declared as chunked.
		r.TransferEncoding, r.ContentLength = nil, -1
		r.Header.Del("Content-Length")
	}
	h.ServeHTTP(w, r)
}

// protocol returns the version of git's protocol that a client asks for.
func (s *Server) protocol(r *http.Request) string {
	if s.old {
		return ""
	}
	return r.Header.Get("Git-Protocol")
}

func configEnv(kv ...string) []string {
	env := []string{fmt.Sprintf("GIT_CONFIG_COUNT=%d", len(kv))}
	for i, s := range kv {
		k, v, _ := strings.Cut(s, "=")
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, k), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, v))
	}
	return env
}

// lockedLog collects log output.
type lockedLog struct{ s *Server }

func (l *lockedLog) Write(p []byte) (int, error) {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	if l.s.logs.Len() < 1<<20 {
		l.s.logs.Write(p)
	}
	return len(p), nil
}
