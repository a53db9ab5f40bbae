package sandboxtest_test

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

// TestAsOrdinaryUser runs the suites over gVisor again as a user who is not
// root: sandboxes have no cgroups then, and who owns what inside comes about in
// another way.
func TestAsOrdinaryUser(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector needs cgo, and a binary linked with cgo cannot be gVisor's sentry")
	}
	if os.Getuid() != 0 {
		t.Skip("the tests run as an ordinary user already")
	}
	// Where go test puts binaries and makes directories, only root can go; and
	// the path of a socket in there must be short.
	dir, err := os.MkdirTemp("", "pool")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	tmp := filepath.Join(dir, "tmp")
	if err := os.Mkdir(tmp, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(tmp, ordinaryUser, ordinaryUser); err != nil {
		t.Fatal(err)
	}
	exe := filepath.Join(dir, "pool.test")
	copyProgram(t, os.Args[0], exe)
	cmd := exec.Command(exe, "-test.run=OverGVisor", "-test.v")
	cmd.Dir = "/"
	cmd.Env = []string{"TMPDIR=" + tmp, "PATH=/usr/bin:/bin", "HOME=/", "CI=" + os.Getenv("CI")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: ordinaryUser, Gid: ordinaryUser}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("as uid %d: %v\n%s", ordinaryUser, err, out)
	} else if testing.Verbose() {
		t.Logf("as uid %d:\n%s", ordinaryUser, out)
	}
}

func copyProgram(t *testing.T, from, to string) {
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
