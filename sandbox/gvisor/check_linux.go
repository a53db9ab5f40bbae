package gvisor

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/sandbox/gvisor/link"
	"satchel/sandbox/host"
	"satchel/sandbox/oci"
)

// platformTimeout limits Diagnose's trial boot of each platform: kvm hangs for ever if the
// machine's virtualisation is broken.
const platformTimeout = 5 * time.Second

// Check implements space.Runtime. It boots and stops a sandbox, which takes about as long
// as a start.
func (r *Runtime) Check(ctx context.Context) error {
	if f := host.LookAtRootfs(r.opt.Rootfs); !f.OK {
		return noSandbox(f)
	}
	p, err := r.opt.Programs()
	if err != nil {
		return err
	}
	for _, look := range []func() host.Finding{
		func() host.Finding { return lookAtProgram(p.Sandbox) },
		r.lookAtIdentity, r.lookAtProc,
		func() host.Finding { return lookAtNamespaces(p.Sandbox) },
	} {
		if f := look(); !f.OK {
			return noSandbox(f)
		}
	}
	if err := r.trial(ctx); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if fault.CodeOf(err) == fault.Unavailable {
			return err
		}
		// The cause may name the host's paths, so it is only for the log.
		return fault.Wrap(err, fault.Unavailable,
			"No sandbox can start here: a trial with gVisor's platform %s failed. `satchel doctor` says more. "+
				"Try another sandbox.platform, or a machine or container that may make namespaces and mounts.",
			r.opt.Platform)
	}
	r.bootSpares(0)
	return nil
}

func noSandbox(f host.Finding) error {
	return fault.New(fault.Unavailable, "No sandbox can start here: %s. %s", f.Detail, f.Remedy)
}

// trial boots a sandbox over an empty space and stops it.
func (r *Runtime) trial(ctx context.Context) error {
	c, err := r.running(ctx)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(r.opt.RunDir, "trial-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s, err := c.start(ctx, space.SandboxSpec{ID: oci.NewID(), Checkout: &space.Checkout{Dir: dir}})
	if err != nil {
		var f *fault.Error
		if errors.As(err, &f) && f.Err != nil {
			return f.Err
		}
		return err
	}
	return s.Stop(context.WithoutCancel(ctx))
}

// Diagnose checks everything that sandboxes need or can use, for `satchel doctor`. It boots
// a trial sandbox for each platform.
func (r *Runtime) Diagnose(ctx context.Context) []host.Finding {
	if f := host.LookAtRootfs(r.opt.Rootfs); !f.OK {
		return []host.Finding{f} // the other checks would fail for the same reason
	}
	programs, err := r.opt.Programs()
	if err != nil {
		return []host.Finding{{Name: "program", Detail: "the sandbox programs cannot be written: " + fault.PublicOf(err), Remedy: "Free space, make the data directory writable, or build satchel with scripts/build."}}
	}
	out := []host.Finding{lookAtProgram(programs.Sandbox), r.lookAtIdentity(), r.lookAtProc(), lookAtNamespaces(programs.Sandbox)}
	for _, p := range []string{"systrap", "kvm", "ptrace"} {
		out = append(out, r.lookAtPlatform(ctx, p))
	}
	out = append(out, lookAtCgroups(r.opt.NoCgroups))
	for _, name := range []string{"bash", "git", "rg"} {
		out = append(out, host.LookForTool(r.opt.Rootfs, name))
	}
	return out
}

// lookAtProgram reports whether the sandbox program can run in gVisor's empty root.
func lookAtProgram(exe string) host.Finding {
	f := host.Finding{Name: "program"}
	e, err := elf.Open(exe)
	if err != nil {
		f.Detail, f.Remedy = "the sandbox program cannot be read", "Restart the server, which writes it again."
		return f
	}
	defer e.Close()
	for _, p := range e.Progs {
		if p.Type == elf.PT_INTERP {
			f.Detail = "the sandbox program is linked dynamically"
			f.Remedy = "Build it with CGO_ENABLED=0."
			return f
		}
	}
	var st unix.Statfs_t
	if err := unix.Statfs(exe, &st); err == nil && st.Flags&unix.ST_NOEXEC != 0 {
		f.Detail = filepath.Dir(exe) + " is on a file system that runs no programs (noexec)"
		f.Remedy = "Mount it without noexec, or use another data directory."
		return f
	}
	f.OK, f.Detail = true, "statically linked"
	return f
}

func (r *Runtime) lookAtIdentity() host.Finding {
	f := host.Finding{Name: "user"}
	if os.Geteuid() != os.Getuid() || os.Getegid() != os.Getgid() {
		f.Detail = "the program runs setuid or setgid"
		f.Remedy = "Take the bit off (chmod ug-s) and start it as the user that it should run as."
		return f
	}
	f.OK = true
	f.Detail = fmt.Sprintf("uid %d", os.Getuid())
	return f
}

func (r *Runtime) lookAtProc() host.Finding {
	f := host.Finding{Name: "/proc"}
	var st unix.Statfs_t
	if err := unix.Statfs("/proc", &st); err != nil || st.Type != unix.PROC_SUPER_MAGIC {
		f.Detail, f.Remedy = "/proc is not mounted", "Mount it: mount -t proc proc /proc"
		return f
	}
	if fi, err := os.Stat("/proc/fs"); err != nil || !fi.IsDir() {
		f.Detail, f.Remedy = "/proc/fs is missing", "Mount the whole of /proc, without masks over its parts."
		return f
	}
	f.OK, f.Detail = true, "mounted"
	return f
}

// lookAtNamespaces tries to create the namespaces that the child needs.
func lookAtNamespaces(exe string) host.Finding {
	f := host.Finding{Name: "namespaces"}
	cmd := exec.Command(exe, link.ProbeCommand)
	cmd.Env = []string{}
	cmd.SysProcAttr = childAttr()
	if err := cmd.Run(); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			f.Detail = "namespaces cannot be made: " + host.FirstLine(err)
			f.Remedy = namespaceRemedy(os.Geteuid(), sysctl)
			return f
		}
		f.Detail = "the program does not run in a new namespace: " + exit.Error()
		f.Remedy = namespaceRemedy(os.Geteuid(), sysctl)
		return f
	}
	f.OK, f.Detail = true, "user and mount namespaces can be made"
	if os.Geteuid() == 0 {
		f.Detail = "mount namespaces can be made"
	}
	return f
}

