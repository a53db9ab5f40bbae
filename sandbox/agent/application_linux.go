package agent

import (
	"errors"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"satchel/internal/space"
	"satchel/sandbox/protocol"
)

// application applies one entry. It changes the space as the commands' user, and inspects the
// upper layer of the space's overlay as root.
type application struct {
	view    *spaceView
	round   *round
	entry   *protocol.ApplyEntry
	index   int
	plain   bool        // if set, a file in the way is replaced at once, and not set aside
	touched []string    // directories that openParent created
	made    unix.Stat_t // state of the written file before its rename
	doubt   bool        // a command may have changed the written file already
}

func (a *application) as(f func()) { a.view.user.do(f) }

func (a *application) remove() error {
	var dir int
	var name string
	var err error
	a.as(func() { dir, name, err = a.openParent(false) })
	if err == unix.ENOENT || err == unix.ENOTDIR || err == unix.ELOOP {
		return nil // there is no such directory
	}
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	st, err := a.lookAt(dir, name)
	switch {
	case err == unix.ENOENT:
	case err != nil:
		return err
	case st.Mode&unix.S_IFMT == unix.S_IFDIR:
		err = a.removeDir(dir, name, a.entry.Path)
	case a.plain:
		a.as(func() { err = unix.Unlinkat(dir, name, 0) })
	default:
		return a.moveAside(dir, path.Dir(a.entry.Path), name)
	}
	if err != nil && err != unix.ENOENT {
		return err
	}
	a.accept(a.entry.Path)
	a.removeParents()
	return nil
}

// accept is like spaceView.accept, but does nothing for an entry with Own.
func (a *application) accept(p string) {
	if !a.entry.Own {
		a.view.accept(p)
	}
}

func (a *application) lookAt(dir int, name string) (st unix.Stat_t, err error) {
	a.as(func() { err = unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW) })
	return st, err
}

// moveAside renames a file to a private name, unless the file is in use or has a change that the
// host does not know.
func (a *application) moveAside(dir int, parent, name string) error {
	p := path.Join(parent, name)
	was, upper := a.view.lookUpper(p)
	if a.round.inUse(p) {
		return errDirty
	}
	a.view.hooks.swap(p)
	var tmp string
	var err error
	a.as(func() {
		for range tempNames {
			tmp = a.tempName()
			if err = unix.Renameat2(dir, name, dir, tmp, unix.RENAME_NOREPLACE); err != unix.EEXIST {
				return
			}
		}
	})
	if err == unix.ENOENT {
		return nil // a command has removed it; a collection will report that
	}
	if err != nil {
		return err
	}
	return a.round.putAside(setAside{entry: a.index, parent: parent, name: name, tmp: tmp, was: was, upper: upper}, dir)
}

// removeParents removes the directories that are empty after the removal of the entry, because
// git has no empty directories. A directory in which a command works stays. If a command may have
// deleted files in a removed directory, a collection reports that the directory is gone.
func (a *application) removeParents() {
	for p := path.Dir(a.entry.Path); p != "."; p = path.Dir(p) {
		up, err := openBeneath(a.view.space, path.Dir(p), unix.O_PATH|unix.O_DIRECTORY, 0)
		if err != nil {
			return
		}
		empty, known := a.isEmpty(up, path.Base(p), p)
		if empty && !a.round.use.in(up, path.Base(p)) {
			a.as(func() { err = unix.Unlinkat(up, path.Base(p), unix.AT_REMOVEDIR) })
		}
		unix.Close(up)
		if !empty || err != nil {
			return
		}
		if known {
			a.accept(p)
		}
	}
}

