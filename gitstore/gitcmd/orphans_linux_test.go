package gitcmd

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"satchel/internal/testenv"
)

// start runs git so that it waits for its input in dir.
func start(t *testing.T, program, dir string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return cmd
}

func TestOrphansOfAKilledServerAreEnded(t *testing.T) {
	git := testenv.NeedProgram(t, "git")
	dir := t.TempDir()
	below, beside := filepath.Join(dir, "s_x.git"), dir+"-other"
	for _, d := range []string{below, beside} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { os.RemoveAll(beside) })
	orphan := start(t, git, below, "hash-object", "--stdin")
	bystander := start(t, git, beside, "hash-object", "--stdin")
	other := start(t, testenv.NeedProgram(t, "cat"), below)
	waited := make(chan error, 1)
	go func() { waited <- orphan.Wait() }()

	if n := EndOrphans(dir); n != 1 {
		t.Errorf("%d processes were ended", n)
	}
	if err := <-waited; err == nil || orphan.ProcessState.Exited() {
		t.Errorf("the orphan ended by itself: %v", orphan.ProcessState)
	}
	for what, cmd := range map[string]*exec.Cmd{"git in another directory": bystander, "a program that is not git": other} {
		if err := cmd.Process.Signal(syscall.Signal(0)); err != nil {
			t.Errorf("%s was ended: %v", what, err)
		}
	}
	if n := EndOrphans(dir); n != 0 {
		t.Errorf("%d more were found", n)
	}
}
