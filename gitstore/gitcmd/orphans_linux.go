package gitcmd

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// orphanWait is how long EndOrphans waits for what it killed to be gone.
const orphanWait = 2 * time.Second

// EndOrphans kills the git processes of this user that work in dir or below it,
// and returns how many there were. It is for whoever has just got the lock of
// dir: such processes are of an earlier owner that was killed, and two of them
// that wait for each other would stay for ever, with a credential in the
// environment. It finds none if there is no /proc.
func EndOrphans(dir string) int {
	ended := map[int]bool{}
	for until := time.Now().Add(orphanWait); ; {
		orphans := findOrphans(dir)
		for _, pid := range orphans { // again, too: one may have started another
			ended[pid] = true
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if len(orphans) == 0 || time.Now().After(until) {
			return len(ended)
		}
		time.Sleep(time.Millisecond) // there is no event for the end of another's child
	}
}

func findOrphans(dir string) (pids []int) {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	es, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, e := range es {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		// The directory is unreadable where the process is another user's, and
		// gone or a zombie's empty name where it has ended.
		cwd, err := os.Readlink(filepath.Join("/proc", e.Name(), "cwd"))
		if err != nil || cwd != dir && !strings.HasPrefix(cwd, dir+"/") {
			continue
		}
		comm, err := os.ReadFile(filepath.Join("/proc", e.Name(), "comm"))
		if err == nil && strings.HasPrefix(string(comm), "git") {
			pids = append(pids, pid)
		}
	}
	return pids
}
