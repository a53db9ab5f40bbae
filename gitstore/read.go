package gitstore

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// Head returns the newest commit.
func (s *Store) Head(ctx context.Context, id space.SpaceID) (space.CommitID, error) {
	r, release, err := s.acquire(ctx, id)
	if err != nil {
		return "", err
	}
	defer release()
	return commitID(r.head.Load().id), nil
}

// Resolve turns what a person typed into a commit: a full id, at least 7
// digits that only one commit begins with, or "" and "HEAD" for the newest.
// Anything else is a fault.Invalid, an unknown commit a fault.NotFound.
func (s *Store) Resolve(ctx context.Context, id space.SpaceID, at string) (space.CommitID, error) {
	r, release, err := s.acquire(ctx, id)
	if err != nil {
		return "", err
	}
	defer release()
	st, err := r.resolve(at)
	if err != nil {
		return "", err
	}
	return commitID(st.id), nil
}

func (r *repo) resolve(at string) (*headState, error) {
	if at == "" || at == "HEAD" {
		return r.head.Load(), nil
	}
	if len(at) < 7 || len(at) > 40 || strings.Trim(at, "0123456789abcdef") != "" {
		return nil, fault.New(fault.Invalid, "%q is not a commit: give its id, or at least 7 digits of it.", cut(at, 60))
	}
	none := fault.New(fault.NotFound, "There is no commit %s in this space.", at)
	var found []hash
	if len(at) == 40 {
		h, err := hashFrom(at)
		if err != nil {
			return nil, fault.Wrap(err, fault.Invalid, "%q is not a commit id.", at)
		}
		found = []hash{h}
	} else {
		found = slices.DeleteFunc(r.db.prefixed(at, 64), func(h hash) bool { return !r.isCommit(h) })
	}
	switch len(found) {
	case 0:
		return nil, none
	case 1:
	default:
		return nil, fault.New(fault.Invalid, "More than one commit begins with %s. Give more digits.", at)
	}
	o, _, err := r.db.readStart(found[0], maxCommitStart)
	if errors.Is(err, errNoObject) || err == nil && o.kind != plumbing.CommitObject {
		return nil, none
	}
	if err != nil {
		return nil, r.internalf(err, "resolve")
	}
	return r.state(found[0])
}

// at opens a space at a commit.
func (s *Store) at(ctx context.Context, id space.SpaceID, at space.CommitID) (*repo, *headState, func(), error) {
	r, release, err := s.acquire(ctx, id)
	if err != nil {
		return nil, nil, nil, err
	}
	st, err := r.resolve(string(at))
	if err != nil {
		release()
		return nil, nil, nil, err
	}
	return r, st, release, nil
}

// Blob returns the blob and the mode of a path at a commit ("" for head); ok is
// false where there is no such file.
func (s *Store) Blob(ctx context.Context, id space.SpaceID, at space.CommitID, p space.Path) (b space.BlobID, m space.Mode, ok bool, err error) {
	r, st, release, err := s.at(ctx, id, at)
	if err != nil {
		return "", 0, false, err
	}
	defer release()
	l, err := r.lookup(st.tree, string(p))
	if err != nil || !l.isFile() {
		return "", 0, false, err
	}
	return blobID(l.hash), l.fileMode(), true, nil
}

// Lookup returns the file or the directory at a path of a commit ("" for head). The
// empty path is the root. A path with neither is a fault.NotFound.
func (s *Store) Lookup(ctx context.Context, id space.SpaceID, at space.CommitID, p space.Path) (space.Entry, error) {
	r, st, release, err := s.at(ctx, id, at)
	if err != nil {
		return space.Entry{}, err
	}
	defer release()
	l, err := r.lookup(st.tree, string(p))
	if err != nil {
		return space.Entry{}, r.internalf(err, "look up a path")
	}
	switch {
	case l.isDir():
		return space.Entry{Path: p, Dir: true}, nil
	case !l.isFile():
		return space.Entry{}, notFoundPath(p, commitID(st.id))
	}
	e, err := r.file(p, l.treeEntry)
	if err != nil {
		return space.Entry{}, r.internalf(err, "look up a path")
	}
	return e, nil
}

