//go:build unix

package cli

import "golang.org/x/sys/unix"

// freeBytes returns how many bytes an ordinary user can still write to the file system of dir.
func freeBytes(dir string) (uint64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, err
	}
	return uint64(st.Bavail) * uint64(st.Bsize), nil
}
