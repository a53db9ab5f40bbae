//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// runsc is gVisor's own command line with a bundle as a user would write it:
// the host's system programs read-only, and at /work a directory of the host
// where one is given, writable.
type runsc struct {
	b      *bench
	root   string
	bundle string
}

func (b *bench) newRunsc(name, work string, args ...string) (*runsc, error) {
	r := &runsc{b: b, root: filepath.Join(b.dir, name, "state"), bundle: filepath.Join(b.dir, name, "bundle")}
	rootfs := filepath.Join(r.bundle, "rootfs")
	mounts := []specs.Mount{{Destination: "/proc", Type: "proc", Source: "proc"}, {Destination: "/tmp", Type: "tmpfs", Source: "tmpfs"}}
	for _, d := range []string{"usr", "bin", "lib", "lib64", "proc", "tmp", "work"} {
		if err := os.MkdirAll(filepath.Join(rootfs, d), 0o755); err != nil {
			return nil, err
		}
	}
	for _, d := range []string{"/usr", "/bin", "/lib", "/lib64"} {
		if _, err := os.Stat(d); err == nil {
			mounts = append(mounts, specs.Mount{Destination: d, Type: "bind", Source: d, Options: []string{"rbind", "ro"}})
		}
	}
	cwd := "/"
	if work != "" {
		cwd = "/work"
		mounts = append(mounts, specs.Mount{Destination: cwd, Type: "bind", Source: work, Options: []string{"rbind", "rw"}})
	}
	spec := specs.Spec{
		Version: specs.Version,
		Root:    &specs.Root{Path: rootfs, Readonly: true},
		Process: &specs.Process{Args: args, Cwd: cwd, Env: []string{"PATH=/usr/bin:/bin"}},
		Mounts:  mounts,
		Linux:   &specs.Linux{Namespaces: []specs.LinuxNamespace{{Type: specs.PIDNamespace}, {Type: specs.MountNamespace}, {Type: specs.NetworkNamespace}}},
	}
	config, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(r.root, 0o700); err != nil {
		return nil, err
	}
	return r, os.WriteFile(filepath.Join(r.bundle, "config.json"), config, 0o600)
}

func (r *runsc) command(ctx context.Context, args ...string) *exec.Cmd {
	all := append([]string{runscCommand, "--root", r.root, "--network=none", "--ignore-cgroups", "--overlay2=none"}, args...)
	return exec.CommandContext(ctx, r.b.self, all...)
}

func (r *runsc) do(ctx context.Context, args ...string) error {
	cmd := r.command(ctx, args...)
	// A file and no pipe: a detached container inherits it, and reading a pipe
	// would never end.
	log, err := os.CreateTemp(r.b.dir, "runsc-*.log")
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stderr = log
	if err := cmd.Run(); err != nil {
		said, _ := os.ReadFile(log.Name())
		return fmt.Errorf("runsc %v: %w: %s", args, err, said)
	}
	return nil
}
