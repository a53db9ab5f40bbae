package crun

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"satchel/internal/space"
	"satchel/sandbox/host"
)

var _ space.Sandbox = (*box)(nil)

// box is one container.
type box struct {
	id      space.SandboxID
	runtime *Runtime
	machine *machine
	slot    int // of its ids
	bundle  string
	stdio   *host.Stdio
	theirs  []*os.File // the streams' other ends, until process 1 has them

	init  *host.Process // nil until it is there
	group *host.Cgroup  // nil until it is there
	made  bool          // the OCI runtime was told to make it

	stop     chan struct{} // closed when a stop is asked for
	stopOnce sync.Once
	done     chan struct{}
	doneOnce sync.Once
	err      error // set before done is closed
}

func newBox(r *Runtime, m *machine, id space.SandboxID) (*box, error) {
	slot, err := m.ids.get()
	if err != nil {
		return nil, err
	}
	b := &box{
		id: id, runtime: r, machine: m, slot: slot,
		bundle: filepath.Join(bundleDir(r.opt.RunDir), string(id)),
		stop:   make(chan struct{}), done: make(chan struct{}),
	}
	if b.stdio, b.theirs, err = host.NewStdio(); err != nil {
		m.ids.put(slot)
		return nil, err
	}
	return b, nil
}

// boot starts the container; what it leaves when it fails, clean removes.
func (b *box) boot(ctx context.Context, spec space.SandboxSpec) error {
	defer b.closeTheirs()
	m := b.machine
	if err := b.write(spec); err != nil {
		return err
	}
	err := m.cgroups.Note(b.bundle, b.id)
	if err != nil {
		return err
	}
	if b.group, err = m.cgroups.Create(b.id, withAgent(spec.Limits)); err != nil {
		return err
	}
	b.group.HoldAtLimit()
	userns, err := m.ids.userNamespace(b.slot)
	if err != nil {
		return err
	}
	defer userns.Close()
	err = m.stage.do(func() error {
		return m.stage.build(b.id, spec.Seed, m.ids.start(b.slot), int(userns.Fd()))
	})
	if err != nil {
		return err
	}
	b.made = true
	pidFile := filepath.Join(b.bundle, "pid")
	if err := b.oci(ctx, b.theirs, "create", "--bundle", b.bundle, "--pid-file", pidFile, string(b.id)); err != nil {
		return err
	}
	b.closeTheirs()
	// Process 1 waits before its first instruction until it is started.
	if b.init, err = openInit(pidFile); err != nil {
		return err
	}
	if err := b.group.Add([]int{b.init.PID}); err != nil {
		return err
	}
	return b.oci(ctx, nil, "start", string(b.id))
}

// write makes the bundle.
func (b *box) write(spec space.SandboxSpec) error {
	cfg, err := b.config(spec)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(cfg)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(b.bundle, 0o700); err != nil {
		return fmt.Errorf("making the bundle: %w", err)
	}
	if err := os.WriteFile(filepath.Join(b.bundle, "config.json"), raw, 0o600); err != nil {
		return fmt.Errorf("writing the bundle: %w", err)
	}
	return nil
}

// oci runs a command of the OCI runtime, on the stage. A stop ends it.
func (b *box) oci(ctx context.Context, stdio []*os.File, args ...string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-b.stop:
			cancel()
		case <-ctx.Done():
		}
	}()
	cmd := ociCommand(ctx, b.runtime.opt, b.machine.program, args...)
	var said strings.Builder
	if stdio != nil {
		cmd.Stdin, cmd.Stdout, cmd.Stderr = stdio[0], stdio[1], stdio[2]
	} else {
		cmd.Stderr = &said
	}
	if err := b.machine.stage.do(cmd.Start); err != nil {
		return fmt.Errorf("%s %s: %w", b.runtime.opt.Program, args[0], err)
	}
	if err := cmd.Wait(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return fmt.Errorf("%s %s: %w %s", b.runtime.opt.Program, args[0], err, strings.TrimSpace(said.String()))
	}
	return nil
}

// startKilled tells whether a boot that failed with err was ended from outside,
// which says nothing against the machine: the OCI runtime by a signal that
// someone sends, or process 1 while it waited for its start. It is asked before
// clean, which kills what is left.
func (b *box) startKilled(err error) bool {
	if b.group != nil && b.group.UnderOOM() {
		return false // there is too little memory to start in
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		ws, ok := exit.Sys().(syscall.WaitStatus)
		if ok && ws.Signaled() && host.EndsFromOutside(ws.Signal()) {
			return true
		}
	}
	return b.init != nil && b.init.Ended()
}

// ociCommand is a command of the OCI runtime. Nothing of the server's
// environment reaches it.
func ociCommand(ctx context.Context, opt Options, program string, args ...string) *exec.Cmd {
	global := []string{"--root", stateDir(opt.RunDir)}
	if opt.Program == Name {
		// The cgroups are made here, with gVisor's; runc makes some of its own
		// whatever it is told.
		global = append(global, "--cgroup-manager=disabled")
	}
	cmd := exec.CommandContext(ctx, program, append(global, args...)...)
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	cmd.Dir = "/"
	cmd.WaitDelay = opt.StopTimeout
	return cmd
}

