package sandboxtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"satchel/sandbox/programs"
	"satchel/sandbox/programs/programstest"
)

// ordinaryUser is the uid and gid of a user that owns no files on this machine.
const ordinaryUser = 65533

// AsOrdinaryUser runs the test's own binary as a user who is not root, with the given
// arguments. env is added to the variables that every program needs.
func AsOrdinaryUser(t testing.TB, env []string, args ...string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("the tests run as an ordinary user already")
	}
	// Only root can enter the directories in which go test puts binaries and temporary
	// files. The name is short, because the path of a socket has a limit.
	dir, err := os.MkdirTemp("", "u")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	tmp := filepath.Join(dir, "tmp")
	if err := os.Mkdir(tmp, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(tmp, ordinaryUser, ordinaryUser); err != nil {
		t.Fatal(err)
	}
	p, err := programstest.Build()
	if err != nil {
		t.Fatal(err)
	}
	exe, copies := filepath.Join(dir, "test"), programs.In(dir)
	for from, to := range map[string]string{os.Args[0]: exe, p.Sandbox: copies.Sandbox, p.Agent: copies.Agent} {
		if out, err := exec.Command("cp", from, to).CombinedOutput(); err != nil {
			t.Fatalf("copying a program: %v: %s", err, out)
		}
	}
	for _, p := range []string{dir, exe} {
		if err := os.Chmod(p, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(exe, args...)
	if testing.Verbose() {
		cmd.Args = append(cmd.Args, "-test.v")
	}
	cmd.Dir = "/"
	cmd.Env = append([]string{"TMPDIR=" + tmp, "PATH=/usr/bin:/bin", "HOME=/", "CI=" + os.Getenv("CI"), programstest.Variable + "=" + dir}, env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: ordinaryUser, Gid: ordinaryUser}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("as uid %d: %v\n%s", ordinaryUser, err, out)
	} else if testing.Verbose() {
		t.Logf("as uid %d:\n%s", ordinaryUser, out)
	}
}
