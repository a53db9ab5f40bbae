package agent

import "golang.org/x/sys/unix"

const (
	seccompAuditArch = unix.AUDIT_ARCH_X86_64
	// foreignCalls is the first number of the x32 calls, which come with the
	// architecture of the 64-bit ones (__X32_SYSCALL_BIT) and would pass by a
	// list of numbers.
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
