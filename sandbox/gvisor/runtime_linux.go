package gvisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/sandbox/oci"
)

// Name is what configuration calls this runtime.
const Name = "gvisor"

var _ space.Runtime = (*Runtime)(nil)

// Runtime starts sandboxes in gVisor. Its methods may be called at once by
// many.
type Runtime struct {
	opt Options

	mu     sync.Mutex
	lock   *os.File // of RunDir; nil until it is needed
	child  *child   // nil until it is needed, or where it has died
	closed bool
}

// New returns a Runtime. Nothing is started, read or written before a method
// is called. The error is a fault.Invalid: an option is wrong.
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
	return &Runtime{opt: opt}, nil
}

// Name implements space.Runtime.
func (r *Runtime) Name() string { return Name }

// Start implements space.Runtime. It does not call spec.Seed.Release: the
// caller does, when the sandbox is gone.
func (r *Runtime) Start(ctx context.Context, spec space.SandboxSpec) (space.Sandbox, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !oci.ValidID(spec.ID) {
		return nil, fault.New(fault.Invalid, "A sandbox id must be 64 hexadecimal digits.")
	}
	if spec.Seed == nil {
		return nil, fault.New(fault.Invalid, "A sandbox needs a seed.")
	}
	c, err := r.running(ctx)
	if err != nil {
		return nil, err
	}
	return c.start(ctx, spec)
}

// Reap implements space.Runtime.
func (r *Runtime) Reap(ctx context.Context) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return 0, errClosed
	}
	if r.child != nil && !r.child.gone() {
		return 0, errors.New("Reap was called after Start")
	}
	if err := r.lockRunDir(ctx); err != nil {
		return 0, err
	}
	return reap(r.opt.RunDir, r.opt.StopTimeout)
}

// Close implements space.Runtime.
func (r *Runtime) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
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

// running returns the child, which it starts where there is none.
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
	// A child that died may have left something, and so may an earlier server
	// where Reap was not called.
	if _, err := reap(r.opt.RunDir, r.opt.StopTimeout); err != nil {
		return nil, err
	}
	c, err := startChild(ctx, r.opt, r.lock)
	if err != nil {
		return nil, err
	}
	r.child = c
	return c, nil
}

// lockRunDir makes RunDir and locks it, so that no other server destroys what
// runs here. The child of a server that was killed holds the lock for the
// moment that it needs to end its sandboxes.
func (r *Runtime) lockRunDir(ctx context.Context) error {
	if r.lock != nil {
		return nil
	}
	if err := os.MkdirAll(r.opt.RunDir, 0o700); err != nil {
		return fmt.Errorf("making the run directory: %w", err)
	}
	if err := os.Chmod(r.opt.RunDir, 0o700); err != nil {
		return fmt.Errorf("closing the run directory: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(r.opt.RunDir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("locking the run directory: %w", err)
	}
	deadline := time.Now().Add(r.opt.StopTimeout)
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			r.lock = f
			return nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) || time.Now().After(deadline) {
			f.Close()
			return fault.Wrap(err, fault.Unavailable,
				"Another server uses the same sandboxes' run directory. Stop it, or give this one a run directory of its own.")
		}
		select {
		case <-ctx.Done():
			f.Close()
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}
