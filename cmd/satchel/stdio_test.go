package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"satchel/internal/testenv"
)

// environment is that of a process of a test: nothing of ours, no sandboxes.
func environment(t *testing.T) []string {
	env := []string{"HOME=" + t.TempDir(), "SATCHEL_SANDBOX_RUNTIME=none"}
	for _, k := range []string{"PATH", "TMPDIR", "SystemRoot"} {
		env = append(env, k+"="+os.Getenv(k))
	}
	return env
}

// satchel runs a command to its end.
func satchel(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	cmd := exec.Command("satchel", args...)
	var out, diag bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = environment(t), &out, &diag
	err = cmd.Run()
	return out.String(), diag.String(), err
}

// process is a running satchel with pipes.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   io.ReadCloser
	lines *bufio.Reader
	diag  bytes.Buffer
	dead  bool
}

func start(t *testing.T, args ...string) *process {
	t.Helper()
	// A process that hangs ends the test, not the whole run.
	p := &process{t: t, cmd: exec.CommandContext(testenv.Context(t), "satchel", args...)}
	p.cmd.Env, p.cmd.Stderr = environment(t), &p.diag
	var err, err2 error
	p.in, err = p.cmd.StdinPipe()
	p.out, err2 = p.cmd.StdoutPipe()
	if err := errors.Join(err, err2, p.cmd.Start()); err != nil {
		t.Fatal(err)
	}
	p.lines = bufio.NewReader(p.out)
	t.Cleanup(p.kill)
	return p
}

func (p *process) kill() {
	if !p.dead {
		_ = p.cmd.Process.Kill()
		_ = p.wait()
	}
}

// said ends the process and returns its diagnostics, which are only whole then.
func (p *process) said() string {
	p.kill()
	return p.diag.String()
}

func (p *process) wait() error {
	p.dead = true
	return p.cmd.Wait()
}

// ask sends a message and returns the answer.
func (p *process) ask(msg string) string {
	p.t.Helper()
	if _, err := io.WriteString(p.in, msg+"\n"); err != nil {
		p.t.Fatal(err)
	}
	line, err := p.lines.ReadString('\n')
	if err != nil {
		p.t.Fatalf("%v\n%s", err, p.said())
	}
	var m struct{ Result, Error json.RawMessage }
	if err := json.Unmarshal([]byte(line), &m); err != nil || m.Result == nil {
		p.t.Fatalf("%s answers %s\n%s", msg, line, p.said())
	}
	return line
}

const (
	initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`
	callLegacy = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"instructions","arguments":{}}}`
	callModern = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"instructions","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
)

// keys counts the keys that are good.
func keys(t *testing.T, data string) int {
	t.Helper()
	out, diag, err := satchel(t, "token", "list", "--data", data, "--json")
	var list []any
	if err != nil || json.Unmarshal([]byte(out), &list) != nil {
		t.Fatalf("token list: %v %s%s", err, out, diag)
	}
	return len(list)
}

// Where no server runs, the first client's process serves; others share it, and
// when it is killed another goes on.
func TestStdioWithoutAServer(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	first := start(t, "stdio", "--data", data)
	first.ask(initialize)
	first.ask(callLegacy)
	first.ask(callModern)
	if n := keys(t, data); n != 1 {
		t.Errorf("%d keys", n)
	}
	second := start(t, "stdio", "--data", data)
	second.ask(initialize)
	second.ask(callLegacy)

	_, diag, err := satchel(t, "serve", "--data", data, "--listen", "127.0.0.1:0")
	if err == nil || !strings.Contains(diag, "A client that uses satchel stdio") || strings.Count(diag, "\n") != 1 {
		t.Errorf("serve beside it: %v %s", err, diag)
	}

	first.kill()
	second.ask(callLegacy)
	second.ask(callModern)
	if n := keys(t, data); n != 2 {
		t.Errorf("%d keys, of the killed one and of the other", n)
	}
	second.in.Close()
	if err := second.wait(); err != nil {
		t.Errorf("%v\n%s", err, second.diag.String())
	}
	if n := keys(t, data); n != 1 {
		t.Errorf("%d keys; that of the killed process ends by itself", n)
	}
}

