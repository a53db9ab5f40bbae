//go:build unix

package server

import "golang.org/x/sys/unix"

// freeBytes reports how much an ordinary user may still write where dir is.
func freeBytes(dir string) (uint64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, err
	}
	return uint64(st.Bavail) * uint64(st.Bsize), nil
}
