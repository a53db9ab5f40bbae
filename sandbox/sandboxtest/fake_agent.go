//go:build unix

package sandboxtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"satchel/internal/fault"
	"satchel/sandbox/protocol"
)

// fakeAgent does the work of a sandbox's agent with processes of the host.
type fakeAgent struct {
	*FakeSandbox
	once   sync.Once
	closed chan struct{}
}

// run is one command.
type run struct {
	cmd     *exec.Cmd
	req     protocol.ExecRequest
	id      string // the ID of the job, if the command has become one
	began   time.Time
	done    chan struct{} // closed when the whole process group has ended
	stdout  capture
	stderr  capture
	discard string // the copy of the space in which a read-only command runs; removed at its end
}

func (a *fakeAgent) Done() <-chan struct{} { return a.done }

func (a *fakeAgent) Err() error {
	select {
	case <-a.done:
		return fmt.Errorf("%w: the connection ended", protocol.ErrProtocol)
	default:
		return nil
	}
}

func (a *fakeAgent) Close() error {
	a.once.Do(func() { close(a.closed) })
	a.tells.Wait()
	return nil
}

func (a *fakeAgent) OnJobEnd(f func(protocol.JobEnd)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.onJobEnd = f
}

func (a *fakeAgent) Exec(ctx context.Context, r protocol.ExecRequest, onOutput func(protocol.Stream, []byte)) (protocol.ExecResult, error) {
	u, err := a.begin(r, onOutput)
	if err != nil {
		return protocol.ExecResult{}, err
	}
	wall := afterIfAny(r.WallTime)
	if r.Background { // the command is a job, however soon it ends
		return a.detach(u, wall), nil
	}
	detach := afterIfAny(r.DetachAfter)
	end := protocol.Exited
	select {
	case <-u.done:
	case <-detach:
		return a.detach(u, wall), nil
	case <-wall:
		end = protocol.TimedOut
		u.end(r.Grace)
	case <-ctx.Done():
		end = protocol.Canceled
		u.end(r.Grace)
	}
	a.forget(u)
	select {
	case <-a.done:
		return protocol.ExecResult{}, a.Err()
	default:
	}
	a.mu.Lock()
	if a.ended {
		a.mu.Unlock()
		<-a.done
		return protocol.ExecResult{}, a.Err()
	}
	if a.shutdown && end == protocol.Exited && u.signal() != 0 {
		end = protocol.Shutdown
	}
	a.mu.Unlock()
	return u.result(end), nil
}

// after is the agent's clock, for the limits that the pool gives a command.
func after(d time.Duration) <-chan time.Time { return time.After(d) }

// afterIfAny is like after, but its channel never receives if d is zero, which means no limit.
func afterIfAny(d time.Duration) <-chan time.Time {
	if d <= 0 {
		return nil
	}
	return after(d)
}

func (a *fakeAgent) begin(r protocol.ExecRequest, onOutput func(protocol.Stream, []byte)) (*run, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended {
		return nil, fmt.Errorf("%w: the connection ended", protocol.ErrProtocol)
	}
	if a.shutdown {
		return nil, fault.New(fault.Unavailable, "The sandbox is being stopped.")
	}
	u := &run{req: r, began: time.Now(), done: make(chan struct{})}
	dir := a.space
	if r.ReadOnly {
		var err error
		if dir, err = os.MkdirTemp(a.root, "readonly"); err != nil {
			return nil, err
		}
		u.discard = dir
		if err := os.CopyFS(dir, os.DirFS(a.space)); err != nil {
			return nil, err
		}
	}
	u.cmd = exec.Command("bash", "-c", r.Command)
	u.cmd.Dir = dir
	u.cmd.Env = append([]string{"TMPDIR=" + filepath.Join(a.root, "tmp")}, a.boot.Env...)
	u.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var readers sync.WaitGroup
	open := []*os.File{}
	for _, s := range []struct {
		to     *capture
		stream protocol.Stream
		file   **os.File
	}{{&u.stdout, protocol.Stdout, nil}, {&u.stderr, protocol.Stderr, nil}} {
		pr, pw, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		open = append(open, pw)
		s.to.half = r.HeadTail
		readers.Go(func() {
			defer pr.Close()
			buf := make([]byte, 32<<10)
			for {
				n, err := pr.Read(buf)
				s.to.write(buf[:n])
				if n > 0 && onOutput != nil {
					onOutput(s.stream, bytes.Clone(buf[:n]))
				}
				if err != nil {
					return
				}
			}
		})
	}
	u.cmd.Stdout, u.cmd.Stderr = open[0], open[1]
	err := u.cmd.Start()
	for _, f := range open {
		f.Close()
	}
	if err != nil {
		readers.Wait()
		return nil, err
	}
	a.runs[u] = true
	go func() {
		u.cmd.Wait()
		u.kill() // ends the processes that the command left running
		readers.Wait()
		if u.discard != "" {
			os.RemoveAll(u.discard)
		}
		close(u.done)
	}()
	return u, nil
}

