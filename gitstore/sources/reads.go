package sources

import (
	"context"
	"time"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// The methods below read the snapshots of a collection, which is the id of one publication.
// They do not check the reader: callers get the collection from Visible, which does.

func (m *Manager) byCollection(c space.SpaceID) (*entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.entries {
		if e.src.Collection == c {
			return e, nil
		}
	}
	return nil, fault.New(fault.NotFound, "The source is no longer published.")
}

// snapshot returns the snapshot of a collection at a commit.
func (m *Manager) snapshot(ctx context.Context, c space.SpaceID, at space.CommitID) (*snapshot, space.Source, error) {
	e, err := m.byCollection(c)
	if err != nil {
		return nil, space.Source{}, err
	}
	m.mu.Lock()
	s := e.src
	for _, sn := range []*snapshot{e.cur, e.prev} {
		if sn != nil && sn.commit == at {
			m.mu.Unlock()
			return sn, s, nil
		}
	}
	m.mu.Unlock()
	if at == "" {
		return nil, s, fault.New(fault.Unavailable, "The source %s has no snapshot yet. Try again in a moment.", s.ID)
	}
	// The snapshot is not in memory after a start, or if the index is more than one snapshot
	// behind.
	sn, err := m.read(ctx, s, at)
	if err != nil {
		return nil, s, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if e.cur == nil && e.src.Commit == at {
		e.cur = sn
	}
	return sn, s, nil
}

// Head returns the commit of the collection's snapshot, or "" if there is no snapshot yet.
func (m *Manager) Head(_ context.Context, c space.SpaceID) (space.CommitID, error) {
	e, err := m.byCollection(c)
	if err != nil {
		return "", err
	}
	return m.source(e).Commit, nil
}

// Newest returns the commit that the next snapshot of the collection will show: the head of
// its space, or the commit of the last complete sync. If making that snapshot failed, Newest
// returns the commit of the current snapshot.
func (m *Manager) Newest(ctx context.Context, c space.SpaceID) (space.CommitID, error) {
	e, err := m.byCollection(c)
	if err != nil {
		return "", err
	}
	m.mu.Lock()
	shown, failed := e.src.Commit, e.failed
	m.mu.Unlock()
	head, err := m.head(ctx, e)
	if err != nil || head != failed {
		return head, err
	}
	return shown, nil
}

// Lookup finds a file or a directory of a snapshot. The empty path is the root. If the path
// is neither a file nor a directory, the error is a fault.NotFound.
func (m *Manager) Lookup(ctx context.Context, c space.SpaceID, at space.CommitID, p space.Path) (space.Entry, error) {
	sn, _, err := m.snapshot(ctx, c, at)
	if err != nil {
		return space.Entry{}, err
	}
	if f, ok := sn.find(p); ok {
		return f, nil
	}
	if p == "" || len(sn.under(p)) > 0 {
		return space.Entry{Path: p, Dir: true}, nil
	}
	return space.Entry{}, noFile(p)
}

// Children lists one directory of a snapshot, sorted by path. The error is a fault.NotFound if
// dir is not a directory.
func (m *Manager) Children(ctx context.Context, c space.SpaceID, at space.CommitID, dir space.Path) ([]space.Entry, error) {
	sn, _, err := m.snapshot(ctx, c, at)
	if err != nil {
		return nil, err
	}
	list := sn.children(dir)
	if len(list) == 0 && dir != "" {
		return nil, noFile(dir)
	}
	return list, nil
}

// Files lists every file below a directory of a snapshot, sorted by path.
func (m *Manager) Files(ctx context.Context, c space.SpaceID, at space.CommitID, dir space.Path) ([]space.Entry, error) {
	sn, _, err := m.snapshot(ctx, c, at)
	if err != nil {
		return nil, err
	}
	return sn.under(dir), nil
}

// ReadBlob returns the content of a file of the current or the previous snapshot. The
// content must not be modified. ReadBlob does not find other files of the space.
func (m *Manager) ReadBlob(ctx context.Context, c space.SpaceID, b space.BlobID) ([]byte, error) {
	e, err := m.byCollection(c)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	s, cur, prev := e.src, e.cur, e.prev
	m.mu.Unlock()
	if cur == nil && s.Commit != "" {
		if cur, _, err = m.snapshot(ctx, c, s.Commit); err != nil {
			return nil, err
		}
	}
	if !(cur != nil && cur.blobs[b]) && !(prev != nil && prev.blobs[b]) {
		return nil, fault.New(fault.NotFound, "There is no blob %.60s in this source.", string(b))
	}
	return m.o.Store.ReadBlob(ctx, s.Space, b)
}

// Diff lists the files that differ between two snapshots, for the search index.
func (m *Manager) Diff(ctx context.Context, c space.SpaceID, from, to space.CommitID) ([]space.FileChange, error) {
	sn, _, err := m.snapshot(ctx, c, to)
	if err != nil {
		return nil, err
	}
	if from == "" {
		return diff(nil, sn), nil
	}
	old, _, err := m.snapshot(ctx, c, from)
	if err != nil {
		return nil, err
	}
	return diff(old, sn), nil
}

// Dates reports when files were last changed, for the search index.
func (m *Manager) Dates(ctx context.Context, c space.SpaceID, from, to space.CommitID) (map[space.Path]time.Time, error) {
	e, err := m.byCollection(c)
	if err != nil {
		return nil, err
	}
	s := m.source(e)
	all, err := m.o.Store.Dates(ctx, s.Space, from, to)
	if err != nil {
		return nil, err
	}
	out := make(map[space.Path]time.Time, len(all))
	for p, t := range all {
		if rel, ok := relative(s.Dir, p); ok {
			out[rel] = t
		}
	}
	return out, nil
}
