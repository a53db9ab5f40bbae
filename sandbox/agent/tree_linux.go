package agent

import (
	"bytes"
	"iter"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// killRounds bounds how often a tree is searched again while it is killed. A tree
// that outlives the first rounds may be a fork bomb in which every death makes room
// for another birth: from round freezeAfter on it is stopped first, which frees no room.
const (
	killRounds   = 2000
	freezeAfter  = 2
	freezeRounds = 20
)

// processes returns the number of every process but this one, with its
// /proc/<pid>/status, which is valid until the next one.
func processes() iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
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
			if status := readSmall("/proc/"+name+"/status", buf); status != nil && !yield(pid, status) {
				return
			}
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

// signalTree sends signals to every process with the mark and returns how many
// processes there were. Every process of a command has its mark, wherever it hangs
// in the tree.
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

// killTree kills what a shell has started, and the shell. It returns how many
// processes the first search found, when a search finds none.
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

// killGroup kills all of the shell's process group at once, which most commands
// never leave. On a busy machine a fork bomb in one group outruns a search that
// kills one process after another. The number of a group that has ended goes to
// another process only after all other numbers.
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
