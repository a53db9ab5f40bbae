//go:build unix

package semantic

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// mapFile maps a file that nobody changes. Its pages are in the system's cache, so the system
// can free them when memory is short.
func mapFile(file string) (data []byte, unmap func() error, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if st.Size() == 0 || int64(int(st.Size())) != st.Size() {
		return nil, nil, fmt.Errorf("%w: it has %d bytes", errFile, st.Size())
	}
	data, err = unix.Mmap(int(f.Fd()), 0, int(st.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, nil, fmt.Errorf("map vectors: %w", err)
	}
	return data, func() error { return unix.Munmap(data) }, nil
}
