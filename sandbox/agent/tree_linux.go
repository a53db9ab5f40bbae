package agent

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// killRounds bounds how often a tree is searched again while it is killed. What
// outlives the first rounds may be a fork bomb, in which every death makes room
// for another birth: it is stopped first, which frees no room.
const (
	killRounds   = 2000
	freezeAfter  = 2
	freezeRounds = 20
)

// members lists the processes with a mark, zombies left out. Every process of
// a command has it, wherever it hangs in the tree.
func members(mark uint32) []int {
	var pids []int
	eachProcess(func(pid int, status []byte) {
		if hasMark(status, mark) {
			pids = append(pids, pid)
		}
	})
	return pids
}

// eachProcess calls f with every process but this one and its
// /proc/<pid>/status, which is valid during the call.
func eachProcess(f func(pid int, status []byte)) {
	dir, err := os.Open("/proc")
	if err != nil {
		return
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1) // what was read before an error counts
	buf := make([]byte, 4096)
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == 1 {
			continue
		}
		if status := readSmall("/proc/"+name+"/status", buf); status != nil {
			f(pid, status)
		}
	}
}

// readSmall reads the start of a file into buf; nil if it cannot.
func readSmall(path string, buf []byte) []byte {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	n, err := unix.Read(fd, buf)
	if err != nil || n <= 0 {
		return nil
	}
	return buf[:n]
}

// hasMark reports whether a /proc/<pid>/status names the mark among its groups
// and is no zombie's. A process whose first thread alone has ended looks like
// one, but for the number of its threads. The process's name comes first in it
// and is the command's to choose, but its line breaks are escaped.
func hasMark(status []byte, mark uint32) bool {
	if state := statusField(status, "\nState:"); len(state) > 0 && (state[0] == 'Z' || state[0] == 'X') {
		if n, err := strconv.Atoi(string(statusField(status, "\nThreads:"))); err != nil || n < 2 {
			return false
		}
	}
	want := strconv.AppendUint(nil, uint64(mark), 10)
	for _, g := range bytes.Fields(statusField(status, "\nGroups:")) {
		if bytes.Equal(g, want) {
			return true
		}
	}
	return false
}

func statusField(status []byte, name string) []byte {
	i := bytes.LastIndex(status, []byte(name))
	if i < 0 {
		return nil
	}
	v := status[i+len(name):]
	if j := bytes.IndexByte(v, '\n'); j >= 0 {
		v = v[:j]
	}
	return bytes.TrimSpace(v)
}

// signalTree sends a signal to every process with the mark and returns how
// many there were.
func signalTree(mark uint32, sig unix.Signal) int {
	pids := members(mark)
	for _, pid := range pids {
		_ = unix.Kill(pid, sig) // gone meanwhile
	}
	return len(pids)
}

// freezeTree stops every process with the mark, until a search finds none that
// runs.
func freezeTree(mark uint32) {
	for range freezeRounds {
		running := 0
		eachProcess(func(pid int, status []byte) {
			if state := statusField(status, "\nState:"); hasMark(status, mark) && (len(state) == 0 || state[0] != 'T') {
				running++
				_ = unix.Kill(pid, unix.SIGSTOP) // gone meanwhile
			}
		})
		if running == 0 {
			return
		}
	}
}

// killTree kills every process with the mark and returns, when none is left,
// how many there were at first.
func killTree(mark uint32) int {
	first := 0
	for round := range killRounds {
		if round >= freezeAfter {
			freezeTree(mark)
		}
		n := signalTree(mark, unix.SIGKILL)
		if round == 0 {
			first = n
		}
		if n == 0 {
			break
		}
		if round > 0 {
			time.Sleep(min(time.Duration(round)*100*time.Microsecond, 5*time.Millisecond))
		}
	}
	return first
}

// endTree asks every process with the mark to end, and kills what is left
// after grace or when hurry is closed.
func endTree(mark uint32, grace time.Duration, hurry <-chan struct{}) {
	deadline := time.NewTimer(grace)
	defer deadline.Stop()
	if grace > 0 && signalTree(mark, unix.SIGTERM) > 0 {
		signalTree(mark, unix.SIGCONT) // a stopped process takes no SIGTERM
		for wait := time.Millisecond; len(members(mark)) > 0; wait = min(2*wait, 50*time.Millisecond) {
			poll := time.NewTimer(wait)
			select {
			case <-poll.C:
				continue
			case <-deadline.C:
			case <-hurry:
			}
			poll.Stop()
			break
		}
	}
	killTree(mark)
}
