package shelltest_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"satchel/sandbox/protocol"
)

// host runs scripts in the host's bash, as an ordinary user with the
// environment that commands have inside a sandbox.
type host struct {
	dir string // the working directory
	env []string
	uid uint32
}

func newHost(t *testing.T, env []string) *host {
	t.Helper()
	// Where the test's own directories are, only its user may go.
	top, err := os.MkdirTemp("", "shelltest")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(top); err != nil {
			t.Error(err)
		}
	})
	h := &host{dir: filepath.Join(top, "space"), uid: uint32(os.Getuid())}
	if h.uid == 0 {
		h.uid = protocol.CommandUID
	}
	if err := os.Chmod(top, 0o755); err != nil {
		t.Fatal(err)
	}
	places := map[string]string{"HOME": filepath.Join(top, "home"), "TMPDIR": filepath.Join(top, "tmp"), "PWD": h.dir}
	for _, d := range places {
		h.makeDir(t, d)
	}
	for _, v := range env {
		name, _, _ := strings.Cut(v, "=")
		if at, ok := places[name]; ok {
			v = name + "=" + at
		}
		// What bash sets by itself is not given to it.
		if !slices.Contains([]string{"_", "SHLVL", "OLDPWD"}, name) {
			h.env = append(h.env, v)
		}
	}
	return h
}

func (h *host) makeDir(t *testing.T, dir string) {
	t.Helper()
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		if err := os.Chown(dir, int(h.uid), int(h.uid)); err != nil {
			t.Fatal(err)
		}
	}
}

// clear empties the working directory.
func (h *host) clear(t *testing.T) {
	t.Helper()
	if err := os.RemoveAll(h.dir); err != nil {
		t.Fatal(err)
	}
	h.makeDir(t, h.dir)
}

func (h *host) outcomes(t *testing.T, all []script) map[string]outcome {
	t.Helper()
	out := together(all, func(sc script) outcome { return h.run(t, sc.command()) })
	tree := h.run(t, listing)
	if tree.code != 0 || len(tree.stderr) > 0 {
		t.Fatalf("listing the host's tree: %s", tree.stderr)
	}
	addTrees(t, out, tree.stdout)
	return out
}

// run runs a command with the host's bash. Nothing outlives it that still has
// its output.
func (h *host) run(t *testing.T, command string) outcome {
	t.Helper()
	stdout, stderr := h.newPipe(t), h.newPipe(t)
	cmd := exec.CommandContext(t.Context(), "/bin/bash", "-c", "umask 022; ulimit -c 0; "+command)
	cmd.Args[0] = "bash"
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = h.dir, h.env, stdout.in, stderr.in
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if os.Getuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: h.uid, Gid: h.uid}
	}
	err := cmd.Run()
	o := outcome{stdout: stdout.read(), stderr: stderr.read()}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Errorf("the host's bash: %v", err)
		return o
	}
	o.code = cmd.ProcessState.ExitCode()
	if w := cmd.ProcessState.Sys().(syscall.WaitStatus); w.Signaled() {
		o.code, o.signal = 128+int(w.Signal()), unix.SignalName(w.Signal())
	}
	return o
}

// pipe takes a stream of a command of the host's. It belongs to the command's
// user, or /dev/stdout could not be opened.
type pipe struct {
	in   *os.File
	all  bytes.Buffer
	done chan struct{}
}

func (h *host) newPipe(t *testing.T) *pipe {
	t.Helper()
	out, in, err := os.Pipe()
	if err != nil {
		panic(err) // no descriptor is left: nothing else would work either
	}
	if os.Getuid() == 0 {
		if err := in.Chown(int(h.uid), int(h.uid)); err != nil {
			t.Error(err)
		}
	}
	p := &pipe{in: in, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		defer out.Close()
		_, _ = p.all.ReadFrom(out)
	}()
	return p
}

// read returns all that was written, once the command has ended.
func (p *pipe) read() []byte {
	p.in.Close()
	<-p.done
	return p.all.Bytes()
}
