package gitstore

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"satchel/gitstore/commits"
	"satchel/gitstore/packfile"
	"satchel/gitstore/trees"
	"satchel/internal/space"
)

// snapshot is a checkout: a directory with the files of one head, written from objects.
// dir has mode 0700. All users may write to the directory dir/tree, so that the unprivileged
// user inside a sandbox can change files in an overlay over it. Only the code in this file
// writes to dir/tree itself, and never while the snapshot has users.
type snapshot struct {
	dir    string
	at     *manifest      // a reader holds seeds.mu or seeds.turn, a writer holds both
	absent []manifestFile // files that could not be read; guarded by the same locks as the field at
	users  int            // guarded by seeds.mu
}

func (sn *snapshot) tree() string { return filepath.Join(sn.dir, "tree") }

// damaged lists the files and directories that the checkout lacks because they
// could not be read.
func (sn *snapshot) damaged() []space.Path {
	var list []space.Path
	for _, dir := range sn.at.unread {
		list = append(list, space.Path(dir))
	}
	for _, f := range sn.absent {
		list = append(list, space.Path(f.path))
	}
	slices.Sort(list)
	return list
}

// complete reports whether the checkout contains every file of a manifest that can be
// read now. A file that the checkout lacks may have been repaired since.
func (sn *snapshot) complete(r *repo, m *manifest) bool {
	return sn.at.head == m.head && slices.Equal(sn.at.unread, m.unread) &&
		!slices.ContainsFunc(sn.absent, func(f manifestFile) bool { return r.db.Sound(f.hash) })
}

// create writes a new checkout.
func (sn *snapshot) create(ctx context.Context, r *repo, m *manifest) error {
	if err := packfile.MkdirMode(sn.dir, 0o700); err != nil {
		return err
	}
	if err := packfile.MkdirMode(sn.tree(), 0o777); err != nil {
		return err
	}
	w, err := newTreeWriter(r, sn.tree())
	if err != nil {
		return err
	}
	defer w.Close()
	if err := w.giveAway(w.dirs[0].Lchown, "."); err != nil {
		return err
	}
	absent, err := w.writeAll(ctx, m.files)
	if err != nil {
		return err
	}
	sn.at, sn.absent = m, absent
	return nil
}

// update moves the checkout to another head. After an error, the caller must drop the
// checkout.
func (sn *snapshot) update(ctx context.Context, r *repo, m *manifest) error {
	w, err := newTreeWriter(r, sn.tree())
	if err != nil {
		return err
	}
	defer w.Close()
	lacking := map[string]bool{}
	for _, f := range sn.absent {
		lacking[f.path] = true
	}
	var remove []string
	var write []manifestFile
	old, cur := sn.at.files, m.files
	for i, j := 0, 0; i < len(old) || j < len(cur); {
		switch {
		case j == len(cur) || i < len(old) && old[i].path < cur[j].path:
			remove = append(remove, old[i].path)
			i++
		case i == len(old) || cur[j].path < old[i].path:
			write = append(write, cur[j])
			j++
		default:
			if old[i] != cur[j] || lacking[cur[j].path] {
				remove = append(remove, old[i].path)
				write = append(write, cur[j])
			}
			i, j = i+1, j+1
		}
	}
	// Remove first: a link or a file may be in the way of a new directory.
	if err := w.remove(remove); err != nil {
		return err
	}
	absent, err := w.writeAll(ctx, write)
	if err != nil {
		return err
	}
	r.seeds.mu.Lock()
	sn.at, sn.absent = m, absent
	r.seeds.mu.Unlock()
	return nil
}

// treeWriter creates files in a checkout. It opens directories one name at a time, and
// creates each file in its open directory, by the last name of the path. So it never
// follows a link.
type treeWriter struct {
	r    *repo
	path []string   // the names of the open directories
	dirs []*os.Root // dirs[0] is the tree's root; dirs[i+1] belongs to path[i]
}

func newTreeWriter(r *repo, dir string) (*treeWriter, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &treeWriter{r: r, dirs: []*os.Root{root}}, nil
}

func (w *treeWriter) Close() {
	for _, d := range w.dirs {
		d.Close()
	}
}

