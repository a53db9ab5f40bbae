package sandboxtest_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/internal/testenv"
	"satchel/sandbox"
	"satchel/sandbox/agent"
	"satchel/sandbox/gvisor"
	"satchel/sandbox/sandboxtest"
)

// TestMain lets the test binary be gVisor's programs and the agent too, as the
// satchel binary is.
func TestMain(m *testing.M) {
	gvisor.Dispatch()
	if len(os.Args) > 1 && os.Args[1] == agent.Command {
		os.Exit(agent.Serve(os.Stdin, os.Stdout))
	}
	goleak.VerifyTestMain(m)
}

// newGVisor returns a runtime that ends with the test, or skips where this
// machine or this binary cannot run one.
func newGVisor(t testing.TB) *gvisor.Runtime {
	t.Helper()
	if raceEnabled {
		t.Skip("the race detector needs cgo, and a binary linked with cgo cannot be gVisor's sentry")
	}
	r, err := gvisor.New(gvisor.Options{RunDir: filepath.Join(t.TempDir(), "run"), Logger: testLogger(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Errorf("closing the runtime: %v", err)
		}
	})
	if err := r.Check(t.Context()); err != nil {
		testenv.SkipOrFail(t, err.Error())
	}
	return r
}

// gvisorHarness makes pools over real sandboxes.
func gvisorHarness(t testing.TB, change func(*sandbox.Options)) *sandboxtest.Harness {
	t.Helper()
	h := &sandboxtest.Harness{Store: sandboxtest.NewStore(t), Runtime: &sandboxtest.Recorder{Runtime: newGVisor(t)}}
	o := sandbox.Options{Runtime: h.Runtime, Seeder: h.Store, Committer: h.Store, Logger: testLogger(t)}
	if change != nil {
		change(&o)
	}
	p, err := sandbox.New(o)
	if err != nil {
		t.Fatal(err)
	}
	h.Pool = p
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := p.Close(ctx); err != nil {
			t.Error(err)
		}
		if n := h.Runtime.Running(); n != 0 {
			t.Errorf("%d sandboxes are left", n)
		}
	})
	return h
}

func testLogger(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), nil))
}

func TestPoolOverGVisor(t *testing.T) {
	sandboxtest.Exercise(t, gvisorHarness)
}

// TestOutOfMemoryOverGVisor is the attack of a command that takes all memory:
// its sandbox ends, the answer says why, and the next command works.
func TestOutOfMemoryOverGVisor(t *testing.T) {
	h := gvisorHarness(t, func(o *sandbox.Options) {
		o.Limits = sandbox.DefaultLimits()
		o.Limits.Memory = 160 << 20
	})
	id := h.Store.Space(sandboxtest.Tree{"f": {Content: "f\n"}})
	request := func(command string) sandbox.Request {
		return sandbox.Request{User: "u_one", Space: id, Command: command}
	}
	if r, err := h.Pool.Exec(t.Context(), request("echo safe > safe")); err != nil || len(r.Commits) != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	_, err := h.Pool.Exec(t.Context(), request("head -c 2G /dev/zero | tail"))
	if !errors.Is(err, space.ErrOutOfMemory) || fault.CodeOf(err) != fault.Unavailable {
		t.Errorf("%v", err)
	}
	r, err := h.Pool.Exec(t.Context(), request("cat safe f"))
	if err != nil || r.Stdout.Text != "safe\nf\n" || !r.Restarted {
		t.Errorf("%+v, %v", r, err)
	}
}
