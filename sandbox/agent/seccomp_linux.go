package agent

import (
	"cmp"
	"fmt"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// refusedCall is a call that commands may not make, with the reason.
type refusedCall struct {
	name string
	nr   uint32
	why  reason
}

// reason is why a call is refused. Programs in a sandbox do not need the refused calls, and each
// could help an attacker. All refused calls fail with EPERM.
type reason string

const (
	// In a user namespace of its own, an unprivileged user has every capability, and can
	// mount file systems past every size limit.
	givesNamespace reason = "leads into a namespace of one's own, or out of this one"
	changesMounts  reason = "changes what is mounted where"
	// With these calls, a command could reach into a shell that waits for the next command, which
	// runs as the same user.
	reachesOthers reason = "reads or changes another process"
	keepsKeys     reason = "keeps secrets in the kernel, in keyrings that no namespace divides"
	exposesKernel reason = "is much code in the kernel that has been broken often, and no shell's business"
	opensByNumber reason = "opens files by number, past the directories that lead to them"
	watchesOthers reason = "watches or stops what others open"
	hidesMemory   reason = "is memory that no one else can see or count"
	changesHost   reason = "changes the machine for all"
	isObsolete    reason = "is of no use to programs of today"
)

// refusedCalls are the refused calls: those that every architecture has, and archRefusedCalls.
var refusedCalls = append([]refusedCall{
	{"unshare", unix.SYS_UNSHARE, givesNamespace},
	{"setns", unix.SYS_SETNS, givesNamespace},

	{"mount", unix.SYS_MOUNT, changesMounts},
	{"umount2", unix.SYS_UMOUNT2, changesMounts},
	{"pivot_root", unix.SYS_PIVOT_ROOT, changesMounts},
	{"chroot", unix.SYS_CHROOT, changesMounts},
	{"move_mount", unix.SYS_MOVE_MOUNT, changesMounts},
	{"open_tree", unix.SYS_OPEN_TREE, changesMounts},
	{"open_tree_attr", unix.SYS_OPEN_TREE_ATTR, changesMounts},
	{"fsopen", unix.SYS_FSOPEN, changesMounts},
	{"fsmount", unix.SYS_FSMOUNT, changesMounts},
	{"fsconfig", unix.SYS_FSCONFIG, changesMounts},
	{"fspick", unix.SYS_FSPICK, changesMounts},
	{"mount_setattr", unix.SYS_MOUNT_SETATTR, changesMounts},

	{"ptrace", unix.SYS_PTRACE, reachesOthers},
	{"process_vm_readv", unix.SYS_PROCESS_VM_READV, reachesOthers},
	{"process_vm_writev", unix.SYS_PROCESS_VM_WRITEV, reachesOthers},
	{"process_madvise", unix.SYS_PROCESS_MADVISE, reachesOthers},
	{"process_mrelease", unix.SYS_PROCESS_MRELEASE, reachesOthers},
	{"pidfd_getfd", unix.SYS_PIDFD_GETFD, reachesOthers},
	{"kcmp", unix.SYS_KCMP, reachesOthers},
	{"move_pages", unix.SYS_MOVE_PAGES, reachesOthers},
	{"migrate_pages", unix.SYS_MIGRATE_PAGES, reachesOthers},

	{"add_key", unix.SYS_ADD_KEY, keepsKeys},
	{"request_key", unix.SYS_REQUEST_KEY, keepsKeys},
	{"keyctl", unix.SYS_KEYCTL, keepsKeys},

	{"bpf", unix.SYS_BPF, exposesKernel},
	{"perf_event_open", unix.SYS_PERF_EVENT_OPEN, exposesKernel},
	{"userfaultfd", unix.SYS_USERFAULTFD, exposesKernel},
	{"io_uring_setup", unix.SYS_IO_URING_SETUP, exposesKernel},
	{"io_uring_enter", unix.SYS_IO_URING_ENTER, exposesKernel},
	{"io_uring_register", unix.SYS_IO_URING_REGISTER, exposesKernel},

	{"open_by_handle_at", unix.SYS_OPEN_BY_HANDLE_AT, opensByNumber},
	{"name_to_handle_at", unix.SYS_NAME_TO_HANDLE_AT, opensByNumber},
	{"fanotify_init", unix.SYS_FANOTIFY_INIT, watchesOthers},
	{"fanotify_mark", unix.SYS_FANOTIFY_MARK, watchesOthers},
	{"memfd_secret", unix.SYS_MEMFD_SECRET, hidesMemory},

	{"acct", unix.SYS_ACCT, changesHost},
	{"adjtimex", unix.SYS_ADJTIMEX, changesHost},
	{"clock_adjtime", unix.SYS_CLOCK_ADJTIME, changesHost},
	{"clock_settime", unix.SYS_CLOCK_SETTIME, changesHost},
	{"settimeofday", unix.SYS_SETTIMEOFDAY, changesHost},
	{"delete_module", unix.SYS_DELETE_MODULE, changesHost},
	{"finit_module", unix.SYS_FINIT_MODULE, changesHost},
	{"init_module", unix.SYS_INIT_MODULE, changesHost},
	{"kexec_file_load", unix.SYS_KEXEC_FILE_LOAD, changesHost},
	{"kexec_load", unix.SYS_KEXEC_LOAD, changesHost},
	{"quotactl", unix.SYS_QUOTACTL, changesHost},
	{"quotactl_fd", unix.SYS_QUOTACTL_FD, changesHost},
	{"reboot", unix.SYS_REBOOT, changesHost},
	{"setdomainname", unix.SYS_SETDOMAINNAME, changesHost},
	{"sethostname", unix.SYS_SETHOSTNAME, changesHost},
	{"swapoff", unix.SYS_SWAPOFF, changesHost},
	{"swapon", unix.SYS_SWAPON, changesHost},
	{"syslog", unix.SYS_SYSLOG, changesHost},
	{"vhangup", unix.SYS_VHANGUP, changesHost},

	{"lookup_dcookie", unix.SYS_LOOKUP_DCOOKIE, isObsolete},
	{"nfsservctl", unix.SYS_NFSSERVCTL, isObsolete},
}, archRefusedCalls...)

// cloneNamespaces are the flags of clone(2) that create namespaces: CLONE_NEWNS, CGROUP,
// UTS, IPC, USER, PID and NET. (CLONE_NEWTIME only works with clone3 and unshare.)
const cloneNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// socketFamilies are the allowed families of sockets. The others, such as AF_ALG, AF_BLUETOOTH and
// AF_XDP, expose more of the host's kernel. Network namespaces do not isolate AF_VSOCK.
var socketFamilies = []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}