// enter opens a directory and creates the missing parts of its path.
func (w *treeWriter) enter(dir string) (*os.Root, error) {
	var want []string
	if dir != "" {
		want = strings.Split(dir, "/")
	}
	same := 0
	for same < len(want) && same < len(w.path) && want[same] == w.path[same] {
		same++
	}
	for _, d := range w.dirs[same+1:] {
		d.Close()
	}
	w.dirs, w.path = w.dirs[:same+1], w.path[:same]
	for _, name := range want[same:] {
		parent := w.dirs[len(w.dirs)-1]
		err := parent.Mkdir(name, 0o777)
		made := err == nil
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		if !made {
			st, err := parent.Lstat(name)
			if err != nil {
				return nil, err
			}
			if !st.IsDir() {
				return nil, &fs.PathError{Op: "enter", Path: dir, Err: errors.New("not a directory")}
			}
		}
		d, err := parent.OpenRoot(name)
		if err != nil {
			return nil, err
		}
		w.dirs, w.path = append(w.dirs, d), append(w.path, name)
		if made {
			if err := d.Chmod(".", 0o777); err != nil { // regardless of the umask
				return nil, err
			}
			if err := w.giveAway(d.Lchown, "."); err != nil {
				return nil, err
			}
		}
	}
	return w.dirs[len(w.dirs)-1], nil
}

// writeAll creates files, which must not exist. It leaves out files that cannot be
// read, and returns them.
func (w *treeWriter) writeAll(ctx context.Context, files []manifestFile) (absent []manifestFile, err error) {
	for _, f := range files {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := w.write(f); packfile.Unreadable(err) {
			w.r.logger().Error("A damaged file is left out of a checkout.", "path", f.path, "error", err)
			absent = append(absent, f)
		} else if err != nil {
			return nil, err
		}
	}
	return absent, nil
}

