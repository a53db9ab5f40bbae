package crun

import (
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"strconv"

	"satchel/internal/space"
	"satchel/sandbox/oci"
)

// agentTasks is how many threads and waiting shells the agent has besides the
// processes of commands.
const agentTasks = 64

// withAgent makes room for the agent in the limits of the commands.
func withAgent(lim space.Limits) space.Limits {
	if lim.Processes > 0 {
		lim.Processes += agentTasks
	}
	return lim
}

// config is the container's configuration: the bundle that every runtime has,
// and what stands between its processes and the host's kernel.
func (b *box) config(s space.SandboxSpec) (*specs.Spec, error) {
	where := oci.Spec{
		ID: b.id, Root: part(b.id, rootPart), Binds: b.machine.stage.layout.Binds, Args: b.runtime.opt.Args,
		Lower: part(b.id, lowerPart),
	}
	if s.Seed.GitView != "" {
		where.Git = part(b.id, gitPart)
	}
	if s.Seed.Library != "" {
		where.Library = part(b.id, libraryPart)
	}
	cfg, err := oci.Config(where)
	if err != nil {
		return nil, err
	}
	cfg.Version = "1.0.2" // what the runtimes of Debian 12 know
	cfg.Annotations = nil // gVisor's
	for i := range cfg.Mounts {
		if cfg.Mounts[i].Destination == "/proc" {
			cfg.Mounts[i].Options = []string{"nosuid", "nodev", "noexec"}
		}
	}
	cfg.Mounts = append(cfg.Mounts,
		// The machine has one bounded number of pseudo-terminals for all.
		specs.Mount{Destination: "/dev/pts", Type: "devpts", Source: "devpts", Options: []string{"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "max=" + strconv.Itoa(terminals)}},
		// The agent covers it with one that is bounded.
		specs.Mount{Destination: "/dev/shm", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "nodev", "noexec", "mode=1777", "size=4k"}},
	)
	l := cfg.Linux
	l.Namespaces = append(l.Namespaces,
		specs.LinuxNamespace{Type: specs.UserNamespace},
		specs.LinuxNamespace{Type: specs.CgroupNamespace})
	l.UIDMappings, l.GIDMappings = b.machine.ids.mappings(b.slot)
	if b.runtime.opt.Program == NameRunc {
		l.CgroupsPath = "/" + runcCgroup(b.id)
	}
	l.MaskedPaths = maskedPaths()
	l.ReadonlyPaths = []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
	l.Seccomp = seccompProfile()
	return cfg, nil
}

// terminals is how many pseudo-terminals one sandbox may have open.
const terminals = 16

// maskedPaths tell of the machine or let it be touched. /proc/cmdline may hold
// what an operator passes to the kernel; the names of interrupts, devices and
// modules are what an attack on the kernel is chosen by.
func maskedPaths() []string {
	return []string{
		"/proc/acpi", "/proc/asound", "/proc/buddyinfo", "/proc/cgroups", "/proc/cmdline", "/proc/config.gz",
		"/proc/consoles", "/proc/crypto", "/proc/device-tree", "/proc/devices", "/proc/diskstats", "/proc/driver",
		"/proc/execdomains", "/proc/interrupts", "/proc/iomem", "/proc/ioports", "/proc/kallsyms", "/proc/kcore",
		"/proc/key-users", "/proc/keys", "/proc/kmsg", "/proc/kpagecgroup", "/proc/kpagecount", "/proc/kpageflags",
		"/proc/latency_stats", "/proc/locks", "/proc/mdstat", "/proc/misc", "/proc/modules", "/proc/mtrr",
		"/proc/pagetypeinfo", "/proc/partitions", "/proc/pressure", "/proc/sched_debug", "/proc/schedstat",
		"/proc/scsi", "/proc/slabinfo", "/proc/softirqs", "/proc/swaps", "/proc/sysvipc", "/proc/timer_list",
		"/proc/timer_stats", "/proc/tty", "/proc/vmallocinfo", "/proc/zoneinfo", "/sys/firmware",
	}
}

// runcCgroup is the name of the cgroups that runc makes, whatever it is told.
// Process 1 leaves them for those that are made here.
func runcCgroup(id space.SandboxID) string { return "satchel-runc-" + string(id) }
