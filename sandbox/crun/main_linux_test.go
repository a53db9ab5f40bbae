package crun_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/internal/testenv"
	"satchel/sandbox/agent"
	"satchel/sandbox/crun"
	"satchel/sandbox/oci"
	"satchel/sandbox/sandboxtest"
)

// The suite of all runtimes runs over this one in sandbox/sandboxtest; here is
// what is crun's alone.
func TestMain(m *testing.M) {
	sandboxtest.Dispatch(nil)
	goleak.VerifyTestMain(m)
}

func newRuntime(t testing.TB, args ...string) *crun.Runtime {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("an ordinary user may map no one but himself into a sandbox; the tests run as root too")
	}
	exe := ""
	if raceEnabled {
		// This test's binary as built with CGO_ENABLED=0.
		if exe = os.Getenv("SATCHEL_TEST_STATIC"); exe == "" {
			t.Skip("the race detector's own library would be process 1, which the list of system calls is not made for, and SATCHEL_TEST_STATIC names no other program")
		}
	}
	testenv.NeedProgram(t, crun.Name)
	r, err := crun.New(crun.Options{
		RunDir: filepath.Join(t.TempDir(), "run"), Exe: exe, Args: args, Logger: sandboxtest.Logger(t),
	})
	return sandboxtest.Use(t, r, err)
}

func standIn() []string { return []string{agent.Exe, sandboxtest.StandInCommand} }

func start(t testing.TB, r *crun.Runtime) (space.Sandbox, space.SandboxID) {
	t.Helper()
	id := oci.NewID()
	checkout := filepath.Join(t.TempDir(), "checkout")
	if err := os.Mkdir(checkout, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{checkout, filepath.Join(checkout, "docs")} {
		if err := os.MkdirAll(d, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(d, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	note := filepath.Join(checkout, "docs", "note.md")
	if err := os.WriteFile(note, []byte("a note\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	// As the seeder does.
	for _, p := range []string{checkout, filepath.Dir(note), note} {
		if err := os.Chown(p, agent.CommandUID, agent.CommandUID); err != nil {
			t.Fatal(err)
		}
	}
	s, err := r.Start(t.Context(), space.SandboxSpec{
		ID: id, Seed: &space.Seed{Checkout: checkout}, Limits: space.Limits{Memory: 512 << 20, Processes: 100, CPUs: 2},
	})
	if err != nil {
		t.Fatalf("%v (%v)", err, errors.Unwrap(err))
	}
	t.Cleanup(func() {
		if err := s.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s, id
}

func ask(t testing.TB, s space.Sandbox, line string) string {
	t.Helper()
	out, err := sandboxtest.Ask(s.Conn(), line)
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return out
}

// connect starts a sandbox with the agent in it.
func connect(t testing.TB, r *crun.Runtime) *agent.Client {
	t.Helper()
	s, _ := start(t, r)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	c, err := agent.Connect(ctx, s.Conn(), agent.Boot{
		Disk: 64 << 20, Inodes: 10_000, Tmp: 16 << 20, Output: 1 << 20, Processes: 64, OpenFiles: 256, FileSize: 32 << 20,
		SharedKernel: r.SharedKernel(),
	})
	if err != nil {
		t.Fatalf("the agent does not answer: %v", err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func sh(t testing.TB, c *agent.Client, command string) (string, int) {
	t.Helper()
	r, err := c.Exec(t.Context(), agent.ExecRequest{Command: command, HeadTail: 64 << 10, WallTime: 30 * time.Second}, nil)
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	return strings.TrimSpace(string(r.Stdout.Head) + string(r.Stderr.Head)), r.ExitCode
}

func TestNewRefusesWrongOptions(t *testing.T) {
	for name, o := range map[string]crun.Options{
		"no run directory":            {},
		"relative run directory":      {RunDir: "run"},
		"relative root file system":   {RunDir: "/run/x", Rootfs: "rootfs"},
		"another program":             {RunDir: "/run/x", Program: "/bin/sh"},
		"the host's users":            {RunDir: "/run/x", FirstID: 1000},
		"users above all that may be": {RunDir: "/run/x", FirstID: 0x7ff00000},
	} {
		if _, err := crun.New(o); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}
