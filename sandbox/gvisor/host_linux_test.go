package gvisor_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// The tests look at sandboxes from outside with these.

// processes returns all processes with their parents.
func processes(t testing.TB) map[int]int {
	t.Helper()
	names, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
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
		out[pid] = ppid
	}
	return out
}

// children returns how many processes there are below pid, zombies included.
func children(t testing.TB, pid int) int {
	t.Helper()
	all := processes(t)
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

func cmdline(pid int) []string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00")
}

// findChild returns the runtime child of this process.
func findChild(t testing.TB) int {
	t.Helper()
	for pid, ppid := range processes(t) {
		if c := cmdline(pid); ppid == os.Getpid() && len(c) == 2 && c[1] == "runtime" {
			return pid
		}
	}
	t.Fatal("there is no runtime child")
	return 0
}

// sandboxProcesses returns the sentries and gofers of a run directory.
func sandboxProcesses(t testing.TB, run string) map[string]int {
	t.Helper()
	out := map[string]int{}
	for pid := range processes(t) {
		c := cmdline(pid)
		if strings.HasPrefix(c[0], "runsc-") && strings.Contains(strings.Join(c, " "), run+"/") {
			out[c[0]] = pid
		}
	}
	return out
}

func kill(t testing.TB, pid int) {
	t.Helper()
	if err := unix.Kill(pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

func openFiles(t testing.TB) int {
	t.Helper()
	return len(ls(t, "/proc/self/fd"))
}

func ls(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
