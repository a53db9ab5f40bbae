package server

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// unreadCount returns how many connections and streams have an incomplete request.
func (b *bodies) unreadCount() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.unread)
}

// ATTACK: connections with incomplete requests keep a server from shutting down.
func TestAttackUnfinishedRequestsDelayNoEnd(t *testing.T) {
	cfg := settings(t)
	cfg.Server.BodyTimeout, cfg.Server.ShutdownGrace = time.Hour, time.Hour
	r := boot(t, cfg)
	began := r.bodies.unreadCount()
	requests := []string{"", "POST /mcp HTTP/1.1\r\nHo"}
	for _, path := range []string{"/mcp", "/api/sandbox/search", "/oauth/token", "/signin/mail", "/signout", "/healthz", "/nothing"} {
		for _, auth := range []string{"", "Authorization: Bearer " + r.key + "\r\n"} {
			requests = append(requests, fmt.Sprintf("POST %s HTTP/1.1\r\nHost: %s\r\n%sContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{", path, strings.TrimPrefix(r.issuer, "http://"), auth))
		}
	}
	for _, text := range requests {
		conn, err := net.Dial("tcp", r.listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, text); err != nil {
			t.Fatal(err)
		}
	}
	for r.bodies.unreadCount() < began+len(requests) {
		runtime.Gosched()
	}
	r.end()
}

// bodiesOverHTTP2 is a server with TLS whose handler reads each body. begun has a
// value for each request.
func bodiesOverHTTP2(t *testing.T, b *bodies, within time.Duration) (srv *httptest.Server, begun chan struct{}) {
	t.Helper()
	begun = make(chan struct{}, 2)
	srv = httptest.NewUnstartedServer(nil)
	srv.Config = b.server(newSignals("test", slog.New(slog.DiscardHandler)), b.bound(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun <- struct{}{}
		if r.ProtoMajor != 2 {
			t.Errorf("the request comes by %s", r.Proto)
		}
		if _, err := io.ReadAll(r.Body); errors.Is(err, os.ErrDeadlineExceeded) {
			w.WriteHeader(http.StatusRequestTimeout)
		}
	}), within))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return srv, begun
}

// Over HTTP/2 each stream has its own deadline, and other streams of its connection
// continue.
// A route can allow less than the server.
func TestBodyTimeOfAStream(t *testing.T) {
	b := newBodies(time.Hour)
	srv, _ := bodiesOverHTTP2(t, b, 50*time.Millisecond)
	silent, end := io.Pipe()
	defer end.Close()
	res, err := srv.Client().Post(srv.URL, "text/plain", silent)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusRequestTimeout {
		t.Errorf("a body that stops coming is answered %d", res.StatusCode)
	}
	res, err = srv.Client().Post(srv.URL, "text/plain", strings.NewReader("whole"))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Errorf("a body that comes is answered %d", res.StatusCode)
	}
	if n := b.unreadCount(); n != 0 {
		t.Errorf("%d bodies are waited for", n)
	}
}

// The shutdown of the server ends streams whose bodies stopped arriving, and forgets
// them.
func TestEndOfTheServerEndsStreams(t *testing.T) {
	b := newBodies(time.Hour)
	srv, begun := bodiesOverHTTP2(t, b, time.Hour)
	silent, end := io.Pipe()
	defer end.Close()
	var work sync.WaitGroup
	work.Go(func() {
		res, err := srv.Client().Post(srv.URL, "text/plain", silent)
		if err != nil {
			t.Error(err)
			return
		}
		res.Body.Close()
		if res.StatusCode != http.StatusRequestTimeout {
			t.Errorf("the stream is answered %d", res.StatusCode)
		}
	})
	<-begun
	b.end()
	work.Wait()
	if err := srv.Config.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}
