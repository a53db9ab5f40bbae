package agent

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"satchel/internal/space"
	"satchel/sandbox/protocol"
)

// A command can open, change, replace or remove a file at any moment, even between a check and the
// rename that replaces the file. So while commands run, nothing is overwritten. The old file is
// exchanged with the new one in one step (RENAME_EXCHANGE), or renamed if it is to be deleted, and
// set aside under a private name. The old file is checked only then. If the host knows the old
// file and nobody has it open for writing, it is removed. Otherwise it is moved back to its path,
// and the result is Dirty. If a command has changed the new file too by then, both files stay: one
// at the path, the other next to it as a conflict copy.
//
// Only one kind of writer is not detected: a descriptor that is in flight between two
// processes (SCM_RIGHTS) is in neither process's table.

// round is one application of entries.
type round struct {
	view    *spaceView
	quiet   bool // no command runs, and none can start
	results []protocol.ApplyResult
	entries []protocol.ApplyEntry
	use     liveUse // what commands use in the space, as last inspected
	aside   []setAside
	names   int             // the number in the next private name
	written map[string]bool // paths that writers have closed since look or settle
	lost    bool            // events were lost: any file may have been written
}

// asideAtOnce limits the files set aside (and the open descriptors of their directories)
// between two checks of open files.
const asideAtOnce = 64

// setAside is a replaced file that may have to be restored.
type setAside struct {
	entry  int    // index of the entry
	dir    int    // its directory; closed by settle
	parent string // the directory's path, "." for the root
	name   string // its name
	tmp    string // its private name now
	was    stamp  // its stamp in the upper layer, as the host knew it
	upper  bool   // the upper layer had it; otherwise only the checkout
	placed bool   // the entry's file has replaced it; otherwise nothing has
	doubt  bool   // a writer closed the path during the swap
}

func (s *setAside) path() string { return path.Join(s.parent, s.name) }

// look records what commands use, and forgets earlier writes: changes are checked again for
// each entry.
func (r *round) look() {
	if r.use = (liveUse{}); !r.quiet {
		r.use = r.view.findUse()
	}
	r.drain()
	r.written, r.lost = make(map[string]bool), false
}

// drain records the files that writers have closed.
func (r *round) drain() {
	all := r.view.noteWrites(func(p string) { r.written[p] = true })
	r.lost = r.lost || all
}

// inUse reports whether a path has an unacknowledged change, or a command has the file open
// for writing, so that its further writes would be lost.
func (r *round) inUse(p string) bool {
	v := r.view
	if v.dirty(p) {
		return true
	}
	if len(r.use.writes) == 0 && !r.use.unsure {
		return false
	}
	// A file that is open for writing is in the upper layer. A file that only the
	// checkout has may have the same inode number as another file in the upper layer.
	if _, ok := v.lookUpper(p); !ok {
		return false
	}
	var st unix.Stat_t
	dir, err := openBeneath(v.space, path.Dir(p), unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return false
	}
	defer unix.Close(dir)
	return unix.Fstatat(dir, path.Base(p), &st, unix.AT_SYMLINK_NOFOLLOW) == nil && r.use.writing(&st)
}

// settle removes or restores every file that was set aside.
func (r *round) settle() {
	if len(r.aside) > 0 {
		r.view.hooks.settle()
	}
	r.names = 0
	if !r.quiet {
		r.use = r.view.findUse()
	}
	r.drain()
	var back []*setAside
	for i := range r.aside {
		s := &r.aside[i]
		if r.unchanged(s) {
			r.drop(s)
		} else if r.putBack(s) {
			back = append(back, s)
		}
	}
	if len(back) > 0 {
		r.use = r.view.findUse() // files that this round wrote may be aside now, too
	}
	for _, s := range back {
		if st, ok := s.stat(); !ok || !r.use.writing(&st) && r.view.holds(s.dir, s.tmp, &st, &r.entries[s.entry]) {
			r.drop(s)
		} else {
			r.keepCopy(s)
		}
	}
	for i := range r.aside {
		unix.Close(r.aside[i].dir)
	}
	r.aside = r.aside[:0]
	r.written, r.lost = make(map[string]bool), false
}

func (s *setAside) stat() (unix.Stat_t, bool) {
	var st unix.Stat_t
	err := unix.Fstatat(s.dir, s.tmp, &st, unix.AT_SYMLINK_NOFOLLOW)
	return st, err == nil
}

// unchanged reports whether the host knows the content of a file that was set aside, and nobody
// can change the file any more.
func (r *round) unchanged(s *setAside) bool {
	st, ok := s.stat()
	if !ok {
		return true // a command has removed it
	}
	if s.doubt || r.lost || r.written[path.Join(s.parent, s.tmp)] || r.use.writing(&st) {
		return false
	}
	if !s.upper {
		return r.view.sameAsLower(s.path(), s.dir, s.tmp, &st)
	}
	now, ok := r.view.lookUpper(path.Join(s.parent, s.tmp))
	now.ctime = s.was.ctime // the rename has changed it
	return ok && now == s.was
}

