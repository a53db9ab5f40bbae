package agent

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"satchel/internal/space"
	"satchel/sandbox/protocol"
)

// collect answers with a batch of changes. It sends entries while it still collects others.
func (s *server) collect(id uint32, l protocol.CollectLimits) {
	w := s.conn.ReplyBatch(id)
	entries := 0
	batch, more, err := s.space.collect(l, func(n protocol.Entry) {
		entries++
		w.Add(n)
	})
	if err != nil {
		s.conn.Fail(id, err)
		return
	}
	w.End(batch, more)
	if entries == 0 {
		s.saved()
	}
}

// ack records that the host has saved a batch.
func (s *server) ack(id uint32, r protocol.AckRequest) {
	s.answer(id, func() error { return s.space.ack(r) })
	s.saved()
}

// saved starts the shell of the next command, after everything of the previous command is saved.
// An earlier start would delay the answer to the previous command.
func (s *server) saved() { s.shell.refill(false) }

// collect calls add with each entry of a new batch, and returns the ID and More of the
// batch. If it fails, it has not called add.
func (v *spaceView) collect(l protocol.CollectLimits, add func(protocol.Entry)) (batch uint64, more bool, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	c := &collection{view: v, limits: l, add: add, reported: make(map[string]*stamp), walkState: v.goOn(l.After)}
	if err := c.run(); err != nil {
		return 0, false, err
	}
	v.last++
	v.batches[v.last] = c.reported
	delete(v.batches, v.last-keptBatches)
	if c.more {
		v.cut = &cutWalk{batch: v.last, walkState: c.walkState}
	}
	return v.last, c.more, nil
}

// collection is one walk over the upper layer, or the next part of one.
type collection struct {
	view     *spaceView
	limits   protocol.CollectLimits
	add      func(protocol.Entry)
	reported map[string]*stamp
	walkState
	count int
	total int64
	names int // bytes of paths and problems
	more  bool
	files []changedFile // files of the current directory that are not reported yet
	use   *liveUse      // what commands have open; nil until isBusy needs it
}

// changedFile is a regular file to report.
type changedFile struct {
	name  string
	entry protocol.Entry
	stamp stamp
	read  bool // its content must be read
}

// filesAtOnce and bytesAtOnce limit what is read before it is sent; mostProblem is longer
// than the text of any problem.
const (
	filesAtOnce = 256
	bytesAtOnce = 4 << 20
	mostProblem = 256
)

func (c *collection) run() error {
	c.view.noteWrites(nil)
	fd, err := unix.Openat(c.view.upper, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening the upper layer: %w", err)
	}
	if c.gone == nil {
		c.walk(fd, "", 1)
		if c.more {
			return nil
		}
		c.findGone()
	} else {
		unix.Close(fd)
	}
	for len(c.gone) > 0 && c.room(c.gone[0], 0) {
		c.report(protocol.Entry{Path: c.gone[0], Deleted: true}, nil)
		c.gone = c.gone[1:]
	}
	return nil
}

// findGone lists the deletions to report at the end of a walk.
func (c *collection) findGone() {
	c.gone = []string{} // not nil, because the walk is done
	// A known path that the upper layer no longer has was created in the space and then
	// deleted, without a whiteout.
	for p, s := range c.view.acked {
		switch {
		case c.seen[p]:
		case s.whiteout():
			delete(c.view.acked, p) // a path above it is reported
		default:
			c.gone = append(c.gone, p)
		}
	}
	slices.Sort(c.gone)
}

// room reports whether the entry of a path with this much content fits. If it does not,
// the walk stops there.
func (c *collection) room(p string, content int64) bool {
	if c.fits(0, content) {
		return true
	}
	c.more, c.from = true, p
	return false
}

// fits reports whether one more entry fits after the given number of others that are not counted
// yet. content is the size of the content of all these entries.
func (c *collection) fits(others int, content int64) bool {
	return c.count+others < c.limits.Entries && c.total+content <= c.limits.Total && c.names <= protocol.MaxNames
}

func (c *collection) report(n protocol.Entry, s *stamp) {
	c.count++
	c.total += int64(len(n.Content))
	c.names += len(n.Path) + len(n.Problem)
	if !n.Busy {
		c.reported[n.Path] = s
	}
	c.add(n)
}

// walk visits everything in a directory of the upper layer, and closes the directory. Commands
// chose the names; as root, walk only stats them, reads links and opens directories.
func (c *collection) walk(fd int, prefix string, depth int) {
	dir := os.NewFile(uintptr(fd), "upper")
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		c.report(protocol.Entry{Path: strings.TrimSuffix(prefix, "/"), Dir: true, Problem: "the directory cannot be read"}, nil)
		c.keep(prefix)
		return
	}
	slices.Sort(names)
	for _, name := range names[c.reportedOf(prefix, names):] {
		if depth == 1 && name == gitName && c.view.git {
			continue
		}
		c.look(fd, name, prefix+name, depth)
		if len(c.files) >= filesAtOnce {
			c.reportFiles(fd, prefix)
		}
		if c.more {
			return
		}
	}
	c.reportFiles(fd, prefix)
}

