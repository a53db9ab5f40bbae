//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// server is a running satchel.
type server struct {
	b       *bench
	data    string
	addr    string
	metrics string
	cmd     *exec.Cmd
	done    chan struct{}
	log     *lockedBuffer
}

// lockedBuffer keeps what a process printed.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// serve starts satchel on a fresh data directory and waits until it is ready.
func (b *bench) serve(ctx context.Context, name string, env ...string) (*server, error) {
	s := &server{b: b, data: filepath.Join(b.dir, name), done: make(chan struct{}), log: &lockedBuffer{}}
	var err error
	if s.addr, err = freeAddr(); err != nil {
		return nil, err
	}
	if s.metrics, err = freeAddr(); err != nil {
		return nil, err
	}
	s.cmd = exec.CommandContext(ctx, b.binary, "serve", "--data", s.data, "--listen", s.addr, "--metrics", s.metrics)
	s.cmd.Env = append(os.Environ(), "SATCHEL_SERVER_RATE=100000")
	s.cmd.Env = append(s.cmd.Env, env...)
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	s.cmd.Cancel = func() error { return s.cmd.Process.Signal(syscall.SIGTERM) }
	s.cmd.WaitDelay = 30 * time.Second
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { _ = s.cmd.Wait(); close(s.done) }()
	return s, s.waitReady(ctx)
}

// serveOne starts satchel with one user, and connects as them.
func (b *bench) serveOne(ctx context.Context, name string, env ...string) (*server, *client, error) {
	s, err := b.serve(ctx, name, env...)
	if err != nil {
		return nil, nil, err
	}
	c, err := s.user(ctx, "ada")
	if err != nil {
		s.stop()
		return nil, nil, err
	}
	return s, c, nil
}

func (s *server) waitReady(ctx context.Context) error {
	for {
		res, err := http.Get("http://" + s.addr + "/readyz")
		if err == nil {
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-s.done:
			return fmt.Errorf("satchel serve ended:\n%s", s.log)
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// stop ends the server and waits for its end. It may be called more than once.
func (s *server) stop() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	<-s.done
}

// admin runs an administrative command and decodes its JSON answer.
func (s *server) admin(ctx context.Context, into any, args ...string) error {
	cmd := exec.CommandContext(ctx, s.b.binary, append(args, "--data", s.data, "--json")...)
	var diag bytes.Buffer
	cmd.Stderr = &diag
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("satchel %s: %w: %s", strings.Join(args, " "), err, diag.String())
	}
	return json.Unmarshal(out, into)
}

// user adds a person, who gets a space, and returns a client that is connected as that person.
func (s *server) user(ctx context.Context, name string) (*client, error) {
	var u struct{ Name string }
	if err := s.admin(ctx, &u, "user", "add", name); err != nil {
		return nil, err
	}
	var t struct{ Token string }
	if err := s.admin(ctx, &t, "token", "create", "--user", name); err != nil {
		return nil, err
	}
	return connect(ctx, "http://"+s.addr+"/mcp", t.Token)
}

// users makes n people, each with a running sandbox.
func (s *server) users(ctx context.Context, n int) (_ []*client, err error) {
	var all []*client
	defer func() {
		if err != nil {
			closeAll(all)
		}
	}()
	for i := range n {
		c, err := s.user(ctx, fmt.Sprintf("user%d", i))
		if err != nil {
			return nil, err
		}
		all = append(all, c)
		for range 3 {
			if err := c.bash(ctx, "true"); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// importDir imports a directory into a person's space.
func (s *server) importDir(ctx context.Context, user, dir string) error {
	var r struct{ Files int }
	return s.admin(ctx, &r, "space", "import", dir, "--user", user)
}

// gauge reads a metric's value.
func (s *server) gauge(name string) (float64, error) {
	res, err := http.Get("http://" + s.metrics + "/metrics")
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(body)) {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			var v float64
			_, err := fmt.Sscan(rest, &v)
			return v, err
		}
	}
	return 0, fmt.Errorf("there is no metric %s", name)
}

// waitGauge waits until a metric has the value want.
func (s *server) waitGauge(ctx context.Context, name string, want float64) error {
	for {
		v, err := s.gauge(name)
		if err != nil {
			return err
		}
		if v == want {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}
