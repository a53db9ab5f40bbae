package sandboxtest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"satchel/internal/space"
	"satchel/internal/testenv"
	"satchel/sandbox"
	"satchel/sandbox/crun"
	"satchel/sandbox/gvisor"
	"satchel/sandbox/sandboxtest"
)

// runtimes are the real ones, as the tests' servers make them.
var runtimes = map[string]sandboxtest.NewRuntime{
	"gvisor": func(o sandboxtest.RuntimeOptions) (space.Runtime, error) {
		return gvisor.New(gvisor.Options{RunDir: o.RunDir, Args: o.Args, Rootfs: o.Rootfs, StopTimeout: o.StopTimeout, Logger: o.Logger})
	},
	"crun": newContainers(crun.Name),
	"runc": newContainers(crun.NameRunc),
}

func newContainers(program string) sandboxtest.NewRuntime {
	return func(o sandboxtest.RuntimeOptions) (space.Runtime, error) {
		return crun.New(crun.Options{
			RunDir: o.RunDir, Program: program, Args: o.Args, Rootfs: o.Rootfs, StopTimeout: o.StopTimeout, Logger: o.Logger,
		})
	}
}

func TestRuntimeOverGVisor(t *testing.T) {
	newGVisor(t).Close() // or skip
	sandboxtest.ExerciseRuntime(t, sandboxtest.RuntimeHarness{Name: "gvisor", New: runtimes["gvisor"], Main: sandboxtest.SentryOf})
}

func TestRuntimeOverCrun(t *testing.T) { exerciseContainers(t, crun.Name) }

func TestRuntimeOverRunc(t *testing.T) { exerciseContainers(t, crun.NameRunc) }

func exerciseContainers(t *testing.T, program string) {
	needContainers(t, program)
	sandboxtest.ExerciseRuntime(t, sandboxtest.RuntimeHarness{
		Name: program, New: runtimes[program], Main: sandboxtest.InitOf,
		Lacks: map[string]string{
			"attack: a socket or FIFO of the host's in a mount": "the host's kernel connects through any mount; a seed has neither, for it is written from git's objects",
		},
	})
}

// needContainers skips where this machine or user cannot have containers of the
// host's kernel.
func needContainers(t testing.TB, program string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("an ordinary user may map no one but himself into a sandbox; the tests run as root too")
	}
	if raceEnabled {
		t.Skip("the race detector's own library would be process 1, which the list of system calls is not made for")
	}
	if program == crun.NameRunc {
		// crun is the one that is tested everywhere; it is another program for
		// the same bundle.
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("runc is not installed")
		}
	} else {
		testenv.NeedProgram(t, program)
	}
	r, err := crun.New(crun.Options{RunDir: filepath.Join(t.TempDir(), "run"), Program: program, Logger: sandboxtest.Logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.Check(t.Context()); err != nil {
		testenv.SkipOrFail(t, err.Error())
	}
}

func TestRuntimeOverFake(t *testing.T) {
	const (
		host      = "its commands run on the host and see all of it"
		processes = "it has no process 1, and its commands are the test's own children"
		memory    = "it bounds nothing"
		noReap    = "it leaves nothing that could be found again, and has no run directory"
	)
	lacks := map[string]string{
		"check says what to do in plain words": "it works everywhere", "a failed start leaves nothing": processes,
		"stop is complete and may be repeated": "a process that leaves its command is the host's", "ids are matched whole": host,
		"process 1 exits": processes, "kill -9 of process 1": processes, "stats": "its figures are made up",
		"memory limit": memory, "memory limit, reached by a command": memory,
		"the layout": host, "without git and library": host, "a configured root file system": host,
		"git view and library follow the host": host, "a snapshot of the library is swapped by rename": host,
		"kill -9 of the server": noReap, "kill -9 of a server that nobody follows": noReap,
		"reap destroys a sandbox that hangs and whose server was killed": noReap, "a start destroys what an earlier server left": noReap,
		"reap beside live sandboxes and starts leaves them alone and removes an orphan's remains": noReap, "a run directory is one runtime's": noReap,
	}
	for _, attack := range []string{
		"the host's environment", "the server's open files", "the host's files", "a socket or FIFO of the host's in a mount",
		"devices", "the network", "a setuid program", "writing to the host", "a flood on standard error",
	} {
		lacks["attack: "+attack] = "it isolates nothing"
	}
	sandboxtest.ExerciseRuntime(t, sandboxtest.RuntimeHarness{
		Name: "fake", Lacks: lacks,
		New: func(sandboxtest.RuntimeOptions) (space.Runtime, error) { return sandboxtest.NewFake(t), nil },
		Run: func(s space.Sandbox, line string) (string, error) {
			return s.(*sandboxtest.FakeSandbox).Run(t.Context(), line)
		},
	})
}

func TestPoolOverCrun(t *testing.T) {
	t.Parallel()
	needContainers(t, crun.Name)
	sandboxtest.Exercise(t, func(t testing.TB, change func(*sandbox.Options)) *sandboxtest.Harness {
		r, err := crun.New(crun.Options{RunDir: filepath.Join(t.TempDir(), "run"), Logger: sandboxtest.Logger(t)})
		return poolHarness(t, sandboxtest.Open(t, r, err), change)
	})
}
