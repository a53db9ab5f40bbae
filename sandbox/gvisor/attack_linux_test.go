package gvisor_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"satchel/internal/space"
	"satchel/sandbox/gvisor"
)

// Nothing that a break-out of gVisor would land in may have the server's
// environment; nor has process 1.
func TestAttackHostEnvironment(t *testing.T) {
	const secret = "canary-5e0c1f"
	t.Setenv("SATCHEL_CANARY", secret)
	dir := filepath.Join(t.TempDir(), "run")
	s := start(t, newRuntime(t, func(o *gvisor.Options) { o.RunDir = dir }), space.SandboxSpec{})
	if got := bash(t, s, "tr '\\0' '\\n' < /proc/1/environ | grep -v ^HOME="); got != "[exit status 1]" {
		t.Errorf("process 1 has an environment: %q", got)
	}
	pids := sandboxProcesses(t, dir)
	pids["the child"] = findChild(t)
	for name, pid := range pids {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err != nil && os.Getuid() == 0 {
			t.Fatal(err)
		}
		if strings.Contains(string(b), secret) || strings.Contains(string(b), "PATH=") {
			t.Errorf("%s has the server's environment: %q", name, b)
		}
	}
}

// The server's open files (databases, sockets, its terminal) must not be open
// in a sandbox's processes.
func TestAttackHostDescriptors(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	f, err := os.Create(filepath.Join(t.TempDir(), "database"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	// As careless as a library may be.
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETFD, 0); err != nil {
		t.Fatal(err)
	}
	s := start(t, newRuntime(t, func(o *gvisor.Options) { o.RunDir = dir }), space.SandboxSpec{})
	if got := bash(t, s, "readlink /proc/1/fd/* /proc/self/fd/*"); strings.Contains(got, "database") {
		t.Errorf("inside is open: %q", got)
	}
	for name, pid := range sandboxProcesses(t, dir) {
		links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range links {
			if target, _ := os.Readlink(l); target == f.Name() || strings.HasPrefix(target, "/dev/pts") {
				t.Errorf("%s has %s of the server open", name, target)
			}
		}
	}
}
