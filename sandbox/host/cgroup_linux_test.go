package host

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"satchel/internal/space"
)

// fakeCgroup is a directory that looks like a sandbox's cgroup.
func fakeCgroup(t *testing.T, version int, files map[string]string) *Cgroup {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := &Cgroup{version: version, dirs: map[string]string{"": dir, "memory": dir}}
	return c
}

func TestOutOfMemory(t *testing.T) {
	for _, c := range []struct {
		version       int
		file, content string
		want          bool
	}{
		{1, "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n", false},
		{1, "memory.oom_control", "oom_kill_disable 0\nunder_oom 1\n", false}, // before Linux 4.13
		{1, "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n", true},
		{2, "memory.events", "low 0\nhigh 0\nmax 12\noom 1\noom_kill 1\noom_group_kill 1\n", true},
		{2, "memory.events", "low 0\nhigh 0\nmax 12\noom 0\noom_kill 0\n", false},
		{2, "memory.other", "", false},
	} {
		g := fakeCgroup(t, c.version, map[string]string{c.file: c.content})
		if got := g.OOMKilled(); got != c.want {
			t.Errorf("version %d, %q: %v, want %v", c.version, c.content, got, c.want)
		}
	}
}

func TestSettings(t *testing.T) {
	lim := space.Limits{Memory: 512 << 20, Processes: 128, CPUs: 1.5}
	for version, want := range map[int][]string{
		1: {
			"memory memory.limit_in_bytes=536870912", "memory memory.memsw.limit_in_bytes=536870912 (optional)",
			"pids pids.max=128", "cpu cpu.cfs_period_us=100000", "cpu cpu.cfs_quota_us=150000",
		},
		2: {
			"memory memory.max=536870912", "memory memory.swap.max=0 (optional)", "memory memory.oom.group=1 (optional)",
			"pids pids.max=128", "cpu cpu.max=150000 100000",
		},
	} {
		var got []string
		for _, s := range (&Cgroup{version: version}).settings(lim) {
			line := fmt.Sprintf("%s %s=%s", s.controller, s.file, s.value)
			if s.optional {
				line += " (optional)"
			}
			got = append(got, line)
		}
		if !slices.Equal(got, want) {
			t.Errorf("version %d: %q, want %q", version, got, want)
		}
		if got := (&Cgroup{version: version}).settings(space.Limits{}); len(got) != 0 {
			t.Errorf("version %d, no limits: %v", version, got)
		}
	}
}

// Whoever reaps a sandbox may be in another cgroup than its server was: what
// the server noted is found besides what this process would make.
func TestFindLooksWhereTheServerNoted(t *testing.T) {
	const id = "0123456789abcdef"
	elsewhere := "/sys/fs/cgroup/pids/of-another-server"
	bundle := t.TempDir()
	earlier := Cgroups{Version: 1, parents: map[string]string{"pids": elsewhere}}
	if err := earlier.Note(bundle, id); err != nil {
		t.Fatal(err)
	}
	own := Cgroups{Version: 1, parents: map[string]string{"pids": "/sys/fs/cgroup/pids"}}
	want := []string{"/sys/fs/cgroup/pids/of-another-server/satchel-" + id, "/sys/fs/cgroup/pids/satchel-" + id}
	if got := dirsOf(own.Find(bundle, id)); !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
	if got := dirsOf(own.Find(t.TempDir(), id)); !slices.Equal(got, want[1:]) {
		t.Errorf("without a note: %q, want %q", got, want[1:])
	}
	// A server that may use no cgroups knows of the noted ones all the same.
	if got := dirsOf(Cgroups{}.Find(bundle, id)); !slices.Equal(got, want[:1]) {
		t.Errorf("without cgroups of its own: %q, want %q", got, want[:1])
	}
	// A note is believed no more than a name: nothing but the sandbox's goes.
	for _, line := range []string{
		elsewhere, "/sys/fs/cgroup/pids/satchel-other", "/etc/satchel-" + id, "satchel-" + id, "/sys/fs/cgroup/../../etc/satchel-" + id, "",
	} {
		if err := os.WriteFile(filepath.Join(bundle, notesFile), []byte(line+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := noted(bundle, id); len(got) != 0 {
			t.Errorf("the note %q leads to %q", line, got)
		}
	}
}

func dirsOf(c *Cgroup) []string { return slices.Sorted(maps.Values(c.dirs)) }

func TestCreateSaysWhyThereAreNoCgroups(t *testing.T) {
	g := FindCgroups(true)
	if _, err := g.Create("id", space.Limits{}); err == nil || g.Describe() != "switched off" {
		t.Errorf("%v, %q", err, g.Describe())
	}
}
