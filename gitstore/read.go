package gitstore

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"satchel/gitstore/commits"
	"satchel/gitstore/packfile"
	"satchel/gitstore/trees"
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
	return packfile.CommitID(r.head.Load().id), nil
}

// Resolve returns the commit that a person's input names: a full id, at least 7 digits
// with which only one commit begins, or "" or "HEAD" for the newest commit. Other input
// is a fault.Invalid, an unknown commit a fault.NotFound.
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
	return packfile.CommitID(st.id), nil
}

func (r *repo) resolve(at string) (*headState, error) {
	if at == "" || at == "HEAD" {
		return r.head.Load(), nil
	}
	if len(at) < 7 || len(at) > 40 || strings.Trim(at, "0123456789abcdef") != "" {
		return nil, fault.New(fault.Invalid, "%q is not a commit: give its id, or at least 7 digits of it.", commits.Cut(at, 60))
	}
	none := fault.New(fault.NotFound, "There is no commit %s in this space.", at)
	var found []packfile.Hash
	if len(at) == 40 {
		h, err := packfile.HashFrom(at)
		if err != nil {
			return nil, fault.Wrap(err, fault.Invalid, "%q is not a commit id.", at)
		}
		found = []packfile.Hash{h}
	} else {
		found = slices.DeleteFunc(r.db.Prefixed(at, 64), func(h packfile.Hash) bool { return !r.isCommit(h) })
	}
	switch len(found) {
	case 0:
		return nil, none
	case 1:
	default:
		return nil, fault.New(fault.Invalid, "More than one commit begins with %s. Give more digits.", at)
	}
	o, _, err := r.db.ReadStart(found[0], commits.MaxStart)
	if errors.Is(err, packfile.ErrNotFound) || err == nil && o.Kind != plumbing.CommitObject {
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
// false if there is no such file.
func (s *Store) Blob(ctx context.Context, id space.SpaceID, at space.CommitID, p space.Path) (b space.BlobID, m space.Mode, ok bool, err error) {
	r, st, release, err := s.at(ctx, id, at)
	if err != nil {
		return "", 0, false, err
	}
	defer release()
	l, err := r.trees().Lookup(st.tree, string(p))
	if err != nil || !l.HasFile() {
		return "", 0, false, err
	}
	return packfile.BlobID(l.Hash), l.FileMode(), true, nil
}

// Lookup returns the file or the directory at a path of a commit ("" for head). The
// empty path is the root. A path with neither is a fault.NotFound.
func (s *Store) Lookup(ctx context.Context, id space.SpaceID, at space.CommitID, p space.Path) (space.Entry, error) {
	r, st, release, err := s.at(ctx, id, at)
	if err != nil {
		return space.Entry{}, err
	}
	defer release()
	l, err := r.trees().Lookup(st.tree, string(p))
	if err != nil {
		return space.Entry{}, r.internalf(err, "look up a path")
	}
	switch {
	case l.HasDir():
		return space.Entry{Path: p, Dir: true}, nil
	case !l.HasFile():
		return space.Entry{}, notFoundPath(p, packfile.CommitID(st.id))
	}
	e, err := r.file(p, l.TreeEntry)
	if err != nil {
		return space.Entry{}, r.internalf(err, "look up a path")
	}
	return e, nil
}

// file returns the entry of a file. The size of an unreadable file is -1.
func (r *repo) file(p space.Path, t packfile.TreeEntry) (space.Entry, error) {
	n, err := r.db.Size(t.Hash)
	if packfile.Unreadable(err) {
		n, err = -1, nil
	}
	return space.Entry{Path: p, Mode: t.FileMode(), Blob: packfile.BlobID(t.Hash), Size: n}, err
}

// Open returns a file at a commit ("" for head) with its content. The content of a
// symlink is its target; Open does not follow links. The caller must not modify the
// content. A path without a file is a fault.NotFound.
func (s *Store) Open(ctx context.Context, id space.SpaceID, at space.CommitID, p space.Path) (space.Entry, []byte, error) {
	r, st, release, err := s.at(ctx, id, at)
	if err != nil {
		return space.Entry{}, nil, err
	}
	defer release()
	l, err := r.trees().Lookup(st.tree, string(p))
	if err != nil {
		return space.Entry{}, nil, r.internalf(err, "open")
	}
	if !l.HasFile() {
		return space.Entry{}, nil, notFoundPath(p, packfile.CommitID(st.id))
	}
	data, err := r.db.Blob(l.Hash)
	if err != nil {
		return space.Entry{}, nil, r.internalf(packfile.DamagedAt(string(p), err), "open")
	}
	return space.Entry{Path: p, Mode: l.FileMode(), Blob: packfile.BlobID(l.Hash), Size: int64(len(data))}, data, nil
}

// ReadBlob returns the content of a blob, which the caller must not modify. A blob that
// the space does not have is a fault.NotFound, or a fault.Damaged if a file of head has
// this blob.
func (s *Store) ReadBlob(ctx context.Context, id space.SpaceID, b space.BlobID) ([]byte, error) {
	r, release, err := s.acquire(ctx, id)
	if err != nil {
		return nil, err
	}
	defer release()
	h, err := packfile.HashFrom(string(b))
	if err != nil || !b.Valid() {
		return nil, fault.New(fault.Invalid, "%q is not a blob id.", commits.Cut(string(b), 60))
	}
	o, err := r.db.Read(h)
	if errors.Is(err, packfile.ErrNotFound) && r.headHas(ctx, h) {
		return nil, r.internalf(packfile.DamagedAt("blob "+string(b), err), "read blob")
	}
	if errors.Is(err, packfile.ErrNotFound) || err == nil && o.Kind != plumbing.BlobObject {
		return nil, fault.New(fault.NotFound, "There is no blob %s in this space.", b)
	}
	if err != nil {
		return nil, r.internalf(packfile.DamagedAt("blob "+string(b), err), "read blob")
	}
	return o.Data, nil
}

// headHas reports whether a file of head names this blob.
func (r *repo) headHas(ctx context.Context, blob packfile.Hash) bool {
	var unread []string
	b := r.trees().Budget()
	b.Unread = &unread
	found := errors.New("found")
	err := r.trees().WalkWithin(ctx, b, r.head.Load().tree, "", func(_ string, e packfile.TreeEntry) error {
		if e.IsFile() && e.Hash == blob {
			return found
		}
		return nil
	})
	return errors.Is(err, found)
}

// Children returns the entries of a directory at a commit ("" for head; an empty dir is
// the root), in git's order of names. It leaves out submodules. A path without a
// directory is a fault.NotFound.
func (s *Store) Children(ctx context.Context, id space.SpaceID, at space.CommitID, dir space.Path) ([]space.Entry, error) {
	r, st, release, err := s.at(ctx, id, at)
	if err != nil {
		return nil, err
	}
	defer release()
	l, err := r.trees().Lookup(st.tree, string(dir))
	if err != nil {
		return nil, r.internalf(err, "list a directory")
	}
	if !l.HasDir() {
		return nil, fault.New(fault.NotFound, "There is no directory %q at commit %s.", string(dir), packfile.CommitID(st.id).Short())
	}
	es, err := r.db.Tree(l.Hash)
	if err != nil {
		return nil, r.internalf(packfile.DamagedIn(string(dir), err), "list a directory")
	}
	prefix := ""
	if dir != "" {
		prefix = string(dir) + "/"
	}
	out := make([]space.Entry, 0, len(es))
	for _, e := range es {
		p := space.Path(prefix + e.Name)
		switch {
		case e.IsDir():
			out = append(out, space.Entry{Path: p, Dir: true})
		case e.IsFile():
			f, err := r.file(p, e)
			if err != nil {
				return nil, r.internalf(err, "list a directory")
			}
			out = append(out, f)
		}
	}
	return out, nil
}

// Files implements space.Checkouts. An empty at is head. If directories cannot be read,
// Files returns the other files and a fault.Damaged that names the first such
// directory.
func (s *Store) Files(ctx context.Context, id space.SpaceID, at space.CommitID, under space.Path) ([]space.Entry, error) {
	r, st, release, err := s.at(ctx, id, at)
	if err != nil {
		return nil, err
	}
	defer release()
	l, err := r.trees().Lookup(st.tree, string(under))
	if err != nil {
		return nil, r.internalf(err, "files")
	}
	var out []space.Entry
	var unread []string
	add := func(path string, e packfile.TreeEntry) error {
		if !e.IsFile() {
			return nil
		}
		n, err := r.db.SizeOf(e.Hash)
		out = append(out, space.Entry{Path: space.Path(path), Mode: e.FileMode(), Blob: packfile.BlobID(e.Hash), Size: n})
		return err
	}
	switch {
	case l.HasFile():
		err = add(string(under), l.TreeEntry)
	case l.HasDir():
		prefix := ""
		if under != "" {
			prefix = string(under) + "/"
		}
		b := r.trees().Budget()
		b.Unread = &unread
		err = r.trees().WalkWithin(ctx, b, l.Hash, prefix, add)
	}
	if err != nil {
		return nil, err
	}
	if len(unread) > 0 {
		return out, space.DamagedDirectory(space.Path(unread[0]), packfile.ErrDamaged)
	}
	return out, nil
}

// Diff implements space.Checkouts. An empty from is the empty tree, an empty to is
// head. Diff leaves out submodules.
func (s *Store) Diff(ctx context.Context, id space.SpaceID, from, to space.CommitID) ([]space.FileChange, error) {
	r, st, release, err := s.at(ctx, id, to)
	if err != nil {
		return nil, err
	}
	defer release()
	var tree packfile.Hash
	if from != "" {
		f, err := r.resolve(string(from))
		if err != nil {
			return nil, err
		}
		tree = f.tree
	}
	return r.diff(ctx, tree, st.tree)
}

func (r *repo) diff(ctx context.Context, from, to packfile.Hash) ([]space.FileChange, error) {
	var cs []trees.Change
	if err := r.trees().Diff(ctx, from, to, &cs); err != nil {
		return nil, err
	}
	return r.changes(cs)
}

// changes returns tree changes as file changes, sorted by path.
func (r *repo) changes(cs []trees.Change) ([]space.FileChange, error) {
	out := make([]space.FileChange, 0, len(cs))
	for _, c := range cs {
		f := space.FileChange{Path: space.Path(c.Path)}
		if c.Old.IsFile() {
			f.Status, f.Old, f.OldMode = space.Deleted, packfile.BlobID(c.Old.Hash), c.Old.FileMode()
		}
		if c.New.IsFile() {
			var err error
			if f.Size, err = r.db.SizeOf(c.New.Hash); err != nil {
				return nil, r.internalf(err, "diff")
			}
			f.New, f.NewMode = packfile.BlobID(c.New.Hash), c.New.FileMode()
			if f.Status = space.Added; f.Old != "" {
				f.Status = space.Modified
			}
		}
		if f.Status == 0 || f.Old == f.New && f.OldMode == f.NewMode {
			continue
		}
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b space.FileChange) int { return packfile.CompareStrings(string(a.Path), string(b.Path)) })
	return out, nil
}