var mcpURL = regexp.MustCompile(`http://127\.0\.0\.1:\d+/mcp`)

// greeted reads a server's greeting and returns its URL.
func (p *process) greeted() string {
	p.t.Helper()
	for {
		line, err := p.lines.ReadString('\n')
		if err != nil {
			p.t.Fatalf("%v\n%s", err, p.said())
		}
		if strings.HasPrefix(line, `{"url"`) {
			return mcpURL.FindString(line)
		}
	}
}

func (p *process) terminate() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
	if err := p.wait(); err != nil {
		p.t.Errorf("SIGTERM: %v\n%s", err, p.diag.String())
	}
}

// A server that restarts, be it elsewhere, is found again, and its directory is
// never taken meanwhile. Every way to end takes the key along.
func TestStdioWithAServer(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	serve := func() *process {
		s := start(t, "serve", "--json", "--data", data, "--listen", "127.0.0.1:0")
		s.greeted()
		return s
	}
	s := serve()
	c := start(t, "stdio", "--data", data)
	c.ask(initialize)
	c.ask(callLegacy)
	s.terminate()
	if _, err := io.WriteString(c.in, callLegacy+"\n"); err != nil { // waits
		t.Fatal(err)
	}
	s = serve()
	if answer, err := c.lines.ReadString('\n'); err != nil || !strings.Contains(answer, `"result"`) {
		t.Fatalf("%s %v\n%s", answer, err, c.said())
	}
	c.ask(callModern)
	if n := keys(t, data); n != 2 { // the first admin's and the client's
		t.Errorf("%d keys", n)
	}
	c.terminate()
	if n := keys(t, data); n != 1 {
		t.Errorf("%d keys after SIGTERM", n)
	}

	// Who gave up reading gets no signal that would keep the key alive.
	c = start(t, "stdio", "--data", data)
	c.ask(initialize)
	c.out.Close()
	if _, err := io.WriteString(c.in, callModern+"\n"); err != nil {
		t.Fatal(err)
	}
	if err := c.wait(); err == nil || c.cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("a broken output: %v", err)
	}
	if n := keys(t, data); n != 1 {
		t.Errorf("%d keys after a broken output", n)
	}

	// With a key of its own, by URL.
	key, err := os.ReadFile(filepath.Join(data, "admin-key"))
	if err != nil {
		t.Fatal(err)
	}
	out, _, err := satchel(t, "doctor", "--data", data)
	if mcpURL.FindString(out) == "" {
		t.Fatalf("doctor names no URL: %v\n%s", err, out)
	}
	cmd := exec.Command("satchel", "stdio", "--url", mcpURL.FindString(out))
	cmd.Stdin = strings.NewReader(callModern + "\n")
	cmd.Env = append(environment(t), "SATCHEL_TOKEN="+strings.TrimSpace(string(key)))
	answer, err := cmd.Output()
	if err != nil || bytes.Count(answer, []byte("\n")) != 1 || !bytes.Contains(answer, []byte(`"result"`)) {
		t.Errorf("%v: %s", err, answer)
	}
	s.terminate()
}

// A reader of the greeting that has gone, or of the log, does not end a server.
func TestServeOutlivesItsReaders(t *testing.T) {
	s := start(t, "serve", "--json", "--data", filepath.Join(t.TempDir(), "data"), "--listen", "127.0.0.1:0")
	s.out.Close()
	// The greeting meets a broken pipe; the server is there all the same.
	testenv.WaitFor(t, "a server", func() bool {
		out, _, _ := satchel(t, "doctor", "--data", s.cmd.Args[4])
		return mcpURL.MatchString(out)
	})
	s.terminate()
}
