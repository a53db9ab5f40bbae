package gitstore

import (
	"os"

	"golang.org/x/sys/windows"
)

// tryLock takes an exclusive lock. The lock ends when the file is closed, or when the
// process ends in any way. The locked byte is past the end of the file, so that the
// holder's process id stays readable.
func tryLock(f *os.File) error {
	ol := &windows.Overlapped{OffsetHigh: 1}
	return windows.LockFileEx(windows.Handle(f.Fd()),
		windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, ol)
}

// gone returns false. On Windows, a child does not inherit the open files of its parent, so
// a lock does not outlive its holder.
func gone(int) bool { return false }

// unlock does nothing: closing the file unlocks it.
func unlock(*os.File) error { return nil }
