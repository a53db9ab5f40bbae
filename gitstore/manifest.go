package gitstore

import (
	"context"
	"slices"

	"satchel/internal/space"
)

// manifest lists the files of a head as a checkout has them and the git view's
// index says it. It is never changed once made.
type manifest struct {
	head  hash
	tree  hash
	files []manifestFile // sorted by path, byte by byte
}

// manifestFile is one file. mtime, in seconds, is the same in every checkout
// that has this version of the file, and differs between two versions of it,
// so that git inside a sandbox sees from it alone that a file is unchanged.
type manifestFile struct {
	path  string
	mode  uint32
	hash  hash
	size  uint32
	mtime uint32
}

// fits tells whether a path may be made on this machine's disk. A commit's
// paths were checked when they were written; imported ones were not.
func (r *repo) fits(path string, e treeEntry) (bool, error) {
	p, err := space.ParsePath(path)
	if err != nil {
		return false, nil
	}
	if !e.isLink() {
		return true, nil
	}
	if err = r.checkLink(p, e.hash); isFault(err) {
		return false, nil
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
	if last != nil && last.head == st.id {
		return last, nil
	}
	c, err := r.rawCommit(st.id)
	if err != nil {
		return nil, err
	}
	now := uint32(max(c.time.Unix(), 1))
	var from hash
	if last != nil {
		from = last.tree
	}
	var cs []treeChange
	if err := r.diffTrees(ctx, from, st.tree, &cs); err != nil {
		return nil, err
	}
	changed := make(map[string]treeEntry, len(cs))
	for _, c := range cs {
		ok, err := r.fits(c.path, c.new)
		if err != nil {
			return nil, err
		}
		if !ok {
			r.logger().Warn("A path of the history is left out of checkouts.", "path", c.path)
			c.new = treeEntry{}
		}
		changed[c.path] = c.new
	}
	m := &manifest{head: st.id, tree: st.tree}
	stamp := map[string]uint32{}
	if last != nil {
		m.files = make([]manifestFile, 0, len(last.files)+len(cs))
		for _, f := range last.files {
			if _, ok := changed[f.path]; ok {
				stamp[f.path] = f.mtime
				continue
			}
			m.files = append(m.files, f)
		}
	}
	for path, e := range changed {
		if e.mode == 0 {
			continue
		}
		f := manifestFile{path: path, mode: e.mode, hash: e.hash, mtime: max(now, stamp[path]+1)}
		if e.isFile() {
			n, err := r.db.size(e.hash)
			if err != nil {
				return nil, err
			}
			f.size = uint32(n)
			f.mode = treeMode(e.fileMode())
		}
		m.files = append(m.files, f)
	}
	slices.SortFunc(m.files, func(a, b manifestFile) int { return compareStrings(a.path, b.path) })
	d.mu.Lock()
	d.manifest = m
	d.mu.Unlock()
	return m, nil
}
