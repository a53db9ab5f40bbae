package agent

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// liveUse is the set of files that the processes of commands use in the space.
type liveUse struct {
	writes map[uint64]bool // inodes open for writing, or mapped shared and writable
	dirs   map[uint64]bool // inodes that are working directories
	// unsure is set if processes appeared faster than they could be inspected: any file may
	// be open.
	unsure bool
}

// writing reports whether a file may be open for writing.
func (u liveUse) writing(st *unix.Stat_t) bool { return u.unsure || u.writes[st.Ino] }

// in reports whether the directory name in dir is a command's working directory.
func (u liveUse) in(dir int, name string) bool {
	if len(u.dirs) == 0 {
		return false
	}
	var st unix.Stat_t
	return unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && u.dirs[st.Ino]
}

// useRounds limits how often findUse looks for new processes.
const useRounds = 50

// findUse inspects every process with one of the marks, and those that they start
// meanwhile: a descriptor may move from a process that was not inspected yet to a new one.
func findUse(marks map[uint32]bool, root string) liveUse {
	u := liveUse{writes: make(map[uint64]bool), dirs: make(map[uint64]bool)}
	if len(marks) == 0 {
		return u
	}
	seen := make(map[int]bool)
	for range useRounds {
		found := false
		for pid, status := range processes() {
			if !seen[pid] && hasMarkOf(status, marks) {
				seen[pid], found = true, true
				u.look("/proc/"+strconv.Itoa(pid), root+"/")
			}
		}
		if !found {
			return u
		}
	}
	u.unsure = true
	return u
}

func hasMarkOf(status []byte, marks map[uint32]bool) bool {
	for m := range marks {
		if hasMark(status, m) {
			return true
		}
	}
	return false
}

// look adds the working directory of one process, and the files under root that it has open for
// writing. root ends in a slash.
func (u *liveUse) look(proc, root string) {
	var st unix.Stat_t
	if unix.Stat(proc+"/cwd", &st) == nil {
		u.dirs[st.Ino] = true
	}
	buf := make([]byte, 4096)
	if dir, err := os.Open(proc + "/fd"); err == nil {
		fds, _ := dir.Readdirnames(-1)
		dir.Close()
		for _, fd := range fds {
			if ino, ok := writerInode(proc, fd, root, buf); ok {
				u.writes[ino] = true
			}
		}
	}
	if maps, err := os.ReadFile(proc + "/maps"); err == nil {
		for line := range bytes.Lines(maps) {
			if ino, ok := sharedInode(line, root); ok {
				u.writes[ino] = true
			}
		}
	}
}

// writerInode returns the inode of an open file under root, if it is open for writing.
func writerInode(proc, fd, root string, buf []byte) (uint64, bool) {
	n, err := unix.Readlink(proc+"/fd/"+fd, buf)
	if err != nil || !bytes.HasPrefix(buf[:n], []byte(root)) {
		return 0, false
	}
	info := readSmall(proc+"/fdinfo/"+fd, buf)
	flags, err := strconv.ParseUint(string(statusField(append([]byte{'\n'}, info...), "\nflags:")), 8, 64)
	if err != nil || flags&unix.O_ACCMODE == unix.O_RDONLY {
		return 0, false
	}
	var st unix.Stat_t
	if err := unix.Stat(proc+"/fd/"+fd, &st); err != nil {
		return 0, false
	}
	return st.Ino, true
}

// sharedInode reads a line of /proc/<pid>/maps: address, permissions, offset,
// device, inode, path.
func sharedInode(line []byte, root string) (uint64, bool) {
	f := bytes.Fields(line)
	if len(f) < 6 || len(f[1]) != 4 || f[1][1] != 'w' || f[1][3] != 's' || !bytes.HasPrefix(f[5], []byte(root)) {
		return 0, false
	}
	ino, err := strconv.ParseUint(string(f[4]), 10, 64)
	return ino, err == nil
}
