package sandboxtest_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/internal/testenv"
	"satchel/sandbox"
	"satchel/sandbox/gvisor"
	"satchel/sandbox/programs/programstest"
	"satchel/sandbox/protocol"
	"satchel/sandbox/sandboxtest"
)

// cell is a pool over real sandboxes that a test looks at from outside.
type cell struct {
	*sandboxtest.Harness
	t       *testing.T
	run     string // the runtime's directory
	runtime *gvisor.Runtime
	space   space.SpaceID

	mu      sync.Mutex
	started []string // see watchIDs
}

// newCell makes one; both changes may be nil.
func newCell(t *testing.T, change func(*sandbox.Options), gv func(*gvisor.Options)) *cell {
	t.Helper()
	needGVisor(t)
	c := &cell{t: t, run: filepath.Join(t.TempDir(), "run")}
	opt := gvisor.Options{RunDir: c.run, Programs: programstest.Build, Logger: sandboxtest.Logger(t), StartTimeout: 5 * time.Minute}
	if gv != nil {
		gv(&opt)
	}
	r, err := gvisor.New(opt)
	c.runtime = sandboxtest.Open(t, r, err)
	c.Harness = &sandboxtest.Harness{Store: sandboxtest.NewStore(t), Runtime: &sandboxtest.Recorder{Runtime: c.runtime}}
	o := sandbox.Options{
		Runtime: c.Runtime, Checkouts: c.Store, Committer: c.Store, Logger: sandboxtest.Logger(t),
		Grace: 500 * time.Millisecond, DetachAfter: -1, AnswerTime: 5 * time.Minute,
	}
	if change != nil {
		change(&o)
	}
	if c.Pool, err = sandbox.New(o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.close)
	c.space = c.Store.Space(sandboxtest.Tree{"f": {Content: "f\n"}, "docs/a.md": {Content: "a\n"}})
	return c
}

func (c *cell) close() {
	if err := c.Pool.Close(testenv.Context(c.t)); err != nil {
		c.t.Error(err)
	}
	if n := c.Runtime.Running(); n != 0 {
		c.t.Errorf("%d sandboxes are left", n)
	}
}

func (c *cell) request(command string) sandbox.Request {
	return sandbox.Request{User: "u_one", Space: c.space, Command: command, Comment: "Test", Tool: "bash", Client: "test"}
}

// exec runs a command, whose answer must come: whatever a command does, its caller
// hears.
func (c *cell) exec(r sandbox.Request) (sandbox.Result, error) {
	ctx := testenv.Context(c.t)
	res, err := c.Pool.Exec(ctx, r)
	if ctx.Err() != nil {
		c.t.Errorf("%s: no answer", r.Command)
	}
	return res, err
}

func (c *cell) must(command string) sandbox.Result {
	c.t.Helper()
	r, err := c.exec(c.request(command))
	if err != nil {
		c.t.Fatalf("%s: %v", command, err)
	}
	return r
}

// look is must for a command that looks at what another did, which has time
// where the pool's limit is short.
func (c *cell) look(command string) sandbox.Result {
	c.t.Helper()
	q := c.request(command)
	q.WallTime = time.Hour
	r, err := c.exec(q)
	if err != nil {
		c.t.Fatalf("%s: %v", command, err)
	}
	return r
}

// works checks that the next command does, whatever came before.
func (c *cell) works(after string) sandbox.Result {
	c.t.Helper()
	q := c.request("echo works; cat f")
	q.WallTime = time.Hour // a short limit of the pool is another's
	r, err := c.exec(q)
	if err != nil || r.ExitCode != 0 || r.Stdout.Text != "works\nf\n" {
		c.t.Errorf("after %s: %q, %q, exit code %d, %v", after, r.Stdout.Text, r.Stderr.Text, r.ExitCode, err)
	}
	return r
}

func says(r sandbox.Result, text string) bool {
	return slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, text) })
}

// bounding is a way in which the server may have to bound a sandbox.
type bounding struct {
	name   string
	gvisor func(*gvisor.Options)
}

// boundings returns the ways of this process: a server without root has no cgroups.
// (Cgroup 2 instead of 1: scripts/test-cgroup2.)
func boundings() []bounding {
	without := bounding{"without cgroups", func(o *gvisor.Options) { o.NoCgroups = true; o.WatchInterval = 20 * time.Millisecond }}
	if os.Geteuid() != 0 {
		return []bounding{without}
	}
	return []bounding{{"cgroups as the machine has them", nil}, without}
}

// manyInDash starts more processes than there may be. Where bash cannot start
// one, it tries again for 15 seconds; what it says is in the pool's own tests.
const manyInDash = `sh -c 'i=0; while [ $i -lt 100 ]; do sleep 100 & i=$((i+1)); done; wait'`

