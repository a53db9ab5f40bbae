package sandboxtest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// footprint is what sandboxes may leave on the host.
type footprint struct{ files, processes, descriptors, mounts, cgroups int }

// over reports whether there is more of anything than in another.
func (f footprint) over(b footprint) bool {
	return f.files > b.files || f.processes > b.processes || f.descriptors > b.descriptors || f.mounts > b.mounts || f.cgroups > b.cgroups
}

func (c *cell) footprint() footprint {
	c.t.Helper()
	var f footprint
	filepath.WalkDir(c.run, func(string, os.DirEntry, error) error { f.files++; return nil })
	f.processes = len(c.processes("runsc-sandbox")) + len(c.processes("runsc-gofer"))
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		c.t.Fatal(err)
	}
	f.descriptors = len(fds)
	// The runtime child's, too: it is a child of this process.
	children, _ := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/children", os.Getpid()))
	for _, pid := range append(strings.Fields(string(children)), c.child()) {
		if pid == "" {
			continue
		}
		fds, _ := os.ReadDir("/proc/" + pid + "/fd")
		f.descriptors += len(fds)
		mounts, _ := os.ReadFile("/proc/" + pid + "/mountinfo")
		f.mounts += strings.Count(string(mounts), "\n")
	}
	for _, dir := range []string{"/sys/fs/cgroup/memory", "/sys/fs/cgroup/pids", "/sys/fs/cgroup/cpu", "/sys/fs/cgroup/satchel"} {
		filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
			for _, id := range c.ids() {
				if err == nil && filepath.Base(p) == "satchel-"+id {
					f.cgroups++
				}
			}
			return nil
		})
	}
	return f
}
