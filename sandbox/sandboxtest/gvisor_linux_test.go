package sandboxtest_test

import (
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"satchel/internal/space"
	"satchel/internal/testenv"
	"satchel/sandbox"
	"satchel/sandbox/gvisor"
	"satchel/sandbox/programs/programstest"
	"satchel/sandbox/sandboxtest"
)

// rootfsVariable names a root file system directory for the sandboxes of these
// tests, made as docs/rootfs.md says; empty: the host's programs.
const rootfsVariable = "SATCHEL_TEST_ROOTFS"

func TestMain(m *testing.M) {
	// Most of a test is waiting for its sandboxes. The command line goes before.
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// newGVisor returns a runtime that ends with the test, or skips where this
// machine or this binary cannot run one.
func newGVisor(t testing.TB) *gvisor.Runtime {
	t.Helper()
	needGVisor(t)
	r, err := gvisor.New(gvisor.Options{RunDir: filepath.Join(t.TempDir(), "run"), Programs: programstest.Build, Rootfs: os.Getenv(rootfsVariable), Logger: sandboxtest.Logger(t)})
	return sandboxtest.Open(t, r, err)
}

func needGVisor(t testing.TB) {
	t.Helper()
	if err := tryGVisor(); err != nil {
		testenv.SkipOrFail(t, err.Error())
	}
}

// tryGVisor reports why gVisor does not work here, by one trial for all tests: it
// costs more than many a test.
var tryGVisor = sync.OnceValue(func() error {
	return sandboxtest.Try(func(runDir string) (space.Runtime, error) {
		return gvisor.New(gvisor.Options{RunDir: runDir, Programs: programstest.Build, Rootfs: os.Getenv(rootfsVariable), Logger: slog.New(slog.DiscardHandler)})
	})
})

// gvisorHarness makes pools over real sandboxes.
func gvisorHarness(t testing.TB, change func(*sandbox.Options)) *sandboxtest.Harness {
	t.Helper()
	return poolHarness(t, newGVisor(t), change)
}

// poolHarness makes a pool over a runtime that ends with the test.
func poolHarness(t testing.TB, r space.Runtime, change func(*sandbox.Options)) *sandboxtest.Harness {
	t.Helper()
	h := &sandboxtest.Harness{Store: sandboxtest.NewStore(t), Runtime: &sandboxtest.Recorder{Runtime: r}}
	o := sandbox.Options{Runtime: h.Runtime, Checkouts: h.Store, Committer: h.Store, Logger: sandboxtest.Logger(t)}
	if change != nil {
		change(&o)
	}
	t.Cleanup(func() { // when the pool is closed
		if n := h.Runtime.Running(); n != 0 {
			t.Errorf("%d sandboxes are left", n)
		}
	})
	h.Pool = sandboxtest.NewPool(t, o)
	return h
}

func TestPoolOverGVisor(t *testing.T) {
	t.Parallel()
	sandboxtest.ExerciseReal(t, gvisorHarness)
}
