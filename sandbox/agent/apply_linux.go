package agent

import (
	"errors"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"satchel/internal/space"
	"satchel/sandbox/protocol"
)

// errDirty stops an application that would overwrite an unreported change, or remove a file
// or directory that a command uses.
var errDirty = errors.New("the space has a change of its own there")

// apply writes files of a newer head into the space, and removes files that it no longer has. Each
// file changes atomically, as the commands' user. If no command runs, it replaces files directly.
// Otherwise it sets each replaced file aside until it is certain that no change is lost (see
// round).
func (v *spaceView) apply(entries []protocol.ApplyEntry) []protocol.ApplyResult {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.cut = nil
	release, quiet := v.pool.pause()
	defer release()
	r := &round{view: v, quiet: quiet, entries: entries, results: make([]protocol.ApplyResult, len(entries)), written: make(map[string]bool)}
	r.look()
	for i := range entries {
		n := &entries[i]
		if len(r.aside) >= asideAtOnce || i > 0 && n.Delete != entries[i-1].Delete {
			r.settle()
		}
		r.results[i].Path = n.Path
		r.note(i, r.applyOne(i, n))
	}
	r.settle()
	return r.results
}

// note puts an error into the result of an entry.
func (r *round) note(i int, err error) {
	switch res := &r.results[i]; {
	case err == errDirty:
		res.Dirty = true
	case err != nil:
		res.Problem = err.Error()
		res.Problem = res.Problem[:min(len(res.Problem), 400)]
	}
}

func (r *round) applyOne(i int, n *protocol.ApplyEntry) error {
	v := r.view
	if n.Own {
		if err := v.checkOwn(n.Path); err != nil {
			return err
		}
	} else if _, err := space.ParsePath(n.Path); err != nil {
		return err
	}
	a := &application{view: v, round: r, entry: n, index: i, plain: r.quiet || n.Force || n.Own}
	if !n.Force && !n.Own && r.inUse(n.Path) {
		return errDirty
	}
	v.watch.add(v.space, path.Dir(n.Path))
	var err error
	switch {
	case n.Delete:
		err = a.remove()
	default:
		err = a.write()
	}
	if n.Own {
		return err // the result is a change that the host must still collect
	}
	if err != nil || n.Delete {
		return err
	}
	for p := path.Dir(n.Path); p != "."; p = path.Dir(p) {
		// The overlay copied the directory up for the file, so this is not a command's change.
		if s, ok := v.lookUpper(p); ok && s.kind() == unix.S_IFDIR && !s.opaque {
			v.acked[p] = s
		}
	}
	if len(a.touched) > 0 {
		v.watch.add(v.space, path.Dir(n.Path)) // the directory may have been missing before
	}
	if a.doubt {
		v.unknow(n.Path)
	} else {
		v.acceptFile(n.Path, a.made)
	}
	return nil
}

// checkOwn checks the path of an entry with Own. The path may be invalid in a space, but it must be
// below the space's root and not in .git.
func (v *spaceView) checkOwn(p string) error {
	if len(p) > maxReportedPath || strings.IndexByte(p, 0) >= 0 || strings.Count(p, "/") >= maxDepth {
		return errors.New("no file system here can have the path")
	}
	for i, seg := range strings.Split(p, "/") {
		if seg == "" || seg == "." || seg == ".." || i == 0 && seg == gitName && v.git {
			return errors.New("the path is not of a file in the space")
		}
	}
	return nil
}

// lookUpper returns the stamp of a path in the upper layer; ok is false if the path is
// not there.
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
			opaque = v.isOpaque(d)
			unix.Close(d)
		}
	}
	return stampOf(&st, opaque), true
}

// dirty reports whether the space has a change at the path, or at a directory
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
			// The upper layer does not have the path, so the path is unchanged unless the
			// upper layer had it before. A missing whiteout is not a change, because a
			// whiteout vanishes with its directory.
			if known && !old.whiteout() {
				return true
			}
			if last {
				return false
			}
		case s.kind() == unix.S_IFDIR && !s.opaque:
			// A directory by itself is not a change.
		case !known || old != s:
			return true
		}
		if last {
			return false
		}
	}
}

// accept records p as known to the host if p is a directory or was removed. Anything else at p
// comes from a command, and a collection reports it.
func (v *spaceView) accept(p string) {
	if s, ok := v.lookUpper(p); ok && (s.kind() == unix.S_IFDIR || s.whiteout()) {
		v.acked[p] = s
	} else {
		delete(v.acked, p)
	}
}

// forgetUnder forgets the known paths under a removed directory.
func (v *spaceView) forgetUnder(dir string) {
	for q := range v.acked {
		if strings.HasPrefix(q, dir+"/") {
			delete(v.acked, q)
		}
	}
}

// nothingNew reports whether the host knows all deletions in a directory that seems empty.
func (v *spaceView) nothingNew(dir string) bool { return v.nothingNewBut(dir, nil) }

// nothingNewBut is like nothingNew, for a directory that contains the names in seen.
func (v *spaceView) nothingNewBut(dir string, seen []string) bool {
	fd, err := openBeneath(v.upper, dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return true // the upper layer has nothing of the directory
	}
	defer unix.Close(fd)
	names, err := readNames(fd)
	if err != nil {
		return false
	}
	for _, name := range names {
		if slices.Contains(seen, name) {
			continue
		}
		var st unix.Stat_t
		p := path.Join(dir, name)
		if unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil || v.acked[p] != stampOf(&st, false) && v.inLower(p) {
			return false
		}
	}
	return true
}

// acceptFile records a file that was just written as known to the host. made is the file's state
// before its rename, which changes only the ctime. If anything else differs now, a command has
// changed or deleted the file, and a collection reports this.
func (v *spaceView) acceptFile(p string, made unix.Stat_t) {
	s, ok := v.lookUpper(p)
	if ok && s.ino == made.Ino && s.size == made.Size && s.mtime == made.Mtim.Nano() && s.mode == made.Mode {
		v.acked[p] = s
	} else {
		v.unknow(p)
	}
}