// keep treats everything under an unreadable directory as unchanged.
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
		// Report the files of this directory before those below it.
		c.reportFiles(dir, strings.TrimSuffix(at, name))
		if !c.more {
			c.lookDir(dir, name, at, depth, s, known, old)
		}
		return
	}
	if known && old == s {
		return
	}
	n := protocol.Entry{Path: at, Size: st.Size}
	switch s.kind() {
	case unix.S_IFREG:
		c.lookFile(name, n, s)
		return
	case unix.S_IFLNK:
		n.Mode = space.Symlink
		buf := make([]byte, unix.PathMax)
		k, err := unix.Readlinkat(dir, name, buf)
		switch {
		case err != nil:
			n.Problem = "the link cannot be read"
		case int64(k) > c.limits.Total:
			n.Problem = "the link's target is too long"
		default:
			n.Content = buf[:k]
		}
	case unix.S_IFCHR:
		n.Size = 0
		if n.Deleted = s.whiteout(); !n.Deleted {
			n.Problem = "it is a device"
		} else if !known && !c.view.inLower(at) {
			// A file that was created and deleted, or renamed: gVisor leaves a whiteout
			// although there is nothing to hide.
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
	// First report the files of this directory whose names precede this one, because a
	// stopped walk continues after the last reported path.
	c.reportFiles(dir, strings.TrimSuffix(at, name))
	if !c.more && c.room(at, int64(len(n.Content))) {
		c.report(n, &s)
	}
}

func (c *collection) lookDir(dir int, name, at string, depth int, s stamp, known bool, old stamp) {
	n := protocol.Entry{Path: at, Dir: true}
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	switch {
	case err == unix.ENOENT || err == unix.ENOTDIR || err == unix.ELOOP:
		return // changed meanwhile
	case err != nil:
		n.Problem = "the directory cannot be opened"
		c.keep(at + "/")
	case depth >= maxDepth || len(at) > maxReportedPath-256:
		unix.Close(fd)
		n.Problem = "it contains too many nested directories"
	default:
		s.opaque = c.view.isOpaque(fd)
		n.Opaque = s.opaque
	}
	if !known || old != s {
		if !c.room(at, 0) {
			if n.Problem == "" {
				unix.Close(fd)
			}
			return
		}
		c.report(n, &s)
	}
	if n.Problem == "" {
		c.walk(fd, at+"/", depth+1)
	}
}

// lookFile adds a changed regular file, to be read with others.
func (c *collection) lookFile(name string, n protocol.Entry, s stamp) {
	if s.mode&0o111 != 0 {
		n.Mode = space.Executable
	}
	if n.Size > c.limits.FileSize {
		n.Problem = fmt.Sprintf("it has %d bytes, and %d are allowed", n.Size, c.limits.FileSize)
	} else {
		n.Busy = c.isBusy(s.ino)
	}
	c.files = append(c.files, changedFile{name, n, s, !n.Busy && n.Problem == ""})
}

// reportFiles reads and reports the files that lookFile added. Reading them together saves
// switches to the thread of the commands' user.
func (c *collection) reportFiles(dir int, prefix string) {
	files := c.files
	c.files = c.files[:0]
	if len(files) > 0 {
		c.view.watch.add(c.view.space, path.Clean(prefix))
	}
	for len(files) > 0 {
		n, size, names := 0, int64(0), 0
		for n < len(files) {
			most := int64(0)
			if files[n].read {
				most = files[n].entry.Size
			}
			names += len(prefix) + len(files[n].name) + mostProblem
			if n > 0 && (size+most > bytesAtOnce || c.names+names > protocol.MaxNames) || !c.fits(n, size+most) {
				break
			}
			size += most
			n++
		}
		if n == 0 {
			c.more, c.from = true, prefix+files[0].name
			clear(files)
			return
		}
		part := files[:n]
		files = files[n:]
		c.view.user.do(func() {
			for i := range part {
				if f := &part[i]; f.read {
					c.readFile(dir, f)
				}
			}
		})
		c.lookAgain(dir, part)
		for i := range part {
			s := part[i].stamp
			c.report(part[i].entry, &s)
			part[i] = changedFile{} // free its content
		}
	}
}

// lookAgain marks as Busy the files that a command opened after the first check and may have
// written partially: they are still open, or have changed since they were read.
func (c *collection) lookAgain(dir int, files []changedFile) {
	var use *liveUse
	for i := range files {
		f := &files[i]
		if !f.read || f.entry.Busy {
			continue
		}
		if use == nil {
			u := c.view.findUse()
			use = &u
		}
		var st unix.Stat_t
		err := unix.Fstatat(dir, f.name, &st, unix.AT_SYMLINK_NOFOLLOW)
		if use.writing(&unix.Stat_t{Ino: f.stamp.ino}) || err != nil || stampOf(&st, false) != f.stamp {
			f.entry.Busy, f.entry.Problem, f.entry.Content = true, "", nil
		}
	}
}

// readFile runs as the commands' user. A file that has changed since it was checked may be
// partially written: it counts as open for writing, and is reported again when the command
// ends, if not before.
func (c *collection) readFile(dir int, f *changedFile) {
	n := &f.entry
	fd, err := openBeneath(dir, f.name, unix.O_RDONLY, 0)
	if err != nil {
		n.Problem = "it cannot be read: " + err.Error()
		return
	}
	defer unix.Close(fd)
	b := make([]byte, n.Size)
	have := 0
	for have < len(b) {
		// If a FIFO has replaced the file, this reads nothing.
		k, err := unix.Pread(fd, b[have:], int64(have))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			n.Problem = "it cannot be read: " + err.Error()
		}
		if k <= 0 {
			break
		}
		have += k
	}
	run(c.view.hooks.afterRead, f.name)
	var st unix.Stat_t
	switch err := unix.Fstat(fd, &st); {
	case err != nil || stampOf(&st, false) != f.stamp:
		n.Busy, n.Problem = true, ""
	case n.Problem == "":
		n.Content, n.Size = b[:have], int64(have)
	}
}

// isBusy reports whether a process of a command has a file open for writing. A file that
// is only in the upper layer has the same inode number there and in the space.
func (c *collection) isBusy(ino uint64) bool {
	if c.use == nil {
		u := c.view.findUse()
		c.use = &u
	}
	return c.use.writing(&unix.Stat_t{Ino: ino})
}
