package agent

import "golang.org/x/sys/unix"

const (
	seccompAuditArch = unix.AUDIT_ARCH_X86_64
	// foreignCalls is the first number of the x32 calls, which come with the
	// architecture of the 64-bit ones (__X32_SYSCALL_BIT) and would pass by a
	// list of numbers.
	foreignCalls = 0x40000000
)
