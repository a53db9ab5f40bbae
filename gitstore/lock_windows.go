package gitstore

import (
	"os"

	"golang.org/x/sys/windows"
)

// tryLock takes an exclusive lock that ends with the file, or with the process
// however it ends. The locked byte lies past the end, so that the holder's
// process id stays readable.
func tryLock(f *os.File) error {
	ol := &windows.Overlapped{OffsetHigh: 1}
	return windows.LockFileEx(windows.Handle(f.Fd()),
		windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, ol)
}

// gone is always false: a lock does not outlive its process here, as no other
// gets its files.
func gone(int) bool { return false }
