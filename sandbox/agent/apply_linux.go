package agent

import (
	"errors"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"satchel/internal/space"
)

// errDirty stops an application that would overwrite what the host has not
// seen.
var errDirty = errors.New("the space has a change of its own there")

// apply puts files of a newer head into the space, each as a whole, as the
// commands' user would.
func (v *spaceView) apply(entries []ApplyEntry) []ApplyResult {
	v.mu.Lock()
	defer v.mu.Unlock()
	results := make([]ApplyResult, 0, len(entries))
	for i := range entries {
		r := ApplyResult{Path: entries[i].Path}
		switch err := v.applyOne(&entries[i]); {
		case err == errDirty:
			r.Dirty = true
		case err != nil:
			r.Problem = err.Error()
			r.Problem = r.Problem[:min(len(r.Problem), 400)]
		}
		results = append(results, r)
	}
	return results
}

func (v *spaceView) applyOne(n *ApplyEntry) error {
	if _, err := space.ParsePath(n.Path); err != nil {
		return err
	}
	if !n.Force && v.dirty(n.Path) {
		return errDirty
	}
	a := &application{view: v, entry: n}
	v.watch.add(v.space, path.Dir(n.Path))
	var err error
	v.user.do(func() {
		if n.Delete {
			err = a.remove()
		} else {
			err = a.write()
		}
	})
	for _, p := range a.touched {
		v.accept(p)
	}
	if err != nil || n.Delete {
		return err
	}
	for p := path.Dir(n.Path); p != "."; p = path.Dir(p) {
		// A directory that was copied up to hold the file.
		if s, ok := v.lookUpper(p); ok && s.kind() == unix.S_IFDIR && !s.opaque {
			v.acked[p] = s
		}
	}
	if len(a.touched) > 0 {
		v.watch.add(v.space, path.Dir(n.Path)) // it may have been missing
	}
	v.acceptFile(n.Path, a.made)
	return nil
}

// lookUpper returns the stamp of a path in the upper layer; ok is false where
// it has none there.
func (v *spaceView) lookUpper(p string) (s stamp, ok bool) {
	dir, name := path.Split(p)
	fd := v.upper
	if dir != "" {
		d, err := openBeneath(v.upper, strings.TrimSuffix(dir, "/"), unix.O_RDONLY|unix.O_DIRECTORY, 0)
		if err != nil {
			return stamp{}, false
		}
		defer unix.Close(d)
		fd = d
	}
	var st unix.Stat_t
	if err := unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return stamp{}, false
	}
	opaque := false
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		if d, err := openBeneath(fd, name, unix.O_RDONLY|unix.O_DIRECTORY, 0); err == nil {
			opaque = isOpaque(d)
			unix.Close(d)
		}
	}
	return stampOf(&st, opaque), true
}

// dirty tells whether the space has a change at the path, or at a directory
// above it, that the host has not acknowledged.
func (v *spaceView) dirty(p string) bool {
	for i := 0; ; i++ {
		j := strings.IndexByte(p[i:], '/')
		last := j < 0
		part := p
		if !last {
			i += j
			part = p[:i]
		}
		s, there := v.lookUpper(part)
		old, known := v.acked[part]
		switch {
		case !there:
			// Nothing of it in the upper layer: clean, unless it was there.
			if known {
				return true
			}
			if last {
				return false
			}
		case s.kind() == unix.S_IFDIR && !s.opaque:
			// A directory alone is no change.
		case !known || old != s:
			return true
		}
		if last {
			return false
		}
	}
}

// accept makes what the upper layer has at a path what the host knows.
func (v *spaceView) accept(p string) {
	if s, ok := v.lookUpper(p); ok {
		v.acked[p] = s
	} else {
		delete(v.acked, p)
	}
	if s := v.acked[p]; s.kind() != unix.S_IFDIR {
		for q := range v.acked {
			if strings.HasPrefix(q, p+"/") {
				delete(v.acked, q)
			}
		}
	}
}

// acceptFile accepts a file that was just written, unless a command has
// changed it since: made is from before it got its name, which changes its
// ctime alone.
func (v *spaceView) acceptFile(p string, made unix.Stat_t) {
	s, ok := v.lookUpper(p)
	if ok && s.ino == made.Ino && s.size == made.Size && s.mtime == made.Mtim.Nano() && s.mode == made.Mode {
		v.acked[p] = s
	}
}

// application is one entry on its way into the space. Its methods run as the
// commands' user.
type application struct {
	view    *spaceView
	entry   *ApplyEntry
	touched []string    // paths that were made or removed besides the file itself
	made    unix.Stat_t // the written file
}

