package gvisor

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// reap destroys every sandbox that an earlier process left behind under
// runDir, and returns how many there were. The caller holds the lock of runDir,
// so that none of them belongs to anyone.
//
// Sandboxes die with the child that owns them, and their files and cgroups go
// with them; only where the child was killed is there something to do.
func reap(runDir string, timeout time.Duration) (int, error) {
	ids := map[string]bool{}
	procs, err := leftProcesses(bundleDir(runDir))
	if err != nil {
		return 0, err
	}
	deadline := time.Now().Add(timeout)
	for _, p := range procs {
		ids[p.sandbox] = true
		p.kill()
	}
	for _, p := range procs {
		ok := p.waitUntil(deadline)
		p.close()
		if !ok {
			return 0, fmt.Errorf("process %d of an earlier sandbox cannot be ended", p.pid)
		}
	}
	entries, err := os.ReadDir(bundleDir(runDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("looking for earlier sandboxes: %w", err)
	}
	for _, e := range entries {
		ids[e.Name()] = true
	}
	for id := range ids {
		if err := removeCgroupsOf(id); err != nil {
			return 0, err
		}
	}
	for _, d := range []string{bundleDir(runDir), stateDir(runDir)} {
		if err := os.RemoveAll(d); err != nil {
			return 0, fmt.Errorf("removing earlier sandboxes: %w", err)
		}
	}
	return len(ids), nil
}

// left is a sentry or gofer of an earlier sandbox.
type left struct {
	*process
	sandbox string
}

// leftProcesses finds the sentries and gofers whose bundle is in dir. It goes
// by their command lines, never by a number in a file: that may be another
// process's by now.
func leftProcesses(dir string) ([]left, error) {
	d, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var out []left
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || bundleOf(pid, dir) == "" {
			continue
		}
		p, err := openProcess(pid)
		if err != nil {
			continue // it has ended
		}
		// Now that the number is held, look again.
		id := bundleOf(pid, dir)
		if id == "" {
			p.close()
			continue
		}
		out = append(out, left{p, id})
	}
	return out, nil
}

// bundleOf returns the sandbox to which a process belongs, as a sentry or gofer
// with its bundle in dir; else "".
func bundleOf(pid int, dir string) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil || !bytes.HasPrefix(b, []byte("runsc-")) {
		return ""
	}
	args := strings.Split(strings.TrimSuffix(string(b), "\x00"), "\x00")
	if args[0] != "runsc-sandbox" && args[0] != "runsc-gofer" {
		return ""
	}
	for i, a := range args {
		bundle, ok := strings.CutPrefix(a, "--bundle=")
		if !ok && a == "--bundle" && i+1 < len(args) {
			bundle, ok = args[i+1], true
		}
		if ok && filepath.Dir(bundle) == dir {
			return filepath.Base(bundle)
		}
	}
	return ""
}

// waitUntil tells whether the process has ended by then.
func (p *process) waitUntil(deadline time.Time) bool {
	_ = p.f.SetReadDeadline(deadline)
	p.wait()
	return p.ended()
}

// ended tells whether the process has ended.
func (p *process) ended() bool {
	rc, err := p.f.SyscallConn()
	if err != nil {
		return true
	}
	done := false
	_ = rc.Control(func(fd uintptr) {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		done = err == nil && n > 0
	})
	return done
}

// removeCgroupsOf removes the cgroups of a sandbox, wherever an earlier server
// could have made them.
func removeCgroupsOf(id string) error {
	g := findCgroups(false)
	for _, parent := range g.parents {
		if err := removeCgroup(filepath.Join(parent, cgroupPrefix+id)); err != nil {
			return err
		}
	}
	return nil
}

// removeCgroup removes one directory. The kernel may count a process that has
// been waited for as a member for a moment longer.
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