// write creates one file, which must not exist.
func (w *treeWriter) write(f manifestFile) error {
	dir, name := path.Split(f.path)
	if f.mode == packfile.ModeGitlink { // git checks out a submodule as an empty directory
		_, err := w.enter(f.path)
		return err
	}
	data, err := w.r.db.Blob(f.hash)
	if err != nil {
		return err
	}
	d, err := w.enter(strings.TrimSuffix(dir, "/"))
	if err != nil {
		return err
	}
	if f.mode == packfile.ModeSymlink {
		if err := d.Symlink(string(data), name); err != nil {
			return err
		}
		return w.giveAway(d.Lchown, name)
	}
	perm := fs.FileMode(0o666)
	if f.mode == packfile.ModeExec {
		perm = 0o777
	}
	file, err := d.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err == nil {
		err = file.Chmod(perm)
	}
	if err == nil {
		err = w.giveAway(func(_ string, uid, gid int) error { return file.Chown(uid, gid) }, name)
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	t := time.Unix(int64(f.mtime), 0)
	return d.Chtimes(name, t, t)
}

// giveAway makes the user of commands in the sandbox the owner of a file, so that
// commands may change its mode and times. Only root can do this.
func (w *treeWriter) giveAway(chown func(name string, uid, gid int) error, name string) error {
	uid := w.r.s.o.CheckoutOwner
	if uid == 0 || os.Geteuid() != 0 {
		return nil
	}
	return chown(name, uid, uid)
}

// remove deletes files, and the directories that become empty.
func (w *treeWriter) remove(paths []string) error {
	root := w.dirs[0]
	dirs := map[string]bool{}
	for _, p := range paths {
		if err := root.Remove(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for d := path.Dir(p); d != "."; d = path.Dir(d) {
			dirs[d] = true
		}
	}
	deepest := make([]string, 0, len(dirs))
	for d := range dirs {
		deepest = append(deepest, d)
	}
	slices.SortFunc(deepest, func(a, b string) int { return strings.Count(b, "/") - strings.Count(a, "/") })
	for _, d := range deepest {
		root.Remove(d) // fails if the directory is not empty
	}
	return nil
}

// manifest lists the files of a head, as they are in checkouts and in the index of the git
// view. A manifest does not change.
type manifest struct {
	head   packfile.Hash
	tree   packfile.Hash
	files  []manifestFile // sorted by path, byte by byte
	unread []string       // directories that cannot be read; their files are not listed
}

// manifestFile is one file. mtime is in seconds. Every checkout that contains this version
// of the file has the same mtime, and other versions have another. So git inside a sandbox
// needs only mtime to see that a file is unchanged.
type manifestFile struct {
	path  string
	mode  uint32
	hash  packfile.Hash
	size  uint32
	mtime uint32
}

// fits reports whether a path may be created on this machine's disk. Commit checked its
// own paths, but imported paths are unchecked.
func (r *repo) fits(path string, e packfile.TreeEntry) (bool, error) {
	p, err := space.ParsePath(path)
	if err != nil {
		return false, nil
	}
	if !e.IsLink() {
		return true, nil
	}
	switch err = r.checkLink(p, e.Hash); {
	case isFault(err):
		return false, nil
	case packfile.Unreadable(err):
		return true, nil // the checkout leaves the link out
	}
	return err == nil, err
}

// currentManifest returns head's manifest. It derives the manifest from the last one, and
// reads only the trees that changed. The caller holds r.seeds.turn.
func (r *repo) currentManifest(ctx context.Context) (*manifest, error) {
	d := &r.seeds
	st := r.head.Load()
	d.mu.Lock()
	last := d.manifest
	d.mu.Unlock()
	if last != nil && last.head == st.id && len(last.unread) == 0 {
		return last, nil
	}
	c, err := commits.Get(r.db, st.id)
	if err != nil {
		return nil, err
	}
	now := uint32(max(c.Time.Unix(), 1))
	m := &manifest{head: st.id, tree: st.tree}
	var from packfile.Hash
	if last != nil && len(last.unread) == 0 {
		from = last.tree
	}
	cs, err := r.readableChanges(ctx, from, m)
	if packfile.Unreadable(err) && !from.IsZero() { // the last manifest's tree has been damaged since
		from = packfile.Hash{}
		cs, err = r.readableChanges(ctx, from, m)
	}
	if err != nil {
		return nil, err
	}
	changed := make(map[string]packfile.TreeEntry, len(cs))
	for _, c := range cs {
		ok, err := r.fits(c.Path, c.New)
		if err != nil {
			return nil, err
		}
		if !ok {
			r.logger().Warn("A path of the history is left out of checkouts.", "path", c.Path)
			c.New = packfile.TreeEntry{}
		}
		changed[c.Path] = c.New
	}
	was := map[string]manifestFile{}
	if last != nil {
		m.files = make([]manifestFile, 0, len(last.files)+len(cs))
		for _, f := range last.files {
			if _, ok := changed[f.path]; ok || from.IsZero() {
				was[f.path] = f
				continue
			}
			m.files = append(m.files, f)
		}
	}
	for path, e := range changed {
		if e.Mode == 0 {
			continue
		}
		old := was[path]
		f := manifestFile{path: path, mode: e.Mode, hash: e.Hash, mtime: max(now, old.mtime+1)}
		if e.IsFile() {
			n, err := r.db.SizeOf(e.Hash)
			if err != nil {
				return nil, err
			}
			f.size = uint32(n)
			f.mode = packfile.TreeMode(e.FileMode())
		}
		if old.hash == f.hash && old.mode == f.mode {
			f = old // the same version, which keeps its mtime
		}
		m.files = append(m.files, f)
	}
	slices.SortFunc(m.files, func(a, b manifestFile) int { return packfile.CompareStrings(a.path, b.path) })
	d.mu.Lock()
	d.manifest = m
	d.mu.Unlock()
	return m, nil
}

// readableChanges lists the differences between the tree from and the manifest's tree. A
// directory of the manifest's tree that cannot be read counts as empty, and readableChanges
// adds it to unread.
func (r *repo) readableChanges(ctx context.Context, from packfile.Hash, m *manifest) ([]trees.Change, error) {
	m.unread = nil
	b := r.trees().Budget()
	b.Unread = &m.unread
	var cs []trees.Change
	err := r.trees().DiffWithin(ctx, b, from, m.tree, &cs)
	return cs, err
}
