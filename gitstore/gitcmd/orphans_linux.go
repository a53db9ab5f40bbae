package gitcmd

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// orphanWait is how long EndOrphans waits for killed processes to end.
const orphanWait = 2 * time.Second

// EndOrphans kills the git processes of this user that work in dir or below it, and returns
// how many there were. Call it after taking the lock of dir: such processes belong to an
// earlier owner that was killed. Two of them that wait for each other would stay forever,
// with a credential in their environment. EndOrphans finds none without /proc.
func EndOrphans(dir string) int {
	ended := map[int]bool{}
	for until := time.Now().Add(orphanWait); ; {
		orphans := findOrphans(dir)
		for _, pid := range orphans { // repeatedly, because a process may start another
			ended[pid] = true
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if len(orphans) == 0 || time.Now().After(until) {
			return len(ended)
		}
		time.Sleep(time.Millisecond) // no event reports the end of a process that is not our child
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
		// The link is unreadable if the process is another user's. If the process has ended, the
		// link is missing, or is empty for a zombie.
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
