package gvisor

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
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

// descendants returns the processes below pid.
func descendants(pid int) []int {
	children, err := childrenOf()
	if err != nil {
		return nil
	}
	var out []int
	queue := []int{pid}
	for len(queue) > 0 {
		next := children[queue[0]]
		queue = queue[1:]
		out = append(out, next...)
		queue = append(queue, next...)
	}
	return out
}

// childrenOf maps every process to its children.
func childrenOf() (map[int][]int, error) {
	d, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	out := map[int][]int{}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if ppid, ok := parentOf(pid); ok {
			out[ppid] = append(out[ppid], pid)
		}
	}
	return out, nil
}

func parentOf(pid int) (int, bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, false
	}
	// The name, in parentheses, may hold anything.
	i := bytes.LastIndexByte(b, ')')
	if i < 0 {
		return 0, false
	}
	fields := strings.Fields(string(b[i+1:]))
	if len(fields) < 2 {
		return 0, false
	}
	ppid, err := strconv.Atoi(fields[1])
	return ppid, err == nil
}

// distinct returns the processes without those that share another's memory:
// gVisor has several to a program, and each would count all of it again.
func distinct(pids []int) []int {
	var out []int
	for _, pid := range pids {
		if !slices.ContainsFunc(out, func(other int) bool { return sharesMemory(pid, other) }) {
			out = append(out, pid)
		}
	}
	return out
}

// sharesMemory tells whether two processes have one address space. Where the
// kernel does not say, they have not.
func sharesMemory(a, b int) bool {
	const kcmpVM = 1
	r, _, errno := unix.Syscall6(unix.SYS_KCMP, uintptr(a), uintptr(b), kcmpVM, 0, 0, 0)
	return errno == 0 && r == 0
}

// ownMemory returns a process's proportional set size in bytes, without shared
// memory.
func ownMemory(pid int) (int64, bool) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0, false
	}
	defer f.Close()
	return parsePss(f)
}

// parsePss reads the figures of a smaps_rollup file (proc_pid_smaps(5)).
func parsePss(r io.Reader) (int64, bool) {
	var pss, shmem int64
	found := false
	s := bufio.NewScanner(r)
	for s.Scan() {
		f := strings.Fields(s.Text())
		if len(f) != 3 || f[2] != "kB" {
			continue
		}
		n, err := strconv.ParseInt(f[1], 10, 64)
		if err != nil || n < 0 {
			continue
		}
		switch f[0] {
		case "Pss:":
			pss, found = n<<10, true
		case "Pss_Shmem:":
			shmem = n << 10
		}
	}
	return max(pss-shmem, 0), found
}

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
