package crun

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/sandbox/host"
	"satchel/sandbox/oci"
)

var _ space.Runtime = (*Runtime)(nil)

// Runtime starts sandboxes with crun or runc. Its methods may be called at once
// by many.
type Runtime struct {
	opt Options

	mu     sync.Mutex
	ready  *machine // nil until it is needed
	lock   *os.File // of RunDir; nil until it is needed
	live   map[space.SandboxID]*box
	closed bool
}

// machine is what the first start or reap finds and makes.
type machine struct {
	program string // the OCI runtime's path
	exe     string // becomes the agent
	cgroups host.Cgroups
	stage   *stage
	ids     *idRanges
}

// New returns a Runtime. Nothing is started, read or written before a method
// is called. The error is a fault.Invalid: an option is wrong.
func New(opt Options) (*Runtime, error) {
	opt, err := opt.check()
	if err != nil {
		return nil, err
	}
	return &Runtime{opt: opt, live: map[space.SandboxID]*box{}}, nil
}

// Name implements space.Runtime.
func (r *Runtime) Name() string { return r.opt.Program }

// SharedKernel implements space.Runtime.
func (r *Runtime) SharedKernel() bool { return true }

var errClosed = errors.New("the sandbox runtime is closed")

// Start implements space.Runtime. It does not call spec.Seed.Release: the
// caller does, when the sandbox is gone.
func (r *Runtime) Start(outer context.Context, spec space.SandboxSpec) (space.Sandbox, error) {
	if err := outer.Err(); err != nil {
		return nil, err
	}
	if !oci.ValidID(spec.ID) {
		return nil, fault.New(fault.Invalid, "A sandbox id must be 64 hexadecimal digits.")
	}
	if spec.Seed == nil {
		return nil, fault.New(fault.Invalid, "A sandbox needs a seed.")
	}
	m, err := r.prepare(outer)
	if err != nil {
		return nil, err
	}
	b, err := r.admit(m, spec.ID)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(outer, r.opt.StartTimeout)
	defer cancel()
	err = b.boot(ctx, spec)
	if err == nil {
		go b.keep()
		return b, nil
	}
	killed := b.startKilled(err)
	cerr := b.clean()
	if cerr != nil {
		r.opt.Logger.Error("sandbox did not start, and cannot be removed", "sandbox", spec.ID, "error", cerr)
	}
	r.forget(b, cerr == nil)
	b.finish(err)
	switch {
	case outer.Err() != nil:
		return nil, outer.Err()
	case b.stopAsked():
		return nil, errClosed
	case killed:
		r.opt.Logger.Warn("sandbox start was ended from outside", "sandbox", spec.ID, "error", err)
		return nil, errors.Join(space.ErrKilled, err)
	}
	r.opt.Logger.Error("sandbox does not start", "sandbox", spec.ID, "error", err, "stderr", b.stdio.Stderr())
	return nil, fault.Wrap(err, fault.Unavailable, "The sandbox does not start. `satchel doctor` says what this machine lacks.")
}

// admit makes room for a sandbox. From then on Reap leaves alone what has its
// id.
func (r *Runtime) admit(m *machine, id space.SandboxID) (*box, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, errClosed
	}
	if _, ok := r.live[id]; ok {
		return nil, fmt.Errorf("sandbox %s runs already", id)
	}
	b, err := newBox(r, m, id)
	if err != nil {
		return nil, err
	}
	r.live[id] = b
	return b, nil
}

// forget leaves what is left of a sandbox to Reap. Where something is, its users'
// ids are given to no other: processes of it may still run as those.
func (r *Runtime) forget(b *box, removed bool) {
	r.mu.Lock()
	delete(r.live, b.id)
	r.mu.Unlock()
	if removed {
		b.machine.ids.put(b.slot)
	}
}

// prepare finds and makes what every start needs.
func (r *Runtime) prepare(ctx context.Context) (*machine, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, errClosed
	}
	if r.ready != nil {
		return r.ready, nil
	}
	if err := r.lockRunDir(ctx); err != nil {
		return nil, err
	}
	m := &machine{exe: r.opt.Exe}
	var err error
	if m.program, err = exec.LookPath(r.opt.Program); err != nil {
		return nil, r.notInstalled()
	}
	if m.exe == "" {
		if m.exe, err = os.Executable(); err != nil {
			return nil, fmt.Errorf("finding the program: %w", err)
		}
	}
	if m.cgroups = host.FindCgroups(false); m.cgroups.Version == 0 {
		return nil, fault.New(fault.Unavailable, "No sandbox can start here: %s. %s", m.cgroups.Why, cgroupRemedy)
	}
	// What an earlier server left, where Reap was not called, may have the ids
	// that are given out next.
	if _, err := r.reap(m.program, m.cgroups); err != nil {
		return nil, err
	}
	if m.stage, err = newStage(r.opt.RunDir, m.exe, r.opt.Rootfs); err != nil {
		return nil, err
	}
	m.ids = newIDRanges(r.opt.FirstID)
	r.ready = m
	r.opt.Logger.Info("sandbox runtime started", "runtime", r.Name(), "program", m.program, "cgroups", m.cgroups.Describe())
	return m, nil
}

// Close implements space.Runtime.
func (r *Runtime) Close() error {
	r.mu.Lock()
	r.closed = true
	var live []*box
	for _, b := range r.live {
		live = append(live, b)
	}
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), r.opt.StopTimeout)
	defer cancel()
	var errs []error
	for _, b := range live {
		b.askStop()
	}
	for _, b := range live {
		errs = append(errs, b.Stop(ctx))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ready != nil {
		r.ready.stage.close()
		r.ready = nil
	}
	if r.lock != nil {
		errs = append(errs, r.lock.Close())
		r.lock = nil
	}
	return errors.Join(errs...)
}

// lockRunDir locks RunDir, where it is not locked yet. The caller holds r.mu.
func (r *Runtime) lockRunDir(ctx context.Context) (err error) {
	if r.lock == nil {
		r.lock, err = host.LockRunDir(ctx, r.opt.RunDir, r.opt.StopTimeout)
	}
	return err
}

func stateDir(run string) string  { return filepath.Join(run, "state") }
func bundleDir(run string) string { return filepath.Join(run, "bundles") }
