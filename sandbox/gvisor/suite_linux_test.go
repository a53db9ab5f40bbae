package gvisor_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"satchel/internal/space"
	"satchel/internal/testenv"
	"satchel/sandbox/gvisor"
	"satchel/sandbox/oci"
)

// TestRuntime checks what a space.Runtime promises. It looks from outside for what
// must be gone: in the host's processes, mounts, cgroups and files.
func TestRuntime(t *testing.T) {
	for _, group := range [][]runtimeCheck{lifeChecks, viewChecks, endChecks, reapChecks, escapeChecks} {
		for _, c := range group {
			t.Run(c.name, func(t *testing.T) {
				if !c.alone {
					t.Parallel()
				}
				e := &runtimeExercise{T: t, dir: filepath.Join(t.TempDir(), "run")}
				t.Cleanup(func() { // after all runtimes of the check are closed
					for _, id := range e.started() {
						e.gone(id)
					}
				})
				var cancel context.CancelFunc
				e.ctx, cancel = context.WithCancel(testenv.Context(t))
				defer cancel()
				c.run(e)
			})
		}
	}
}

type runtimeCheck struct {
	name  string
	alone bool // it counts or changes what belongs to the whole process
	run   func(*runtimeExercise)
}

// runtimeExercise is one running check.
type runtimeExercise struct {
	*testing.T
	ctx context.Context
	dir string // the runtime's run directory

	mu  sync.Mutex
	ids []space.SandboxID // of all that were started
}

// runtime returns a runtime in the check's run directory.
func (e *runtimeExercise) runtime(change ...func(*gvisor.Options)) *gvisor.Runtime {
	e.Helper()
	return newRuntime(e, append([]func(*gvisor.Options){func(o *gvisor.Options) { o.RunDir = e.dir }}, change...)...)
}

func (e *runtimeExercise) started() []space.SandboxID {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.ids)
}

// spec is a sandbox over a new space, with an id of its own.
func (e *runtimeExercise) spec() space.SandboxSpec {
	e.Helper()
	s := space.SandboxSpec{ID: oci.NewID(), Checkout: newCheckout(e)}
	e.note(s.ID)
	return s
}

func (e *runtimeExercise) note(id space.SandboxID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ids = append(e.ids, id)
}

// start starts a sandbox, which must work.
func (e *runtimeExercise) start(r space.Runtime, spec space.SandboxSpec) space.Sandbox {
	e.Helper()
	s, err := r.Start(e.ctx, spec)
	if err != nil {
		e.Fatalf("starting a sandbox: %v (%v)", err, errors.Unwrap(err))
	}
	return s
}

// run has process 1 run a line and returns its trimmed output.
func (e *runtimeExercise) run(s space.Sandbox, line string) string {
	e.Helper()
	return bash(e, s, line)
}

// alive checks that a sandbox answers.
func (e *runtimeExercise) alive(s space.Sandbox, which string) {
	e.Helper()
	if got, err := tryBash(s, "echo alive"); err != nil || got != "alive" {
		e.Errorf("%s says %q (%v)", which, got, err)
	}
}

// ended waits for the end of a sandbox.
func (e *runtimeExercise) ended(s space.Sandbox) {
	e.Helper()
	ended(e, s)
}

// stop stops a sandbox, of which nothing may be left when that returns.
func (e *runtimeExercise) stop(s space.Sandbox) {
	e.Helper()
	if err := s.Stop(e.ctx); err != nil {
		e.Fatalf("stopping: %v", err)
	}
	select {
	case <-s.Done():
	default:
		e.Error("Stop returned before Done")
	}
}

// gone checks that the host has nothing that is called after a sandbox.
func (e *runtimeExercise) gone(id space.SandboxID) {
	e.Helper()
	for _, left := range remains(e.dir, id) {
		e.Errorf("of sandbox %.8s is left: %s", id, left)
	}
}

// newCheckout makes the three directories of a checkout as the store makes them.
func newCheckout(t testing.TB) *space.Checkout {
	t.Helper()
	dir := t.TempDir()
	s := &space.Checkout{
		Dir:     filepath.Join(dir, "checkout"),
		GitView: filepath.Join(dir, "git"),
		Library: filepath.Join(dir, "library"),
		Release: func() {},
	}
	for _, d := range []string{s.Dir, s.GitView, s.Library} {
		if err := os.Mkdir(d, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(d, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	writeFile(t, filepath.Join(s.Dir, "note.md"), "a note\n")
	writeFile(t, filepath.Join(s.GitView, "HEAD"), "ref: refs/heads/main\n")
	writeFile(t, filepath.Join(s.Library, "page.md"), "a page\n")
	return s
}

// writeFile writes a file that every user may change.
func writeFile(t testing.TB, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(name, 0o666); err != nil { // whatever the umask is
		t.Fatal(err)
	}
}
