package gvisor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/sandbox/gvisor/link"
	"satchel/sandbox/gvisor/rundir"
	"satchel/sandbox/host"
	"satchel/sandbox/oci"
)

// Name is the runtime's name in the configuration.
const Name = "gvisor"

var _ space.Runtime = (*Runtime)(nil)

// Runtime starts sandboxes in gVisor. Its methods are safe for concurrent use.
type Runtime struct {
	opt    Options
	proven atomic.Bool // a sandbox has started

	// The goroutine that boots spares ends with ctx.
	ctx        context.Context
	cancel     context.CancelFunc
	background sync.WaitGroup

	mu      sync.Mutex
	spares  []*sandbox    // booted, without a space
	booting bool          // a goroutine boots spares
	spareUp chan struct{} // closed when a boot ends; nil if none runs, or a caller waits for it
	lock    *os.File      // the lock of RunDir; nil until it is needed
	child   *child        // nil until it is needed, or if it has died
	closed  bool
}

// New returns a Runtime. Nothing is started, read or written before a method is called. The
// error is a fault.Invalid for a wrong option.
func New(opt Options) (*Runtime, error) {
	opt = opt.withDefaults()
	if !filepath.IsAbs(opt.RunDir) {
		return nil, fault.New(fault.Invalid, "The sandboxes' run directory must be an absolute path.")
	}
	opt.RunDir = filepath.Clean(opt.RunDir)
	if opt.Rootfs != "" && !filepath.IsAbs(opt.Rootfs) {
		return nil, fault.New(fault.Invalid, "The sandboxes' root file system must be an absolute path.")
	}
	switch opt.Platform {
	case "systrap", "kvm", "ptrace":
	default:
		return nil, fault.New(fault.Invalid, "gVisor has no platform %q: use systrap, kvm or ptrace.", opt.Platform)
	}
	return newRuntime(opt), nil
}

func newRuntime(opt Options) *Runtime {
	r := &Runtime{opt: opt}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

// Name implements space.Runtime.
func (r *Runtime) Name() string { return Name }

// Start implements space.Runtime. It does not call spec.Checkout.Release: the
// caller does, when the sandbox is gone. A spare that it takes keeps its own id.
func (r *Runtime) Start(ctx context.Context, spec space.SandboxSpec) (space.Sandbox, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !oci.ValidID(spec.ID) {
		return nil, fault.New(fault.Invalid, "A sandbox id must be 64 hexadecimal digits.")
	}
	if spec.Checkout == nil {
		return nil, fault.New(fault.Invalid, "A sandbox needs a checkout.")
	}
	c, err := r.running(ctx)
	if err != nil {
		return nil, err
	}
	defer r.bootSpares(spareDelay)
	if s := r.takeSpare(ctx, spec.Limits); s != nil {
		err := s.child.attach(ctx, s, spec.Checkout)
		if err == nil {
			return s, nil
		}
		if ctx.Err() != nil {
			return nil, err
		}
		r.opt.Logger.Warn("a booted sandbox could not be used; another starts", "sandbox", s.id, "error", err)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return c.start(ctx, spec)
}

// Reap implements space.Runtime.
func (r *Runtime) Reap(ctx context.Context) (int, error) {
	r.mu.Lock()
	if c := r.child; c != nil && !r.closed && !c.gone() {
		r.mu.Unlock()
		m, err := c.call(ctx, link.Message{Op: link.Reap}) // only the child knows what it owns
		return m.Reaped, err
	}
	defer r.mu.Unlock()
	if r.closed {
		return 0, errClosed
	}
	if err := r.lockRunDir(ctx); err != nil {
		return 0, err
	}
	return rundir.Reap(r.opt.RunDir, r.opt.StopTimeout)
}

// Close implements space.Runtime.
func (r *Runtime) Close() error {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.cancel()
	r.background.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	var err error
	if r.child != nil {
		err = r.child.close()
		r.child = nil
	}
	if r.lock != nil {
		err = errors.Join(err, r.lock.Close())
		r.lock = nil
	}
	return err
}

var errClosed = errors.New("the sandbox runtime is closed")

// running returns the child, and starts it if necessary.
func (r *Runtime) running(ctx context.Context) (*child, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, errClosed
	}
	if r.child != nil && !r.child.gone() {
		return r.child, nil
	}
	if err := r.lockRunDir(ctx); err != nil {
		return nil, err
	}
	if r.child != nil {
		r.child.close()
		r.child = nil
	}
	// A child that died may have left remains, and so may an earlier server if Reap was not
	// called.
	if _, err := rundir.Reap(r.opt.RunDir, r.opt.StopTimeout); err != nil {
		return nil, err
	}
	p, err := r.opt.Programs()
	if err != nil {
		return nil, err
	}
	c, err := startChild(ctx, r.opt, p, r.lock, &r.proven)
	if err != nil {
		return nil, err
	}
	r.child = c
	return c, nil
}

// lockRunDir locks RunDir, unless it is already locked. The caller holds r.mu.
func (r *Runtime) lockRunDir(ctx context.Context) (err error) {
	if r.lock == nil {
		r.lock, err = host.LockRunDir(ctx, r.opt.RunDir, r.opt.StopTimeout)
	}
	return err
}
