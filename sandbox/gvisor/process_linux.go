package gvisor

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// process is a child process, held by a pidfd: however long after its end, a
// signal never reaches another process that got its number.
type process struct {
	pid int
	f   *os.File
}

func openProcess(pid int) (*process, error) {
	if pid <= 0 {
		return nil, errors.New("a process of the sandbox has ended already")
	}
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("opening process %d: %w", pid, err)
	}
	return &process{pid: pid, f: os.NewFile(uintptr(fd), "pidfd")}, nil
}

// kill ends the process; nothing happens where it has ended.
func (p *process) kill() { p.signal(unix.SIGKILL) }

func (p *process) signal(s unix.Signal) {
	rc, err := p.f.SyscallConn()
	if err != nil {
		return
	}
	_ = rc.Control(func(fd uintptr) { _ = unix.PidfdSendSignal(int(fd), s, nil, 0) })
}

// wait returns when the process has ended, without reaping it. It occupies no
// thread: the runtime's poller waits.
func (p *process) wait() {
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

// status says how a child process ended that nobody has reaped yet.
func (p *process) status() string {
	var info siginfo
	for {
		_, _, errno := unix.Syscall6(unix.SYS_WAITID, unix.P_PID, uintptr(p.pid),
			uintptr(unsafe.Pointer(&info)), unix.WEXITED|unix.WNOWAIT|unix.WNOHANG, 0, 0)
		if errno == unix.EINTR {
			continue
		}
		if errno != 0 {
			return "ended, but how is not known: " + errno.Error()
		}
		break
	}
	switch info.code {
	case cldExited:
		return fmt.Sprintf("exited with status %d", info.status)
	case cldKilled, cldDumped:
		return "killed by " + unix.SignalName(unix.Signal(info.status))
	}
	return "ended"
}

func (p *process) close() { p.f.Close() }

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

// memfdBytes returns how much memory the sentry holds for its programs and
// their file systems. Most of it is mapped by no process at a given moment, so
// no set size tells it.
func memfdBytes(sentry int) int64 {
	dir := fmt.Sprintf("/proc/%d/fd", sentry)
	d, err := os.Open(dir)
	if err != nil {
		return 0
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return 0
	}
	var total int64
	seen := map[uint64]bool{}
	for _, name := range names {
		p := dir + "/" + name
		target, err := os.Readlink(p)
		if err != nil || !strings.HasPrefix(target, "/memfd:") {
			continue
		}
		var st unix.Stat_t
		if err := unix.Stat(p, &st); err != nil || seen[st.Ino] {
			continue
		}
		seen[st.Ino] = true
		total += st.Blocks * 512
	}
	return total
}
