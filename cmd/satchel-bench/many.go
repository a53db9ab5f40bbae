//go:build linux

package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"satchel/internal/procmem"
	"satchel/sandbox/gvisor/rundir"
)

// benchMany keeps a sandbox alive for each of 200 users, and then measures a call of each user.
// It fails if anything of a sandbox is left after the server has ended.
func benchMany(ctx context.Context, b *bench) error {
	n := b.runs(200)
	s, err := b.serve(ctx, "many", noSpare, fmt.Sprintf("SATCHEL_SANDBOX_MAX=%d", n), "SATCHEL_SANDBOX_TOTAL_MEMORY=64GiB")
	if err != nil {
		return err
	}
	defer s.stop()
	var clients []*client
	defer func() { closeAll(clients) }()
	for i := range n {
		c, err := s.user(ctx, fmt.Sprintf("user%d", i))
		if err != nil {
			return err
		}
		clients = append(clients, c)
		if err := c.bash(ctx, "true"); err != nil {
			return err
		}
	}
	var answers times
	for i, c := range clients {
		if err := answers.add(func() error { return c.bash(ctx, fmt.Sprintf("echo %d > note.md", i)) }); err != nil {
			return err
		}
	}
	alive, err := s.gauge("satchel_sandboxes")
	if err != nil {
		return err
	}
	if int(alive) != n {
		return fmt.Errorf("%v of %d sandboxes are alive", alive, n)
	}
	server := s.cmd.Process.Pid
	b.alone(fmt.Sprintf("alive_%d_answer_max", n), answers.p(1), "ms")
	b.alone(fmt.Sprintf("alive_%d_memory", n), float64(procmem.Of(append(procmem.Descendants(server), server)...).PSS)/1e6, "MB")
	closeAll(clients)
	clients = nil
	return s.stopWithoutRemains()
}

// stopWithoutRemains stops the server. It fails if a process, mount, cgroup or file of a
// sandbox is left.
func (s *server) stopWithoutRemains() error {
	pids := procmem.Descendants(s.cmd.Process.Pid)
	bundles := filepath.Join(s.data, "run", "sandboxes", "bundles")
	alive, err := os.ReadDir(bundles)
	if err != nil {
		return err
	}
	s.stop()
	err = filepath.WalkDir("/sys/fs/cgroup", func(name string, _ fs.DirEntry, err error) error {
		for _, e := range alive {
			if strings.Contains(filepath.Base(name), e.Name()) {
				return fmt.Errorf("the cgroup %s is left", name)
			}
		}
		return nil // ignore cgroups that are already gone
	})
	if err != nil {
		return err
	}
	for _, pid := range pids {
		if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); err == nil {
			return fmt.Errorf("process %d of a sandbox is left", pid)
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	if strings.Contains(string(mounts), s.data+"/") {
		return fmt.Errorf("a mount in %s is left", s.data)
	}
	for _, dir := range []string{"bundles", "state"} {
		entries, err := os.ReadDir(filepath.Join(s.data, "run", "sandboxes", dir))
		if err != nil {
			return err
		}
		for _, e := range entries {
			if e.Name() != rundir.NullNamespace {
				return fmt.Errorf("%s is left in %s", e.Name(), dir)
			}
		}
	}
	return nil
}