// drop removes a file that was set aside, and the directories that are empty without it.
func (r *round) drop(s *setAside) {
	r.view.user.do(func() { _ = unix.Unlinkat(s.dir, s.tmp, 0) })
	if s.placed {
		return
	}
	r.view.accept(s.path())
	if n := &r.entries[s.entry]; n.Path == s.path() {
		(&application{view: r.view, round: r, entry: n}).removeParents()
	}
}

// putBack returns a file to its path, and reports whether it has set another file aside
// in exchange.
func (r *round) putBack(s *setAside) (swapped bool) {
	r.results[s.entry].Dirty = true
	r.view.hooks.putBack(s.path())
	var err error
	r.view.user.do(func() {
		for range renameTries {
			if s.placed {
				if err = unix.Renameat2(s.dir, s.tmp, s.dir, s.name, unix.RENAME_EXCHANGE); err == nil {
					swapped = true
					return
				}
			}
			if err = unix.Renameat2(s.dir, s.tmp, s.dir, s.name, unix.RENAME_NOREPLACE); err == nil || err != unix.EEXIST || !s.placed {
				return
			}
		}
	})
	if err != nil && !swapped {
		r.keepCopy(s) // a command has put something at the path
	}
	r.view.unknow(s.path())
	return swapped
}

// renameTries limits how often a step is repeated because a command created or removed the
// path meanwhile.
const renameTries = 20

// keepCopy gives a file that was set aside the visible name of a conflict copy.
func (r *round) keepCopy(s *setAside) {
	ext := path.Ext(s.name)
	stem := strings.TrimSuffix(s.name, ext)
	if stem == "" {
		stem, ext = s.name, ""
	}
	const room = len(space.ConflictMark) + 10
	if n := 255 - room - len(ext); n < len(stem) {
		stem, ext = s.name[:255-room], ""
	}
	r.view.user.do(func() {
		for range renameTries {
			err := unix.Renameat2(s.dir, s.tmp, s.dir, stem+space.ConflictMark+r.view.copyName()+ext, unix.RENAME_NOREPLACE)
			if err != unix.EEXIST {
				return // if the rename failed, the file is reported under its private name
			}
		}
	})
}

// sameAsLower reports whether a file that was set aside equals its original in the checkout.
func (v *spaceView) sameAsLower(p string, dir int, tmp string, st *unix.Stat_t) bool {
	lower, err := openBeneath(v.lower, path.Dir(p), unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return false
	}
	defer unix.Close(lower)
	var old unix.Stat_t
	if unix.Fstatat(lower, path.Base(p), &old, unix.AT_SYMLINK_NOFOLLOW) != nil || old.Mode != st.Mode || old.Size != st.Size {
		return false
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
		return readLink(lower, path.Base(p)) == readLink(dir, tmp)
	case unix.S_IFREG:
		was, err := openBeneath(lower, path.Base(p), unix.O_RDONLY, 0)
		if err != nil {
			return false
		}
		defer unix.Close(was)
		return v.readsAs(dir, tmp, func(b []byte, off int64) (int, error) { return unix.Pread(was, b, off) })
	}
	return false
}

// holds reports whether a file has exactly the content and mode of an entry.
func (v *spaceView) holds(dir int, name string, st *unix.Stat_t, n *protocol.ApplyEntry) bool {
	if n.Mode == space.Symlink {
		return st.Mode&unix.S_IFMT == unix.S_IFLNK && readLink(dir, name) == string(n.Content)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || st.Size != int64(len(n.Content)) || (st.Mode&0o111 != 0) != (n.Mode == space.Executable) {
		return false
	}
	return v.readsAs(dir, name, func(b []byte, off int64) (int, error) { return copy(b, n.Content[off:]), nil })
}

func readLink(dir int, name string) string {
	b := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(dir, name, b)
	if err != nil {
		return ""
	}
	return string(b[:n])
}

// readsAs reports whether a regular file has the content that the function read returns. It reads
// the file as the commands' user.
func (v *spaceView) readsAs(dir int, name string, read func(b []byte, off int64) (int, error)) (same bool) {
	v.user.do(func() {
		fd, err := openBeneath(dir, name, unix.O_RDONLY, 0)
		if err != nil {
			return
		}
		defer unix.Close(fd)
		x, y := make([]byte, 64<<10), make([]byte, 64<<10)
		for off := int64(0); ; {
			n, err1 := unix.Pread(fd, x, off)
			m, err2 := read(y, off)
			if err1 != nil || err2 != nil || !bytes.Equal(x[:max(n, 0)], y[:max(m, 0)]) {
				return
			}
			if n == 0 {
				same = true
				return
			}
			off += int64(n)
		}
	})
	return same
}

// copyName returns a number that stands for the commit in the name of a conflict copy, because
// there is no commit yet.
func (v *spaceView) copyName() string {
	v.copies++
	return fmt.Sprintf("%010x", v.copies)
}

// never is a ctime that no file has.
const never = -1

// unknow makes the next collection report the state of a path again.
func (v *spaceView) unknow(p string) { v.acked[p] = stamp{mode: unix.S_IFREG, ctime: never} }

// putAside records a file that was just renamed.
func (r *round) putAside(s setAside, dir int) error {
	again, err := unix.FcntlInt(uintptr(dir), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("dup", err)
	}
	s.dir = again
	r.aside = append(r.aside, s)
	return nil
}
