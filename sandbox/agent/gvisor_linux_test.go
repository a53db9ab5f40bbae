package agent

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"satchel/internal/testenv"
	"satchel/sandbox/gvisor/rundir"
	"satchel/sandbox/protocol"
)

// programs are built for the first test that needs them.
var programs struct {
	sync.Mutex
	dir   string
	built map[string]func() (string, error) // by package
}

func TestMain(m *testing.M) {
	// Most of a test is waiting for its sandbox. The command line goes before.
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	code := m.Run()
	if programs.dir != "" {
		os.RemoveAll(programs.dir)
	}
	os.Exit(code)
}

// sandboxProgram is what sandboxes are started with.
func sandboxProgram(t testing.TB) string { return buildProgram(t, "./agenttest") }

func buildProgram(t testing.TB, pkg string) string {
	t.Helper()
	p, err := programBuild(t, pkg)()
	must(t, err)
	return p
}

// programBuild returns what builds a program once, and for which those alone
// wait who need that one.
func programBuild(t testing.TB, pkg string) func() (string, error) {
	t.Helper()
	programs.Lock()
	defer programs.Unlock()
	if programs.dir == "" {
		dir, err := os.MkdirTemp("", "agent-test-")
		must(t, err)
		programs.dir, programs.built = dir, make(map[string]func() (string, error))
	}
	if programs.built[pkg] == nil {
		p := filepath.Join(programs.dir, filepath.Base(pkg))
		programs.built[pkg] = sync.OnceValues(func() (string, error) {
			build := exec.Command("go", "build", "-buildvcs=false", "-o", p, pkg)
			build.Env = append(os.Environ(), "CGO_ENABLED=0")
			if out, err := build.CombinedOutput(); err != nil {
				return "", fmt.Errorf("building %s: %w\n%s", pkg, err, out)
			}
			return p, nil
		})
	}
	return programs.built[pkg]
}

// sandbox is a real gVisor sandbox with the agent in it.
type sandbox struct {
	*protocol.Client
	t     testing.TB
	lower string // the host's directories
	git   string
	cmd   *exec.Cmd
}

// stdio is the connection to the agent: the container's standard streams.
type stdio struct {
	io.Reader
	io.WriteCloser
	in io.Closer
}

func (s stdio) Close() error { s.in.Close(); return s.WriteCloser.Close() }

// testBoot is generous where a test asks for nothing.
func testBoot() protocol.Boot {
	return protocol.Boot{Disk: 64 << 20, Inodes: 100_000, Tmp: 16 << 20, Output: 1 << 20, Processes: 64, OpenFiles: 256, FileSize: 32 << 20}
}

type sandboxOption struct {
	boot  protocol.Boot
	noGit bool
	seed  map[string]string // the checkout
	caps  []string          // nil: Capabilities
}

// startSandbox boots one; it is destroyed when the test ends.
func startSandbox(t testing.TB, o sandboxOption) *sandbox {
	t.Helper()
	s, err := trySandbox(t, o)
	if err != nil {
		t.Fatalf("connecting: %v", err)
	}
	return s
}

