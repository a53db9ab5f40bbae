//go:build unix

package sandbox_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"satchel/internal/fault"
	"satchel/internal/seal"
	"satchel/internal/space"
	"satchel/sandbox"
	"satchel/sandbox/pending"
	"satchel/sandbox/protocol"
)

// countedPending counts the calls of a store, and stops in Save where it is asked.
type countedPending struct {
	*pending.Store
	mu           sync.Mutex
	loads, saves int
	inSave       func()
}

func (c *countedPending) Load(ctx context.Context, u space.UserID, id space.SpaceID) ([]pending.File, error) {
	c.mu.Lock()
	c.loads++
	c.mu.Unlock()
	return c.Store.Load(ctx, u, id)
}

func (c *countedPending) Save(ctx context.Context, u space.UserID, id space.SpaceID, put []pending.File, drop []string) ([]pending.NotStored, error) {
	c.mu.Lock()
	c.saves++
	f := c.inSave
	c.mu.Unlock()
	if f != nil {
		f()
	}
	return c.Store.Save(ctx, u, id, put, drop)
}

func (c *countedPending) calls() [2]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return [2]int{c.loads, c.saves}
}

func openPending(t testing.TB, dir string) *pending.Store {
	t.Helper()
	key, err := seal.Load(filepath.Join(dir, "key"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := pending.Open(pending.Options{Dir: filepath.Join(dir, "held"), Seal: key, Logger: testLogger(t)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func newPendingBench(t *testing.T, change func(*sandbox.Options)) (*bench, *countedPending) {
	h := &countedPending{Store: openPending(t, t.TempDir())}
	b := newBench(t, func(o *sandbox.Options) {
		o.Pending = h
		if change != nil {
			change(o)
		}
	})
	b.Store.RefusePath = func(p string) error {
		if strings.HasPrefix(p, "secret") {
			return fault.New(fault.Forbidden, "It holds a secret.")
		}
		return nil
	}
	return b, h
}

func pendingPaths(r sandbox.Result) []string {
	var list []string
	for _, h := range r.Pending {
		list = append(list, h.Path)
	}
	return list
}

func TestHoldingCostsNothingWhereNothingChanges(t *testing.T) {
	b, h := newPendingBench(t, nil)
	for i := range 5 {
		b.must("a", fmt.Sprintf("echo %d > f; echo x > g%d; rm -f g%d", i, i, i-1))
		b.must("a", "true")
	}
	if got := h.calls(); got != [2]int{1, 0} {
		t.Errorf("%d loads and %d saves where nothing is held", got[0], got[1])
	}
	b.must("a", "echo s > secret")
	for i := range 5 {
		b.must("a", fmt.Sprintf("echo %d > f", i))
	}
	if got := h.calls(); got != [2]int{1, 1} {
		t.Errorf("%d loads and %d saves where one file is held", got[0], got[1])
	}
	b.must("a", "echo t > secret")
	b.must("a", "rm secret")
	b.must("a", "true")
	if got := h.calls(); got != [2]int{1, 3} {
		t.Errorf("%d loads and %d saves after it changed and went", got[0], got[1])
	}
}

func TestWhatAJobCouldNotCommitIsHeld(t *testing.T) {
	b, _ := newPendingBench(t, nil)
	r := b.request("a", "echo s > secret; echo o > open")
	r.Background = true
	first, err := b.Pool.Exec(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	b.until("ended", func(s sandbox.Status) bool { return s.Busy == 0 })
	res := b.must("a", "true")
	notes := append(first.Notes, res.Notes...) // it may end before its own answer
	if !slices.Equal(pendingPaths(res), []string{"secret"}) || !slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, `Not committed: "secret": It holds a secret.`) }) {
		t.Errorf("held %v, notes %q", res.Pending, notes)
	}
}

func TestAJobThatMetItsTimeLimitNamesIt(t *testing.T) {
	b, _ := newPendingBench(t, func(o *sandbox.Options) { o.WallTime, o.Grace = 300*time.Millisecond, 100*time.Millisecond })
	r := b.request("a", "sleep 60")
	r.Background = true
	if _, err := b.Pool.Exec(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	b.until("ended", func(s sandbox.Status) bool { return s.Busy == 0 })
	const want = `ended at the time limit of 300ms (the server's operator can raise sandbox.wall_time) after `
	next := b.request("a", "true")
	next.WallTime = time.Minute
	if res, err := b.Pool.Exec(t.Context(), next); err != nil || !slices.ContainsFunc(res.Notes, func(n string) bool { return strings.Contains(n, want) }) {
		t.Errorf("notes %q, %v", res.Notes, err)
	}
}

// stubborn refuses to put back what is the user's own.
type stubborn struct{ sandbox.Agent }

func (s stubborn) Apply(ctx context.Context, entries []protocol.ApplyEntry) ([]protocol.ApplyResult, error) {
	results, err := s.Agent.Apply(ctx, slices.DeleteFunc(slices.Clone(entries), func(e protocol.ApplyEntry) bool { return e.Own }))
	for _, e := range entries {
		if e.Own {
			results = append(results, protocol.ApplyResult{Path: e.Path, Problem: "no space left on device"})
		}
	}
	return results, err
}

func TestWhatCannotBePutBackStaysOnTheServer(t *testing.T) {
	full := false
	b, h := newPendingBench(t, func(o *sandbox.Options) {
		connect := o.Connect
		o.Connect = func(ctx context.Context, conn io.ReadWriteCloser, boot protocol.Boot) (sandbox.Agent, error) {
			a, err := connect(ctx, conn, boot)
			if full && err == nil {
				a = stubborn{a}
			}
			return a, err
		}
	})
	b.must("a", "echo s > secret1; echo s > secret2")
	full = true
	for range 3 {
		if err := b.Pool.StopSpace(t.Context(), b.space); err != nil {
			t.Fatal(err)
		}
		r := b.must("a", "test ! -e secret1; echo x > f")
		if !slices.Equal(pendingPaths(r), []string{"secret1", "secret2"}) ||
			r.Pending[0].Why != "It is kept on the server and could not be put back into the sandbox: no space left on device. It holds a secret." {
			t.Fatalf("%+v", r.Pending)
		}
	}
	// Written again inside, that is what is held; dropped, it is gone.
	b.must("a", "echo new > secret1")
	if n, err := b.Pool.DropPending(t.Context(), "a", b.space, "secret2"); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	files, err := h.Store.Load(t.Context(), "a", b.space)
	if err != nil || len(files) != 1 || string(files[0].Content) != "new\n" {
		t.Errorf("%v, %v", files, err)
	}
	full = false
	if err := b.Pool.StopSpace(t.Context(), b.space); err != nil {
		t.Fatal(err)
	}
	if r := b.must("a", "cat secret1; ls"); r.Stdout.Text != "new\nf\nsecret1\n" {
		t.Errorf("%q", r.Stdout.Text)
	}
}

// A sandbox that dies while the server keeps what it had refused is replaced
// only when that is kept.
func TestTheNextSandboxHasWhatADeadOneHeldLast(t *testing.T) {
	b, h := newPendingBench(t, nil)
	b.must("a", "true")
	entered, leave := make(chan struct{}), make(chan struct{})
	h.inSave = sync.OnceFunc(func() { close(entered); <-leave })
	first := make(chan outcome, 1)
	go func() {
		r, err := b.Pool.Exec(t.Context(), b.request("a", "echo s > secret"))
		first <- outcome{r, err}
	}()
	<-entered
	if err := b.Runtime.Started()[0].Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.until("found dead", func(sandbox.Status) bool { return b.Pool.Ending() })
	second := b.exec(t.Context(), b.request("a", "cat secret")) // waits for its end
	close(leave)
	<-first
	if o := <-second; o.err != nil || o.res.Stdout.Text != "s\n" || !slices.Equal(pendingPaths(o.res), []string{"secret"}) {
		t.Errorf("%+v, %v", o.res, o.err)
	}
}

func TestDroppingMeetsASandboxThatStarts(t *testing.T) {
	b, h := newPendingBench(t, nil)
	b.must("a", "echo s > secret")
	if err := b.Pool.StopSpace(t.Context(), b.space); err != nil {
		t.Fatal(err)
	}
	b.gated()
	started := b.exec(t.Context(), b.request("a", "ls"))
	dropped := make(chan error, 1)
	go func() {
		_, err := b.Pool.DropPending(t.Context(), "a", b.space, "secret")
		dropped <- err
	}()
	b.gate <- struct{}{}
	if err := <-dropped; err != nil {
		t.Error(err)
	}
	<-started
	if r := b.must("a", "ls"); r.Stdout.Text != "f\n" || len(r.Pending) != 0 {
		t.Errorf("%q, %v", r.Stdout.Text, r.Pending)
	}
	if items, err := h.List(t.Context(), "a", b.space); err != nil || len(items) != 0 {
		t.Errorf("%v, %v", items, err)
	}
}

// liar reports paths that no file system can have.
type liar struct{ sandbox.Agent }

func (l liar) Collect(ctx context.Context, limits protocol.CollectLimits) (protocol.Batch, error) {
	b, err := l.Agent.Collect(ctx, limits)
	for _, p := range []string{"../../x", "/etc/x", "a/../../x", "./x", "x//y", "x/", "", "nul\x00", strings.Repeat("x", 300), strings.Repeat("d/", 3000) + "x"} {
		b.Entries = append(b.Entries, protocol.Entry{Path: p, Content: []byte("evil")})
	}
	return b, err
}

// TestAttackOfAnAgentThatLiesAboutPaths: they are refused, and nothing is put
// at them on the server or in another sandbox.
func TestAttackOfAnAgentThatLiesAboutPaths(t *testing.T) {
	b, h := newPendingBench(t, func(o *sandbox.Options) {
		connect := o.Connect
		o.Connect = func(ctx context.Context, conn io.ReadWriteCloser, boot protocol.Boot) (sandbox.Agent, error) {
			a, err := connect(ctx, conn, boot)
			return liar{a}, err
		}
	})
	r := b.must("a", "echo s > secret")
	if len(r.Commits) != 0 || len(r.Pending) != 11 {
		t.Errorf("committed %v, named %q", r.Commits, pendingPaths(r))
	}
	items, err := h.List(t.Context(), "a", b.space)
	if err != nil || len(items) != 1 || items[0].Path != "secret" {
		t.Errorf("%v, %v", items, err)
	}
	// Were one held all the same, it would go nowhere.
	if _, err := h.Store.Save(t.Context(), "a", b.space, []pending.File{{Path: "../../x", Content: []byte("evil")}, {Path: "/etc/x", Content: []byte("evil")}}, nil); err != nil {
		t.Fatal(err)
	}
	if err := b.Pool.StopSpace(t.Context(), b.space); err != nil {
		t.Fatal(err)
	}
	if r := b.must("a", "ls ..; ls ../.."); strings.Contains(r.Stdout.Text, "x\n") {
		t.Errorf("%q", r.Stdout.Text)
	}
}

// TestAttackOfManyBadNames: a server stores a limited amount for one sandbox, in memory and
// on disk, and reports what exceeds it.
func TestAttackOfManyBadNames(t *testing.T) {
	b, h := newPendingBench(t, nil)
	r := b.must("a", `mkdir -p x/.git; for i in {1..3000}; do echo > x/.git/$i; echo > $'bad\n'$i; done`)
	if n := len(r.Pending); n != 1000 || !strings.Contains(r.Pending[n-1].Why, "more.") {
		t.Errorf("%d are named; the last: %+v", n, r.Pending[n-1])
	}
	if !slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, "more could not be committed") }) {
		t.Errorf("notes %q", r.Notes)
	}
	items, err := h.List(t.Context(), "a", b.space)
	if err != nil || len(items) != 1000 {
		t.Errorf("%d are held, %v", len(items), err)
	}
	r = b.must("a", `rm -rf x bad*`)
	if len(r.Pending) != 0 {
		t.Errorf("%d are named, the first: %+v", len(r.Pending), r.Pending[0])
	}
	if items, err := h.List(t.Context(), "a", b.space); err != nil || len(items) != 0 {
		t.Errorf("%d are held, %v", len(items), err)
	}
}

// crashDir is the variable that makes the test binary the server to be killed.
const crashDir = "SANDBOX_CRASH_DIR"

// TestCrashChild is not a test: it runs commands until it is killed, and prints the pending
// files in their answers.
func TestCrashChild(t *testing.T) {
	dir := os.Getenv(crashDir)
	if dir == "" {
		return
	}
	b, h := newPendingBench(t, nil)
	h.Store = openPending(t, dir)
	fmt.Println("space", b.space)
	for n := 0; ; n++ {
		r := b.must("a", fmt.Sprintf("echo %d > secret%d; rm -f secret%d", n, n, n-10))
		fmt.Println("held", strings.Join(pendingPaths(r), " "))
	}
}

// TestAKilledServerKeepsWhatItsAnswersNamed: kill -9 of the server, which takes
// its sandboxes along uncollected.
func TestAKilledServerKeepsWhatItsAnswersNamed(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestCrashChild$")
	cmd.Env = append(os.Environ(), crashDir+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var id space.SpaceID
	var last []string
	answers := 0
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if s, ok := strings.CutPrefix(lines.Text(), "space "); ok {
			id = space.SpaceID(s)
		} else if s, ok := strings.CutPrefix(lines.Text(), "held "); ok {
			last = strings.Fields(s)
			if answers++; answers == 25 {
				_ = cmd.Process.Kill()
			}
		}
	}
	_ = cmd.Wait() // killed
	if answers < 25 || len(last) != 10 {
		t.Fatalf("%d answers, the last named %q", answers, last)
	}
	items, err := openPending(t, dir).List(t.Context(), "a", id)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, i := range items {
		got[i.Path] = true
	}
	missing := slices.DeleteFunc(last, func(p string) bool { return got[p] })
	if len(missing) > 1 { // the command that ran when it was killed removes one
		t.Errorf("%q are not held; held are %v", missing, items)
	}
}