// file returns the entry of a file.
func (r *repo) file(p space.Path, t treeEntry) (space.Entry, error) {
	n, err := r.db.size(t.hash)
	if unreadable(err) {
		n, err = -1, nil
	}
	return space.Entry{Path: p, Mode: t.fileMode(), Blob: blobID(t.hash), Size: n}, err
}

// Open returns a file with its content at a commit ("" for head). A symlink's
// content is its target: links are not followed. The content must not be
// changed. A path that is no file there is a fault.NotFound.
func (s *Store) Open(ctx context.Context, id space.SpaceID, at space.CommitID, p space.Path) (space.Entry, []byte, error) {
	r, st, release, err := s.at(ctx, id, at)
	if err != nil {
		return space.Entry{}, nil, err
	}
	defer release()
	l, err := r.lookup(st.tree, string(p))
	if err != nil {
		return space.Entry{}, nil, r.internalf(err, "open")
	}
	if !l.isFile() {
		return space.Entry{}, nil, notFoundPath(p, commitID(st.id))
	}
	data, err := r.db.blob(l.hash)
	if err != nil {
		return space.Entry{}, nil, r.internalf(damagedAt(string(p), err), "open")
	}
	return space.Entry{Path: p, Mode: l.fileMode(), Blob: blobID(l.hash), Size: int64(len(data))}, data, nil
}

// ReadBlob returns a blob's content, which must not be changed. A blob that the
// space does not have is a fault.NotFound; a fault.Damaged where head has a file
// of it.
func (s *Store) ReadBlob(ctx context.Context, id space.SpaceID, b space.BlobID) ([]byte, error) {
	r, release, err := s.acquire(ctx, id)
	if err != nil {
		return nil, err
	}
	defer release()
	h, err := hashFrom(string(b))
	if err != nil || !b.Valid() {
		return nil, fault.New(fault.Invalid, "%q is not a blob id.", cut(string(b), 60))
	}
	o, err := r.db.read(h)
	if errors.Is(err, errNoObject) && r.headHas(ctx, h) {
		return nil, r.internalf(damagedAt("blob "+string(b), err), "read blob")
	}
	if errors.Is(err, errNoObject) || err == nil && o.kind != plumbing.BlobObject {
		return nil, fault.New(fault.NotFound, "There is no blob %s in this space.", b)
	}
	if err != nil {
		return nil, r.internalf(damagedAt("blob "+string(b), err), "read blob")
	}
	return o.data, nil
}

// headHas tells whether a file of head is said to have this content.
func (r *repo) headHas(ctx context.Context, blob hash) bool {
	var unread []string
	b := r.budget()
	b.unread = &unread
	found := errors.New("found")
	err := r.walkDepth(ctx, r.head.Load().tree, "", func(_ string, e treeEntry) error {
		if e.isFile() && e.hash == blob {
			return found
		}
		return nil
	}, b, 0)
	return errors.Is(err, found)
}

