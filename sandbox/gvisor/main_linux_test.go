package gvisor_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"satchel/internal/space"
	"satchel/internal/testenv"
	"satchel/sandbox/agent"
	"satchel/sandbox/gvisor"
	"satchel/sandbox/oci"
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
		case giveBackCommand:
			os.Exit(reclaimAtWork())
		}
	}
	if dir := os.Getenv(serverDir); dir != "" {
		if err := serve(dir); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	// Most of a test is waiting for its sandboxes. The command line goes before.
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
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
	return ask(s.Conn(), command)
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

// start starts a sandbox that ends with the test.
func start(t testing.TB, r *gvisor.Runtime, spec space.SandboxSpec) space.Sandbox {
	t.Helper()
	if spec.ID == "" {
		spec.ID = oci.NewID()
	}
	if spec.Checkout == nil {
		spec.Checkout = newCheckout(t)
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
	testenv.Receive(t, "the end of the sandbox", s.Done())
}
