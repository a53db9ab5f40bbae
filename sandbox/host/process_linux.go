package host

import (
	"errors"
	"fmt"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Process is a process of this machine, held by a pidfd. A signal never reaches another
// process that reuses its id.
type Process struct {
	PID int
	f   *os.File
}

// OpenProcess returns the process with an id, held by a pidfd. The id may belong to another
// process by now, so check the process again once it is held.
func OpenProcess(pid int) (*Process, error) {
	if pid <= 0 {
		return nil, errors.New("a process of the sandbox has ended already")
	}
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("opening process %d: %w", pid, err)
	}
	return &Process{PID: pid, f: os.NewFile(uintptr(fd), "pidfd")}, nil
}

// Kill kills the process. It does nothing if the process has ended.
func (p *Process) Kill() { p.signal(unix.SIGKILL) }

func (p *Process) signal(s unix.Signal) {
	rc, err := p.f.SyscallConn()
	if err != nil {
		return
	}
	_ = rc.Control(func(fd uintptr) { _ = unix.PidfdSendSignal(int(fd), s, nil, 0) })
}

// Wait returns when the process has ended, without reaping it. It waits in the runtime's
// poller and occupies no thread.
func (p *Process) Wait() {
	rc, err := p.f.SyscallConn()
	if err != nil {
		return
	}
	_ = rc.Read(func(fd uintptr) bool {
		for {
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
			if errors.Is(err, unix.EINTR) {
				continue
			}
			return err != nil || n > 0
		}
	})
}

// Status returns how a child process ended. The caller must not have reaped the process.
func (p *Process) Status() string {
	info, err := p.end()
	switch {
	case err != nil:
		return "ended, but how is not known: " + err.Error()
	case info.code == cldExited:
		return fmt.Sprintf("exited with status %d", info.status)
	case info.code == cldKilled, info.code == cldDumped:
		return "killed by " + unix.SignalName(unix.Signal(info.status))
	}
	return "ended"
}

// Killed reports whether a signal from outside ended a child process; see EndsFromOutside. The
// caller must not have reaped the process.
func (p *Process) Killed() bool {
	info, err := p.end()
	return err == nil && info.code == cldKilled && EndsFromOutside(unix.Signal(info.status))
}

// EndsFromOutside reports whether a signal that ended a process came from another
// process, or from a kernel short of memory. The process itself causes the signals of a
// crash or of a forbidden system call.
func EndsFromOutside(s unix.Signal) bool {
	return s == unix.SIGKILL || s == unix.SIGTERM
}

// end returns how a child process ended. The code is 0 if the process runs. The caller must not
// have reaped the process.
func (p *Process) end() (siginfo, error) {
	var info siginfo
	for {
		_, _, errno := unix.Syscall6(unix.SYS_WAITID, unix.P_PID, uintptr(p.PID),
			uintptr(unsafe.Pointer(&info)), unix.WEXITED|unix.WNOWAIT|unix.WNOHANG, 0, 0)
		switch errno {
		case 0:
			return info, nil
		case unix.EINTR:
		default:
			return siginfo{}, errno
		}
	}
}

// Close releases the process.
func (p *Process) Close() { p.f.Close() }

// siginfo is the part of the kernel's siginfo_t that waitid fills in, on 64-bit
// architectures.
type siginfo struct {
	signo, errno, code int32
	_                  int32
	pid, uid, status   int32
	_                  [25]int32
}

const (
	cldExited = 1
	cldKilled = 2
	cldDumped = 3
)

// WaitUntil reports whether the process ends before the deadline. No other goroutine may
// be in Wait, because Wait would return at the deadline too.
func (p *Process) WaitUntil(deadline time.Time) bool {
	_ = p.f.SetReadDeadline(deadline)
	p.Wait()
	_ = p.f.SetReadDeadline(time.Time{}) // otherwise the next Wait would return at once
	return p.Ended()
}

// Ended reports whether the process has ended.
func (p *Process) Ended() bool {
	rc, err := p.f.SyscallConn()
	if err != nil {
		return true
	}
	done := false
	_ = rc.Control(func(fd uintptr) {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		done = err == nil && n > 0
	})
	return done
}
