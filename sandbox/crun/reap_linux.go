package crun

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/sandbox/host"
	"satchel/sandbox/oci"
)

// Reap implements space.Runtime.
func (r *Runtime) Reap(ctx context.Context) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return 0, errClosed
	}
	if err := r.lockRunDir(ctx); err != nil {
		return 0, err
	}
	program, err := exec.LookPath(r.opt.Program)
	if err != nil {
		program = "" // what it would do is done without it
	}
	return r.reap(program, host.FindCgroups(false))
}

// reap destroys every sandbox that has something in RunDir and is not alive. The
// caller holds r.mu, so that none begins meanwhile, and the lock of RunDir, so
// that none is another's.
func (r *Runtime) reap(program string, cgroups host.Cgroups) (int, error) {
	ids := map[space.SandboxID]bool{}
	for _, dir := range []string{bundleDir(r.opt.RunDir), stateDir(r.opt.RunDir)} {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, fmt.Errorf("looking for earlier sandboxes: %w", err)
		}
		for _, e := range entries {
			if id := space.SandboxID(e.Name()); oci.ValidID(id) && r.live[id] == nil {
				ids[id] = true
			}
		}
	}
	reaped := 0
	var errs []error
	for id := range ids { // one that resists keeps no other
		if err := r.destroy(program, cgroups, id); err != nil {
			errs = append(errs, fmt.Errorf("the earlier sandbox %s: %w", id, err))
			continue
		}
		reaped++
	}
	return reaped, errors.Join(errs...)
}

// destroy ends what runs of a sandbox that is not alive, and removes its files.
func (r *Runtime) destroy(program string, cgroups host.Cgroups, id space.SandboxID) error {
	if program != "" {
		if err := ociDelete(r.opt, program, id); err != nil {
			return err
		}
	}
	for _, group := range []*host.Cgroup{cgroups.Find(filepath.Join(bundleDir(r.opt.RunDir), string(id)), id), host.CgroupsNamed(runcCgroup(id))} {
		if err := dissolve(group, r.opt.StopTimeout); err != nil {
			return err
		}
	}
	for _, dir := range []string{stateDir(r.opt.RunDir), bundleDir(r.opt.RunDir)} {
		if err := os.RemoveAll(filepath.Join(dir, string(id))); err != nil {
			return err
		}
	}
	return nil
}

// ociDelete has the OCI runtime kill a container and forget it. One that it does
// not know is no error.
func ociDelete(opt Options, program string, id space.SandboxID) error {
	ctx, cancel := context.WithTimeout(context.Background(), opt.StopTimeout)
	defer cancel()
	// Ids are matched exactly: they name a directory.
	cmd := ociCommand(ctx, opt, program, "delete", "--force", string(id))
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil
	}
	if _, serr := os.Stat(filepath.Join(stateDir(opt.RunDir), string(id))); errors.Is(serr, fs.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("%s delete: %w: %s", opt.Program, err, strings.TrimSpace(string(out)))
}

// dissolve ends what is in a cgroup and removes it.
func dissolve(g *host.Cgroup, timeout time.Duration) error {
	if err := endAll(g, timeout); err != nil {
		return err
	}
	return g.Remove()
}

// endAll kills every process in a cgroup and returns when they have ended.
func endAll(g *host.Cgroup, timeout time.Duration) error {
	deadline := time.Now().Add(timeout)
	for {
		pids := g.Processes()
		if len(pids) == 0 {
			return nil
		}
		for _, pid := range pids {
			p, err := host.OpenProcess(pid)
			if err != nil {
				continue // it has ended
			}
			// Its number may have become another's before it was held.
			ended := !slices.Contains(g.Processes(), pid)
			if !ended {
				p.Kill()
				ended = p.WaitUntil(deadline)
			}
			p.Close()
			if !ended {
				return fault.New(fault.Unavailable, "Process %d of an earlier sandbox cannot be ended.", pid)
			}
		}
		if time.Now().After(deadline) {
			return errors.New("the processes of a sandbox cannot be ended")
		}
	}
}
