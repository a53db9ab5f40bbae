package server

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"satchel/internal/admin"
	"satchel/internal/config"
	"satchel/internal/database/databasetest"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/internal/telemetry"
	"satchel/internal/testenv"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// settings is a configuration with everything in a directory of the test, and
// no sandboxes.
func settings(t *testing.T) *config.Config {
	t.Helper()
	cfg, err := config.Load(config.Source{Environ: []string{"SATCHEL_DATA_DIR=" + filepath.Join(t.TempDir(), "data"), "HOME=" + t.TempDir()}})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Server.Listen, cfg.Server.Metrics = "127.0.0.1:0", "127.0.0.1:0"
	cfg.Sandbox.Runtime = "none"
	cfg.Log.Level = "debug"
	return cfg
}

// running is a server of a test with one user.
type running struct {
	*Server
	t     *testing.T
	key   string
	log   *lockedBuffer
	stop  context.CancelFunc
	ended chan error
	once  sync.Once
}

// lockedBuffer is a log that may be read while it is written.
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

// testCore opens a Core with a data directory of its own.
func testCore(t *testing.T) *Core {
	t.Helper()
	c, err := OpenCore(t.Context(), settings(t), "test", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func boot(t *testing.T, cfg *config.Config) *running {
	t.Helper()
	r := &running{t: t, log: &lockedBuffer{}, ended: make(chan error, 1)}
	log, err := telemetry.NewLogger(telemetry.LogOptions{Writer: r.log, Level: cfg.Log.Level, Format: cfg.Log.Format})
	if err != nil {
		t.Fatal(err)
	}
	if r.Server, err = OpenServer(t.Context(), cfg, "test", log); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.Service.FirstUser(t.Context(), "ann"); err != nil {
		t.Fatal(errors.Join(err, r.Close(context.Background())))
	}
	key, err := r.Service.CreateKey(t.Context(), service.Operator(), service.CreateKeyInput{Scopes: []space.Scope{space.ScopeRead, space.ScopeWrite}})
	if err != nil {
		t.Fatal(errors.Join(err, r.Close(context.Background())))
	}
	r.key = key.Secret
	ctx, cancel := context.WithCancel(context.Background())
	r.stop = cancel
	ready := make(chan struct{})
	go func() { r.ended <- r.Serve(ctx, func() { close(ready) }) }()
	select {
	case <-ready:
	case err := <-r.ended:
		t.Fatal(err)
	}
	t.Cleanup(r.end)
	return r
}

// end stops the server and waits for it.
func (r *running) end() {
	r.t.Helper()
	r.once.Do(func() {
		r.stop()
		if err := <-r.ended; err != nil {
			r.t.Errorf("serve: %v", err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
}

// call begins a call of a tool and returns the response, whose body is SSE or
// JSON.
func (r *running) call(tool, args string) *http.Response {
	r.t.Helper()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{"progressToken":1,
		"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`, tool, args)
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.URL(), strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	for k, v := range map[string]string{
		"Authorization": "Bearer " + r.key, "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": tool,
	} {
		req.Header.Set(k, v)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	return res
}

// ask calls a tool and returns everything that it answers.
func (r *running) ask(tool, args string) string {
	r.t.Helper()
	res := r.call(tool, args)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return fmt.Sprintf("%d %s", res.StatusCode, b)
}

func get(t *testing.T, url string) (status int, header http.Header, body string) {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, res.Header, string(b)
}

// Nothing is left of a server that ended, however early, and another can start
// on the same directory.
func TestStartAndStop(t *testing.T) {
	cfg := settings(t)
	log := slog.New(slog.DiscardHandler)
	ctx := t.Context()
	for range 8 {
		s, err := OpenServer(ctx, cfg, "test", log)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(ctx); err != nil { // never served
			t.Fatal(err)
		}
		serving, stop := context.WithCancel(ctx)
		if s, err = OpenServer(ctx, cfg, "test", log); err != nil {
			t.Fatal(err)
		}
		if err := s.Serve(serving, stop); err != nil { // stopped once it is ready
			t.Fatal(err)
		}
		stop()
	}
	s, err := OpenServer(ctx, cfg, "test", log)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(ctx)
	if _, err := OpenServer(ctx, cfg, "test", log); fault.CodeOf(err) != fault.Conflict {
		t.Errorf("a second server on the directory: %v", err)
	}
	for name, change := range map[string]func(*config.Config){
		"--listen":         func(c *config.Config) { c.Server.Listen = s.listener.Addr().String() },
		"metrics":          func(c *config.Config) { c.Server.Metrics = s.metrics.Addr().String() },
		"address":          func(c *config.Config) { c.Server.Listen = "192.0.2.1:1" },
		"PostgreSQL":       func(c *config.Config) { c.Database.URL = "postgres://nobody:secretword@127.0.0.1:1/none" },
		"SQLite database.": func(c *config.Config) { c.Database.URL = "sqlite:" + filepath.Join(cfg.DataDir, "spaces") },
	} {
		other := *cfg
		other.DataDir = filepath.Join(t.TempDir(), "data")
		change(&other)
		_, err := OpenServer(ctx, &other, "test", log)
		if fault.CodeOf(err) != fault.Unavailable || strings.Contains(err.Error(), "secretword") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(SocketPath(other.DataDir)); err == nil {
			t.Errorf("%s: the socket is still there", name)
		}
	}
}

func TestHealthAndMetrics(t *testing.T) {
	r := boot(t, settings(t))
	base := strings.TrimSuffix(r.URL(), "/mcp")
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/": 200, "/metrics": 404, "/mcp": 401, "/nothing": 404, "/users/list": 404} {
		status, header, _ := get(t, base+path)
		if status != want {
			t.Errorf("%s: %d", path, status)
		}
		if header.Get("X-Request-Id") == "" {
			t.Errorf("%s has no request id", path)
		}
	}
	r.ask("instructions", "{}")
	status, _, metrics := get(t, "http://"+r.metrics.Addr().String()+"/metrics")
	for _, want := range []string{`satchel_mcp_request_duration_seconds_count{method="tools/call",outcome="ok",tool="instructions"} 1`,
		`satchel_mcp_refused_total{reason="unauthenticated"} 1`, "go_goroutines", "satchel_http_requests_in_flight"} {
		if status != 200 || !strings.Contains(metrics, want) {
			t.Errorf("%d, without %s:\n%.3000s", status, want, metrics)
		}
	}
	if err := r.DB.Close(); err != nil {
		t.Fatal(err)
	}
	if status, _, body := get(t, base+"/readyz"); status != 503 || !strings.Contains(body, "database") {
		t.Errorf("/readyz without a database: %d %s", status, body)
	}
	if status, _, _ := get(t, base+"/healthz"); status != 200 {
		t.Errorf("/healthz without a database: %d", status)
	}
	r.stop()
	<-r.ended // the database was closed under it
	r.once.Do(func() {})
}

// Attack: read the logs, the metrics and the files for a credential.
func TestNoKeyIsLeft(t *testing.T) {
	r := boot(t, settings(t))
	for _, tool := range []string{"instructions", "search", "read", "nonsense"} {
		r.ask(tool, `{"query":"x","paths":["resources/context.md","`+r.key+`"]}`)
	}
	good := r.key
	r.key = good[:len(good)-2] + "xx"
	r.ask("instructions", "{}")
	r.key = good
	get(t, r.URL()+"?access_token="+r.key)
	_, _, metrics := get(t, "http://"+r.metrics.Addr().String()+"/metrics")
	r.end()

	secret := strings.TrimPrefix(r.key, "satchel_")[:20]
	for what, text := range map[string]string{"the log": r.log.String(), "the metrics": metrics} {
		if strings.Contains(text, secret) {
			t.Errorf("%s has the key:\n%s", what, text)
		}
	}
	if !strings.Contains(r.log.String(), "level=DEBUG") {
		t.Error("the log has no debug records, so that this shows nothing")
	}
	err := filepath.WalkDir(r.Config.DataDir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte(secret)) {
			t.Errorf("%s has the key", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// Everything works the same with PostgreSQL, and stays over a restart.
func TestPostgres(t *testing.T) {
	cfg := settings(t)
	cfg.Database.URL = databasetest.Postgres(t)
	r := boot(t, cfg)
	if got := r.ask("read", `{"paths":["resources/instructions.md"]}`); !strings.HasPrefix(got, "200") {
		t.Error(got)
	}
	r.end()
	key := r.key
	r = boot(t, cfg)
	r.key = key
	if got := r.ask("instructions", "{}"); !strings.HasPrefix(got, "200") {
		t.Error(got)
	}
	if _, err := os.Stat(filepath.Join(cfg.DataDir, "satchel.db")); err == nil {
		t.Error("there is an SQLite database too")
	}
}

// An import that the server's end meets changes nothing.
func TestAnImportThatTheEndMeets(t *testing.T) {
	cfg := settings(t)
	cfg.Server.ShutdownGrace = 0
	r := boot(t, cfg)
	before, err := r.Service.ListSpaces(t.Context(), service.Operator(), service.ListSpacesInput{User: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	remote, err := admin.Dial(t.Context(), SocketPath(cfg.DataDir))
	if err != nil {
		t.Fatal(err)
	}
	defer remote.Close()
	stream, w := io.Pipe()
	imported := make(chan error, 1)
	go func() {
		_, err := remote.Import(context.Background(), service.ImportSpaceInput{Kind: service.ImportTar, Stream: stream})
		imported <- err
	}()
	tw := tar.NewWriter(w)
	// The server has read the first file when the second one's header is taken.
	for _, name := range []string{"one.md", "two.md"} {
		if err := tw.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: 200_000}); err != nil {
			t.Fatal(err)
		}
		if name == "one.md" {
			if _, err := tw.Write(make([]byte, 200_000)); err != nil {
				t.Fatal(err)
			}
		}
	}
	r.end()
	if err := <-imported; err == nil {
		t.Error("the import says that it was done")
	}
	w.Close()
	r = boot(t, cfg)
	after, err := r.Service.ListSpaces(t.Context(), service.Operator(), service.ListSpacesInput{User: "ann"})
	if err != nil || after[0].Head != before[0].Head {
		t.Errorf("head went from %v to %v, %v", before[0].Head, after[0].Head, err)
	}
}

// withSandboxes are settings under which bash works, or the test is skipped.
func withSandboxes(t *testing.T) *config.Config {
	t.Helper()
	cfg := settings(t)
	cfg.Sandbox.Runtime = "gvisor"
	dir := t.TempDir()
	rt, err := NewRuntime(cfg, dir, filepath.Join(dir, "programs"), 0, slog.New(slog.DiscardHandler))
	if err == nil {
		err = errors.Join(rt.Check(t.Context()), rt.Close())
	}
	if err != nil {
		testenv.SkipOrFail(t, "no sandbox can start: "+err.Error())
	}
	return cfg
}

// until reads a response until a text has come, and returns what was read.
func until(t *testing.T, r io.Reader, text string) string {
	t.Helper()
	var got strings.Builder
	b := make([]byte, 4096)
	for !strings.Contains(got.String(), text) {
		n, err := r.Read(b)
		got.Write(b[:n])
		if err != nil {
			t.Fatalf("%q did not come: %v\n%s", text, err, got.String())
		}
	}
	return got.String()
}

// A command that runs while the server is told to end gets its grace, what it
// changed is committed, and its answer goes out.
func TestACommandThatTheEndMeets(t *testing.T) {
	cfg := withSandboxes(t)
	r := boot(t, cfg)
	res := r.call("bash", `{"command":"trap 'echo saved > knowledge/late.md; echo farewell; exit 3' TERM; echo under way; while :; do sleep 0.05; done","comment":"A late note"}`)
	defer res.Body.Close()
	until(t, res.Body, "under way")
	r.stop()
	rest, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatalf("%v after %s", err, rest)
	}
	if !strings.Contains(string(rest), "farewell") || !regexp.MustCompile(`[0-9a-f]{10}`).Match(rest) {
		t.Errorf("the answer is %s", rest)
	}
	r.end()
	repos, err := filepath.Glob(filepath.Join(cfg.DataDir, "spaces", "*.git"))
	if err != nil || len(repos) != 1 {
		t.Fatalf("%v, %v", repos, err)
	}
	out, err := testenv.Git(t, repos[0], "show", "HEAD:knowledge/late.md").CombinedOutput()
	if err != nil || string(out) != "saved\n" {
		t.Errorf("%s, %v", out, err)
	}
}

// A key that a command writes, and one in its comment, stay in a space without a
// remote: the answer says so, and how they are taken out.
func TestAKeyInASpaceWithoutARemoteIsTold(t *testing.T) {
	r := boot(t, withSandboxes(t))
	token := "ghp_" + strings.Repeat("aB3dE5gH7j", 3) + "kL9m2Q"
	got := r.ask("bash", `{"command":"echo `+token+` > knowledge/key.md; echo ok","comment":"Use `+token+`"}`)
	for _, want := range []string{`"path":"knowledge/key.md","why":"Line 1 looks like a secret`, `"path":"(comment)","why":"Line 1 looks like a secret`, `[WARNING`, "satchel space purge --user ann "} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %s", want, got)
		}
	}
	if got = r.ask("bash", `{"command":"echo more >> knowledge/key.md","comment":"Say more"}`); strings.Contains(got, "looks like a secret") {
		t.Errorf("the answer repeats what an earlier one said: %s", got)
	}
}

// Removed people are out at once: their keys, their sandbox, and the command
// that runs.
func TestARemovedUser(t *testing.T) {
	r := boot(t, withSandboxes(t))
	if got := r.ask("bash", `{"command":"echo hi"}`); !strings.Contains(got, "hi") {
		t.Fatal(got)
	}
	res := r.call("bash", `{"command":"echo under way; sleep 1000"}`)
	defer res.Body.Close()
	until(t, res.Body, "under way")
	addUser(t, r.Service, "ben", true) // somebody must be an admin
	begin := time.Now()
	removeUser(t, r.Service, "ann")
	t.Logf("removed after %s", time.Since(begin))
	if _, err := io.ReadAll(res.Body); err != nil {
		t.Error(err)
	}
	if n := r.bash.pool.Status().Sandboxes; n != 0 {
		t.Errorf("%d sandboxes are left", n)
	}
	if got := r.ask("instructions", "{}"); !strings.HasPrefix(got, "401") {
		t.Error(got)
	}
}
