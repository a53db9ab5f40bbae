//go:build unix

package sandbox_test

import (
	"log/slog"
	"testing"

	"satchel/internal/testenv"
	"satchel/sandbox"
	"satchel/sandbox/sandboxtest"
)

// fakeHarness makes pools over directories and host processes.
func fakeHarness(t testing.TB, change func(*sandbox.Options)) *sandboxtest.Harness {
	t.Helper()
	h, _ := newFake(t, change)
	return h
}

func newFake(t testing.TB, change func(*sandbox.Options)) (*sandboxtest.Harness, *sandboxtest.Fake) {
	t.Helper()
	testenv.NeedProgram(t, "bash")
	f := sandboxtest.NewFake(t)
	h := &sandboxtest.Harness{Store: sandboxtest.NewStore(t), Runtime: &sandboxtest.Recorder{Runtime: f}}
	o := sandbox.Options{Runtime: h.Runtime, Checkouts: h.Store, Committer: h.Store, Connect: f.Connect, Logger: testLogger(t)}
	if change != nil {
		change(&o)
	}
	open(t, h, o)
	return h, f
}

func open(t testing.TB, h *sandboxtest.Harness, o sandbox.Options) {
	t.Helper()
	p, err := sandbox.New(o)
	if err != nil {
		t.Fatal(err)
	}
	h.Pool = p
	t.Cleanup(func() {
		if err := p.Close(testenv.Context(t)); err != nil {
			t.Error(err)
		}
		if n := h.Store.Seeds(); n != 0 {
			t.Errorf("%d seeds were not released", n)
		}
		if n := h.Runtime.Running(); n != 0 {
			t.Errorf("%d sandboxes are left", n)
		}
	})
}

func testLogger(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), nil))
}

func TestPoolOverFake(t *testing.T) {
	sandboxtest.Exercise(t, fakeHarness)
}