// isEmpty reports whether a directory is empty and the host knows everything that commands deleted
// in it. It checks in that order, because no file can be deleted from an empty directory.
func (a *application) isEmpty(up int, name, at string) (empty, known bool) {
	a.as(func() {
		fd, err := openBeneath(up, name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
		if err != nil {
			return
		}
		defer unix.Close(fd)
		names, err := readNames(fd)
		empty = err == nil && len(names) == 0
	})
	return empty, empty && a.view.nothingNew(at)
}

// removeDir removes a directory that is in the way. Without Force, the directory must not contain
// files at any depth.
func (a *application) removeDir(dir int, name, at string) (err error) {
	if !a.entry.Force {
		if !a.noFiles(dir, name, at, 0) {
			return errDirty
		}
		a.as(func() { err = removeDirs(dir, name, 0) })
		if err == unix.ENOTEMPTY || err == unix.EEXIST {
			return errDirty // a command has just created something in it
		}
		a.view.forgetUnder(at)
		return err
	}
	a.as(func() { err = unix.Unlinkat(dir, name, unix.AT_REMOVEDIR) })
	if err != unix.ENOTEMPTY && err != unix.EEXIST {
		return err
	}
	a.as(func() { err = removeTree(dir, name, 0) })
	a.view.forgetUnder(at)
	return err
}

// noFiles reports whether a directory contains no files at any depth, no command works in it, and
// the host knows all files that were deleted from it. Nothing could report such a deletion once the
// directory is gone.
func (a *application) noFiles(dir int, name, at string, depth int) bool {
	if depth > maxDepth || a.round.use.in(dir, name) {
		return false
	}
	fd, names := -1, []string(nil)
	var err error
	a.as(func() {
		if fd, err = openBeneath(dir, name, unix.O_RDONLY|unix.O_DIRECTORY, 0); err == nil {
			names, err = readNames(fd)
		}
	})
	if fd >= 0 {
		defer unix.Close(fd)
	}
	if err != nil {
		return false
	}
	for _, n := range names {
		if st, err := a.lookAt(fd, n); err != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR || !a.noFiles(fd, n, path.Join(at, n), depth+1) {
			return false
		}
	}
	return a.view.nothingNewBut(at, names)
}

// removeDirs removes a directory with the directories that are in it.
func removeDirs(dir int, name string, depth int) error {
	err := unix.Unlinkat(dir, name, unix.AT_REMOVEDIR)
	if err != unix.ENOTEMPTY && err != unix.EEXIST || depth > maxDepth {
		return err
	}
	fd, err := openBeneath(dir, name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	names, err := readNames(fd)
	for _, n := range names {
		if err == nil {
			err = removeDirs(fd, n, depth+1)
		}
	}
	if err == unix.ENOTDIR {
		return unix.ENOTEMPTY // a command's file
	}
	if err != nil {
		return err
	}
	return unix.Unlinkat(dir, name, unix.AT_REMOVEDIR)
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

// openParent opens the directory of the entry, and creates it if create is set.
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
		if err == unix.ENOENT {
			if err = unix.Mkdirat(dir, seg, 0o755); err == nil || err == unix.EEXIST {
				a.touched = append(a.touched, at)
				next, err = openBeneath(dir, seg, flags, 0)
			}
		}
		if err != nil {
			if err == unix.ENOTDIR || err == unix.ELOOP {
				return dir, at, errInTheWay
			}
			unix.Close(dir)
			return -1, "", err
		}
		unix.Close(dir)
		dir = next
	}
	return dir, name, nil
}

// errInTheWay is returned with a directory and the path of a file in it that should be a
// directory.
var errInTheWay = errors.New("a file is in a directory's place")

// makeParent opens the directory of the entry, and creates it if necessary. It removes a file in
// the way or sets it aside, but fails if the entry has Own.
func (a *application) makeParent() (dir int, name string, err error) {
	for range maxDepth {
		a.as(func() { dir, name, err = a.openParent(true) })
		// Accept new directories at once, because they may be opaque. Otherwise a collection
		// would report an opaque directory as a command's change.
		for _, p := range a.touched {
			a.accept(p)
		}
		if err != errInTheWay {
			return dir, name, err
		}
		at := name
		switch {
		case a.entry.Own:
			err = unix.ENOTDIR
		case a.plain:
			// The caller has checked for changes: the file is known to the host, or the
			// entry is forced.
			a.as(func() { err = unix.Unlinkat(dir, path.Base(at), 0) })
		default:
			err = a.moveAside(dir, path.Dir(at), path.Base(at))
		}
		unix.Close(dir)
		if err != nil {
			return -1, "", err
		}
	}
	return -1, "", errDirty
}

// write creates the file under a private name and renames it in one step, so that no
// command sees a partial file.
func (a *application) write() error {
	dir, name, err := a.makeParent()
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	if len(a.round.aside) == 0 {
		a.round.names = 0 // reuse the names, because each used name leaves a whiteout
	}
	var tmp string
	a.as(func() { tmp, err = a.writeTemp(dir) })
	if err != nil {
		return err
	}
	if a.plain {
		err = a.replace(dir, tmp, name)
	} else {
		err = a.exchange(dir, tmp, name)
	}
	if err != nil {
		a.as(func() { _ = unix.Unlinkat(dir, tmp, 0) })
	}
	return err
}

func (a *application) replace(dir int, tmp, name string) error {
	rename := func() (err error) {
		a.as(func() { err = unix.Renameat(dir, tmp, dir, name) })
		return err
	}
	err := rename()
	if err == unix.EISDIR || err == unix.ENOTEMPTY || err == unix.EEXIST {
		if err = a.removeDir(dir, name, a.entry.Path); err == nil {
			err = rename()
		}
	}
	return err
}

// exchange swaps the new file with the old one while commands run, and sets the old one
// aside.
func (a *application) exchange(dir int, tmp, name string) error {
	p := a.entry.Path
	for range renameTries {
		a.round.drain()
		delete(a.round.written, p)
		delete(a.round.written, path.Join(path.Dir(p), tmp)) // the agent wrote it, not a command
		was, upper := a.view.lookUpper(p)
		if a.round.inUse(p) {
			return errDirty
		}
		st, err := a.lookAt(dir, name)
		switch {
		case err == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR:
			if err := a.removeDir(dir, name, p); err != nil {
				return err
			}
			a.accept(p)
			continue
		case err == nil:
			a.view.hooks.swap(p)
			a.as(func() { err = unix.Renameat2(dir, tmp, dir, name, unix.RENAME_EXCHANGE) })
			if err == nil {
				a.view.hooks.swapped(p)
				a.round.drain()
				a.doubt = a.round.written[p]
				return a.round.putAside(setAside{
					entry: a.index, parent: path.Dir(p), name: name, tmp: tmp, was: was, upper: upper, placed: true, doubt: a.doubt,
				}, dir)
			}
		case err == unix.ENOENT:
			a.view.hooks.swap(p)
			a.as(func() { err = unix.Renameat2(dir, tmp, dir, name, unix.RENAME_NOREPLACE) })
			if err == nil {
				a.view.hooks.swapped(p)
				return nil
			}
		}
		if err != unix.ENOENT && err != unix.EEXIST {
			return err
		}
	}
	return errDirty
}

// tempNames limits how many names are tried, because a command may take them on purpose.
const tempNames = 100

// tempName returns a private name that this round has not used yet.
func (a *application) tempName() string {
	a.round.names++
	return ".satchel-apply-" + strconv.Itoa(a.round.names-1)
}

func (a *application) writeTemp(dir int) (name string, err error) {
	for range tempNames {
		name = a.tempName()
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
