package gvisor_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"satchel/internal/space"
	"satchel/internal/testenv"
	"satchel/sandbox/oci"
)

// wantCgroups names the version of cgroups that this machine must have, for
// scripts/test-cgroup2.
const wantCgroups = "SATCHEL_TEST_CGROUPS"

// cgroupFiles finds a sandbox's cgroup file under any controller.
func cgroupFiles(t *testing.T, id space.SandboxID, name string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir("/sys/fs/cgroup", func(p string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && d.Name() == name && filepath.Base(filepath.Dir(p)) == "satchel-"+string(id) {
			found = append(found, p)
		}
		return nil // others' cgroups come and go
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestCgroupsBoundASandbox reads the limits of a running sandbox from the
// kernel, whichever version of cgroups it has, reaches the one on memory, and
// sees that nothing stays.
func TestCgroupsBoundASandbox(t *testing.T) {
	t.Parallel()
	want := os.Getenv(wantCgroups)
	if os.Geteuid() != 0 {
		t.Skip("cgroups are for a server that runs as root")
	}
	r := newRuntime(t)
	id := oci.NewID()
	s := start(t, r, space.SandboxSpec{ID: id, Limits: space.Limits{Memory: 192 << 20, Processes: 32, CPUs: 1.5}})
	version := "v1"
	files := map[string]string{"memory.limit_in_bytes": "201326592", "cpu.cfs_quota_us": "150000"}
	if len(cgroupFiles(t, id, "memory.max")) > 0 {
		version = "v2"
		files = map[string]string{"memory.max": "201326592", "cpu.max": "150000 100000", "memory.oom.group": "1"}
	} else if len(cgroupFiles(t, id, "memory.limit_in_bytes")) == 0 {
		version = "none"
	}
	t.Logf("cgroups: %s", version)
	if want != "" && version != want {
		t.Fatalf("cgroups are %s, want %s", version, want)
	}
	if version == "none" {
		testenv.SkipOrFail(t, "this machine has no cgroups that the server may use")
	}
	files["pids.max"] = "768" // the host's threads of 32 processes
	for name, value := range files {
		found := cgroupFiles(t, id, name)
		if len(found) != 1 {
			t.Errorf("%s is there %d times: %v", name, len(found), found)
			continue
		}
		b, err := os.ReadFile(found[0])
		if got := strings.TrimSpace(string(b)); err != nil || got != value {
			t.Errorf("%s is %q (%v), want %q", name, got, err, value)
		}
	}
	for _, procs := range cgroupFiles(t, id, "cgroup.procs") {
		b, err := os.ReadFile(procs)
		if err != nil || len(strings.Fields(string(b))) < 2 {
			t.Errorf("%s has processes %q (%v), want a sentry and a gofer at least", procs, b, err)
		}
	}
	fmt.Fprintln(s.Conn(), "!eat 4000")
	ended(t, s)
	if !errors.Is(s.Err(), space.ErrOutOfMemory) {
		t.Errorf("Err is %v, want ErrOutOfMemory", s.Err())
	}
	if left := cgroupFiles(t, id, "cgroup.procs"); len(left) != 0 {
		t.Errorf("cgroups are left: %v", left)
	}
}

// TestTheMachineInsideIsAsLargeAsTheLimits is the user pain of programs that
// size themselves by the host and die.
func TestTheMachineInsideIsAsLargeAsTheLimits(t *testing.T) {
	t.Parallel()
	s := start(t, newRuntime(t), space.SandboxSpec{Limits: space.Limits{Memory: 300 << 20, CPUs: 1}})
	if got := bash(t, s, "head -1 /proc/meminfo"); strings.Join(strings.Fields(got), " ") != "MemTotal: 307200 kB" {
		t.Errorf("memory inside: %q", got)
	}
	want := fmt.Sprint(min(runtime.NumCPU(), 2))
	if got := bash(t, s, "nproc; grep -c ^processor /proc/cpuinfo"); got != want+"\n"+want {
		t.Errorf("processors inside: %q, want %s twice", got, want)
	}
}