// TestEachLimitIsToldOverGVisor is the table of limits: what a command meets,
// what its answer says of it, and that the next command works.
func TestEachLimitIsToldOverGVisor(t *testing.T) {
	t.Parallel()
	for _, how := range boundings() {
		t.Run(how.name, func(t *testing.T) {
			t.Parallel()
			c := newCell(t, func(o *sandbox.Options) {
				o.Limits = space.Limits{
					Memory: 256 << 20, Processes: 48, CPUs: 2, Disk: 24 << 20, Inodes: 600, Tmp: 8 << 20,
					OpenFiles: 64, FileSize: 12 << 20,
				}
				o.OutputChars = 4000
			}, how.gvisor)
			for _, l := range []struct {
				limit   sandbox.Limit
				command string
				note    string
				renewed bool // the next sandbox is a fresh one
			}{
				{sandbox.LimitFileSize, "head -c 20M /dev/zero > /tmp/no; rm -f /tmp/no; head -c 20M /dev/zero > f2; e=$?; rm f2; exit $e", "12 MB (the server's operator can raise sandbox.disk)", false},
				{sandbox.LimitTmp, "head -c 10M /dev/zero > /tmp/x", "/tmp is full: it can have 8 MB (the server's operator can raise sandbox.disk)", false},
				{sandbox.LimitTmp, "rm /tmp/x; mkdir /tmp/d && for i in 1 2 3 4 5 6 7 8 9; do head -c 1M /dev/zero > /tmp/d/$i || exit 3; done", "/tmp is full", false},
				{sandbox.LimitOpenFiles, "for i in {10..100}; do exec {n}</dev/null || exit 4; done", "64 in one process.", false},
				{sandbox.LimitProcesses, manyInDash, "48 in one sandbox (the server's operator can raise sandbox.processes)", false},
				{sandbox.LimitOutput, "seq 100000", "4000 characters of output.", false},
				{sandbox.LimitInodes, "for i in {1..700}; do echo $i > n$i || exit 5; done", "it can have 600 changed files (the server's operator can raise sandbox.disk)", true},
				{sandbox.LimitDisk, "rm -f n*; for i in 1 2 3; do head -c 9M /dev/zero > big$i || exit 6; done", "can have 24 MB (the server's operator can raise sandbox.disk)", true},
			} {
				r := c.must(l.command)
				if !slices.Contains(r.Limits, l.limit) || !says(r, l.note) || r.End != protocol.Exited {
					t.Errorf("%s: limits %q, notes %q, exit code %d, end %d\nstderr: %s", l.command, r.Limits, r.Notes, r.ExitCode, r.End, r.Stderr.Text)
				}
				if l.limit != sandbox.LimitOutput && r.ExitCode == 0 {
					t.Errorf("%s: exit code 0", l.command)
				}
				gen := r.Generation
				r = c.works(l.command)
				if l.renewed != (r.Generation > gen) || l.renewed != says(r, "to have room") {
					t.Errorf("after %s: generation %d, then %d; notes %q", l.command, gen, r.Generation, r.Notes)
				}
			}
			// The files that filled the sandbox are in the space, and the fresh one has
			// room.
			if r := c.must("ls n1 >/dev/null 2>&1 || ls big1 big2 && head -c 9M /dev/urandom > more"); r.ExitCode != 0 || len(r.Commits) != 1 {
				t.Errorf("with room again: %+v", r)
			}
			_, err := c.exec(c.request("for i in 1 2 3 4; do (head -c 80M /dev/zero; sleep 1000) | tail & done; wait"))
			if !errors.Is(err, space.ErrOutOfMemory) || fault.CodeOf(err) != fault.Unavailable ||
				!strings.Contains(fault.PublicOf(err), "256 MB") || !strings.Contains(fault.PublicOf(err), "sandbox.memory") {
				t.Errorf("memory: %v", err)
			}
			if r := c.works("running out of memory"); !r.Restarted || !says(r, "run out of memory") {
				t.Errorf("after running out of memory: %q", r.Notes)
			}
		})
	}
}

// TestACommandThatSpeaksOfLimitsMeetsNone: a message about a limit does not mean that it
// was reached.
func TestACommandThatSpeaksOfLimitsMeetsNone(t *testing.T) {
	t.Parallel()
	c := newCell(t, nil, nil)
	r := c.must("echo 'No space left on device'; echo 'Too many open files' >&2; echo 'fork: Resource temporarily unavailable'")
	if len(r.Limits)+len(r.Notes) != 0 {
		t.Errorf("limits %q, notes %q", r.Limits, r.Notes)
	}
}

// TestProcessorHogsAreBoundedOverGVisor: a command that would keep every
// processor busy for ever ends at its time limit, and others are answered
// meanwhile.
func TestProcessorHogsAreBoundedOverGVisor(t *testing.T) {
	t.Parallel()
	for _, how := range boundings() {
		t.Run(how.name, func(t *testing.T) {
			t.Parallel()
			c := newCell(t, func(o *sandbox.Options) {
				o.Limits = sandbox.DefaultLimits()
				o.Limits.CPUs = 0.5
				o.WallTime = 3 * time.Second
			}, how.gvisor)
			c.look("true")
			hog := make(chan sandbox.Result, 1)
			go func() {
				r, err := c.exec(c.request("for i in 1 2 3 4; do (while :; do :; done) & done; wait"))
				if err != nil {
					t.Error(err)
				}
				hog <- r
			}()
			other := c.request("echo other")
			other.User, other.WallTime = "u_two", time.Hour
			if r, err := c.exec(other); err != nil || r.Stdout.Text != "other\n" {
				t.Errorf("beside a hog: %+v, %v", r, err)
			}
			r := <-hog
			if r.End != protocol.TimedOut || !slices.Contains(r.Limits, sandbox.LimitWallTime) || !says(r, "after 3s, the time limit (the server's operator can raise sandbox.wall_time)") {
				t.Errorf("the hog: end %d, limits %q, notes %q", r.End, r.Limits, r.Notes)
			}
			c.works("a hog")
		})
	}
}