func (a *fakeAgent) forget(u *run) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.runs, u)
}

// detach turns u into a job.
func (a *fakeAgent) detach(u *run, wall <-chan time.Time) protocol.ExecResult {
	a.mu.Lock()
	u.id = fmt.Sprintf("j%d", len(a.jobs)+1)
	a.jobs = append(a.jobs, u)
	a.mu.Unlock()
	res := u.result(protocol.Detached)
	res.JobID, res.JobDir = u.id, filepath.Join(a.root, "run", "jobs", u.id)
	a.tells.Go(func() {
		end := protocol.JobEnd{ID: u.id}
		select {
		case <-u.done:
		case <-wall:
			end.TimedOut = true
			u.end(u.req.Grace)
		}
		a.forget(u)
		end.ExitCode, end.Signal, end.Duration = u.exitCode(), u.signalName(), time.Since(u.began)
		a.mu.Lock()
		f, dead := a.onJobEnd, a.ended
		a.mu.Unlock()
		if f != nil && !dead {
			f(end)
		}
	})
	return res
}

func (a *fakeAgent) Jobs(context.Context) ([]protocol.Job, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var list []protocol.Job
	for _, u := range a.jobs {
		list = append(list, protocol.Job{ID: u.id, Command: u.req.Command, Started: u.began, Running: a.runs[u], ReadOnly: u.req.ReadOnly})
	}
	return list, a.errLocked()
}

func (a *fakeAgent) errLocked() error {
	if a.ended {
		return fmt.Errorf("%w: the connection ended", protocol.ErrProtocol)
	}
	return nil
}

func (a *fakeAgent) Kill(_ context.Context, id, sig string) error {
	signals := map[string]syscall.Signal{"SIGTERM": syscall.SIGTERM, "SIGKILL": syscall.SIGKILL}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, u := range a.jobs {
		if u.id == id && a.runs[u] {
			return syscall.Kill(-u.cmd.Process.Pid, signals[sig])
		}
	}
	return fault.New(fault.NotFound, "There is no such job.")
}

func (a *fakeAgent) Shutdown(_ context.Context, grace time.Duration) error {
	a.mu.Lock()
	if err := a.errLocked(); err != nil {
		a.mu.Unlock()
		return err
	}
	a.shutdown = true
	var all []*run
	for u := range a.runs {
		all = append(all, u)
	}
	a.mu.Unlock()
	var wg sync.WaitGroup
	for _, u := range all {
		wg.Go(func() { u.end(grace) })
	}
	wg.Wait()
	return nil
}

// end ends a command with SIGTERM. If the command still runs after grace, end sends SIGKILL.
func (u *run) end(grace time.Duration) {
	syscall.Kill(-u.cmd.Process.Pid, syscall.SIGTERM)
	select {
	case <-u.done:
		return
	case <-after(grace):
	}
	u.kill()
	<-u.done
}

func (u *run) kill() { syscall.Kill(-u.cmd.Process.Pid, syscall.SIGKILL) }

func (u *run) signal() syscall.Signal {
	if w, ok := u.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return w.Signal()
	}
	return 0
}

func (u *run) signalName() string {
	switch s := u.signal(); s {
	case 0:
		return ""
	case syscall.SIGTERM:
		return "SIGTERM"
	case syscall.SIGKILL:
		return "SIGKILL"
	default:
		return fmt.Sprintf("signal %d", s)
	}
}

func (u *run) exitCode() int {
	if s := u.signal(); s != 0 {
		return 128 + int(s)
	}
	return u.cmd.ProcessState.ExitCode()
}

func (u *run) result(end protocol.End) protocol.ExecResult {
	r := protocol.ExecResult{End: end, Stdout: u.stdout.output(), Stderr: u.stderr.output(), Duration: time.Since(u.began)}
	if end != protocol.Detached {
		r.ExitCode, r.Signal = u.exitCode(), u.signalName()
	}
	return r
}

// capture keeps a stream. Its method output returns the beginning and the end of the stream.
type capture struct {
	mu   sync.Mutex
	half int
	all  []byte
}

func (c *capture) write(p []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, p...)
}

func (c *capture) output() protocol.Output {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.all) <= 2*c.half {
		return protocol.Output{Head: bytes.Clone(c.all)}
	}
	return protocol.Output{
		Head:    bytes.Clone(c.all[:c.half]),
		Tail:    bytes.Clone(c.all[len(c.all)-c.half:]),
		Dropped: int64(len(c.all) - 2*c.half),
		Saved:   "/run/satchel/output/1/stdout",
	}
}

var errNotRegular = errors.New("it is not a regular file")

var _ io.Closer = (*fakeAgent)(nil)
