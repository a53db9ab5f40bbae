package agent

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"satchel/internal/space"
)

// collect sends a batch while it collects it.
func (s *server) collect(id uint32, l CollectLimits) {
	v := s.space
	v.mu.Lock()
	defer v.mu.Unlock()
	c := &collection{view: v, limits: l.withDefaults(), told: make(map[string]*stamp), seen: make(map[string]bool)}
	c.send = func(more bool) {
		for len(c.enc.b) > maxPayload {
			s.out.part(kindReply, id, c.enc.b[:maxPayload], true)
			c.enc.b = append(c.enc.b[:0], c.enc.b[maxPayload:]...)
		}
		if !more {
			s.out.part(kindReply, id, c.enc.b, false)
		}
	}
	if err := c.run(); err != nil && !c.sent {
		s.fail(id, err)
		return
	}
	v.last++
	v.batches[v.last] = c.told
	delete(v.batches, v.last-keptBatches)
	c.enc.byte(batchEnd)
	c.enc.uint(v.last)
	c.enc.bool(c.more)
	c.send(false)
}

// collection is one walk over the upper layer.
type collection struct {
	view   *spaceView
	limits CollectLimits
	enc    encoder
	send   func(more bool)
	sent   bool
	told   map[string]*stamp
	seen   map[string]bool // acknowledged paths that are still there
	count  int
	total  int64
	names  int // bytes of paths and problems
	more   bool
	files  []changedFile   // of the directory that is looked at
	busy   map[uint64]bool // inodes open for writing; nil: not looked yet
}

// changedFile is a regular file that is to be told.
type changedFile struct {
	name  string
	entry Entry
	stamp stamp
	read  bool // or there is nothing to read
}

// filesAtOnce and bytesAtOnce bound what is read before it is sent.
const (
	filesAtOnce = 256
	bytesAtOnce = 4 << 20
)

func (c *collection) run() error {
	c.view.noteWrites()
	fd, err := unix.Openat(c.view.upper, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening the upper layer: %w", err)
	}
	c.walk(fd, "", 1)
	// What the host knows and the upper layer has no more was made in the space
	// and is gone again: no whiteout says so.
	var gone []string
	for p, s := range c.view.acked {
		switch {
		case c.seen[p]:
		case s.whiteout():
			delete(c.view.acked, p) // what lies above it is told
		default:
			gone = append(gone, p)
		}
	}
	slices.Sort(gone)
	for _, p := range gone {
		if c.room(0) {
			c.tell(Entry{Path: p, Deleted: true}, nil)
		}
	}
	return nil
}

// room tells whether another entry with so much content fits.
func (c *collection) room(content int64) bool {
	if c.count >= c.limits.Entries || c.total+content > c.limits.Total || c.names > maxNames {
		c.more = true
		return false
	}
	return true
}

func (c *collection) tell(n Entry, s *stamp) {
	c.count++
	c.total += int64(len(n.Content))
	c.names += len(n.Path) + len(n.Problem)
	if !n.Busy {
		c.told[n.Path] = s
	}
	n.encode(&c.enc)
	if len(c.enc.b) > maxPayload {
		c.sent = true
		c.send(true)
	}
}

// walk looks at everything in a directory of the upper layer, which it closes.
// The names are a command's; only stat and the opening of directories are done
// as root.
func (c *collection) walk(fd int, prefix string, depth int) {
	dir := os.NewFile(uintptr(fd), "upper")
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		c.tell(Entry{Path: strings.TrimSuffix(prefix, "/"), Dir: true, Problem: "the directory cannot be read"}, nil)
		c.keep(prefix)
		return
	}
	slices.Sort(names)
	for _, name := range names {
		if depth == 1 && name == gitName && c.view.git {
			continue
		}
		c.look(fd, name, prefix+name, depth)
		if len(c.files) >= filesAtOnce {
			c.tellFiles(fd, prefix)
		}
	}
	c.tellFiles(fd, prefix)
}

// keep has everything under a directory that could not be looked at count as
// still there.
func (c *collection) keep(prefix string) {
	for p := range c.view.acked {
		if strings.HasPrefix(p, prefix) {
			c.seen[p] = true
		}
	}
}

func (c *collection) look(dir int, name, at string, depth int) {
	var st unix.Stat_t
	if err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return // gone meanwhile
	}
	old, known := c.view.acked[at]
	if known {
		c.seen[at] = true
	}
	s := stampOf(&st, false)
	if s.kind() == unix.S_IFDIR {
		// The files of this directory come first: below it others gather.
		c.tellFiles(dir, strings.TrimSuffix(at, name))
		c.lookDir(dir, name, at, depth, s, known, old)
		return
	}
	if known && old == s {
		return
	}
	n := Entry{Path: at, Size: st.Size}
	switch s.kind() {
	case unix.S_IFREG:
		c.lookFile(name, n, s)
		return
	case unix.S_IFLNK:
		n.Mode = space.Symlink
		buf := make([]byte, unix.PathMax)
		k, err := unix.Readlinkat(dir, name, buf)
		if err != nil {
			n.Problem = "the link cannot be read"
		} else {
			n.Content = buf[:k]
		}
	case unix.S_IFCHR:
		n.Size = 0
		if n.Deleted = s.whiteout(); !n.Deleted {
			n.Problem = "it is a device"
		} else if !known && !c.view.inLower(at) {
			// A file that came and went, or had another name: gVisor leaves a
			// whiteout though there is nothing to hide.
			c.view.acked[at] = s
			c.seen[at] = true
			return
		}
	case unix.S_IFIFO:
		n.Problem = "it is a FIFO"
	case unix.S_IFSOCK:
		n.Problem = "it is a socket"
	default:
		n.Problem = "it is not a regular file"
	}
	if c.room(int64(len(n.Content))) {
		c.tell(n, &s)
	}
}

