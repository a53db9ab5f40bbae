package gvisor_test

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// The tests look at sandboxes from outside with these.

// findChild returns the runtime child of this process.
func findChild(t testing.TB) int {
	t.Helper()
	for pid, ppid := range processes() {
		if c := commandLine(pid); ppid == os.Getpid() && len(c) == 2 && c[1] == "runtime" {
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
	for pid := range processes() {
		c := commandLine(pid)
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