// namespaceFault explains the error of a child that does not start.
func namespaceFault(err error) error {
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.ENOSPC) {
		return fault.Wrap(err, fault.Unavailable, "No sandbox can start here: namespaces cannot be made. %s", namespaceRemedy(os.Geteuid(), sysctl))
	}
	return fmt.Errorf("starting the sandbox runtime process: %w", err)
}

// namespaceRemedy returns how to make this machine allow namespaces. read returns a
// kernel setting, or "".
func namespaceRemedy(uid int, read func(string) string) string {
	switch {
	case uid == 0:
		return "Give the server's container the right to mount (CAP_SYS_ADMIN), or run the server outside of one."
	case read("kernel/apparmor_restrict_unprivileged_userns") == "1":
		// Ubuntu 23.10 and newer have this restriction.
		return "AppArmor forbids user namespaces to ordinary programs here. Either allow them to all: " +
			"`sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0` (and the same line in /etc/sysctl.d/60-satchel.conf), " +
			"or to satchel alone with an AppArmor profile that says `userns,`, or run the server as root."
	case read("kernel/unprivileged_userns_clone") == "0":
		return "User namespaces are switched off for ordinary users: `sudo sysctl -w kernel.unprivileged_userns_clone=1` " +
			"(and the same line in /etc/sysctl.d/60-satchel.conf), or run the server as root."
	case read("user/max_user_namespaces") == "0":
		return "User namespaces are switched off: `sudo sysctl -w user.max_user_namespaces=10000` " +
			"(and the same line in /etc/sysctl.d/60-satchel.conf), or run the server as root."
	}
	return "Allow user namespaces to the server's user (in a container: a seccomp profile that allows unshare and clone with namespaces), or run the server as root."
}

func sysctl(name string) string {
	b, err := os.ReadFile(filepath.Join("/proc/sys", name))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// lookAtPlatform boots a trial sandbox on one of gVisor's platforms, in a separate runtime.
func (r *Runtime) lookAtPlatform(ctx context.Context, platform string) host.Finding {
	f := host.Finding{Name: "platform " + platform}
	if platform == "kvm" {
		if dev, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0); err != nil {
			if r.opt.Platform != platform {
				return r.spare(f)
			}
			f.Detail = "/dev/kvm cannot be opened: " + host.FirstLine(err)
			f.Remedy = "Use systrap (sandbox.platform), or run on hardware or a machine with nested virtualisation."
			return f
		} else {
			dev.Close()
		}
	}
	opt := r.opt
	opt.Platform = platform
	dir, err := os.MkdirTemp("", "satchel-doctor-")
	if err != nil {
		f.Detail = "no temporary directory can be made: " + host.FirstLine(err)
		f.Remedy = "Free space in " + os.TempDir() + "."
		return f
	}
	defer os.RemoveAll(dir)
	opt.RunDir = dir
	opt.StartTimeout = min(opt.StartTimeout, platformTimeout)
	opt.Spare = 0
	other := newRuntime(opt)
	defer other.Close()
	start := time.Now()
	if err := other.trial(ctx); err != nil {
		if r.opt.Platform != platform {
			return r.spare(f)
		}
		f.Detail = "a trial sandbox does not start: " + host.FirstLine(err)
		f.Remedy = "Use another platform (sandbox.platform)."
		return f
	}
	f.OK = true
	f.Detail = fmt.Sprintf("a trial sandbox started and stopped in %d ms", time.Since(start).Milliseconds())
	return f
}

// spare is the finding for an unused platform that does not work.
func (r *Runtime) spare(f host.Finding) host.Finding {
	f.Detail = fmt.Sprintf("not available here; not needed (%s is used)", r.opt.Platform)
	return f
}

func lookAtCgroups(off bool) host.Finding {
	g := host.FindCgroups(off)
	f := host.Finding{Name: "cgroups", OK: g.Version != 0, Detail: g.Describe()}
	if !f.OK {
		f.Detail = "not used: " + g.Why
		f.Remedy = "Not needed: a watchdog bounds each sandbox's memory instead. Run the server as root with writable cgroups to have the kernel do it, and to share processors fairly."
	}
	return f
}