func (a *application) remove() error {
	dir, name, err := a.openParent(false)
	if err == unix.ENOENT || err == unix.ENOTDIR || err == unix.ELOOP {
		return nil // it is not there
	}
	if err != nil {
		return err
	}
	err = unix.Unlinkat(dir, name, 0)
	if err == unix.EISDIR {
		err = a.removeDir(dir, name)
	}
	unix.Close(dir)
	if err != nil && err != unix.ENOENT {
		return err
	}
	a.touched = append(a.touched, a.entry.Path)
	// git has no empty directories.
	for p := path.Dir(a.entry.Path); p != "."; p = path.Dir(p) {
		up, err := openBeneath(a.view.space, path.Dir(p), unix.O_PATH|unix.O_DIRECTORY, 0)
		if err != nil {
			break
		}
		err = unix.Unlinkat(up, path.Base(p), unix.AT_REMOVEDIR)
		unix.Close(up)
		if err != nil {
			break
		}
		a.touched = append(a.touched, p)
	}
	return nil
}

// removeDir removes a directory in the way: an empty one, or with Force its
// whole tree.
func (a *application) removeDir(dir int, name string) error {
	err := unix.Unlinkat(dir, name, unix.AT_REMOVEDIR)
	if err != unix.ENOTEMPTY && err != unix.EEXIST {
		return err
	}
	if !a.entry.Force {
		return errDirty
	}
	return removeTree(dir, name, 0)
}

// removeTree removes a directory with all that is in it.
func removeTree(dir int, name string, depth int) error {
	if depth > maxDepth {
		return errors.New("a directory in its place is too deep")
	}
	fd, err := openBeneath(dir, name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	names, err := readNames(fd)
	if err != nil {
		unix.Close(fd)
		return err
	}
	for _, n := range names {
		err := unix.Unlinkat(fd, n, 0)
		if err == unix.EISDIR {
			err = removeTree(fd, n, depth+1)
		}
		if err != nil && err != unix.ENOENT {
			unix.Close(fd)
			return err
		}
	}
	unix.Close(fd)
	return unix.Unlinkat(dir, name, unix.AT_REMOVEDIR)
}

// openParent opens the directory of the entry; with create it is made, and a
// file in its place gives way.
func (a *application) openParent(create bool) (dir int, name string, err error) {
	parent, name := path.Split(a.entry.Path)
	parent = strings.TrimSuffix(parent, "/")
	if parent == "" {
		parent = "."
	}
	const flags = unix.O_PATH | unix.O_DIRECTORY
	dir, err = openBeneath(a.view.space, parent, flags, 0)
	if err == nil || !create {
		return dir, name, err
	}
	if dir, err = openBeneath(a.view.space, ".", flags, 0); err != nil {
		return -1, "", err
	}
	at := ""
	for seg := range strings.SplitSeq(parent, "/") {
		at = path.Join(at, seg)
		next, err := openBeneath(dir, seg, flags, 0)
		if err == unix.ENOTDIR || err == unix.ELOOP {
			// Dirty was asked before: what is here is the host's or forced.
			if err = unix.Unlinkat(dir, seg, 0); err == nil {
				err = unix.ENOENT
			}
		}
		if err == unix.ENOENT {
			if err = unix.Mkdirat(dir, seg, 0o755); err == nil || err == unix.EEXIST {
				a.touched = append(a.touched, at)
				next, err = openBeneath(dir, seg, flags, 0)
			}
		}
		unix.Close(dir)
		if err != nil {
			return -1, "", err
		}
		dir = next
	}
	return dir, name, nil
}

// write makes the file under another name and renames it, so that no command
// ever sees half of it.
func (a *application) write() error {
	dir, name, err := a.openParent(true)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	tmp, err := a.writeTemp(dir)
	if err != nil {
		return err
	}
	err = unix.Renameat(dir, tmp, dir, name)
	if err == unix.EISDIR || err == unix.ENOTEMPTY || err == unix.EEXIST {
		if err = a.removeDir(dir, name); err == nil {
			a.touched = append(a.touched, a.entry.Path)
			err = unix.Renameat(dir, tmp, dir, name)
		}
	}
	if err != nil {
		_ = unix.Unlinkat(dir, tmp, 0)
	}
	return err
}

// tempNames is how many names are tried: a command may take them on purpose.
const tempNames = 100

func (a *application) writeTemp(dir int) (name string, err error) {
	for i := range tempNames {
		name = ".satchel-apply-" + strconv.Itoa(i)
		if a.entry.Mode == space.Symlink {
			err = unix.Symlinkat(string(a.entry.Content), dir, name)
		} else {
			err = a.writeRegular(dir, name)
		}
		if err != unix.EEXIST {
			break
		}
	}
	if err == nil {
		err = unix.Fstatat(dir, name, &a.made, unix.AT_SYMLINK_NOFOLLOW)
	}
	return name, err
}

func (a *application) writeRegular(dir int, name string) error {
	mode := uint64(0o644)
	if a.entry.Mode == space.Executable {
		mode = 0o755
	}
	fd, err := openBeneath(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, mode)
	if err != nil {
		return err
	}
	for b := a.entry.Content; len(b) > 0 && err == nil; {
		var n int
		n, err = unix.Write(fd, b)
		if err == unix.EINTR {
			err = nil
		}
		b = b[max(n, 0):]
	}
	unix.Close(fd)
	if err != nil {
		_ = unix.Unlinkat(dir, name, 0)
	}
	return err
}
