//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
)

// gitServer serves bare repositories with git's own http-backend, on loopback.
type gitServer struct {
	root string
	addr string
	http *http.Server
	sent atomic.Int64 // the number of bytes of all answers
}

// counted is an answer whose bytes are counted.
type counted struct {
	http.ResponseWriter
	sent *atomic.Int64
}

func (c counted) Write(p []byte) (int, error) {
	n, err := c.ResponseWriter.Write(p)
	c.sent.Add(int64(n))
	return n, err
}

func serveGit(root string) (*gitServer, error) {
	if err := os.MkdirAll(root, 0o700); err != nil {
		return nil, err
	}
	out, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		return nil, fmt.Errorf("git --exec-path: %w", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &gitServer{root: root, addr: l.Addr().String()}
	backend := filepath.Join(strings.TrimSpace(string(out)), "git-http-backend")
	s.http = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := s.spool(r); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		defer r.Body.Close()
		h := cgi.Handler{Path: backend, Dir: root, Env: []string{
			"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=bench", "GIT_CONFIG_NOSYSTEM=1",
			"GIT_CONFIG_GLOBAL=/dev/null", "GIT_PROTOCOL=" + r.Header.Get("Git-Protocol"),
		}}
		h.ServeHTTP(counted{w, &s.sent}, r)
	})}
	go func() { _ = s.http.Serve(l) }()
	return s, nil
}

// spool reads a request's body into a file before the backend runs. CGI needs the size of the
// body, and git sends the size only for small bodies.
func (s *gitServer) spool(r *http.Request) error {
	f, err := os.CreateTemp(s.root, "body-")
	if err != nil {
		return err
	}
	n, err := io.Copy(f, r.Body)
	if err = errors.Join(err, os.Remove(f.Name())); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	r.Body, r.ContentLength, r.TransferEncoding = f, n, nil
	return nil
}

func (s *gitServer) close()                 { _ = s.http.Close() }
func (s *gitServer) dir(name string) string { return filepath.Join(s.root, name+".git") }
func (s *gitServer) url(name string) string { return "http://" + s.addr + "/" + name + ".git" }

// create makes an empty repository that accepts pushes.
func (s *gitServer) create(ctx context.Context, name string) error {
	return runGit(ctx, s.root, "init", "-q", "--bare", "-b", "main", s.dir(name))
}

// runGit runs git without the configuration of the user and the system.
func runGit(ctx context.Context, dir string, args ...string) error {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_TERMINAL_PROMPT=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git %s: %w: %s", args[0], err, out)
	}
	return nil
}
