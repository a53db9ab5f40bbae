package agent

import "golang.org/x/sys/unix"

const (
	seccompAuditArch = unix.AUDIT_ARCH_AARCH64
	foreignCalls     = 0 // 32-bit calls come with an architecture of their own
)

// archRefusedCalls is what this architecture alone has: nothing, for it is
// younger than what others carry along.
var archRefusedCalls []refusedCall
