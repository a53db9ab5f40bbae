package shelltest_test

import (
	"bytes"
	"context"
	"flag"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"satchel/gitstore"
	"satchel/internal/space"
	"satchel/internal/testenv"
	"satchel/sandbox"
	"satchel/sandbox/gvisor"
	"satchel/sandbox/programs/programstest"
	"satchel/sandbox/protocol"
	"satchel/sandbox/sandboxtest"
)

// rootfsVariable names a root file system directory for the sandboxes of these
// tests, made as docs/rootfs.md says; empty: the host's programs.
const rootfsVariable = "SATCHEL_TEST_ROOTFS"

func TestMain(m *testing.M) {
	heedSignals()
	// Most of a test is waiting for its sandboxes. The command line goes before.
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// heedSignals has the host's bash begin with every signal at its default, also
// where what started the tests ignores some, as nohup does: programs inherit it.
func heedSignals() {
	for n := syscall.Signal(1); n < 32; n++ {
		if signal.Ignored(n) {
			signal.Notify(make(chan os.Signal, 1), n)
		}
	}
}

// shell runs commands as the tool bash does: through a pool over real sandboxes
// and a real store with one space.
type shell struct {
	pool  *sandbox.Pool
	store *gitstore.Store
	space space.SpaceID

	mu           sync.Mutex
	raw          map[string]protocol.ExecResult // by command
	refusedPaths map[string]bool                // which answers said that they were not committed
	notes        []string                       // of all answers
}

// newShell makes a shell over a space with some files; change may be nil.
func newShell(t testing.TB, files map[string]string, change func(*sandbox.Options)) *shell {
	t.Helper()
	testenv.NeedProgram(t, "git")
	logger := sandboxtest.Logger(t)
	rt := newRuntime(t, logger)
	s := &shell{space: space.NewSpaceID(), raw: map[string]protocol.ExecResult{}, refusedPaths: map[string]bool{}}
	var err error
	s.store, err = gitstore.Open(gitstore.Options{Dir: t.TempDir(), CheckoutOwner: protocol.CommandUID, Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.store.Close(); err != nil {
			t.Error(err)
		}
	})
	var cs space.ChangeSet
	for p, c := range files {
		cs.Changes = append(cs.Changes, space.Change{Path: p, Content: []byte(c)})
	}
	if _, err := s.store.Create(t.Context(), s.space, cs, space.Meta{Author: ada, Message: "Start"}); err != nil {
		t.Fatal(err)
	}
	o := sandbox.Options{Runtime: rt, Checkouts: s.store, Committer: s.store, Logger: logger, Connect: s.connect, ViewTime: time.Minute}
	if change != nil {
		change(&o)
	}
	s.pool = sandboxtest.NewPool(t, o)
	return s
}

func newRuntime(t testing.TB, logger *slog.Logger) *gvisor.Runtime {
	t.Helper()
	if err := tryGVisor(); err != nil {
		testenv.SkipOrFail(t, err.Error())
	}
	r, err := gvisor.New(gvisor.Options{RunDir: filepath.Join(t.TempDir(), "run"), Programs: programstest.Build, Rootfs: os.Getenv(rootfsVariable), Logger: logger})
	return sandboxtest.Open(t, r, err)
}

// tryGVisor reports why gVisor does not work here, by one trial for all tests.
var tryGVisor = sync.OnceValue(func() error {
	return sandboxtest.Try(func(runDir string) (space.Runtime, error) {
		return gvisor.New(gvisor.Options{RunDir: runDir, Programs: programstest.Build, Rootfs: os.Getenv(rootfsVariable), Logger: slog.New(slog.DiscardHandler)})
	})
})

var ada = space.Person{Name: "Ada", Email: "ada@example.org"}

func (s *shell) request(command string) sandbox.Request {
	return sandbox.Request{User: "u_ada", Space: s.space, Command: command, Author: ada, Tool: "bash", Client: "test"}
}

// run runs a command that must have an answer, be it an exit code.
func (s *shell) run(t testing.TB, command string) sandbox.Result {
	t.Helper()
	return s.ask(t, s.request(command))
}

func (s *shell) ask(t testing.TB, r sandbox.Request) sandbox.Result {
	t.Helper()
	res, err := s.pool.Exec(t.Context(), r)
	if err != nil {
		t.Fatalf("%s: %v", r.Command, err)
	}
	s.mu.Lock()
	s.notes = append(s.notes, res.Notes...)
	s.mu.Unlock()
	if res.NotSaved != nil {
		t.Errorf("%s: not saved: %v", r.Command, res.NotSaved)
	}
	return res
}

// print runs a command that must succeed in silence on standard error, and
// returns what it prints.
func (s *shell) print(t testing.TB, command string) string {
	t.Helper()
	res := s.run(t, command)
	if res.ExitCode != 0 || res.Stderr.Text != "" || res.Stdout.Cut != 0 {
		t.Fatalf("%s: exit code %d, stderr %q", command, res.ExitCode, res.Stderr.Text)
	}
	return res.Stdout.Text
}

// connect speaks to the agent and keeps what it answered, before the pool makes
// it fit to be shown.
func (s *shell) connect(ctx context.Context, conn io.ReadWriteCloser, b protocol.Boot) (sandbox.Agent, error) {
	c, err := protocol.Connect(ctx, conn, b)
	if err != nil {
		return nil, err
	}
	return &listener{Agent: c, shell: s}, nil
}

type listener struct {
	sandbox.Agent
	shell *shell
}

func (l *listener) Exec(ctx context.Context, r protocol.ExecRequest, onOutput func(protocol.Stream, []byte)) (protocol.ExecResult, error) {
	res, err := l.Agent.Exec(ctx, r, onOutput)
	if err == nil {
		l.shell.mu.Lock()
		l.shell.raw[r.Command] = res
		l.shell.mu.Unlock()
	}
	return res, err
}

// bytesOf returns what the agent reported of a command's streams.
func (s *shell) bytesOf(t testing.TB, command string) (stdout, stderr []byte) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.raw[command]
	if !ok || r.Stdout.Dropped+r.Stderr.Dropped > 0 {
		t.Errorf("the whole output of this command is not known: %.200s", command)
	}
	return append(bytes.Clone(r.Stdout.Head), r.Stdout.Tail...), append(bytes.Clone(r.Stderr.Head), r.Stderr.Tail...)
}

// lines splits a text without its last line end.
func lines(s string) []string { return strings.Split(strings.TrimSuffix(s, "\n"), "\n") }