// personalities are the allowed arguments of personality(2): the default, and 0xffffffff, which
// only asks for the current one. The others weaken the hardening of programs.
var personalities = []uint32{0, 0xffffffff}

// Offsets in struct seccomp_data, and return values (seccomp(2)). Both architectures are
// little-endian, so seccompArg0 is the offset of the lower half of the first argument.
const (
	seccompNr       = 0
	seccompArch     = 4
	seccompArg0     = 16
	seccompRetErrno = 0x00050000
	seccompRetKill  = 0x80000000
	seccompRetAllow = 0x7fff0000
)

// seccompFilter is the program that every command runs under, from its first
// instruction to its last, with all its descendants.
//
// It first checks the architecture: on another one (32 bit, x32), the same numbers mean
// different calls, so a call from there kills the process. It then looks up the number in
// a tree, for speed: gVisor runs the filter for every possible number whenever a process
// starts. It refuses refusedCalls, and some calls depending on an argument:
//   - clone3 fails as missing (ENOSYS), because its flags are in memory, which a
//     filter cannot read; the C library then uses clone;
//   - clone cannot create namespaces;
//   - prlimit only works for the caller: a command could otherwise set limits that
//     keep a waiting shell, and so the next command, from writing;
//   - socket opens socketFamilies (else EAFNOSUPPORT), personality sets one of
//     personalities.
//
// Everything else is allowed.
func seccompFilter() []unix.SockFilter {
	rules := []seccompRule{
		{unix.SYS_CLONE3, result(errno(unix.ENOSYS))},
		{unix.SYS_CLONE, byArg0(func(p *bpfProgram) {
			p.add(unix.BPF_JMP|unix.BPF_JSET|unix.BPF_K, cloneNamespaces, 0, 1)
			p.ret(errno(unix.EPERM))
			p.ret(seccompRetAllow)
		})},
		{unix.SYS_PRLIMIT64, byArg0(allowed([]uint32{0}, unix.EPERM))},
		{unix.SYS_SOCKET, byArg0(allowed(socketFamilies, unix.EAFNOSUPPORT))},
		{unix.SYS_PERSONALITY, byArg0(allowed(personalities, unix.EPERM))},
	}
	for _, c := range refusedCalls {
		rules = append(rules, seccompRule{c.nr, result(errno(unix.EPERM))})
	}
	slices.SortFunc(rules, func(a, b seccompRule) int { return cmp.Compare(a.nr, b.nr) })

	p := bpfProgram{}
	p.load(seccompArch)
	p.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, seccompAuditArch, 1, 0)
	p.ret(seccompRetKill)
	p.load(seccompNr)
	if foreignCalls != 0 {
		p.add(unix.BPF_JMP|unix.BPF_JGE|unix.BPF_K, foreignCalls, 0, 1)
		p.ret(seccompRetKill)
	}
	p.lookUp(rules)
	return p.code
}

