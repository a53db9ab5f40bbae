package gvisor_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// ordinaryUser is a user that owns nothing here.
const ordinaryUser = 65533

// TestAsOrdinaryUser runs all other tests again as a user who is not root.
func TestAsOrdinaryUser(t *testing.T) {
	needStatic(t)
	if os.Getuid() != 0 {
		t.Skip("the tests run as an ordinary user already")
	}
	// Where go test puts the binary, only root can reach it.
	dir := shortDir(t)
	for _, d := range []string{dir, filepath.Join(dir, "tmp")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chown(filepath.Join(dir, "tmp"), ordinaryUser, ordinaryUser); err != nil {
		t.Fatal(err)
	}
	exe := filepath.Join(dir, "gvisor.test")
	copyFile(t, os.Args[0], exe)
	cmd := exec.Command(exe, "-test.run=^Test", "-test.skip=^TestAsOrdinaryUser$")
	if testing.Verbose() {
		cmd.Args = append(cmd.Args, "-test.v")
	}
	cmd.Dir = "/"
	cmd.Env = []string{"TMPDIR=" + filepath.Join(dir, "tmp"), "PATH=/usr/bin:/bin", "HOME=/"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: ordinaryUser, Gid: ordinaryUser}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("as uid %d: %v\n%s", ordinaryUser, err, out)
	} else if testing.Verbose() {
		t.Logf("as uid %d:\n%s", ordinaryUser, out)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}
