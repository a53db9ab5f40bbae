//go:build unix

package gitstore

import "golang.org/x/sys/unix"

// diskFullErrors are the system's words for no room.
var diskFullErrors = [...]error{unix.ENOSPC, unix.EDQUOT}