// Children returns what is in a directory at a commit ("" for head, "" for the
// space's root), in git's order of names. Submodules are left
// out. A path that is no directory there is a fault.NotFound.
func (s *Store) Children(ctx context.Context, id space.SpaceID, at space.CommitID, dir space.Path) ([]space.Entry, error) {
	r, st, release, err := s.at(ctx, id, at)
	if err != nil {
		return nil, err
	}
	defer release()
	l, err := r.lookup(st.tree, string(dir))
	if err != nil {
		return nil, r.internalf(err, "list a directory")
	}
	if !l.isDir() {
		return nil, fault.New(fault.NotFound, "There is no directory %q at commit %s.", string(dir), commitID(st.id).Short())
	}
	es, err := r.db.tree(l.hash)
	if err != nil {
		return nil, r.internalf(damagedIn(string(dir), err), "list a directory")
	}
	prefix := ""
	if dir != "" {
		prefix = string(dir) + "/"
	}
	out := make([]space.Entry, 0, len(es))
	for _, e := range es {
		p := space.Path(prefix + e.name)
		switch {
		case e.isDir():
			out = append(out, space.Entry{Path: p, Dir: true})
		case e.isFile():
			f, err := r.file(p, e)
			if err != nil {
				return nil, r.internalf(err, "list a directory")
			}
			out = append(out, f)
		}
	}
	return out, nil
}

// Files implements space.Seeder. A zero at is head. If directories cannot be read,
// it returns the other files and a fault.Damaged that names the first directory.
func (s *Store) Files(ctx context.Context, id space.SpaceID, at space.CommitID, under space.Path) ([]space.Entry, error) {
	r, st, release, err := s.at(ctx, id, at)
	if err != nil {
		return nil, err
	}
	defer release()
	l, err := r.lookup(st.tree, string(under))
	if err != nil {
		return nil, r.internalf(err, "files")
	}
	var out []space.Entry
	var unread []string
	add := func(path string, e treeEntry) error {
		if !e.isFile() {
			return nil
		}
		n, err := r.db.sizeOf(e.hash)
		out = append(out, space.Entry{Path: space.Path(path), Mode: e.fileMode(), Blob: blobID(e.hash), Size: n})
		return err
	}
	switch {
	case l.isFile():
		err = add(string(under), l.treeEntry)
	case l.isDir():
		prefix := ""
		if under != "" {
			prefix = string(under) + "/"
		}
		b := r.budget()
		b.unread = &unread
		err = r.walkDepth(ctx, l.hash, prefix, add, b, 0)
	}
	if err != nil {
		return nil, err
	}
	if len(unread) > 0 {
		return out, space.DamagedDirectory(space.Path(unread[0]), errDamaged)
	}
	return out, nil
}

// Diff implements space.Seeder. An empty from is the empty tree, an empty to is
// head. Submodules are left out.
func (s *Store) Diff(ctx context.Context, id space.SpaceID, from, to space.CommitID) ([]space.FileChange, error) {
	r, st, release, err := s.at(ctx, id, to)
	if err != nil {
		return nil, err
	}
	defer release()
	var tree hash
	if from != "" {
		f, err := r.resolve(string(from))
		if err != nil {
			return nil, err
		}
		tree = f.tree
	}
	return r.diff(ctx, tree, st.tree)
}

func (r *repo) diff(ctx context.Context, from, to hash) ([]space.FileChange, error) {
	var cs []treeChange
	if err := r.diffTrees(ctx, from, to, &cs); err != nil {
		return nil, err
	}
	return r.changes(cs)
}

// changes returns what differs as files, by path.
func (r *repo) changes(cs []treeChange) ([]space.FileChange, error) {
	out := make([]space.FileChange, 0, len(cs))
	for _, c := range cs {
		f := space.FileChange{Path: space.Path(c.path)}
		if c.old.isFile() {
			f.Status, f.Old, f.OldMode = space.Deleted, blobID(c.old.hash), c.old.fileMode()
		}
		if c.new.isFile() {
			var err error
			if f.Size, err = r.db.sizeOf(c.new.hash); err != nil {
				return nil, r.internalf(err, "diff")
			}
			f.New, f.NewMode = blobID(c.new.hash), c.new.fileMode()
			if f.Status = space.Added; f.Old != "" {
				f.Status = space.Modified
			}
		}
		if f.Status == 0 || f.Old == f.New && f.OldMode == f.NewMode {
			continue
		}
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b space.FileChange) int { return compareStrings(string(a.Path), string(b.Path)) })
	return out, nil
}
