package sandboxtest_test

import (
	"testing"

	"satchel/internal/space"
	"satchel/sandbox/gvisor"
	"satchel/sandbox/sandboxtest"
)

// runtimes are the real ones, as the tests' servers make them.
var runtimes = map[string]sandboxtest.NewRuntime{
	"gvisor": func(o sandboxtest.RuntimeOptions) (space.Runtime, error) {
		return gvisor.New(gvisor.Options{RunDir: o.RunDir, Args: o.Args, Rootfs: o.Rootfs, StopTimeout: o.StopTimeout, Logger: o.Logger})
	},
}

func TestRuntimeOverGVisor(t *testing.T) {
	newGVisor(t).Close() // or skip
	sandboxtest.ExerciseRuntime(t, sandboxtest.RuntimeHarness{Name: "gvisor", New: runtimes["gvisor"], Main: sandboxtest.SentryOf})
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
