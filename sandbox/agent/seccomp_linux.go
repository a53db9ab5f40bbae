package agent

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// refusedCalls is what a command may not ask of the kernel (EPERM). An
// unprivileged user gets every capability in a user namespace of its own, and
// with them mounts past every size limit; the first group is what leads there.
// The second lets one process change another's memory or take its files: with
// it a command could reach into a shell that waits for the next command.
var refusedCalls = []uint32{
	unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT,
	unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_FSOPEN, unix.SYS_FSMOUNT, unix.SYS_FSCONFIG, unix.SYS_FSPICK,
	unix.SYS_MOUNT_SETATTR, sysOpenTreeAttr,

	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD,
}

// sysOpenTreeAttr has one number on every architecture, as all calls have
// since 424 (include/uapi/asm-generic/unistd.h).
const sysOpenTreeAttr = 467

// cloneNamespaces are the flags of clone(2) that make namespaces: CLONE_NEWNS,
// CGROUP, UTS, IPC, USER, PID and NET. (CLONE_NEWTIME works with clone3 and
// unshare alone.)
const cloneNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// The places of struct seccomp_data (seccomp(2)); both architectures are
// little-endian.
const (
	seccompNr       = 0
	seccompArch     = 4
	seccompArg0     = 16
	seccompRetErrno = 0x00050000
	seccompRetKill  = 0x80000000
	seccompRetAllow = 0x7fff0000
)

// seccompFilter is the program that every command runs under. clone3 is told
// to be missing (ENOSYS), because its flags lie in memory, which no filter can
// read; the C library then uses clone.
func seccompFilter() []unix.SockFilter {
	stmt := func(code uint16, k uint32) unix.SockFilter { return unix.SockFilter{Code: code, K: k} }
	jump := func(op uint16, k uint32, yes, no uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | op | unix.BPF_K, K: k, Jt: yes, Jf: no}
	}
	load := uint16(unix.BPF_LD | unix.BPF_W | unix.BPF_ABS)
	ret := func(k uint32) unix.SockFilter { return stmt(unix.BPF_RET|unix.BPF_K, k) }

	p := []unix.SockFilter{
		stmt(load, seccompArch),
		jump(unix.BPF_JEQ, seccompAuditArch, 1, 0),
		ret(seccompRetKill),
		stmt(load, seccompNr),
	}
	if foreignCalls != 0 {
		p = append(p, jump(unix.BPF_JGE, foreignCalls, 0, 1), ret(seccompRetKill))
	}
	p = append(p,
		jump(unix.BPF_JEQ, unix.SYS_CLONE3, 0, 1), ret(seccompRetErrno|uint32(unix.ENOSYS)),
		jump(unix.BPF_JEQ, unix.SYS_CLONE, 0, 4),
		stmt(load, seccompArg0),
		jump(unix.BPF_JSET, cloneNamespaces, 0, 1),
		ret(seccompRetErrno|uint32(unix.EPERM)),
		ret(seccompRetAllow),
	)
	for i, nr := range refusedCalls {
		p = append(p, jump(unix.BPF_JEQ, nr, uint8(len(refusedCalls)-i), 0))
	}
	return append(p, ret(seccompRetAllow), ret(seccompRetErrno|uint32(unix.EPERM)))
}

// restrictThread takes from the calling thread, and from every process that it
// starts from now on, what no command may have: the bounding set (so that no
// file's capabilities come back), the right to gain privileges by executing,
// and the calls that seccompFilter refuses. The thread must be locked and must
// never be unlocked.
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
