package agent

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"satchel/sandbox/protocol"
)

const (
	// liveEvery is the minimum time between two sends of live output.
	liveEvery = 50 * time.Millisecond
	// drainTime is how long drain waits for the end of the output after a command and all
	// its processes have ended: only a process of another command could still have the pipe
	// open.
	drainTime = 250 * time.Millisecond
	readPart  = 32 << 10
	// maxPipe is the largest capacity of a pipe that an ordinary user may set (pipe(7),
	// pipe-max-size).
	maxPipe = 1 << 20
	// floodPause slows the reading of output that is not kept, so that `yes` does not use
	// the whole processor.
	floodPause = time.Millisecond
)

// running is one command from its start to its end.
type running struct {
	s        *server
	id       uint32 // the id of the call
	req      protocol.ExecRequest
	mu       sync.Mutex
	sh       *shell // changed under mu, only by the goroutine that runs supervise
	signaled bool   // the host has sent a signal
	started  time.Time
	stdout   *capture
	stderr   *capture
	saved    [2]string // files with output that is not in the result
	readers  sync.WaitGroup
	live     atomic.Bool   // the call is not answered yet
	cancel   chan struct{} // closed when the host cancels the call
	answered chan struct{} // closed when the call was answered
	ended    chan struct{} // closed when the command is over; the fields below are then set
	end      protocol.End
	status   unix.WaitStatus
	left     int
}

func (s *server) cancel(id uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.cancels[id]; c != nil {
		close(c)
		delete(s.cancels, id)
	}
}

func (s *server) startExec(id uint32, req protocol.ExecRequest) {
	r := &running{s: s, id: id, req: req, cancel: make(chan struct{}), answered: make(chan struct{}), ended: make(chan struct{})}
	s.mu.Lock()
	s.cancels[id] = r.cancel
	s.mu.Unlock()
	go func() {
		res, err := r.run()
		s.mu.Lock()
		delete(s.cancels, id)
		s.mu.Unlock()
		if err != nil {
			s.conn.Fail(id, err)
		} else {
			s.conn.ReplyExec(id, res)
		}
		close(r.answered)
		if req.ReadOnly || err != nil || res.End == protocol.Detached {
			s.shell.refill(req.ReadOnly)
		}
		// Otherwise the host collects the changes now, and server.saved starts the next shell.
	}()
}

// run returns when the call can be answered; the command may continue as a job.
func (r *running) run() (protocol.ExecResult, error) {
	r.started = time.Now()
	r.live.Store(true)
	r.stdout, r.stderr = r.capture(protocol.Stdout), r.capture(protocol.Stderr)
	if err := r.launch(); err != nil {
		return protocol.ExecResult{}, err
	}
	var j *job
	if r.req.Background {
		// If there is no room for a job, the command runs like any other.
		j, _ = r.s.jobs.add(r)
	}
	detach := r.detachTimer()
	go r.supervise(j)
	for j == nil {
		select {
		case <-r.ended:
			r.sendLive()
			return r.result(), nil
		case <-detach:
			// If there is no room for a job, the command continues as it is.
			j, _ = r.s.jobs.add(r)
			detach = nil
		}
	}
	r.live.Store(false)
	res := protocol.ExecResult{End: protocol.Detached, JobID: j.id, JobDir: j.dir, Duration: time.Since(r.started)}
	res.Stdout, res.Stderr = r.stdout.output(), r.stderr.output()
	for o, name := range map[*protocol.Output]string{&res.Stdout: "stdout", &res.Stderr: "stderr"} {
		if o.Dropped > 0 {
			o.Saved = filepath.Join(j.dir, name)
		}
	}
	return res, nil
}

// launch gives the command to a shell.
func (r *running) launch() error {
	sh, err := r.s.shell.take(r.req.ReadOnly)
	if err != nil {
		return err
	}
	if !r.setShell(sh) {
		r.s.shell.discard(sh)
		r.s.shell.release(sh)
		return errSignaled
	}
	if err := sh.run(r.req.Command); err != nil {
		killTree(sh)
		r.s.shell.release(sh)
		sh.close(true)
		return err
	}
	r.readers.Add(2)
	go r.follow(protocol.Stdout, sh.stdout, r.stdout)
	go r.follow(protocol.Stderr, sh.stderr, r.stderr)
	return nil
}

var errSignaled = errors.New("the command was sent a signal while it had no shell")

// setShell sets the shell of the command. It returns false if the host has already sent a signal,
// because the previous shell got that signal, and the host was told that it was delivered.
func (r *running) setShell(sh *shell) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.signaled {
		return false
	}
	r.sh = sh
	return true
}

// pid returns the process id of the command's shell, which is a session leader.
func (r *running) pid() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sh.pid
}

// signal sends a signal of the host to all processes of the command.
func (r *running) signal(sig unix.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.signaled = true
	if sig == unix.SIGKILL {
		killTree(r.sh)
	} else {
		signalTree(r.sh.mark, sig)
	}
}

// maxLaunches limits the shells that a command gets. A command gets another shell if its shell
// was killed before the shell read the command, because another command of the same user may
// kill all waiting shells.
const maxLaunches = 3

// relaunch gives the command to another shell if the previous shell was killed before it read the
// command. relaunch reports whether the command has another shell.
func (r *running) relaunch(launches int) bool {
	r.mu.Lock()
	again := r.status.Signaled() && !r.signaled && r.req.Command != "" && launches < maxLaunches && !r.sh.began()
	r.mu.Unlock()
	if !again {
		return false
	}
	killTree(r.sh)
	r.drain()
	r.s.shell.release(r.sh)
	if r.launch() != nil {
		return false
	}
	r.s.jobs.relaunched(r)
	return true
}