// trySandbox returns what the agent says where it cannot start.
func trySandbox(t testing.TB, o sandboxOption) (*sandbox, error) {
	t.Helper()
	if o.caps == nil {
		o.caps = protocol.Capabilities
	}
	if os.Geteuid() != 0 {
		testenv.SkipOrFail(t, "starting gVisor containers takes root here")
	}
	if o.boot.Output == 0 {
		o.boot = testBoot()
	}
	dir := t.TempDir()
	s := &sandbox{t: t, lower: filepath.Join(dir, "lower"), git: filepath.Join(dir, "git")}
	root := filepath.Join(dir, "rootfs")
	for _, d := range []string{protocol.Lower, protocol.Upper, protocol.SpaceDir, protocol.LibraryDir, protocol.RunDir, protocol.TmpDir, "/proc", "/dev", "/usr", "/etc"} {
		must(t, os.MkdirAll(filepath.Join(root, d), 0o755))
	}
	must(t, os.Mkdir(s.lower, 0o777))
	must(t, os.Chmod(s.lower, 0o777))
	for name, content := range o.seed {
		p := filepath.Join(s.lower, name)
		must(t, os.MkdirAll(filepath.Dir(p), 0o777))
		must(t, os.WriteFile(p, []byte(content), 0o666))
	}
	must(t, filepath.Walk(s.lower, func(p string, i os.FileInfo, err error) error {
		must(t, os.Chown(p, protocol.CommandUID, protocol.CommandUID))
		return os.Chmod(p, 0o777)
	}))
	exe := sandboxProgram(t)
	must(t, os.WriteFile(filepath.Join(root, protocol.Exe), nil, 0o755))
	mounts := []specs.Mount{
		{Destination: "/proc", Type: "proc", Source: "proc"},
		{Destination: "/dev", Type: "tmpfs", Source: "tmpfs"},
		{Destination: "/usr", Type: "bind", Source: "/usr", Options: []string{"ro"}},
		{Destination: protocol.Exe, Type: "bind", Source: exe, Options: []string{"ro"}},
		{Destination: protocol.Lower, Type: "bind", Source: s.lower, Options: []string{"ro"}},
	}
	annotations := map[string]string{}
	if !o.noGit {
		must(t, os.Mkdir(s.git, 0o755))
		must(t, os.WriteFile(filepath.Join(s.git, "HEAD"), []byte("ref: refs/heads/main\n"), 0o644))
		must(t, os.MkdirAll(filepath.Join(root, protocol.Git), 0o755))
		mounts = append(mounts, specs.Mount{Destination: protocol.Git, Type: "bind", Source: s.git, Options: []string{"ro"}})
		annotations["dev.gvisor.spec.mount.git.source"] = s.git
		annotations["dev.gvisor.spec.mount.git.type"] = "bind"
		annotations["dev.gvisor.spec.mount.git.share"] = "shared"
	}
	for _, l := range []string{"bin", "lib", "lib64", "sbin"} {
		if target, err := os.Readlink("/" + l); err == nil {
			must(t, os.Symlink(target, filepath.Join(root, l)))
		}
	}
	caps := &specs.LinuxCapabilities{Bounding: o.caps, Effective: o.caps, Permitted: o.caps}
	spec := specs.Spec{
		Version:     "1.2.0",
		Root:        &specs.Root{Path: root, Readonly: true},
		Process:     &specs.Process{Args: []string{protocol.Exe, "agent"}, Cwd: "/", Capabilities: caps, NoNewPrivileges: true, Env: []string{"SECRET=of the agent"}},
		Mounts:      mounts,
		Annotations: annotations,
		Linux: &specs.Linux{Namespaces: []specs.LinuxNamespace{
			{Type: specs.PIDNamespace}, {Type: specs.MountNamespace}, {Type: specs.IPCNamespace}, {Type: specs.UTSNamespace}, {Type: specs.NetworkNamespace},
		}},
	}
	b, err := json.Marshal(spec)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "config.json"), b, 0o600))

	var random [32]byte
	rand.Read(random[:])
	id := hex.EncodeToString(random[:])
	state := filepath.Join(dir, "state")
	args := []string{"runsc", "--root=" + state, "--network=none", "--ignore-cgroups", "--overlay2=none", "--dcache=50000"}
	if d := os.Getenv("RUNSC_DEBUG"); d != "" {
		args = append(args, "--debug", "--strace", "--debug-log="+d+"/")
	}
	s.cmd = exec.Command(exe)
	s.cmd.Args = append(args, "run", "--bundle="+dir, id)
	var log lockedBuffer // it is read while runsc writes
	s.cmd.Stderr = &log
	in, err := s.cmd.StdinPipe()
	must(t, err)
	out, err := s.cmd.StdoutPipe()
	must(t, err)
	must(t, s.cmd.Start())
	t.Cleanup(func() {
		if s.Client != nil {
			s.Client.Close()
		}
		kill := exec.Command(exe)
		kill.Args = []string{"runsc", "--root=" + state, "delete", "--force", id}
		kill.Run()
		s.cmd.Process.Kill()
		s.cmd.Wait()
		unix.Unmount(filepath.Join(state, rundir.NullNamespace), unix.MNT_DETACH) // runsc leaves it
		if text := log.String(); t.Failed() && text != "" {
			t.Logf("runsc: %s", text)
		}
	})
	s.Client, err = protocol.Connect(t.Context(), stdio{out, in, out}, o.boot)
	if err != nil {
		s.cmd.Process.Kill()
		return nil, fmt.Errorf("%w\n%s", err, log.String())
	}
	return s, nil
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// exec runs a command that is to be answered.
func (s *sandbox) exec(r protocol.ExecRequest) protocol.ExecResult {
	s.t.Helper()
	if r.HeadTail == 0 {
		r.HeadTail = 16 << 10
	}
	ctx := testenv.Context(s.t)
	res, err := s.Client.Exec(ctx, r, nil)
	if err != nil {
		s.t.Fatalf("%.200q: %v", r.Command, err)
	}
	if ctx.Err() != nil {
		s.t.Fatalf("%.200q: did not end", r.Command)
	}
	return res
}

// sh runs a command and returns its standard output; it must exit with 0.
func (s *sandbox) sh(command string) string {
	s.t.Helper()
	r := s.exec(protocol.ExecRequest{Command: command})
	if r.End != protocol.Exited || r.ExitCode != 0 {
		s.t.Fatalf("%.200q: end %d, exit %d %s\n%s%s", command, r.End, r.ExitCode, r.Signal, r.Stdout.Head, r.Stderr.Head)
	}
	return text(r.Stdout)
}

func text(o protocol.Output) string { return string(o.Head) + string(o.Tail) }

// collect returns the entries of one batch by path, and acknowledges it.
func (s *sandbox) collect() map[string]protocol.Entry {
	s.t.Helper()
	b := s.batch(protocol.CollectLimits{})
	must(s.t, s.Ack(s.t.Context(), b.ID, nil))
	return byPath(b)
}

func (s *sandbox) batch(l protocol.CollectLimits) protocol.Batch {
	s.t.Helper()
	b, err := s.Collect(s.t.Context(), l)
	must(s.t, err)
	if !slices.IsSortedFunc(b.Entries, func(x, y protocol.Entry) int { return strings.Compare(x.Path, y.Path) }) {
		s.t.Fatal("the batch is not sorted")
	}
	return b
}

func byPath(b protocol.Batch) map[string]protocol.Entry {
	m := make(map[string]protocol.Entry)
	for _, n := range b.Entries {
		m[n.Path] = n
	}
	return m
}
