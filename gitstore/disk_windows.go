package gitstore

import "golang.org/x/sys/windows"

// diskFullErrors are the system's errors for a full disk or quota.
var diskFullErrors = [...]error{windows.ERROR_DISK_FULL, windows.ERROR_HANDLE_DISK_FULL, windows.ERROR_DISK_QUOTA_EXCEEDED}