// openInit holds the process that the OCI runtime says it has made.
func openInit(pidFile string) (*host.Process, error) {
	raw, err := os.ReadFile(pidFile)
	if err != nil {
		return nil, fmt.Errorf("finding process 1: %w", err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil {
		return nil, fmt.Errorf("finding process 1: %w", err)
	}
	return host.OpenProcess(pid)
}

// keep waits for the container's end and removes what is left. It is the owner
// of a container that has started.
func (b *box) keep() {
	over := make(chan struct{})
	go func() {
		defer close(over)
		// With process 1 the kernel ends all others: they are gone before it is.
		b.init.Wait()
	}()
	t := time.NewTicker(b.runtime.opt.WatchInterval)
	defer t.Stop()
	memory := false
	stop := b.stop
	for running := true; running; {
		select {
		case <-over:
			running = false
		case <-stop:
			stop = nil
			b.init.Kill()
		case <-t.C:
			if !memory && b.group.UnderOOM() {
				memory = true
				b.init.Kill()
			}
		}
	}
	memory = memory || b.group.UnderOOM()
	err := b.clean()
	if err != nil {
		b.runtime.opt.Logger.Error("removing a sandbox", "sandbox", b.id, "error", err)
	}
	b.runtime.forget(b, err == nil)
	switch {
	case memory:
		b.finish(space.ErrOutOfMemory)
	case b.stopAsked():
		b.finish(nil)
	default:
		err := errors.New("the sandbox ended by itself")
		b.runtime.opt.Logger.Warn("sandbox ended", "sandbox", string(b.id), "error", err, "stderr", b.stdio.Stderr())
		b.finish(err)
	}
}

// clean removes whatever there is of a container.
func (b *box) clean() error {
	var errs []error
	if b.init != nil {
		b.init.Kill()
		if !b.init.WaitUntil(time.Now().Add(b.runtime.opt.StopTimeout)) {
			errs = append(errs, fmt.Errorf("process 1 (%d) cannot be ended", b.init.PID))
		}
	}
	if b.made {
		errs = append(errs, ociDelete(b.runtime.opt, b.machine.program, b.id))
	}
	if b.init != nil {
		// Where this process is the first of a container, it inherits what the
		// OCI runtime has started; elsewhere another reaps it.
		_, _ = unix.Wait4(b.init.PID, nil, unix.WNOHANG, nil)
		b.init.Close()
	}
	if b.group != nil {
		errs = append(errs, dissolve(b.group, b.runtime.opt.StopTimeout))
	}
	if b.made {
		errs = append(errs, dissolve(host.CgroupsNamed(runcCgroup(b.id)), b.runtime.opt.StopTimeout))
	}
	errs = append(errs, b.machine.stage.do(func() error { return b.machine.stage.remove(b.id) }))
	if err := errors.Join(errs...); err != nil {
		return err // by the bundle Reap finds the rest
	}
	if err := os.RemoveAll(b.bundle); err != nil {
		return fmt.Errorf("removing the bundle: %w", err)
	}
	return nil
}

// finish marks the container as gone, for the reason err.
func (b *box) finish(err error) {
	b.doneOnce.Do(func() {
		b.closeTheirs()
		b.err = err
		b.stdio.Finish()
		close(b.done)
	})
}

func (b *box) closeTheirs() {
	for _, f := range b.theirs {
		f.Close()
	}
	b.theirs = nil
}

func (b *box) askStop() { b.stopOnce.Do(func() { close(b.stop) }) }

func (b *box) stopAsked() bool {
	select {
	case <-b.stop:
		return true
	default:
		return false
	}
}

// Conn implements space.Sandbox.
func (b *box) Conn() io.ReadWriteCloser { return b.stdio }

// Done implements space.Sandbox.
func (b *box) Done() <-chan struct{} { return b.done }

// Err implements space.Sandbox.
func (b *box) Err() error {
	select {
	case <-b.done:
		return b.err
	default:
		return nil
	}
}

// Stop implements space.Sandbox. It closes Conn.
func (b *box) Stop(ctx context.Context) error {
	defer b.stdio.Close()
	b.askStop()
	select {
	case <-b.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stopping sandbox %s: %w", b.id, ctx.Err())
	}
}

// Stats implements space.Sandbox.
func (b *box) Stats(context.Context) (space.SandboxStats, error) {
	select {
	case <-b.done:
		return space.SandboxStats{}, errors.New("no such sandbox")
	default:
	}
	bytes, err := b.group.Memory()
	if err != nil {
		return space.SandboxStats{}, err
	}
	return space.SandboxStats{Memory: bytes, Processes: len(b.group.Processes())}, nil
}
