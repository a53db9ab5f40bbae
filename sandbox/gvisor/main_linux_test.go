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
	"satchel/sandbox/gvisor"
	"satchel/sandbox/oci"
	"satchel/sandbox/programs"
	"satchel/sandbox/programs/programstest"
	"satchel/sandbox/protocol"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 {
		switch os.Args[1] {
		case standInCommand:
			standIn()
			os.Exit(0)
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
func withAgent(o *gvisor.Options) { o.Args, o.Programs = nil, programstest.Build }

// withProgram has another program in place of the sandbox program.
func withProgram(name string) func(*gvisor.Options) {
	return func(o *gvisor.Options) {
		o.Programs = func() (programs.Programs, error) {
			p, err := programstest.WithSelf()
			p.Sandbox = name
			return p, err
		}
	}
}

// newRuntime returns a runtime that ends with the test, or skips where this
// machine cannot run one.
func newRuntime(t testing.TB, change ...func(*gvisor.Options)) *gvisor.Runtime {
	t.Helper()
	needNoRace(t)
	opt := gvisor.Options{
		RunDir:   filepath.Join(t.TempDir(), "run"),
		Programs: programstest.WithSelf,
		Args:     []string{protocol.Exe, standInCommand},
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

func needNoRace(t testing.TB) {
	t.Helper()
	if raceEnabled {
		t.Skip("this binary is process 1 in its sandboxes, and the race detector links it with cgo")
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
