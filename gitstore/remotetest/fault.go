package remotetest

import (
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Stage is the step of git's protocol to which a request belongs.
type Stage string

// The stages. In protocol 2, a client that fetches sends two requests in StageFetch: for the
// refs and for the objects.
const (
	StageFetchRefs Stage = "fetch-refs" // GET info/refs?service=git-upload-pack
	StageFetch     Stage = "fetch"      // POST git-upload-pack
	StagePushRefs  Stage = "push-refs"  // GET info/refs?service=git-receive-pack
	StagePush      Stage = "push"       // POST git-receive-pack
	StageOther     Stage = "other"
)

// Request is one request and its outcome. Status, Received and Sent are known when the
// request has ended; see Idle.
type Request struct {
	Method string
	Path   string
	Query  url.Values
	Header http.Header
	Host   string
	Repo   string // the repository's name, as given to Create
	Stage  Stage

	Status         int
	Received, Sent int64 // bytes of the bodies that passed

	Fault string // the name of the fault
	Fired bool   // the point of the fault was reached
}

func newRequest(r *http.Request) *Request {
	q := &Request{Method: r.Method, Path: r.URL.Path, Query: r.URL.Query(), Header: r.Header.Clone(), Host: r.Host, Stage: StageOther}
	name, rest, ok := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), ".git/")
	if !ok {
		return q
	}
	q.Repo = name
	switch service := q.Query.Get("service"); {
	case rest == "info/refs" && service == "git-upload-pack":
		q.Stage = StageFetchRefs
	case rest == "info/refs" && service == "git-receive-pack":
		q.Stage = StagePushRefs
	case rest == "git-upload-pack":
		q.Stage = StageFetch
	case rest == "git-receive-pack":
		q.Stage = StagePush
	}
	return q
}

// Fault describes what goes wrong with one request. The zero Fault changes nothing.
type Fault struct {
	Name     string  // the name in the list of requests
	Answer   *Answer // sent instead of calling the repository
	Request  Trouble // applied to the body that the client sends
	Response Trouble // applied to the body of the answer
}

// Answer is a response that does not come from the repository.
type Answer struct {
	Status int
	Header http.Header
	Body   string // text/plain, which git prints, unless Header sets another type
}

// Trouble describes what happens to a body after its first After bytes, or at its end if it is
// shorter.
type Trouble struct {
	After int64
	// Do is called at that point, before anything else happens there. The goroutine that serves
	// the request calls it.
	Do func()
	// Cut closes the connection. The repository receives nothing further from the client,
	// but still carries out complete requests.
	Cut bool
	// Reset makes Cut a reset of the connection.
	Reset bool
	// Truncate ends the body there, as if it were complete.
	Truncate bool
	// Corrupt changes the next byte.
	Corrupt bool
	// Stall passes nothing more until the client gives up or the server is closed. The
	// connection is then closed.
	Stall bool
	// Drip is how many bytes pass at a time from that point on, with a pause of Every between
	// them. Zero means no drip.
	Drip  int
	Every time.Duration
}

func (f Trouble) none() bool {
	return f.Do == nil && !f.Cut && !f.Truncate && !f.Corrupt && !f.Stall && f.Drip == 0
}

func (a *Answer) write(w http.ResponseWriter, body io.Reader) {
	// A real service reads what was sent before it answers, up to a limit.
	io.CopyN(io.Discard, body, 1<<20)
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	for k, v := range a.Header {
		h[k] = v
	}
	w.WriteHeader(a.Status)
	io.WriteString(w, a.Body)
}

// Status refuses the request with a status and a text.
func Status(code int, text string) Fault {
	return Fault{Name: strconv.Itoa(code), Answer: &Answer{Status: code, Body: text}}
}

// Unauthorized is the answer to a missing or refused credential.
func Unauthorized() Fault {
	f := Status(http.StatusUnauthorized, "Invalid username or token. Password authentication is not supported for Git operations.\n")
	f.Answer.Header = http.Header{"Www-Authenticate": {`Basic realm="GitHub"`}}
	return f
}

// Forbidden is GitHub's answer to a credential that may not write to the repository.
func Forbidden() Fault {
	return Status(http.StatusForbidden, "Write access to repository not granted.\n")
}

// NotFound is GitHub's answer if the repository is gone or hidden.
func NotFound() Fault { return Status(http.StatusNotFound, "Repository not found.\n") }

