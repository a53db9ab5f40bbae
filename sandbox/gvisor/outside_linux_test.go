package gvisor_test

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

// remains reports what the host has that is called after a sandbox: processes that
// know its id by their command line, mounts or cgroup, mounts of this process's,
// cgroups, and files under runDir. What this process may not look at counts for
// nothing.
func remains(runDir string, id space.SandboxID) []string {
	var left []string
	for pid := range processes() {
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

// processes returns all processes with their parents, without those that
// have ended and wait for the host's process 1 to notice.
func processes() map[int]int {
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

// below returns how many processes there are below pid, zombies included.
func below(pid int) int {
	all := processes()
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

// commandLine is what a process was started with; one empty word where it has
// ended.
func commandLine(pid int) []string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00")
}

// sentryOf finds the gVisor sentry of a sandbox; zero if there is none.
func sentryOf(runDir string, id space.SandboxID) int {
	for pid := range processes() {
		c := commandLine(pid)
		if all := strings.Join(c, " "); c[0] == "runsc-sandbox" && strings.Contains(all, runDir+"/") && strings.Contains(all, string(id)) {
			return pid
		}
	}
	return 0
}

// openFiles is how many files this process has open.
func openFiles() int {
	entries, _ := os.ReadDir("/proc/self/fd")
	return len(entries)
}
