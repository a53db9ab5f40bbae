package gvisor_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"satchel/internal/space"
	"satchel/sandbox/agent"
	"satchel/sandbox/gvisor"
)

func TestMain(m *testing.M) {
	gvisor.Dispatch()
	if len(os.Args) == 2 {
		switch os.Args[1] {
		case agent.Command:
			os.Exit(agent.Serve(os.Stdin, os.Stdout))
		case standInCommand:
			standIn()
			os.Exit(0)
		}
	}
	if dir := os.Getenv(serverRunDir); dir != "" {
		os.Exit(serve(dir))
	}
	goleak.VerifyTestMain(m)
}

// bash runs a command through the stand-in and returns its trimmed output.
func bash(t testing.TB, s space.Sandbox, command string) string {
	t.Helper()
	out, err := tryBash(s, command)
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	return out
}

func tryBash(s space.Sandbox, command string) (string, error) {
	if _, err := fmt.Fprintln(s.Conn(), command); err != nil {
		return "", err
	}
	var n int
	// Byte by byte, for nothing may be read that is not this answer.
	var line []byte
	for b := make([]byte, 1); ; {
		if _, err := s.Conn().Read(b); err != nil {
			return "", err
		}
		if b[0] == '\n' {
			break
		}
		line = append(line, b[0])
	}
	if _, err := fmt.Sscanf(string(line), "%d", &n); err != nil {
		return "", fmt.Errorf("odd answer %q: %w", line, err)
	}
	var out bytes.Buffer
	for out.Len() < n {
		b := make([]byte, n-out.Len())
		k, err := s.Conn().Read(b)
		if err != nil {
			return "", err
		}
		out.Write(b[:k])
	}
	return strings.TrimSpace(out.String()), nil
}

// withAgent has the agent as process 1 instead of the stand-in.
func withAgent(o *gvisor.Options) { o.Args = nil }

// newRuntime returns a runtime that ends with the test, or skips where this
// machine cannot run one.
func newRuntime(t testing.TB, change ...func(*gvisor.Options)) *gvisor.Runtime {
	t.Helper()
	needStatic(t)
	opt := gvisor.Options{
		RunDir: filepath.Join(t.TempDir(), "run"),
		Args:   []string{agent.Exe, standInCommand},
	}
	if raceEnabled {
		opt.Exe = os.Getenv(staticBinary)
	}
	for _, c := range change {
		c(&opt)
	}
	r, err := gvisor.New(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Errorf("closing the runtime: %v", err)
		}
	})
	return r
}

// staticBinary names this test's binary as built with CGO_ENABLED=0. With the
// race detector, which needs cgo, the runtime's children have to be that one.
const staticBinary = "SATCHEL_TEST_STATIC"

func needStatic(t testing.TB) {
	t.Helper()
	if raceEnabled && os.Getenv(staticBinary) == "" {
		t.Skip("a binary linked with cgo cannot be gVisor's sentry, and " + staticBinary + " names no other")
	}
}

func newID() space.SandboxID {
	var b [32]byte
	rand.Read(b[:])
	return space.SandboxID(hex.EncodeToString(b[:]))
}

// newSeed makes the three directories of a seed as the seeder makes them.
func newSeed(t testing.TB) *space.Seed {
	t.Helper()
	dir := t.TempDir()
	s := &space.Seed{
		Checkout: filepath.Join(dir, "checkout"),
		GitView:  filepath.Join(dir, "git"),
		Library:  filepath.Join(dir, "library"),
		Release:  func() {},
	}
	for _, d := range []string{s.Checkout, s.GitView, s.Library} {
		if err := os.Mkdir(d, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(d, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(s.Checkout, "note.md"), "a note\n")
	write(t, filepath.Join(s.GitView, "HEAD"), "ref: refs/heads/main\n")
	write(t, filepath.Join(s.Library, "page.md"), "a page\n")
	return s
}

func write(t testing.TB, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(name, 0o666); err != nil { // whatever the umask is
		t.Fatal(err)
	}
}

// start starts a sandbox that ends with the test.
func start(t testing.TB, r *gvisor.Runtime, spec space.SandboxSpec) space.Sandbox {
	t.Helper()
	if spec.ID == "" {
		spec.ID = newID()
	}
	if spec.Seed == nil {
		spec.Seed = newSeed(t)
	}
	s, err := r.Start(t.Context(), spec)
	if err != nil {
		t.Fatalf("starting a sandbox: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.Background()); err != nil {
			t.Errorf("stopping the sandbox: %v", err)
		}
	})
	return s
}

// ended waits for the end of a sandbox.
func ended(t testing.TB, s space.Sandbox) {
	t.Helper()
	select {
	case <-s.Done():
	case <-time.After(30 * time.Second):
		t.Fatal("the sandbox does not end")
	}
}
