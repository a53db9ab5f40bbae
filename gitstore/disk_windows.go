package gitstore

import "golang.org/x/sys/windows"

// diskFullErrors are the system's words for no room.
var diskFullErrors = [...]error{windows.ERROR_DISK_FULL, windows.ERROR_HANDLE_DISK_FULL, windows.ERROR_DISK_QUOTA_EXCEEDED}
