package agent

import "golang.org/x/sys/unix"

const (
	seccompAuditArch = unix.AUDIT_ARCH_AARCH64
	foreignCalls     = 0 // 32-bit calls come with an architecture of their own
)

// archRefusedCalls is empty: this architecture has no calls of its own to refuse.
var archRefusedCalls []refusedCall
