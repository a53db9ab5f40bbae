package crun

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/sandbox/agent"
	"satchel/sandbox/host"
	"satchel/sandbox/oci"
)

const cgroupRemedy = "Run the server as root on a machine, or in a container, that lets it write to /sys/fs/cgroup: " +
	"on a kernel that is shared nothing else bounds what a sandbox takes. Or use gVisor (sandbox.runtime: gvisor), which needs none."

// Check implements space.Runtime. It starts a sandbox and ends it again.
func (r *Runtime) Check(ctx context.Context) error {
	for _, f := range r.look() {
		if !f.OK {
			return fault.New(fault.Unavailable, "No sandbox can start here: %s. %s", f.Detail, f.Remedy)
		}
	}
	if err := r.trial(ctx); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if fault.CodeOf(err) == fault.Unavailable && errors.Unwrap(err) == nil {
			return err
		}
		// The cause may name the host's paths, so it is for the log alone.
		return fault.Wrap(err, fault.Unavailable,
			"No sandbox can start here: a trial with %s failed. `satchel doctor` says more. "+
				"Use gVisor (sandbox.runtime: gvisor), or a machine with Linux 6.6 or newer whose disk knows idmapped mounts (ext4, xfs, btrfs).", r.Name())
	}
	return nil
}

// Diagnose looks at everything that sandboxes need, for `satchel doctor`. It
// starts a trial sandbox.
func (r *Runtime) Diagnose(ctx context.Context) []host.Finding {
	out := r.look()
	for _, f := range out {
		if !f.OK {
			return out // the trial would fail with words about it
		}
	}
	f := host.Finding{Name: "trial"}
	start := time.Now()
	if err := r.trial(ctx); err != nil {
		f.Detail = "a trial sandbox does not start: " + host.FirstLine(deepest(err))
		f.Remedy = "Linux 6.6 or newer is needed, and a file system with idmapped mounts (ext4, xfs, btrfs) under the data directory. " +
			"gVisor (sandbox.runtime: gvisor) needs neither."
	} else {
		f.OK = true
		f.Detail = fmt.Sprintf("a trial sandbox started and stopped in %d ms", time.Since(start).Milliseconds())
	}
	out = append(out, f)
	for _, name := range []string{"bash", "git", "rg"} {
		out = append(out, host.LookForTool(r.opt.Rootfs, name))
	}
	return out
}

// look is all that can be seen without starting anything.
func (r *Runtime) look() []host.Finding {
	return []host.Finding{host.LookAtRootfs(r.opt.Rootfs), r.lookAtProgram(), r.lookAtUser(), lookAtCgroups()}
}

func (r *Runtime) lookAtProgram() host.Finding {
	f := host.Finding{Name: "program"}
	path, err := exec.LookPath(r.opt.Program)
	if err != nil {
		f.Detail = r.opt.Program + " is not installed"
		f.Remedy = "Install it (Debian and Ubuntu: apt install " + r.opt.Program + ")."
		return f
	}
	out, err := exec.Command(path, "--version").Output()
	if err != nil {
		f.Detail = r.opt.Program + " does not run: " + host.FirstLine(err)
		f.Remedy = "Install it anew (Debian and Ubuntu: apt install --reinstall " + r.opt.Program + ")."
		return f
	}
	f.OK = true
	f.Detail, _, _ = strings.Cut(string(out), "\n")
	return f
}

// notInstalled is the fault of a missing program.
func (r *Runtime) notInstalled() error {
	f := r.lookAtProgram()
	return fault.New(fault.Unavailable, "No sandbox can start here: %s. %s", f.Detail, f.Remedy)
}

// lookAtUser tells whether this process may give ids to sandboxes.
func (r *Runtime) lookAtUser() host.Finding {
	f := host.Finding{Name: "user"}
	switch {
	case os.Geteuid() != 0:
		f.Detail = "the server does not run as root, and an ordinary user may map no one but himself into a sandbox: " +
			"process 1 and the commands would be one user, and a command could end process 1 or speak in its place"
	case !host.AllUsersMapped():
		f.Detail = "the server's container does not have all user ids, so there are none to give to sandboxes"
	default:
		f.OK, f.Detail = true, fmt.Sprintf("root; sandboxes have the user ids from %d on", r.opt.FirstID)
		return f
	}
	f.Remedy = "Use gVisor (sandbox.runtime: gvisor), which needs no root, or run the server as the machine's root."
	return f
}

func lookAtCgroups() host.Finding {
	g := host.FindCgroups(false)
	f := host.Finding{Name: "cgroups", OK: g.Version != 0, Detail: g.Describe()}
	if !f.OK {
		f.Detail, f.Remedy = "cgroups cannot be used: "+g.Why, cgroupRemedy
	}
	return f
}

// trial starts a sandbox over an empty space, has the agent in it mount
// everything, which asks most of the kernel, and stops it.
func (r *Runtime) trial(ctx context.Context) error {
	if _, err := r.prepare(ctx); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(r.opt.RunDir, "trial-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s, err := r.Start(ctx, space.SandboxSpec{ID: oci.NewID(), Seed: &space.Seed{Checkout: dir}})
	if err != nil {
		return err
	}
	if len(r.opt.Args) == 0 {
		err = bootAgent(ctx, s, r.opt.StartTimeout)
	}
	return errors.Join(err, s.Stop(context.WithoutCancel(ctx)))
}

func bootAgent(ctx context.Context, s space.Sandbox, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	c, err := agent.Connect(ctx, s.Conn(), agent.Boot{Disk: 1 << 20, Inodes: 100, Tmp: 1 << 20, Output: 1 << 16, Processes: 16, OpenFiles: 64})
	if err != nil {
		return fmt.Errorf("the agent does not start: %w", err)
	}
	return c.Close()
}

// deepest is the cause that a fault keeps for the operator.
func deepest(err error) error {
	var f *fault.Error
	if errors.As(err, &f) && f.Err != nil {
		return f.Err
	}
	return err
}
