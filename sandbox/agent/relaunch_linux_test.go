package agent

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"satchel/internal/testenv"
	"satchel/sandbox/protocol"
)

// hostShell is a process of the host's that waits as a shell does.
func hostShell(t *testing.T, mark uint32) *shell {
	t.Helper()
	cmd := exec.Command("sleep", "1000")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: protocol.CommandUID, Gid: protocol.CommandUID, Groups: []uint32{mark}}}
	must(t, cmd.Start())
	exited := make(chan unix.WaitStatus, 1)
	go func() {
		cmd.Wait()
		exited <- unix.WaitStatus(cmd.ProcessState.Sys().(syscall.WaitStatus))
	}()
	t.Cleanup(func() { cmd.Process.Kill() })
	stdout, _, err := os.Pipe()
	must(t, err)
	stderr, _, err := os.Pipe()
	must(t, err)
	var wake [2]int
	must(t, unix.Pipe2(wake[:], unix.O_CLOEXEC))
	text, err := unix.MemfdCreate("command", unix.MFD_CLOEXEC)
	must(t, err)
	return &shell{pid: cmd.Process.Pid, mark: mark, exited: exited, stdout: stdout, stderr: stderr, text: text, wake: wake[1]}
}

// A kill that comes while a command's shell is gone and it has no other yet
// ends it all the same.
func TestKillOfACommandThatGetsAnotherShell(t *testing.T) {
	if os.Geteuid() != 0 {
		testenv.SkipOrFail(t, "groups are given by root alone")
	}
	const mark = 1 << 30 // no sandbox of the host's gets that far
	js := newJobs(1 << 20)
	first, second := hostShell(t, mark), hostShell(t, mark+1)
	p := &pool{idle: map[bool][]*shell{false: {second}}, marks: map[uint32]bool{mark: true}}
	r := &running{s: &server{jobs: js, shell: p}, sh: first, req: protocol.ExecRequest{Command: "true"}}
	r.stdout, r.stderr = r.capture(protocol.Stdout), r.capture(protocol.Stderr)
	must(t, unix.Kill(first.pid, unix.SIGKILL))
	r.status = <-first.exited
	r.readers.Go(func() {
		// The end of the old shell's output comes after it was decided that
		// there shall be another.
		_, _ = first.stdout.Read(make([]byte, 1))
		r.signal(unix.SIGKILL)
	})
	if r.relaunch(1) {
		t.Fatal("the command was given to another shell")
	}
	if end := <-second.exited; end.Signal() != unix.SIGKILL {
		t.Errorf("the other shell: %v", end)
	}
	if left := p.running(); len(left) > 1 || r.sh != first {
		t.Errorf("runs: %v", left)
	}
}
