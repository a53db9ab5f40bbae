package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// silent is how many connections send the beginning of a request and then nothing.
const silent = 50

// fallSilent opens connections with a good key whose bodies stop coming.
func fallSilent(t *testing.T, url, data string) []net.Conn {
	t.Helper()
	key, err := os.ReadFile(filepath.Join(data, "admin-key"))
	if err != nil {
		t.Fatal(err)
	}
	host := strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/mcp")
	conns := make([]net.Conn, silent)
	for i := range conns {
		if conns[i], err = net.Dial("tcp", host); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conns[i].Close() })
		fmt.Fprintf(conns[i], "POST /mcp HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{",
			host, strings.TrimSpace(string(key)))
	}
	return conns
}

// sockets counts the sockets that the process has open.
func (p *process) sockets() (n int) {
	p.t.Helper()
	dir := fmt.Sprintf("/proc/%d/fd", p.cmd.Process.Pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, e := range entries {
		to, err := os.Readlink(filepath.Join(dir, e.Name()))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			p.t.Fatal(err)
		}
		if strings.HasPrefix(to, "socket:") {
			n++
		}
	}
	return n
}

// A connection whose request stops coming is answered and closed once
// server.body_timeout is over, and holds no descriptor after.
func TestSilentConnectionsAreClosed(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	s := start(t, "serve", "--json", "--data", data, "--listen", "127.0.0.1:0", "--server-body-timeout", "1s")
	url := s.greeted()
	before := s.sockets()
	for i, c := range fallSilent(t, url, data) {
		in := bufio.NewReader(c)
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
		if _, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode != http.StatusRequestTimeout {
			t.Errorf("connection %d is answered %d, %v", i, res.StatusCode, err)
		}
		if _, err := in.ReadByte(); err != io.EOF {
			t.Errorf("connection %d is left open: %v", i, err)
		}
	}
	for s.sockets() > before {
		runtime.Gosched()
	}
	s.terminate()
}

// A server that stops does not wait for requests whose bodies have not arrived, however
// long bodies may take.
func TestSilentConnectionsDelayNoEnd(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	s := start(t, "serve", "--json", "--data", data, "--listen", "127.0.0.1:0", "--server-body-timeout", "1h", "--server-shutdown-grace", "1h")
	url := s.greeted()
	before := s.sockets()
	fallSilent(t, url, data)
	for s.sockets() < before+silent {
		runtime.Gosched()
	}
	s.terminate()
}