// seccompRule is the program that decides about a call; it always returns.
type seccompRule struct {
	nr uint32
	do bpfProgram
}

// bpfProgram is a classic BPF program; its accumulator holds what load read last.
type bpfProgram struct{ code []unix.SockFilter }

func (p *bpfProgram) add(code uint16, k uint32, yes, no uint8) {
	p.code = append(p.code, unix.SockFilter{Code: code, K: k, Jt: yes, Jf: no})
}

func (p *bpfProgram) load(at uint32)    { p.add(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, at, 0, 0) }
func (p *bpfProgram) ret(result uint32) { p.add(unix.BPF_RET|unix.BPF_K, result, 0, 0) }

// lookUp runs the rule for the number in the accumulator. It allows a call without a
// rule. The rules are sorted.
func (p *bpfProgram) lookUp(rules []seccompRule) {
	if len(rules) <= 2 {
		for _, r := range rules {
			p.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, r.nr, 0, uint8(len(r.do.code)))
			p.code = append(p.code, r.do.code...)
		}
		p.ret(seccompRetAllow)
		return
	}
	half := len(rules) / 2
	below := bpfProgram{}
	below.lookUp(rules[:half])
	p.add(unix.BPF_JMP|unix.BPF_JGE|unix.BPF_K, rules[half].nr, uint8(len(below.code)), 0)
	p.code = append(p.code, below.code...)
	p.lookUp(rules[half:])
}

func result(r uint32) (p bpfProgram) {
	p.ret(r)
	return p
}

// byArg0 decides about a call by its first argument; decide must return.
func byArg0(decide func(*bpfProgram)) (p bpfProgram) {
	p.load(seccompArg0)
	decide(&p)
	return p
}

// allowed allows the given values. For other values, the call fails with the given error.
func allowed(values []uint32, otherwise unix.Errno) func(*bpfProgram) {
	return func(q *bpfProgram) {
		for _, v := range values {
			q.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, v, 0, 1)
			q.ret(seccompRetAllow)
		}
		q.ret(errno(otherwise))
	}
}

func errno(e unix.Errno) uint32 { return seccompRetErrno | uint32(e) }

// restrictThread restricts the calling thread and all its later child processes: it empties
// the bounding set (so that file capabilities have no effect), sets no_new_privs and
// installs seccompFilter. The caller has locked its goroutine to the thread, and never unlocks it.
func restrictThread() error {
	for c := uintptr(0); ; c++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if err == unix.EINVAL && c > 0 {
			break // past the last capability
		}
		if err != nil {
			return fmt.Errorf("dropping capability %d: %w", c, err)
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	filter := seccompFilter()
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if _, _, e := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog))); e != 0 {
		return fmt.Errorf("seccomp: %w", e)
	}
	return nil
}
