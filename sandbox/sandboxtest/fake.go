//go:build unix

package sandboxtest

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/sandbox"
	"satchel/sandbox/oci"
	"satchel/sandbox/protocol"
)

// Fake is a Runtime whose sandboxes are directories, in which the host's bash
// runs as the test's own user. It isolates nothing, so use it only for commands
// that the test's author wrote.
type Fake struct {
	dir string // contains the sandboxes' directories

	mu     sync.Mutex
	boxes  map[*FakeSandbox]bool
	ids    map[space.SandboxID]bool
	closed bool
	memory int64 // the memory that the Stats of each sandbox report
	busy   func(path string) bool
}

// NewFake returns a Fake. Its Connect goes into the pool's Options. Create the pool after the
// Fake: then the test's cleanup ends the pool before it removes the files of the sandboxes.
func NewFake(t testing.TB) *Fake {
	return &Fake{dir: t.TempDir(), boxes: map[*FakeSandbox]bool{}, ids: map[space.SandboxID]bool{}, memory: 1 << 20}
}

// SetMemory sets how many bytes of memory every sandbox claims to use.
func (f *Fake) SetMemory(n int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.memory = n
}

// SetBusy sets which paths count as open for writing.
func (f *Fake) SetBusy(busy func(path string) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.busy = busy
}

// Name implements space.Runtime.
func (f *Fake) Name() string { return "fake" }

// Check implements space.Runtime.
func (f *Fake) Check(context.Context) error { return nil }

// Reap implements space.Runtime.
func (f *Fake) Reap(context.Context) (int, error) { return 0, nil }

// Close implements space.Runtime.
func (f *Fake) Close() error {
	f.mu.Lock()
	f.closed = true
	var left []*FakeSandbox
	for b := range f.boxes {
		left = append(left, b)
	}
	f.mu.Unlock()
	for _, b := range left {
		b.end(nil)
	}
	return nil
}

// Start implements space.Runtime.
func (f *Fake) Start(ctx context.Context, spec space.SandboxSpec) (space.Sandbox, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !oci.ValidID(spec.ID) {
		return nil, fault.New(fault.Invalid, "A sandbox id must be 64 hexadecimal digits.")
	}
	if err := f.claim(spec.ID); err != nil {
		return nil, err
	}
	root, err := os.MkdirTemp(f.dir, "sandbox")
	if err != nil {
		return nil, err
	}
	b := &FakeSandbox{
		fake: f, id: spec.ID, root: root, space: filepath.Join(root, "space"),
		done: make(chan struct{}), runs: map[*run]bool{}, pending: map[uint64]map[string]snapshot{},
	}
	for _, d := range []string{"tmp", "run"} {
		if err := os.Mkdir(filepath.Join(root, d), 0o755); err != nil {
			return nil, err
		}
	}
	if err := os.CopyFS(b.space, os.DirFS(spec.Checkout.Dir)); err != nil {
		return nil, err
	}
	if b.acked, err = scan(b.space); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.boxes[b] = true
	return b, nil
}

// claim reserves an id until its sandbox ends.
func (f *Fake) claim(id space.SandboxID) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return errors.New("the fake is closed")
	}
	if f.ids[id] {
		return errors.New("the sandbox runs already")
	}
	f.ids[id] = true
	return nil
}

// Connect stands in for protocol.Connect.
func (f *Fake) Connect(ctx context.Context, conn io.ReadWriteCloser, b protocol.Boot) (sandbox.Agent, error) {
	c, ok := conn.(*fakeConn)
	if !ok {
		return nil, errors.New("not a connection of a fake sandbox")
	}
	c.box.boot = b
	return &fakeAgent{FakeSandbox: c.box, closed: make(chan struct{})}, ctx.Err()
}

// FakeSandbox is one sandbox of a Fake.
type FakeSandbox struct {
	fake        *Fake
	id          space.SandboxID
	root, space string
	boot        protocol.Boot
	done        chan struct{}
	err         error // set before done is closed

	mu       sync.Mutex
	ended    bool
	shutdown bool
	runs     map[*run]bool
	jobs     []*run
	onJobEnd func(protocol.JobEnd)
	tells    sync.WaitGroup // calls of onJobEnd

	files   sync.Mutex
	acked   map[string]snapshot
	batch   uint64
	pending map[uint64]map[string]snapshot
}

type fakeConn struct{ box *FakeSandbox }

func (c *fakeConn) Read([]byte) (int, error)    { <-c.box.done; return 0, io.EOF }
func (c *fakeConn) Write(p []byte) (int, error) { return len(p), nil }
func (c *fakeConn) Close() error                { return nil }

// Conn implements space.Sandbox.
func (b *FakeSandbox) Conn() io.ReadWriteCloser { return &fakeConn{b} }

// Done implements space.Sandbox.
func (b *FakeSandbox) Done() <-chan struct{} { return b.done }

// Err implements space.Sandbox.
func (b *FakeSandbox) Err() error {
	select {
	case <-b.done:
		return b.err
	default:
		return nil
	}
}

// Stats implements space.Sandbox.
func (b *FakeSandbox) Stats(context.Context) (space.SandboxStats, error) {
	select {
	case <-b.done:
		return space.SandboxStats{}, errors.New("the sandbox has ended")
	default:
	}
	b.fake.mu.Lock()
	defer b.fake.mu.Unlock()
	return space.SandboxStats{Memory: b.fake.memory, Processes: 1}, nil
}

// Stop implements space.Sandbox.
func (b *FakeSandbox) Stop(context.Context) error {
	b.end(nil)
	return nil
}

// Run runs a command in the space and returns what it prints.
func (b *FakeSandbox) Run(ctx context.Context, command string) (string, error) {
	select {
	case <-b.done:
		return "", errors.New("the sandbox has ended")
	default:
	}
	a := &fakeAgent{FakeSandbox: b, closed: make(chan struct{})}
	r, err := a.Exec(ctx, protocol.ExecRequest{Command: command, HeadTail: 64 << 10}, nil)
	return string(r.Stdout.Head), err
}

// Crash ends the sandbox with the given reason, as if the sandbox had ended by itself.
func (b *FakeSandbox) Crash(err error) { b.end(err) }

func (b *FakeSandbox) end(err error) {
	b.mu.Lock()
	first := !b.ended
	b.ended = true
	runs := b.runs
	b.runs = map[*run]bool{}
	b.mu.Unlock()
	if !first {
		<-b.done
		return
	}
	for r := range runs {
		r.kill()
		<-r.done
	}
	b.err = err
	b.fake.mu.Lock()
	delete(b.fake.boxes, b)
	delete(b.fake.ids, b.id)
	b.fake.mu.Unlock()
	close(b.done)
}
