package gvisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/sandbox/gvisor/link"
	"satchel/sandbox/gvisor/rundir"
	"satchel/sandbox/host"
	"satchel/sandbox/programs"
	"satchel/sandbox/protocol"
)

// child is the Runtime's side of the runtime child.
type child struct {
	opt  Options
	cmd  *exec.Cmd
	link *link.Link
	info link.ReadyInfo
	logs *host.Ends
	dead chan struct{} // closed when the child has ended and been reaped
	// proven is set once a sandbox has started on this machine, by this child
	// or one before it.
	proven *atomic.Bool

	mu      sync.Mutex
	last    uint64
	waiting map[uint64]chan link.Message // by the ID of the request
	live    map[space.SandboxID]*sandbox
	err     error // why the child is unusable; nil while it works
}

var errChildGone = errors.New("the sandbox runtime process has ended")

// startChild starts the runtime child and waits until it is ready.
func startChild(ctx context.Context, opt Options, files programs.Programs, lock *os.File, proven *atomic.Bool) (*child, error) {
	ours, theirs, err := link.Pair()
	if err != nil {
		return nil, err
	}
	l, err := link.New(ours)
	if err != nil {
		theirs.Close()
		return nil, err
	}
	c := &child{
		opt: opt, link: l, logs: host.NewEnds(2<<10, 6<<10), dead: make(chan struct{}), proven: proven,
		waiting: map[uint64]chan link.Message{},
		live:    map[space.SandboxID]*sandbox{},
	}
	c.cmd = exec.Command(files.Sandbox, link.ChildCommand)
	c.cmd.Args[0] = programs.Sandbox
	// Nothing of the server's environment may reach a sandbox's processes.
	c.cmd.Env = []string{}
	c.cmd.Dir = "/"
	c.cmd.ExtraFiles = []*os.File{theirs, lock} // become the descriptors childSocketFD and childLockFD of the child
	c.cmd.Stdout = c.logs
	c.cmd.Stderr = c.logs
	c.cmd.WaitDelay = opt.StopTimeout
	c.cmd.SysProcAttr = childAttr()
	err = c.cmd.Start()
	theirs.Close() // while this copy is open, link does not report that the child has ended
	if err != nil {
		l.Close()
		return nil, namespaceFault(err)
	}
	go c.receive()

	m, err := c.call(ctx, link.Message{Op: link.Configure, Config: &link.Config{
		RunDir: opt.RunDir, Agent: files.Agent, Rootfs: opt.Rootfs, Args: opt.Args, Platform: opt.Platform,
		NoDirectFS: opt.NoDirectFS, DirentCache: opt.DirentCache, OpenFiles: opt.OpenFiles, NoCgroups: opt.NoCgroups,
		WatchInterval: int64(opt.WatchInterval), DebugLog: opt.DebugLog,
	}})
	if err != nil {
		c.close()
		if errors.Is(err, errChildGone) && c.wasKilled() {
			err = errors.Join(err, space.ErrKilled)
		}
		if s := c.logs.String(); s != "" {
			err = fmt.Errorf("%w (%s)", err, s)
		}
		return nil, fmt.Errorf("starting the sandbox runtime process: %w", err)
	}
	if m.Ready != nil {
		c.info = *m.Ready
	}
	opt.Logger.Info("sandbox runtime started", "runtime", Name, "pid", c.cmd.Process.Pid, "cgroups", c.info.Cgroups)
	return c, nil
}

// childAttr gives the child its own mount namespace. For an ordinary user, this requires a user
// namespace, in which the child has a single user.
//
// In the user namespace, this user is not root, but the user that runs the commands. So the
// checked-out files belong to this user, as they do if the server is root, and commands can change
// the modes and times of the files. The ambient capabilities, which survive the start of a program,
// give the child root's powers.
func childAttr() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{
		Setpgid:    true, // so that a Ctrl-C at the terminal reaches only the server
		Cloneflags: syscall.CLONE_NEWNS,
	}
	if os.Geteuid() != 0 {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: protocol.CommandUID, HostID: os.Geteuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: protocol.CommandUID, HostID: os.Getegid(), Size: 1}}
		attr.GidMappingsEnableSetgroups = false
		attr.AmbientCaps = childCaps
	}
	return attr
}

// childCaps are the capabilities that the runtime child of an ordinary user needs within
// its namespaces, to mount the sandboxes' root, and that gVisor's gofer and sentry need
// while they start.
var childCaps = []uintptr{
	unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_DAC_READ_SEARCH, unix.CAP_FOWNER, unix.CAP_FSETID,
	unix.CAP_KILL, unix.CAP_SETGID, unix.CAP_SETUID, unix.CAP_SETPCAP, unix.CAP_SYS_ADMIN, unix.CAP_SYS_CHROOT,
	unix.CAP_SYS_PTRACE,
}

