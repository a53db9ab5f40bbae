package sandboxtest

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"satchel/internal/space"
)

// Remains reports what the host has that is called after a sandbox: processes that
// know its id by their command line, mounts or cgroup, mounts of this process's,
// cgroups, and files under runDir. What this process may not look at counts for
// nothing.
func Remains(runDir string, id space.SandboxID) []string {
	var left []string
	for pid := range Processes() {
		for _, file := range []string{"cmdline", "mountinfo", "cgroup"} {
			b, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
			if err == nil && bytes.Contains(b, []byte(id)) {
				left = append(left, fmt.Sprintf("process %d, by its %s", pid, file))
				break
			}
		}
	}
	if b, err := os.ReadFile("/proc/self/mountinfo"); err == nil && bytes.Contains(b, []byte(id)) {
		left = append(left, "a mount")
	}
	for what, root := range map[string]string{"cgroup": "/sys/fs/cgroup", "file": runDir} {
		_ = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
			if err != nil {
				return nil // gone meanwhile, or closed
			}
			if strings.Contains(d.Name(), string(id)) {
				left = append(left, what+" "+p)
			}
			return nil
		})
	}
	return left
}

// Processes returns all processes with their parents, without those that
// have ended and wait for the host's process 1 to notice.
func Processes() map[int]int {
	names, _ := filepath.Glob("/proc/[0-9]*/stat")
	out := map[int]int{}
	for _, n := range names {
		b, err := os.ReadFile(n)
		if err != nil {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(n)))
		var state string
		var ppid int
		fmt.Sscan(string(b[bytes.LastIndexByte(b, ')')+1:]), &state, &ppid)
		if state == "Z" && ppid == 1 {
			continue
		}
		out[pid] = ppid
	}
	return out
}

// Below returns how many processes there are below pid, zombies included.
func Below(pid int) int {
	all := Processes()
	n := 0
	for p := range all {
		for q := all[p]; q != 0; q = all[q] {
			if q == pid {
				n++
				break
			}
		}
	}
	return n
}

// CommandLine is what a process was started with; one empty word where it has
// ended.
func CommandLine(pid int) []string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00")
}

// SentryOf finds the gVisor sentry of a sandbox; zero if there is none.
func SentryOf(runDir string, id space.SandboxID) int {
	for pid := range Processes() {
		c := CommandLine(pid)
		if all := strings.Join(c, " "); c[0] == "runsc-sandbox" && strings.Contains(all, runDir+"/") && strings.Contains(all, string(id)) {
			return pid
		}
	}
	return 0
}

// OpenFiles is how many files this process has open.
func OpenFiles() int {
	entries, _ := os.ReadDir("/proc/self/fd")
	return len(entries)
}
