//go:build unix

package gitstore

import "golang.org/x/sys/unix"

// diskFullErrors are the system's errors for a full disk or quota.
var diskFullErrors = [...]error{unix.ENOSPC, unix.EDQUOT}