// receive is the goroutine that dispatches the child's messages. It ends with the child.
func (c *child) receive() {
	for {
		m, files, err := c.link.Receive()
		link.CloseAll(files)
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrClosed) && !errors.Is(err, syscall.ECONNRESET) {
				c.opt.Logger.Error("sandbox runtime: receiving", "error", err)
			}
			break
		}
		if m.Op == link.Ended {
			c.ended(m)
			continue
		}
		c.mu.Lock()
		ch := c.waiting[m.ID]
		delete(c.waiting, m.ID)
		c.mu.Unlock()
		if ch != nil {
			ch <- m
		}
	}
	c.finish()
}

// finish reaps the child and ends everything that depends on it.
func (c *child) finish() {
	c.link.Close()
	t := time.AfterFunc(c.opt.StopTimeout, func() { c.cmd.Process.Kill() })
	werr := c.cmd.Wait()
	t.Stop()

	c.mu.Lock()
	closing := c.err != nil
	if !closing {
		c.err = errChildGone
	}
	live := c.live
	c.live = map[space.SandboxID]*sandbox{}
	waiting := c.waiting
	c.waiting = map[uint64]chan link.Message{}
	c.mu.Unlock()

	if !closing {
		c.opt.Logger.Error("sandbox runtime ended unexpectedly", "error", werr, "log", c.logs.String(), "sandboxes", len(live))
	}
	for _, ch := range waiting {
		close(ch)
	}
	if len(live) > 0 && !closing {
		// The kernel kills the sandboxes with the child. Wait until they are really gone.
		if _, err := rundir.Reap(c.opt.RunDir, c.opt.StopTimeout); err != nil {
			c.opt.Logger.Error("sandbox runtime: destroying what it left", "error", err)
		}
	}
	for _, s := range live {
		if closing {
			s.finish(nil)
		} else {
			s.finish(errors.Join(errChildGone, space.ErrKilled))
		}
	}
	close(c.dead)
}

func (c *child) gone() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err != nil
}

// close ends the child and with it all its sandboxes, and returns when they are
// gone.
func (c *child) close() error {
	c.mu.Lock()
	if c.err == nil {
		c.err = errClosed
	}
	c.mu.Unlock()
	// When the child reads the end of the link, it stops everything and ends.
	c.link.CloseWrite()
	select {
	case <-c.dead:
		return nil
	case <-time.After(c.opt.StopTimeout):
	}
	c.cmd.Process.Kill()
	<-c.dead
	return errors.New("the sandbox runtime process had to be killed")
}

// call sends a request and waits for its reply. If ctx ends first, the reply is dropped.
func (c *child) call(ctx context.Context, m link.Message, files ...*os.File) (link.Message, error) {
	ch := make(chan link.Message, 1)
	c.mu.Lock()
	if c.err != nil {
		err := c.err
		c.mu.Unlock()
		return link.Message{}, err
	}
	c.last++
	m.ID = c.last
	c.waiting[m.ID] = ch
	c.mu.Unlock()
	if err := c.link.Send(m, files...); err != nil {
		c.mu.Lock()
		delete(c.waiting, m.ID)
		c.mu.Unlock()
		if errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, net.ErrClosed) {
			err = errors.Join(err, errChildGone)
		}
		return link.Message{}, fmt.Errorf("asking the sandbox runtime process: %w", err)
	}
	select {
	case <-ctx.Done():
		c.mu.Lock()
		delete(c.waiting, m.ID)
		c.mu.Unlock()
		return link.Message{}, ctx.Err()
	case reply, ok := <-ch:
		switch {
		case !ok:
			return link.Message{}, errChildGone
		case reply.Error != "":
			return reply, errors.New(reply.Error)
		}
		return reply, nil
	}
}

// insist is like call, for requests that must not wait for a child that hangs. If there
// is no answer in time, and none to a ping either, it kills the child with all its
// sandboxes.
func (c *child) insist(ctx context.Context, m link.Message) (link.Message, error) {
	done := make(chan struct{})
	defer close(done)
	go func() {
		for {
			select {
			case <-done:
				return
			case <-c.dead:
				return
			case <-time.After(c.opt.StopTimeout):
			}
			ask, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.opt.StopTimeout)
			_, err := c.call(ask, link.Message{Op: link.Stats})
			cancel()
			if errors.Is(err, context.DeadlineExceeded) {
				c.opt.Logger.Error("sandbox runtime: it hangs and is killed", "pid", c.cmd.Process.Pid)
				c.cmd.Process.Kill()
				return
			}
		}
	}()
	return c.call(ctx, m)
}

