package sandboxtest

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"satchel/internal/space"
	"satchel/internal/testenv"
	"satchel/sandbox/oci"
)

// RuntimeOptions are what the suite asks of a Runtime that it has made.
type RuntimeOptions struct {
	RunDir      string
	Args        []string // command line of process 1; nil: the agent's
	Rootfs      string
	StopTimeout time.Duration // zero: the Runtime's own
	Logger      *slog.Logger
}

// NewRuntime makes a Runtime.
type NewRuntime func(RuntimeOptions) (space.Runtime, error)

// RuntimeHarness is a kind of Runtime under test.
type RuntimeHarness struct {
	// Name is that of New in the map that Dispatch was given.
	Name string
	New  NewRuntime
	// Run has process 1 do what a line says, as StandIn does; nil if
	// process 1 is a StandIn.
	Run func(s space.Sandbox, line string) (string, error)
	// Main returns the host's process with which a sandbox lives and dies; zero
	// where there is none.
	Main func(runDir string, id space.SandboxID) int
	// Lacks names the checks that this kind cannot pass, each with the reason.
	Lacks map[string]string
}

// ExerciseRuntime checks what a space.Runtime promises. What is to be gone is
// looked for from outside: in the host's processes, mounts, cgroups and files.
func ExerciseRuntime(t *testing.T, h RuntimeHarness) {
	known := map[string]bool{}
	for _, group := range [][]runtimeCheck{runtimeLifeChecks, runtimeViewChecks, runtimeEndChecks, runtimeReapChecks, runtimeAttackChecks} {
		for _, c := range group {
			known[c.name] = true
			t.Run(c.name, func(t *testing.T) {
				if why := h.Lacks[c.name]; why != "" {
					t.Skip(why)
				}
				if !c.alone {
					t.Parallel()
				}
				e := &runtimeExercise{T: t, h: h, dir: filepath.Join(t.TempDir(), "run")}
				// When all runtimes of the check are closed.
				t.Cleanup(func() {
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
	for name := range h.Lacks {
		if !known[name] {
			t.Errorf("%q is said to be lacking, and is no check", name)
		}
	}
}

type runtimeCheck struct {
	name  string
	alone bool // it counts or changes what belongs to the whole process
	run   func(*runtimeExercise)
}

// runtimeExercise is one check that runs.
type runtimeExercise struct {
	*testing.T
	h   RuntimeHarness
	ctx context.Context
	dir string // the runtime's run directory

	mu  sync.Mutex
	ids []space.SandboxID // of all that were started
}

// runtime returns a Runtime that ends with the check, after which nothing may
// be left of any sandbox.
func (e *runtimeExercise) runtime(change ...func(*RuntimeOptions)) space.Runtime {
	e.Helper()
	o := RuntimeOptions{
		RunDir: e.dir, Args: standInArgs(), Logger: Logger(e),
	}
	for _, c := range change {
		c(&o)
	}
	r, err := e.h.New(o)
	if err != nil {
		e.Fatal(err)
	}
	e.Cleanup(func() {
		if err := r.Close(); err != nil {
			e.Errorf("closing the runtime: %v", err)
		}
	})
	return r
}

func (e *runtimeExercise) started() []space.SandboxID {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.ids)
}

// spec is a sandbox over a new space, with an id of its own.
func (e *runtimeExercise) spec() space.SandboxSpec {
	e.Helper()
	s := space.SandboxSpec{ID: oci.NewID(), Checkout: NewCheckout(e.T)}
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
	out, err := e.try(s, line)
	if err != nil {
		e.Fatalf("%s: %v", line, err)
	}
	return out
}

func (e *runtimeExercise) try(s space.Sandbox, line string) (string, error) {
	if e.h.Run != nil {
		out, err := e.h.Run(s, line)
		return strings.TrimSpace(out), err
	}
	return Ask(s.Conn(), line)
}

// alive checks that a sandbox answers.
func (e *runtimeExercise) alive(s space.Sandbox, which string) {
	e.Helper()
	if got, err := e.try(s, "echo alive"); err != nil || got != "alive" {
		e.Errorf("%s says %q (%v)", which, got, err)
	}
}

// ended waits for the end of a sandbox.
func (e *runtimeExercise) ended(s space.Sandbox) {
	e.Helper()
	select {
	case <-s.Done():
	case <-e.ctx.Done():
		e.Fatal("the sandbox does not end")
	}
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
	for _, left := range Remains(e.dir, id) {
		e.Errorf("of sandbox %.8s is left: %s", id, left)
	}
}

// NewCheckout makes the three directories of a seed as the seeder makes them.
func NewCheckout(t testing.TB) *space.Checkout {
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
	WriteFile(t, filepath.Join(s.Dir, "note.md"), "a note\n")
	WriteFile(t, filepath.Join(s.GitView, "HEAD"), "ref: refs/heads/main\n")
	WriteFile(t, filepath.Join(s.Library, "page.md"), "a page\n")
	return s
}

// WriteFile writes a file that every user may change.
func WriteFile(t testing.TB, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(name, 0o666); err != nil { // whatever the umask is
		t.Fatal(err)
	}
}