func (r *running) detachTimer() <-chan time.Time {
	if r.req.DetachAfter <= 0 || r.req.Background {
		return nil
	}
	return time.After(r.req.DetachAfter)
}

// supervise waits for the end of the command, for any reason, and closes ended.
func (r *running) supervise(j *job) {
	var wall <-chan time.Time
	if r.req.WallTime > 0 {
		t := time.NewTimer(r.req.WallTime)
		defer t.Stop()
		wall = t.C
	}
	stopping, hurry := r.s.jobs.stopping()
	finished := false
	for launches := 1; ; launches++ {
		select {
		case r.status = <-r.sh.exited:
			if r.relaunch(launches) {
				continue
			}
			r.end, finished = protocol.Exited, true
		case <-wall:
			r.end = protocol.TimedOut
		case <-r.cancel:
			r.end = protocol.Canceled
		case <-stopping:
			r.end = protocol.Shutdown
		}
		break
	}
	if finished {
		r.left = killTree(r.sh)
	} else {
		endTree(r.sh, r.grace(), hurry)
		r.status = <-r.sh.exited
	}
	r.drain()
	r.s.shell.release(r.sh)
	r.s.jobs.finished(r)
}

func (r *running) grace() time.Duration {
	if r.end == protocol.Shutdown {
		return r.s.jobs.grace()
	}
	return r.req.Grace
}

// drain reads what is left in the pipes, and closes the shell.
func (r *running) drain() {
	done := make(chan struct{})
	go func() {
		r.readers.Wait()
		close(done)
	}()
	t := time.NewTimer(drainTime)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	}
	r.sh.endOutput()
	<-done
	r.sh.close(true)
}

func (r *running) follow(from protocol.Stream, f *os.File, c *capture) {
	defer r.readers.Done()
	buf := make([]byte, readPart)
	armed := new(atomic.Bool)
	for {
		n, err := f.Read(buf)
		if n > 0 {
			c.write(buf[:n])
			r.armLive(from, c, armed)
			if c.written() > r.s.boot.Output {
				time.Sleep(floodPause)
			}
		}
		switch {
		case err == nil:
		case errors.Is(err, os.ErrDeadlineExceeded):
			c.rest(f)
			return
		case errors.Is(err, io.EOF):
			return
		default:
			c.write(fmt.Appendf(nil, "\n[reading the output failed: %v]\n", err))
			return
		}
	}
}

// rest reads what is in a pipe, without waiting for more. On a busy machine, the reader
// may not have run after the command's last write.
func (c *capture) rest(f *os.File) {
	conn, err := f.SyscallConn()
	if err != nil {
		return
	}
	buf := make([]byte, readPart)
	for left := maxPipe; left > 0; {
		n := 0
		err := conn.Control(func(fd uintptr) {
			for again := true; again; {
				var e error
				n, e = unix.Read(int(fd), buf[:min(len(buf), left)])
				again = errors.Is(e, unix.EINTR)
			}
		})
		if err != nil || n <= 0 {
			return
		}
		c.write(buf[:n])
		left -= n
	}
}

// armLive schedules the sending of new output, unless that is already scheduled.
func (r *running) armLive(from protocol.Stream, c *capture, armed *atomic.Bool) {
	if !r.live.Load() || !armed.CompareAndSwap(false, true) {
		return
	}
	time.AfterFunc(liveEvery, func() {
		armed.Store(false)
		sent := r.s.conn.Output(r.id, from, false, func() []byte {
			if !r.live.Load() {
				return nil // the reply may have been sent already
			}
			return c.takeLive()
		})
		if !sent {
			r.armLive(from, c, armed)
		}
	})
}

// sendLive sends the rest of the live output. Later output is not sent live, because nothing may
// follow the reply.
func (r *running) sendLive() {
	r.s.conn.Output(r.id, protocol.Stdout, true, r.stdout.takeLive)
	r.s.conn.Output(r.id, protocol.Stderr, true, r.stderr.takeLive)
	r.live.Store(false)
}

func (r *running) capture(from protocol.Stream) *capture {
	return &capture{half: r.req.HeadTail, openSpool: func() *spool {
		sp := r.s.jobs.outputFile(r.req.ReadOnly)
		if sp != nil {
			r.saved[from-protocol.Stdout] = sp.path
		}
		return sp
	}}
}

func (r *running) result() protocol.ExecResult {
	res := protocol.ExecResult{End: r.end, Duration: time.Since(r.started), Leftover: r.left}
	res.ExitCode, res.Signal = exitOf(r.status)
	res.Stdout, res.Stderr = r.stdout.output(), r.stderr.output()
	if res.Stdout.Dropped > 0 {
		res.Stdout.Saved = r.saved[0]
	}
	if res.Stderr.Dropped > 0 {
		res.Stderr.Saved = r.saved[1]
	}
	return res
}

// exitOf returns a process's exit code and signal, as a shell reports them.
func exitOf(w unix.WaitStatus) (code int, signal string) {
	if w.Signaled() {
		return 128 + int(w.Signal()), unix.SignalName(w.Signal())
	}
	return w.ExitStatus(), ""
}

// parseSignal reads "SIGTERM", "TERM" or "15".
func parseSignal(name string) (unix.Signal, error) {
	if n, err := strconv.Atoi(name); err == nil && n > 0 && n < 65 {
		return unix.Signal(n), nil
	}
	name = strings.ToUpper(name)
	if !strings.HasPrefix(name, "SIG") {
		name = "SIG" + name
	}
	if sig := unix.SignalNum(name); sig != 0 {
		return sig, nil
	}
	return 0, protocol.ErrNoSignal
}
