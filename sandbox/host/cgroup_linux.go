package host

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"satchel/internal/space"
)

// Cgroups describes where the cgroups of sandboxes are created.
type Cgroups struct {
	Version int    // 1 or 2; 0 if cgroups cannot be used
	Why     string // why cgroups cannot be used
	// parents are the directories in which each sandbox gets a cgroup, by controller.
	// Version 2 has one directory, with the key "".
	parents map[string]string
}

const (
	cgroupMount   = "/sys/fs/cgroup"
	cgroupPrefix  = "satchel-"
	cgroupV2Group = "satchel"
	cpuPeriod     = 100_000 // microseconds
)

// The controllers that limit a sandbox.
var cgroupControllers = [...]string{"memory", "pids", "cpu"}

// FindCgroups finds out which cgroups this process may use. If off is set, it uses none.
func FindCgroups(off bool) Cgroups {
	if off {
		return Cgroups{Why: "switched off"}
	}
	if os.Geteuid() != 0 || !allUsersMapped() {
		return Cgroups{Why: "the server does not run as root"}
	}
	own, err := ownCgroups("/proc/self/cgroup")
	if err != nil {
		return Cgroups{Why: err.Error()}
	}
	g := Cgroups{Version: 1, parents: map[string]string{}}
	if _, err := os.Stat(filepath.Join(cgroupMount, "cgroup.controllers")); err == nil {
		g.Version = 2
		// The parent is not the server's own cgroup. That cgroup contains processes, so its
		// children cannot have controllers.
		g.parents[""] = filepath.Join(cgroupMount, cgroupV2Group)
		if err := enableV2(); err != nil {
			return Cgroups{Why: err.Error()}
		}
	} else {
		for _, c := range cgroupControllers {
			p, ok := own[c]
			if !ok {
				return Cgroups{Why: "there is no controller for " + c}
			}
			g.parents[c] = filepath.Join(cgroupMount, c, p)
		}
	}
	for c, dir := range g.parents {
		trial, err := os.MkdirTemp(dir, cgroupPrefix+"trial-")
		if err == nil {
			err = unix.Rmdir(trial)
		}
		if err != nil {
			return Cgroups{Why: fmt.Sprintf("cgroup %s cannot be written: %v", c, err)}
		}
	}
	return g
}

// enableV2 creates the parent of the sandboxes' cgroups and enables the controllers in
// it.
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

// ownCgroups reads the path of this process's cgroup for each controller of version 1.
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

// allUsersMapped reports whether all user ids are mapped in this process, which is the case
// only in the initial user namespace.
func allUsersMapped() bool {
	b, err := os.ReadFile("/proc/self/uid_map")
	return err == nil && strings.Join(strings.Fields(string(b)), " ") == "0 0 4294967295"
}

// Describe returns the version in use, or why there is none.
func (g Cgroups) Describe() string {
	if g.Version == 0 {
		return g.Why
	}
	return "v" + strconv.Itoa(g.Version)
}

// Cgroup limits one sandbox.
type Cgroup struct {
	version int
	// dirs are the directories of the cgroup, by controller as in Cgroups.parents. In the result of
	// Find, the key of each directory is its path.
	dirs map[string]string
}

// Create creates the cgroup of a sandbox. lim.Processes limits its processes and threads
// together. A zero field of lim sets no limit.
func (g Cgroups) Create(id space.SandboxID, lim space.Limits) (*Cgroup, error) {
	if g.Version == 0 {
		return nil, errors.New("cgroups cannot be used: " + g.Why)
	}
	c := &Cgroup{version: g.Version, dirs: map[string]string{}}
	for name, parent := range g.parents {
		dir := filepath.Join(parent, cgroupPrefix+string(id))
		if err := os.Mkdir(dir, 0o755); err != nil {
			return nil, errors.Join(fmt.Errorf("making the cgroup: %w", err), c.Remove())
		}
		c.dirs[name] = dir
	}
	for _, s := range c.settings(lim) {
		err := os.WriteFile(filepath.Join(c.dir(s.controller), s.file), []byte(s.value), 0)
		if err != nil && !s.optional {
			return nil, errors.Join(fmt.Errorf("limiting the cgroup: %w", err), c.Remove())
		}
	}
	return c, nil
}

type setting struct {
	controller, file, value string
	optional                bool
}

func (c *Cgroup) settings(lim space.Limits) []setting {
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
		out = append(out, setting{"pids", "pids.max", strconv.Itoa(lim.Processes), false})
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

func (c *Cgroup) dir(controller string) string {
	if c.version == 2 {
		return c.dirs[""]
	}
	return c.dirs[controller]
}

// Add moves processes into the cgroup. The processes that they start later are in the
// cgroup too.
func (c *Cgroup) Add(pids []int) error {
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

// OOMKilled reports whether the kernel killed a process of the cgroup because the cgroup ran
// out of memory.
func (c *Cgroup) OOMKilled() bool {
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

// Remove removes the cgroup after its processes have ended.
func (c *Cgroup) Remove() error {
	var errs []error
	for _, dir := range c.dirs {
		if err := removeCgroup(dir); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// removeCgroup removes one directory. For a moment, the kernel may still count a reaped
// process as a member.
func removeCgroup(dir string) error {
	const attempts = 100
	for i := 0; ; i++ {
		err := unix.Rmdir(dir)
		switch {
		case err == nil || errors.Is(err, fs.ErrNotExist):
			return nil
		case !errors.Is(err, unix.EBUSY) || i == attempts:
			return fmt.Errorf("removing the cgroup %s: %w", dir, err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// notesFile is the file in a bundle that lists the possible cgroups of its sandbox. A
// later process may be in another cgroup, and would look for the sandbox's cgroups elsewhere.
const notesFile = "cgroups"

// Note writes the cgroups that Create is about to create to a bundle, for Find.
func (g Cgroups) Note(bundle string, id space.SandboxID) error {
	var list strings.Builder
	for _, parent := range g.parents {
		list.WriteString(filepath.Join(parent, cgroupPrefix+string(id)) + "\n")
	}
	if err := os.WriteFile(filepath.Join(bundle, notesFile), []byte(list.String()), 0o600); err != nil {
		return fmt.Errorf("writing the bundle: %w", err)
	}
	return nil
}

// Find returns the cgroups that an earlier process may have created for a sandbox: those
// that Note listed in the bundle, if it exists, and those that Create would create now.
func (g Cgroups) Find(bundle string, id space.SandboxID) *Cgroup {
	c := &Cgroup{version: g.Version, dirs: map[string]string{}}
	for _, parent := range g.parents {
		dir := filepath.Join(parent, cgroupPrefix+string(id))
		c.dirs[dir] = dir
	}
	for _, dir := range noted(bundle, id) {
		c.dirs[dir] = dir
	}
	return c
}

// noted reads the list that Note wrote. It ignores paths without the name of the
// sandbox's cgroup.
func noted(bundle string, id space.SandboxID) []string {
	b, err := os.ReadFile(filepath.Join(bundle, notesFile))
	if err != nil {
		return nil
	}
	var dirs []string
	for line := range strings.Lines(string(b)) {
		dir := filepath.Clean(strings.TrimSuffix(line, "\n"))
		if filepath.Base(dir) == cgroupPrefix+string(id) && strings.HasPrefix(dir, cgroupMount+"/") {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}
