package procmem

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Of measures processes. An address space that several processes share, as in gVisor, counts
// once, although each process reports all of it. A process that has ended counts as zero.
func Of(pids ...int) Usage {
	var u Usage
	var counted []int
	for _, pid := range pids {
		if slices.ContainsFunc(counted, func(other int) bool { return sharesMemory(pid, other) }) {
			continue
		}
		counted = append(counted, pid)
		if pss, shmem, ok := rollup(pid); ok {
			u.PSS += pss
			u.Shmem += shmem
			u.Spaces++
		}
	}
	return u
}

// Descendants returns the processes below pid, without pid. It returns none if the list of
// processes cannot be read.
func Descendants(pid int) []int {
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

// PIDs returns the ids of all processes that this process can see.
func PIDs() ([]int, error) {
	d, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// childrenOf maps every process to its children.
func childrenOf() (map[int][]int, error) {
	pids, err := PIDs()
	if err != nil {
		return nil, err
	}
	out := map[int][]int{}
	for _, pid := range pids {
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
	// The name of the program, in parentheses, may contain any bytes.
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

// sharesMemory reports whether two processes have one address space. It returns false if the
// kernel does not say.
func sharesMemory(a, b int) bool {
	const kcmpVM = 1 // KCMP_VM, include/uapi/linux/kcmp.h
	r, _, errno := unix.Syscall6(unix.SYS_KCMP, uintptr(a), uintptr(b), kcmpVM, 0, 0, 0)
	return errno == 0 && r == 0
}

func rollup(pid int) (pss, shmem int64, ok bool) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0, 0, false
	}
	defer f.Close()
	return parseRollup(f)
}

// parseRollup reads a smaps_rollup file (proc_pid_smaps(5)). The values are in bytes.
func parseRollup(r io.Reader) (pss, shmem int64, ok bool) {
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
			pss, ok = n<<10, true
		case "Pss_Shmem:": // since Linux 5.9
			shmem = n << 10
		}
	}
	return pss, min(shmem, pss), ok
}
