package gitstore

import (
	"context"
	"slices"

	"satchel/gitstore/commits"
	"satchel/gitstore/packfile"
	"satchel/gitstore/trees"
	"satchel/internal/space"
)

// manifest lists the files of a head as a checkout has them and the git view's
// index says it. It is never changed once made.
type manifest struct {
	head   packfile.Hash
	tree   packfile.Hash
	files  []manifestFile // sorted by path, byte by byte
	unread []string       // directories that cannot be read, whose files are not listed
}

// manifestFile is one file. mtime, in seconds, is the same in every checkout
// that has this version of the file, and differs between two versions of it,
// so that git inside a sandbox sees from it alone that a file is unchanged.
type manifestFile struct {
	path  string
	mode  uint32
	hash  packfile.Hash
	size  uint32
	mtime uint32
}

// fits reports whether a path may be made on this machine's disk. A commit's
// paths were checked when they were written; imported ones were not.
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
		return true, nil // the checkout leaves it out
	}
	return err == nil, err
}

// currentManifest returns head's manifest, made from the last one at the cost
// of what changed. The caller has the seeds' turn.
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
	if packfile.Unreadable(err) && !from.IsZero() { // the last manifest's tree was damaged since
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
			f = old // the same version
		}
		m.files = append(m.files, f)
	}
	slices.SortFunc(m.files, func(a, b manifestFile) int { return packfile.CompareStrings(a.path, b.path) })
	d.mu.Lock()
	d.manifest = m
	d.mu.Unlock()
	return m, nil
}

// readableChanges lists the differences between a tree and the manifest's. A
// directory of the manifest that cannot be read counts as empty, and readableChanges
// adds it to unread.
func (r *repo) readableChanges(ctx context.Context, from packfile.Hash, m *manifest) ([]trees.Change, error) {
	m.unread = nil
	b := r.trees().Budget()
	b.Unread = &m.unread
	var cs []trees.Change
	err := r.trees().DiffWithin(ctx, b, from, m.tree, &cs)
	return cs, err
}
