package gvisor

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"satchel/internal/space"
)

// cgroups tells where the cgroups of sandboxes are made.
type cgroups struct {
	version int // 1, 2; 0: they cannot be used
	why     string
	// parents are the directories in which each sandbox gets one, by
	// controller; version 2 has one, under "".
	parents map[string]string
}

const (
	cgroupMount   = "/sys/fs/cgroup"
	cgroupPrefix  = "satchel-"
	cgroupV2Group = "satchel"
	cpuPeriod     = 100_000 // microseconds
)

// The controllers that bound a sandbox.
var cgroupControllers = [...]string{"memory", "pids", "cpu"}

// findCgroups tells what this process may use, by trying it.
func findCgroups(off bool) cgroups {
	if off {
		return cgroups{why: "switched off"}
	}
	if os.Geteuid() != 0 || !initialUserNS() {
		return cgroups{why: "the server does not run as root"}
	}
	own, err := ownCgroups("/proc/self/cgroup")
	if err != nil {
		return cgroups{why: err.Error()}
	}
	g := cgroups{version: 1, parents: map[string]string{}}
	if _, err := os.Stat(filepath.Join(cgroupMount, "cgroup.controllers")); err == nil {
		g.version = 2
		// Not below the server's own, which has processes in it and so may not
		// have children with controllers.
		g.parents[""] = filepath.Join(cgroupMount, cgroupV2Group)
		if err := enableV2(); err != nil {
			return cgroups{why: err.Error()}
		}
	} else {
		for _, c := range cgroupControllers {
			p, ok := own[c]
			if !ok {
				return cgroups{why: "there is no controller for " + c}
			}
			g.parents[c] = filepath.Join(cgroupMount, c, p)
		}
	}
	for c, dir := range g.parents {
		trial := filepath.Join(dir, cgroupPrefix+"trial-"+strconv.Itoa(os.Getpid()))
		err := os.Mkdir(trial, 0o755)
		if err == nil {
			err = unix.Rmdir(trial)
		}
		if err != nil {
			return cgroups{why: fmt.Sprintf("cgroup %s cannot be written: %v", c, err)}
		}
	}
	return g
}

// enableV2 makes the parent of the sandboxes' cgroups and gives it the
// controllers.
func enableV2() error {
	parent := filepath.Join(cgroupMount, cgroupV2Group)
	if err := os.Mkdir(parent, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("cgroup 2 cannot be written: %w", err)
	}
	for _, dir := range []string{cgroupMount, parent} {
		for _, c := range cgroupControllers {
			err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+c), 0)
			if err != nil {
				return fmt.Errorf("controller %s of cgroup 2 cannot be used: %w", c, err)
			}
		}
	}
	return nil
}

// ownCgroups reads the path of this process in each controller of version 1.
func ownCgroups(file string) (map[string]string, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	out := map[string]string{}
	s := bufio.NewScanner(f)
	for s.Scan() {
		parts := strings.SplitN(s.Text(), ":", 3)
		if len(parts) != 3 {
			continue
		}
		for c := range strings.SplitSeq(parts[1], ",") {
			out[c] = parts[2]
		}
	}
	return out, s.Err()
}

// initialUserNS tells whether all user ids are mapped, as only in the first
// user namespace.
func initialUserNS() bool {
	b, err := os.ReadFile("/proc/self/uid_map")
	return err == nil && strings.Join(strings.Fields(string(b)), " ") == "0 0 4294967295"
}

func (g cgroups) describe() string {
	if g.version == 0 {
		return g.why
	}
	return "v" + strconv.Itoa(g.version)
}

// cgroup is what bounds one sandbox.
type cgroup struct {
	version int
	dirs    map[string]string // by controller
}

// create makes the cgroup of a sandbox; nil where cgroups cannot be used or
// nothing is limited.
func (g cgroups) create(id space.SandboxID, lim space.Limits) (*cgroup, error) {
	if g.version == 0 || lim.Memory == 0 && lim.Processes == 0 && lim.CPUs == 0 {
		return nil, nil
	}
	c := &cgroup{version: g.version, dirs: map[string]string{}}
	for name, parent := range g.parents {
		dir := filepath.Join(parent, cgroupPrefix+string(id))
		if err := os.Mkdir(dir, 0o755); err != nil {
			return nil, errors.Join(fmt.Errorf("making the cgroup: %w", err), c.remove())
		}
		c.dirs[name] = dir
	}
	for _, s := range c.settings(lim) {
		err := os.WriteFile(filepath.Join(c.dir(s.controller), s.file), []byte(s.value), 0)
		if err != nil && !s.optional {
			return nil, errors.Join(fmt.Errorf("limiting the cgroup: %w", err), c.remove())
		}
	}
	return c, nil
}

type setting struct {
	controller, file, value string
	optional                bool
}

// hostTasks is how many threads of the host a sandbox may have: those of the
// sentry and the gofer, and a few for each process inside.
func hostTasks(processes int) int { return 512 + 8*processes }

func (c *cgroup) settings(lim space.Limits) []setting {
	var out []setting
	itoa := func(n int64) string { return strconv.FormatInt(n, 10) }
	v2 := c.version == 2
	if lim.Memory > 0 {
		if v2 {
			out = append(out,
				setting{"memory", "memory.max", itoa(lim.Memory), false},
				setting{"memory", "memory.swap.max", "0", true},
				setting{"memory", "memory.oom.group", "1", true})
		} else {
			out = append(out,
				setting{"memory", "memory.limit_in_bytes", itoa(lim.Memory), false},
				// Memory and swap together; not every kernel counts swap.
				setting{"memory", "memory.memsw.limit_in_bytes", itoa(lim.Memory), true})
		}
	}
	if lim.Processes > 0 {
		out = append(out, setting{"pids", "pids.max", strconv.Itoa(hostTasks(lim.Processes)), false})
	}
	if lim.CPUs > 0 {
		quota := itoa(int64(lim.CPUs * cpuPeriod))
		if v2 {
			out = append(out, setting{"cpu", "cpu.max", quota + " " + itoa(cpuPeriod), false})
		} else {
			out = append(out,
				setting{"cpu", "cpu.cfs_period_us", itoa(cpuPeriod), false},
				setting{"cpu", "cpu.cfs_quota_us", quota, false})
		}
	}
	return out
}

func (c *cgroup) dir(controller string) string {
	if c.version == 2 {
		return c.dirs[""]
	}
	return c.dirs[controller]
}

// add moves processes into the cgroup; what they start later is in it too.
func (c *cgroup) add(pids []int) error {
	for _, dir := range c.dirs {
		for _, pid := range pids {
			err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0)
			if err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("moving process %d into the cgroup: %w", pid, err)
			}
		}
	}
	return nil
}

// oomKilled tells whether the kernel killed a process of the cgroup because its
// memory was used up.
func (c *cgroup) oomKilled() bool {
	file := "memory.oom_control"
	if c.version == 2 {
		file = "memory.events"
	}
	b, err := os.ReadFile(filepath.Join(c.dir("memory"), file))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) == 2 && f[0] == "oom_kill" {
			return f[1] != "0"
		}
	}
	return false
}

// remove removes the cgroup, whose processes have ended.
func (c *cgroup) remove() error {
	var errs []error
	for _, dir := range c.dirs {
		if err := removeCgroup(dir); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