func (c *collection) lookDir(dir int, name, at string, depth int, s stamp, known bool, old stamp) {
	n := Entry{Path: at, Dir: true}
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	switch {
	case err == unix.ENOENT || err == unix.ENOTDIR || err == unix.ELOOP:
		return // changed meanwhile
	case err != nil:
		n.Problem = "the directory cannot be opened"
		c.keep(at + "/")
	case depth >= maxDepth || len(at) > maxTold-256:
		unix.Close(fd)
		n.Problem = "what is in it lies too deep"
	default:
		s.opaque = isOpaque(fd)
		n.Opaque = s.opaque
	}
	if (!known || old != s) && c.room(0) {
		c.tell(n, &s)
	}
	if n.Problem == "" {
		c.walk(fd, at+"/", depth+1)
	}
}

// lookFile notes a changed regular file, to be read with others.
func (c *collection) lookFile(name string, n Entry, s stamp) {
	if s.mode&0o111 != 0 {
		n.Mode = space.Executable
	}
	if n.Size > c.limits.FileSize {
		n.Problem = fmt.Sprintf("it has %d bytes, and %d are allowed", n.Size, c.limits.FileSize)
	} else {
		n.Busy = c.isBusy(s.ino)
	}
	c.files = append(c.files, changedFile{name, n, s, n.Busy || n.Problem != ""})
}

// tellFiles reads and tells what lookFile noted of a directory. The changes of
// thread that it takes to read as the commands' user are few that way.
func (c *collection) tellFiles(dir int, prefix string) {
	files := c.files
	c.files = c.files[:0]
	if len(files) > 0 {
		c.view.watch.add(c.view.space, path.Clean(prefix))
	}
	for len(files) > 0 {
		n, size := 0, int64(0)
		for n < len(files) && (n == 0 || size+files[n].entry.Size <= bytesAtOnce) {
			size += min(files[n].entry.Size, c.limits.FileSize)
			n++
		}
		part := files[:n]
		files = files[n:]
		c.view.user.do(func() {
			for i := range part {
				f := &part[i]
				if !f.read && c.count < c.limits.Entries && c.total+f.entry.Size <= c.limits.Total {
					c.readFile(dir, f.name, &f.entry, &f.stamp)
					f.read = true
				}
			}
		})
		for i := range part {
			f := &part[i]
			if !f.read {
				c.more = true
			} else if c.room(int64(len(f.entry.Content))) {
				s := f.stamp
				c.tell(f.entry, &s)
			}
			*f = changedFile{} // its content is not held any longer
		}
	}
}

// readFile runs as the commands' user. The stamp is from before the reading:
// where the file changes after it, the next collection tells it again.
func (c *collection) readFile(dir int, name string, n *Entry, s *stamp) {
	n.Content = nil
	fd, err := openBeneath(dir, name, unix.O_RDONLY, 0)
	if err != nil {
		n.Problem = "it cannot be read: " + err.Error()
		return
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		n.Problem = "it was replaced while it was read"
		return
	}
	*s = stampOf(&st, false)
	n.Size = min(st.Size, n.Size) // what has grown is told again
	b := make([]byte, n.Size)
	have := 0
	for have < len(b) {
		k, err := unix.Read(fd, b[have:])
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			n.Problem = "it cannot be read: " + err.Error()
			return
		}
		if k == 0 {
			break
		}
		have += k
	}
	n.Content, n.Size = b[:have], int64(have)
}

// isBusy tells whether a process of a command has the inode open for writing.
func (c *collection) isBusy(ino uint64) bool {
	if c.busy == nil {
		c.busy = make(map[uint64]bool)
		if marks := c.view.pool.running(); len(marks) > 0 {
			findWriters(marks, c.busy)
		}
	}
	return c.busy[ino]
}

// findWriters adds the inodes in the space that processes of commands have
// open for writing or mapped shared and writable.
func findWriters(marks map[uint32]bool, busy map[uint64]bool) {
	buf := make([]byte, 4096)
	eachProcess(func(pid int, status []byte) {
		mine := false
		for m := range marks {
			mine = mine || hasMark(status, m)
		}
		if !mine {
			return
		}
		proc := "/proc/" + strconv.Itoa(pid)
		if dir, err := os.Open(proc + "/fd"); err == nil {
			fds, _ := dir.Readdirnames(-1)
			dir.Close()
			for _, fd := range fds {
				if ino, ok := writerInode(proc, fd, buf); ok {
					busy[ino] = true
				}
			}
		}
		if maps, err := os.ReadFile(proc + "/maps"); err == nil {
			for line := range bytes.Lines(maps) {
				if ino, ok := sharedInode(line); ok {
					busy[ino] = true
				}
			}
		}
	})
}

// writerInode returns the inode of an open file in the space, where it is open
// for writing.
func writerInode(proc, fd string, buf []byte) (uint64, bool) {
	n, err := unix.Readlink(proc+"/fd/"+fd, buf)
	if err != nil || !bytes.HasPrefix(buf[:n], []byte(SpaceDir+"/")) {
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
func sharedInode(line []byte) (uint64, bool) {
	f := bytes.Fields(line)
	if len(f) < 6 || len(f[1]) != 4 || f[1][1] != 'w' || f[1][3] != 's' || !bytes.HasPrefix(f[5], []byte(SpaceDir+"/")) {
		return 0, false
	}
	ino, err := strconv.ParseUint(string(f[4]), 10, 64)
	return ino, err == nil
}