// boot boots a sandbox that has no space yet.
func (c *child) boot(outer context.Context, id space.SandboxID, limits space.Limits) (*sandbox, error) {
	ctx, cancel := context.WithTimeout(outer, c.opt.StartTimeout)
	defer cancel()
	s, theirs, err := newSandbox(c, id)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	if c.err != nil {
		err = c.err
	} else if _, ok := c.live[id]; ok {
		err = fmt.Errorf("sandbox %s runs already", id)
	} else {
		c.live[id] = s
	}
	c.mu.Unlock()
	if err != nil {
		link.CloseAll(theirs)
		s.finish(err)
		if c.startKilled(ctx, err, "") {
			err = errors.Join(space.ErrKilled, err)
		}
		return nil, err
	}
	reply, err := c.call(ctx, link.Message{Op: link.Start, Sandbox: id, Start: &link.StartRequest{Limits: limits}}, theirs...)
	link.CloseAll(theirs)
	if err == nil {
		c.proven.Store(true)
		return s, nil
	}
	return nil, c.failed(outer, ctx, s, reply, err)
}

// start boots a sandbox and gives it its space.
func (c *child) start(ctx context.Context, spec space.SandboxSpec) (*sandbox, error) {
	s, err := c.boot(ctx, spec.ID, spec.Limits)
	if err == nil {
		err = c.attach(ctx, s, spec.Checkout)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// attach gives a booted sandbox its space. If attach fails, the sandbox is gone.
func (c *child) attach(outer context.Context, s *sandbox, checkout *space.Checkout) error {
	ctx, cancel := context.WithTimeout(outer, c.opt.StartTimeout)
	defer cancel()
	reply, err := c.call(ctx, link.Message{Op: link.Attach, Sandbox: s.id, Attach: &link.AttachRequest{
		Lower: filepath.Clean(checkout.Dir), Git: cleanOrEmpty(checkout.GitView), Library: cleanOrEmpty(checkout.Library),
	}})
	if err == nil {
		return nil
	}
	if s.ended() && s.Err() != nil {
		err = errors.Join(err, s.Err()) // the child has forgotten the sandbox; Err says why it ended
	}
	if ctx.Err() == nil {
		sctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.opt.StopTimeout)
		defer cancel()
		_ = s.Stop(sctx) // err says more
	}
	return c.failed(outer, ctx, s, reply, err)
}

// failed removes a sandbox that did not start successfully, and returns why.
func (c *child) failed(outer, ctx context.Context, s *sandbox, reply link.Message, err error) error {
	if ctx.Err() != nil {
		// The child may still be starting the sandbox. The child answers the stop when the
		// start has ended and everything is removed.
		sctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.opt.StopTimeout)
		defer cancel()
		if serr := s.Stop(sctx); serr != nil {
			c.opt.Logger.Error("sandbox start was canceled, but it cannot be stopped", "sandbox", s.id, "error", serr)
		}
	}
	c.mu.Lock()
	delete(c.live, s.id)
	c.mu.Unlock()
	s.finish(err)
	switch {
	case outer.Err() != nil:
	case errors.Is(err, space.ErrKilled) || c.startKilled(ctx, err, reply.Killed):
		c.opt.Logger.Warn("sandbox start was ended from outside", "sandbox", s.id, "error", err)
		err = errors.Join(space.ErrKilled, err)
	default:
		c.opt.Logger.Error("sandbox does not start", "sandbox", s.id, "error", err, "stderr", s.stdio.Stderr())
		err = fault.Wrap(err, fault.Unavailable, "The sandbox does not start. Run `satchel doctor` to see what this machine lacks.")
	}
	return err
}

// startKilled reports whether something outside ended a start that failed with err. The machine may
// then still be able to run sandboxes. If it is not certain what ended the start, startKilled
// returns true if a sandbox has started here before.
func (c *child) startKilled(ctx context.Context, err error, k link.Killed) bool {
	if errors.Is(err, errChildGone) {
		select {
		case <-c.dead: // now the reason is known, and all sandboxes are gone
		case <-ctx.Done():
			return true
		}
		return c.wasKilled() || c.proven.Load()
	}
	return k == link.KilledSeen || k == link.KilledPerhaps && c.proven.Load()
}

// wasKilled reports whether something outside ended a dead child.
func (c *child) wasKilled() bool {
	ws, ok := c.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && ws.Signaled() && host.EndsFromOutside(ws.Signal())
}

func cleanOrEmpty(p string) string {
	if p == "" {
		return ""
	}
	return filepath.Clean(p)
}

// ended handles the child's message that a sandbox is gone.
func (c *child) ended(m link.Message) {
	c.mu.Lock()
	s := c.live[m.Sandbox]
	delete(c.live, m.Sandbox)
	c.mu.Unlock()
	if s == nil || m.End == nil {
		return
	}
	switch {
	case m.End.OutOfMemory:
		s.finish(space.ErrOutOfMemory)
	case m.End.Stopped:
		s.finish(nil)
	default:
		err := fmt.Errorf("the sandbox ended by itself: %s", m.End.Detail)
		if m.End.Killed {
			err = fmt.Errorf("%w: %s", space.ErrKilled, m.End.Detail)
		}
		c.opt.Logger.Warn("sandbox ended", slog.String("sandbox", string(m.Sandbox)), "error", err, "stderr", s.stdio.Stderr())
		s.finish(err)
	}
}
