package gvisor_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/internal/testenv"
	"satchel/sandbox/gvisor"
	"satchel/sandbox/oci"
	"satchel/sandbox/programs/programstest"
)

// reapChecks are about what nobody owns any more.
var reapChecks = []runtimeCheck{
	{name: "kill -9 of the server", run: func(e *runtimeExercise) {
		id := e.killedServer("echo alive")
		r := e.runtime() // whose run directory it was
		// The rest of the first may still be ending; the second waits for it.
		if _, err := r.Reap(e.ctx); err != nil {
			e.Fatal(err)
		}
		e.gone(id)
		e.alive(e.start(r, e.spec()), "the next server's sandbox")
	}},
	{name: "kill -9 of a server that nobody follows", run: func(e *runtimeExercise) {
		// Process 1 ends with its input, whatever else it has under way.
		id := e.killedServer("echo alive")
		testenv.WaitFor(e, "the end of process 1", func() bool { return sentryOf(e.dir, id) == 0 })
		// Files and cgroups wait for someone.
		if _, err := e.runtime().Reap(e.ctx); err != nil {
			e.Error(err)
		}
		e.gone(id)
	}},
	{name: "reap destroys a sandbox that hangs and whose server was killed", run: func(e *runtimeExercise) {
		id := e.killedServer("!hang")
		r := e.runtime()
		if _, err := r.Reap(e.ctx); err != nil {
			e.Fatal(err)
		}
		e.gone(id)
		if n, err := r.Reap(e.ctx); n != 0 || err != nil {
			e.Errorf("a second Reap: %d, %v", n, err)
		}
	}},
	{name: "a start destroys what an earlier server left", run: func(e *runtimeExercise) {
		id := e.killedServer("!hang")
		e.alive(e.start(e.runtime(), e.spec()), "the next server's sandbox")
		e.gone(id)
	}},
	{name: "a run directory is one runtime's", run: func(e *runtimeExercise) {
		r := e.runtime()
		s := e.start(r, e.spec())
		other := e.runtime(func(o *gvisor.Options) { o.StopTimeout = time.Millisecond })
		if _, err := other.Reap(e.ctx); fault.CodeOf(err) != fault.Unavailable {
			e.Errorf("a second server reaps the first one's sandboxes: %v", err)
		}
		if _, err := other.Start(e.ctx, e.spec()); fault.CodeOf(err) != fault.Unavailable {
			e.Errorf("a second server starts sandboxes beside the first: %v", err)
		}
		e.alive(s, "the first server's sandbox")
	}},
}

// killedServer has another process start a sandbox in this check's run
// directory and do a line in it, kills that process, and returns the id.
func (e *runtimeExercise) killedServer(line string) space.SandboxID {
	e.Helper()
	needNoRace(e)
	dir := filepath.Dir(e.dir)
	checkout := filepath.Join(dir, "checkout")
	if err := os.MkdirAll(checkout, 0o777); err != nil {
		e.Fatal(err)
	}
	cmd := serverProcess(e, dir, line)
	cmd.Stderr = e.Output()
	out, err := cmd.StdoutPipe()
	if err != nil {
		e.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		e.Fatal(err)
	}
	said, _ := bufio.NewReader(out).ReadString('\n')
	id := space.SandboxID(strings.TrimSpace(said))
	if !oci.ValidID(id) {
		cmd.Process.Kill()
		cmd.Wait()
		e.Fatalf("the server says %q", said)
	}
	if sentryOf(e.dir, id) == 0 {
		e.Error("the server's sandbox has no process on the host")
	}
	cmd.Process.Kill()
	cmd.Wait()
	return id
}

// serverProcess returns a command that runs serve in dir, with the programs that this process
// has built.
func serverProcess(t testing.TB, dir, line string) *exec.Cmd {
	t.Helper()
	p, err := programstest.Build()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), serverDir+"="+dir, serverLine+"="+line, programstest.Variable+"="+filepath.Dir(p.Sandbox))
	return cmd
}
