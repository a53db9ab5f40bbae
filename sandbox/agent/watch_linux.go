package agent

import (
	"encoding/binary"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// writeWatch reports which known files were open for writing. A stamp shows every change
// except writes through a shared mapping, for which gVisor does not update a file's times.
// But a mapped file was opened for writing, and its last close causes an event.
type writeWatch struct {
	fd    int
	paths map[int32]string // by watch descriptor: the watched directory; "." is the root
}

func newWriteWatch() (*writeWatch, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	return &writeWatch{fd: fd, paths: make(map[int32]string)}, err
}

// add watches a directory of the space. Call it each time before a file in it is read, because
// another directory may have replaced the watched one. If add fails (the directory is gone, or the
// kernel's limit is reached), only writes through mappings are missed in this directory.
func (w *writeWatch) add(space int, dir string) {
	fd, err := openBeneath(space, dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	wd, err := unix.InotifyAddWatch(w.fd, "/proc/self/fd/"+strconv.Itoa(fd), unix.IN_CLOSE_WRITE|unix.IN_ONLYDIR)
	if err == nil {
		w.paths[int32(wd)] = dir
	}
}

// drain calls written with every path that a writer closed; all is true if events were
// lost, so that writers may have closed any path.
func (w *writeWatch) drain(written func(p string)) (all bool) {
	buf := make([]byte, 64<<10)
	for {
		n, err := unix.Read(w.fd, buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return all
		}
		for b := buf[:n]; len(b) >= unix.SizeofInotifyEvent; {
			wd := int32(binary.NativeEndian.Uint32(b))
			mask := binary.NativeEndian.Uint32(b[4:])
			size := int(binary.NativeEndian.Uint32(b[12:]))
			name, _, _ := strings.Cut(string(b[unix.SizeofInotifyEvent:][:size]), "\x00")
			b = b[unix.SizeofInotifyEvent+size:]
			dir, ok := w.paths[wd]
			switch {
			case mask&unix.IN_Q_OVERFLOW != 0:
				all = true
			case !ok:
			case mask&unix.IN_IGNORED != 0: // the directory is gone
				delete(w.paths, wd)
			case name != "":
				written(path.Join(dir, name))
			}
		}
	}
}
