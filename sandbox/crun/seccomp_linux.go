package crun

import (
	"runtime"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// seccompProfile is the filter of process 1 and of all that it starts; the
// agent puts its own on commands, which takes more from them.
//
// It names what may be called. All else is told to be missing (ENOSYS), as on an
// older kernel, so that a C library that tries a newer call first goes on with
// an older one. What an attack on the kernel begins with is not among it:
// io_uring, bpf, perf_event_open, userfaultfd, keys, ptrace, the memory of other
// processes, modules, kexec, files by handle, the new calls for mounts, and
// every kind of socket but those of programs that speak to each other.
func seccompProfile() *specs.LinuxSeccomp {
	missing := uint(unix.ENOSYS)
	p := &specs.LinuxSeccomp{
		DefaultAction:   specs.ActErrno,
		DefaultErrnoRet: &missing,
		Architectures:   []specs.Arch{specs.ArchX86_64},
	}
	if runtime.GOARCH == "arm64" {
		p.Architectures = []specs.Arch{specs.ArchAARCH64}
	}
	for _, names := range [][]string{fileCalls, processCalls, memoryCalls, signalCalls, timeCalls, eventCalls, socketCalls, agentCalls} {
		p.Syscalls = append(p.Syscalls, specs.LinuxSyscall{Names: names, Action: specs.ActAllow})
	}
	for _, family := range []uint64{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6} {
		p.Syscalls = append(p.Syscalls, specs.LinuxSyscall{
			Names: []string{"socket", "socketpair"}, Action: specs.ActAllow,
			Args: []specs.LinuxSeccompArg{{Index: 0, Value: family, Op: specs.OpEqualTo}},
		})
	}
	// Routes and interfaces, which programs list that look for an address; the
	// other families of netlink are ways into drivers and filters.
	p.Syscalls = append(p.Syscalls, specs.LinuxSyscall{
		Names: []string{"socket"}, Action: specs.ActAllow,
		Args: []specs.LinuxSeccompArg{
			{Index: 0, Value: unix.AF_NETLINK, Op: specs.OpEqualTo},
			{Index: 2, Value: unix.NETLINK_ROUTE, Op: specs.OpEqualTo},
		},
	})
	// A mount that is read-only stays so, and keeps its other walls: crun makes
	// those of the host's directories in a way that the kernel itself would let
	// the root user inside take them off.
	const walls = unix.MS_REMOUNT | unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV
	for _, is := range []struct{ mask, value uint64 }{{unix.MS_REMOUNT, 0}, {walls, walls}} {
		p.Syscalls = append(p.Syscalls, specs.LinuxSyscall{
			Names: []string{"mount"}, Action: specs.ActAllow,
			Args: []specs.LinuxSeccompArg{{Index: 3, Value: is.mask, ValueTwo: is.value, Op: specs.OpMaskedEqual}},
		})
	}
	// Linux as it is, the same with addresses not randomised (debuggers), and a
	// question.
	for _, persona := range []uint64{0, 0x0040000, 0xffffffff} {
		p.Syscalls = append(p.Syscalls, specs.LinuxSyscall{
			Names: []string{"personality"}, Action: specs.ActAllow,
			Args: []specs.LinuxSeccompArg{{Index: 0, Value: persona, Op: specs.OpEqualTo}},
		})
	}
	return p
}

// Names that an architecture or a version of libseccomp does not have are
// passed over by crun and runc.
var (
	fileCalls = []string{
		"access", "chdir", "chmod", "chown", "close", "close_range", "copy_file_range", "creat", "dup", "dup2", "dup3",
		"faccessat", "faccessat2", "fadvise64", "fallocate", "fchdir", "fchmod", "fchmodat", "fchmodat2", "fchown",
		"fchownat", "fcntl", "fdatasync", "fgetxattr", "flistxattr", "flock", "fremovexattr", "fsetxattr", "fstat",
		"fstatfs", "fsync", "ftruncate", "futimesat", "getcwd", "getdents", "getdents64", "getxattr", "getxattrat",
		"ioctl", "lchown", "lgetxattr", "link", "linkat", "listxattr", "listxattrat", "llistxattr", "lremovexattr",
		"lseek", "lsetxattr", "lstat", "mkdir", "mkdirat", "mknod", "mknodat", "newfstatat", "open", "openat",
		"openat2", "pipe", "pipe2", "pread64", "preadv", "preadv2", "pwrite64", "pwritev", "pwritev2", "read",
		"readahead", "readlink", "readlinkat", "readv", "removexattr", "removexattrat", "rename", "renameat",
		"renameat2", "rmdir", "sendfile", "setxattr", "setxattrat", "splice", "stat", "statfs", "statx", "symlink",
		"symlinkat", "sync", "sync_file_range", "syncfs", "tee", "truncate", "umask", "unlink", "unlinkat", "utime",
		"utimensat", "utimes", "vmsplice", "write", "writev",
	}
	processCalls = []string{
		"arch_prctl", "capget", "clone", "execve", "execveat", "exit", "exit_group", "fork", "futex", "futex_requeue",
		"futex_wait", "futex_waitv", "futex_wake", "get_robust_list", "get_thread_area", "getcpu", "getegid", "geteuid",
		"getgid", "getgroups", "getpgid", "getpgrp", "getpid", "getppid", "getpriority", "getresgid", "getresuid",
		"getrlimit", "getrusage", "getsid", "gettid", "getuid", "ioprio_get", "ioprio_set", "pidfd_open",
		"pidfd_send_signal", "prctl", "prlimit64", "rseq", "sched_get_priority_max", "sched_get_priority_min",
		"sched_getaffinity", "sched_getattr", "sched_getparam", "sched_getscheduler", "sched_rr_get_interval",
		"sched_setaffinity", "sched_setattr", "sched_setparam", "sched_setscheduler", "sched_yield", "seccomp",
		"set_robust_list", "set_thread_area", "set_tid_address", "setfsgid", "setfsuid", "setgid", "setpgid",
		"setpriority", "setregid", "setresgid", "setresuid", "setreuid", "setrlimit", "setsid", "setuid", "sysinfo",
		"times", "uname", "vfork", "wait4", "waitid",
	}
	memoryCalls = []string{
		"brk", "get_mempolicy", "madvise", "map_shadow_stack", "membarrier", "memfd_create", "mincore", "mlock",
		"mlock2", "mlockall", "mmap", "mprotect", "mremap", "mseal", "msync", "munlock", "munlockall", "munmap",
		"pkey_alloc", "pkey_free", "pkey_mprotect", "remap_file_pages", "shmat", "shmctl", "shmdt", "shmget",
	}
	signalCalls = []string{
		"kill", "pause", "restart_syscall", "rt_sigaction", "rt_sigpending", "rt_sigprocmask", "rt_sigqueueinfo",
		"rt_sigreturn", "rt_sigsuspend", "rt_sigtimedwait", "rt_tgsigqueueinfo", "sigaltstack", "signalfd",
		"signalfd4", "tgkill", "tkill",
	}
	timeCalls = []string{
		"alarm", "clock_getres", "clock_gettime", "clock_nanosleep", "getitimer", "gettimeofday", "nanosleep",
		"setitimer", "time", "timer_create", "timer_delete", "timer_getoverrun", "timer_gettime", "timer_settime",
		"timerfd_create", "timerfd_gettime", "timerfd_settime",
	}
	eventCalls = []string{
		"epoll_create", "epoll_create1", "epoll_ctl", "epoll_pwait", "epoll_pwait2", "epoll_wait", "eventfd",
		"eventfd2", "getrandom", "inotify_add_watch", "inotify_init", "inotify_init1", "inotify_rm_watch",
		"mq_getsetattr", "mq_notify",
		"mq_open", "mq_timedreceive", "mq_timedsend", "mq_unlink", "msgctl", "msgget", "msgrcv", "msgsnd", "poll",
		"ppoll", "pselect6", "select", "semctl", "semget", "semop", "semtimedop",
	}
	socketCalls = []string{
		"accept", "accept4", "bind", "connect", "getpeername", "getsockname", "getsockopt", "listen", "recvfrom",
		"recvmmsg", "recvmsg", "sendmmsg", "sendmsg", "sendto", "setsockopt", "shutdown",
	}
	// agentCalls, and mount, the agent makes to take rights from commands: its
	// own filter refuses them the last, and they have no capability for the
	// others. It never unmounts, so no mask can be taken off.
	agentCalls = []string{
		"capset", "setgroups", "unshare",
	}
)
