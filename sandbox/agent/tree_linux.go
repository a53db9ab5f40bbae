package agent

import (
	"bytes"
	"iter"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// killRounds limits how often a tree is searched while it is killed. A tree that survives
// the first rounds may be a fork bomb, in which each death gives room to a new process.
// So from round freezeAfter on, its processes are stopped first, which gives no room.
// freezeRounds limits the searches of each freezeTree.
const (
	killRounds   = 2000
	freezeAfter  = 2
	freezeRounds = 20
)

// processes returns the id of every process but this one, with its /proc/<pid>/status,
// which is valid until the next iteration.
func processes() iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		dir, err := os.Open("/proc")
		if err != nil {
			return
		}
		defer dir.Close()
		names, _ := dir.Readdirnames(-1) // use what was read before an error
		buf := make([]byte, 4096)
		for _, name := range names {
			pid, err := strconv.Atoi(name)
			if err != nil || pid == 1 {
				continue
			}
			if status := readSmall("/proc/"+name+"/status", buf); status != nil && !yield(pid, status) {
				return
			}
		}
	}
}

// readSmall reads the start of a file into buf. It returns nil if it cannot.
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

// hasMark reports whether a /proc/<pid>/status has the mark among its groups and is not
// that of a zombie. A process whose first thread has ended looks like a zombie, except
// for its number of threads. The command can choose the process's name, which is the first
// line of status, but line breaks in the name are escaped.
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

// signalTree sends signals to every process with the mark and returns how many processes
// there were. Every process of a command has its mark, wherever it is in the tree.
func signalTree(mark uint32, signals ...unix.Signal) int {
	n := 0
	for pid, status := range processes() {
		if hasMark(status, mark) {
			n++
			for _, sig := range signals {
				_ = unix.Kill(pid, sig) // it may have ended
			}
		}
	}
	return n
}

// treeLives reports whether a process with the mark is left, zombies not counted.
func treeLives(mark uint32) bool {
	for _, status := range processes() {
		if hasMark(status, mark) {
			return true
		}
	}
	return false
}

// freezeTree stops every process with the mark, until a search finds none that
// runs.
func freezeTree(mark uint32) {
	for range freezeRounds {
		running := false
		for pid, status := range processes() {
			if state := statusField(status, "\nState:"); hasMark(status, mark) && (len(state) == 0 || state[0] != 'T') {
				running = true
				_ = unix.Kill(pid, unix.SIGSTOP) // it may have ended
			}
		}
		if !running {
			return
		}
	}
}

// killTree kills a shell and everything it has started. It searches until no process is left, or
// killRounds times, and returns how many processes the first search found.
func killTree(sh *shell) int {
	first := 0
	for round := range killRounds {
		if round >= freezeAfter {
			freezeTree(sh.mark)
		}
		n := signalTree(sh.mark, unix.SIGKILL)
		if round == 0 {
			first = n
		}
		if n == 0 {
			break
		}
		killGroup(sh)
		if round > 0 {
			time.Sleep(min(time.Duration(round)*100*time.Microsecond, 5*time.Millisecond))
		}
	}
	return first
}

// killGroup kills the shell's process group, which most commands never leave, in one step: a fork
// bomb in one group can outrun a search that kills one process after another. The id of an ended
// group is reused only after all other ids.
func killGroup(sh *shell) {
	_ = unix.Kill(-sh.pid, unix.SIGKILL) // it may have ended
}

// endTree sends SIGTERM to everything that a shell has started, and kills what is
// left after grace or when hurry is closed.
func endTree(sh *shell, grace time.Duration, hurry <-chan struct{}) {
	deadline := time.NewTimer(grace)
	defer deadline.Stop()
	// A stopped process takes SIGTERM only when it continues.
	if grace > 0 && signalTree(sh.mark, unix.SIGTERM, unix.SIGCONT) > 0 {
		for wait := time.Millisecond; treeLives(sh.mark); wait = min(2*wait, 50*time.Millisecond) {
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
	killGroup(sh)
	killTree(sh)
}