// RateLimited asks the client to come back later. retryAfter is the value of the header
// Retry-After. An empty value omits the header.
func RateLimited(retryAfter string) Fault {
	f := Status(http.StatusTooManyRequests, "You have exceeded a secondary rate limit.\n")
	if retryAfter != "" {
		f.Answer.Header = http.Header{"Retry-After": {retryAfter}}
	}
	return f
}

// Redirect sends the client to another URL, with a status such as 301.
func Redirect(code int, to string) Fault {
	f := Status(code, "")
	f.Name, f.Answer.Header = "redirect", http.Header{"Location": {to}}
	return f
}

// stream applies a Trouble to the bytes of one direction.
type stream struct {
	s      *Server
	rec    *Request // guarded by s.mu
	f      Trouble
	conn   net.Conn
	done   <-chan struct{} // closed when the client has gone
	passed int64
	fired  bool
	ended  bool // nothing more passes
}

// next returns how many of n bytes may pass now. It blocks during a drip or a stall, and
// fires the trouble at its point.
func (t *stream) next(n int) int {
	if t.f.none() || t.ended || n == 0 {
		return n
	}
	if left := t.f.After - t.passed; left > 0 {
		return int(min(int64(n), left))
	}
	t.fire()
	if t.f.Drip > 0 && !t.ended {
		t.wait(time.After(t.f.Every))
		return min(n, t.f.Drip)
	}
	return n
}

// fire applies the trouble, once.
func (t *stream) fire() {
	if t.fired || t.f.none() {
		return
	}
	t.fired = true
	t.s.mu.Lock()
	t.rec.Fired = true
	t.s.mu.Unlock()
	if t.f.Do != nil {
		t.f.Do()
	}
	if t.f.Stall {
		t.wait(nil)
	}
	if t.f.Stall || t.f.Cut {
		t.cut()
	}
	t.ended = t.ended || t.f.Truncate
}

func (t *stream) wait(c <-chan time.Time) {
	select {
	case <-c:
	case <-t.done:
	case <-t.s.closing:
	}
}

func (t *stream) cut() {
	t.ended = true
	if t.conn == nil {
		return
	}
	raw := t.conn
	if c, ok := raw.(interface{ NetConn() net.Conn }); ok {
		raw = c.NetConn()
	}
	if c, ok := raw.(*net.TCPConn); ok && t.f.Reset {
		c.SetLinger(0)
	}
	raw.Close()
}

// corrupt changes the byte at the trouble's point if p contains this byte. p follows the t.passed
// bytes that have already passed.
func (t *stream) corrupt(p []byte) {
	if at := t.f.After - t.passed; t.f.Corrupt && at >= 0 && at < int64(len(p)) {
		p[at] ^= 0x55
	}
}

// faultyBody reads the client's body, and applies a Trouble to it.
type faultyBody struct {
	*stream
	r io.ReadCloser
}

func (b *faultyBody) Read(p []byte) (int, error) {
	if b.ended {
		return 0, io.EOF
	}
	n := b.next(len(p))
	if b.ended {
		return 0, io.EOF
	}
	n, err := b.r.Read(p[:n])
	b.corrupt(p[:n])
	b.passed += int64(n)
	if err != nil {
		b.fire()
		// The backend gets an end of file, because package cgi cannot pass on an error.
		return n, io.EOF
	}
	return n, nil
}

func (b *faultyBody) Close() error { return b.r.Close() }

// faultyWriter writes the answer, and applies a Trouble to it. It accepts everything from the
// backend, so that the backend finishes its work even if the client is gone.
type faultyWriter struct {
	*stream
	w      http.ResponseWriter
	status int
	broken bool
}

func (w *faultyWriter) Header() http.Header { return w.w.Header() }

func (w *faultyWriter) WriteHeader(status int) {
	w.status = status
	if w.f.After == 0 && w.f.Cut {
		w.fire() // before the status line
	}
	if !w.ended || w.f.Truncate {
		w.w.WriteHeader(status)
	}
}

func (w *faultyWriter) Write(p []byte) (int, error) {
	all := len(p)
	for len(p) > 0 && !w.broken {
		n := w.next(len(p))
		if w.ended {
			break
		}
		part := append([]byte(nil), p[:n]...)
		w.corrupt(part)
		if _, err := w.w.Write(part); err != nil {
			w.broken = true
			break
		}
		if !w.f.none() {
			http.NewResponseController(w.w).Flush() // so that the client receives what passed
		}
		w.passed += int64(n)
		p = p[n:]
	}
	return all, nil
}

// finish fires a trouble whose point is after the end of the body.
func (w *faultyWriter) finish() { w.fire() }
