package attacks_test

import (
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"satchel/internal/testenv"
	"satchel/sandbox/gvisor"
	"satchel/sandbox/programs/programstest"
	"satchel/sandbox/protocol"
)

// The first argument with which the test binary is another process 1 than the
// agent.
const (
	weakCommand    = "weak-agent"
	hostileCommand = "hostile-agent"
)

// TestMain lets the test binary be the two that stand in for the agent.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 {
		switch os.Args[1] {
		case weakCommand:
			os.Exit(serveWeak(os.Stdin, os.Stdout))
		case hostileCommand:
			os.Exit(serveHostile(os.Stdin, os.Stdout))
		}
	}
	// Most of a test is waiting for its sandbox; two that flood theirs are enough at
	// once. The command line goes before.
	if err := flag.Set("test.parallel", "2"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(&suite{m})
}

// suite ends the runtimes that the tests share once all have run.
type suite struct{ m *testing.M }

func (s *suite) Run() int {
	code := s.m.Run()
	for _, r := range []*shared{&strong, &weak, &hostile} {
		if err := r.close(); err != nil {
			fmt.Fprintln(os.Stderr, "closing a runtime:", err)
			code = max(code, 1)
		}
	}
	return code
}

// The runtimes that all tests share: a trial boot for each test would cost more
// than the test.
var (
	strong  shared                            // with the agent
	weak    = shared{standIn: weakCommand}    // without its defences
	hostile = shared{standIn: hostileCommand} // in an attacker's hands
)

type shared struct {
	standIn string // for the agent; "" is the agent itself

	mu      sync.Mutex
	dir     string
	runtime *gvisor.Runtime
	err     error // why there is none
}

// get returns the runtime, or skips where this machine or this binary can run
// none.
func (s *shared) get(t testing.TB) *gvisor.Runtime {
	t.Helper()
	if raceEnabled {
		t.Skip("this binary is process 1 in some sandboxes, and the race detector links it with cgo")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.runtime == nil && s.err == nil {
		s.start()
	}
	if s.err != nil {
		testenv.SkipOrFail(t, s.err.Error())
	}
	return s.runtime
}

func (s *shared) start() {
	if s.dir, s.err = os.MkdirTemp("", "attacks-"); s.err != nil {
		return
	}
	o := gvisor.Options{RunDir: filepath.Join(s.dir, "run"), Programs: programstest.Build, Logger: slog.New(slog.DiscardHandler)}
	if s.standIn != "" {
		o.Programs, o.Args = programstest.WithSelf, []string{protocol.Exe, s.standIn}
	}
	r, err := gvisor.New(o)
	if err != nil {
		s.err = err
		return
	}
	if s.err = r.Check(noContext()); s.err != nil {
		r.Close()
		return
	}
	s.runtime = r
}

func (s *shared) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dir == "" {
		return nil
	}
	defer os.RemoveAll(s.dir)
	if s.runtime == nil {
		return nil
	}
	return s.runtime.Close()
}
