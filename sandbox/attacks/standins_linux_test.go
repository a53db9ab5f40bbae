package attacks_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"satchel/internal/space"
	"satchel/internal/testenv"
	"satchel/sandbox/protocol"
)

// weakRequest is what the weak agent is asked to do.
type weakRequest struct {
	UID     int    // runs Script in bash as this user, 0 being the agent's own
	Script  string // or
	WriteTo string // writes "harm" to a file, as an agent that trusts its paths does
}

// serveWeak is an agent without its defences: commands run without a seccomp
// filter, its directory is open to them, it follows links, nothing of a command
// is ended with it, and its own user may be the commands' too. The same attack
// that fails in a sandbox must be seen to succeed here.
func serveWeak(in io.Reader, out io.Writer) int {
	unix.Umask(0)
	for _, d := range []string{protocol.TmpDir, protocol.RunDir, protocol.SpaceDir} {
		if err := unix.Mount("tmpfs", d, "tmpfs", 0, "mode=0777,size=16m"); err != nil {
			return 1
		}
	}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var r weakRequest
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return 1
		}
		answer := weakAnswer(r)
		if _, err := out.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(answer))), answer...)); err != nil {
			return 1
		}
	}
	return 0
}

func weakAnswer(r weakRequest) []byte {
	if r.WriteTo != "" {
		if err := os.WriteFile(r.WriteTo, []byte("harm\n"), 0o644); err != nil {
			return []byte(err.Error())
		}
		return nil
	}
	cmd := exec.Command("/bin/bash", "-c", r.Script)
	cmd.Dir = protocol.SpaceDir
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME=/tmp"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(r.UID), Gid: uint32(r.UID)}}
	// A file, so that nobody waits for those who keep it open.
	f, err := os.CreateTemp("/run/satchel", "out")
	if err != nil {
		return []byte(err.Error())
	}
	defer f.Close()
	cmd.Stdout, cmd.Stderr = f, f
	runErr := cmd.Run()
	b, err := os.ReadFile(f.Name())
	if err != nil {
		return []byte(err.Error())
	}
	if runErr != nil {
		b = append(b, "["+runErr.Error()+"]"...)
	}
	return b
}

// weakling is a sandbox with the weak agent.
type weakling struct {
	testing.TB
	sandbox space.Sandbox
}

// newWeakling starts one over an empty space.
func newWeakling(t testing.TB) *weakling {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	var id [32]byte
	rand.Read(id[:])
	s, err := weak.get(t).Start(t.Context(), space.SandboxSpec{
		ID: space.SandboxID(hex.EncodeToString(id[:])), Checkout: &space.Checkout{Dir: dir},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return &weakling{t, s}
}

// seenWithoutDefence runs a check of an attack itself: with the defence switched off, the
// attack succeeds and the test notices. It runs in "just soak".
func seenWithoutDefence(t *testing.T, check func(*testing.T)) {
	t.Helper()
	t.Run("seen without the defence", func(t *testing.T) {
		testenv.OnlySoak(t)
		check(t)
	})
}

// sh runs a script as a user.
func (w *weakling) sh(uid int, script string) string {
	w.Helper()
	out, err := w.ask(weakRequest{UID: uid, Script: script})
	if err != nil {
		w.Fatalf("the weak agent: %v", err)
	}
	return out
}

func (w *weakling) ask(r weakRequest) (string, error) {
	b, err := json.Marshal(r)
	if err != nil {
		return "", err
	}
	if _, err := w.sandbox.Conn().Write(append(b, '\n')); err != nil {
		return "", err
	}
	var n [4]byte
	if _, err := io.ReadFull(w.sandbox.Conn(), n[:]); err != nil {
		return "", err
	}
	out := make([]byte, binary.BigEndian.Uint32(n[:]))
	_, err = io.ReadFull(w.sandbox.Conn(), out)
	return string(out), err
}

// harmed reports whether an attack's output says that it had its way.
func harmed(out string) bool { return strings.Contains(out, "harm") }
