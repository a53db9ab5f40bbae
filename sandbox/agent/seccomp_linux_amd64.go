package agent

import "golang.org/x/sys/unix"

const (
	seccompAuditArch = unix.AUDIT_ARCH_X86_64
	// foreignCalls is the first number of the x32 calls (__X32_SYSCALL_BIT). Their
	// architecture is that of the 64-bit calls, so a list of numbers would let them pass.
	foreignCalls = 0x40000000
)

// archRefusedCalls are refused calls that only this architecture has.
var archRefusedCalls = []refusedCall{
	{"ioperm", unix.SYS_IOPERM, changesHost},
	{"iopl", unix.SYS_IOPL, changesHost},
	{"modify_ldt", unix.SYS_MODIFY_LDT, exposesKernel},
	{"_sysctl", unix.SYS__SYSCTL, isObsolete},
	{"create_module", unix.SYS_CREATE_MODULE, isObsolete},
	{"get_kernel_syms", unix.SYS_GET_KERNEL_SYMS, isObsolete},
	{"query_module", unix.SYS_QUERY_MODULE, isObsolete},
	{"sysfs", unix.SYS_SYSFS, isObsolete},
	{"uselib", unix.SYS_USELIB, isObsolete},
	{"ustat", unix.SYS_USTAT, isObsolete},
}
