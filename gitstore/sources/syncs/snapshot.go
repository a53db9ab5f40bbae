package syncs

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"satchel/internal/space"
)

// The directories of a snapshot that belong to the sources. A snapshot is a space with copies of
// all sources (see UpdateSnapshot). Other files in the space, such as a README that people add,
// stay.
const (
	snapshotDocs  = "docs"
	snapshotVideo = "youtube"
)

// snapshotDir returns the directory of a source in a snapshot.
func snapshotDir(s space.Source) string {
	if s.Kind == snapshotVideo {
		return snapshotVideo + "/" + s.ID
	}
	return snapshotDocs + "/" + s.ID
}

// snapshotChange is a file that differs between a snapshot and its source.
type snapshotChange struct {
	path space.Path
	had  space.Entry // the file in the snapshot; zero if the snapshot does not have the file
	from space.SpaceID
	blob space.BlobID // empty to delete the file
}

// UpdateSnapshot copies the files of all synced sources into the space id, as docs/SOURCE/… and
// youtube/SOURCE/…. Sources that only named people can read are included if restricted is set.
// The message of the commit describes the changes (see snapshotMessage). refused counts the files
// that the space refuses, such as those with secrets.
func (m *Manager) UpdateSnapshot(ctx context.Context, id space.SpaceID, restricted bool) (refused int, err error) {
	head, err := m.o.Store.Head(ctx, id)
	if err != nil {
		return 0, err
	}
	entries, err := m.o.Store.Files(ctx, id, head, "")
	if err != nil {
		return 0, err
	}
	have := map[space.Path]space.Entry{}
	for _, e := range entries {
		if top, _, ok := strings.Cut(string(e.Path), "/"); ok && (top == snapshotDocs || top == snapshotVideo) {
			have[e.Path] = e
		}
	}
	var changes []snapshotChange
	for _, s := range m.o.Sources.All() {
		if !s.Upstream() || s.Commit == "" || !s.Everybody && !restricted {
			continue
		}
		files, err := m.o.Store.Files(ctx, s.Space, s.Commit, "")
		if err != nil {
			return 0, err
		}
		for _, f := range files {
			p, err := space.ParsePath(snapshotDir(s) + "/" + string(f.Path))
			if err != nil || f.Mode == space.Symlink {
				continue
			}
			had := have[p]
			delete(have, p)
			if had.Blob != f.Blob || had.Mode != space.Regular {
				changes = append(changes, snapshotChange{path: p, had: had, from: s.Space, blob: f.Blob})
			}
		}
	}
	for _, e := range have {
		changes = append(changes, snapshotChange{path: e.Path, had: e})
	}
	return m.commitSnapshot(ctx, id, changes)
}

// commitSnapshot commits the changes, and begins with the deletions, because a directory may
// replace a file.
func (m *Manager) commitSnapshot(ctx context.Context, id space.SpaceID, changes []snapshotChange) (refused int, err error) {
	slices.SortFunc(changes, func(a, b snapshotChange) int {
		if (a.blob == "") != (b.blob == "") {
			if a.blob == "" {
				return -1
			}
			return 1
		}
		return strings.Compare(string(a.path), string(b.path))
	})
	var out committed
	b := batch{m: m, id: id, meta: space.Meta{Author: space.Server(), Message: m.snapshotMessage(changes), Tool: "sync"}, out: &out}
	for _, c := range changes {
		change := space.Change{Path: string(c.path), Base: c.had.Blob, BaseMode: c.had.Mode}
		if c.blob == "" {
			change.Op = space.Delete
		} else {
			if change.Content, err = m.o.Store.ReadBlob(ctx, c.from, c.blob); err != nil {
				return out.Refused, err
			}
		}
		if err := b.add(ctx, change); err != nil {
			return out.Refused, err
		}
	}
	return out.Refused, b.flush(ctx)
}

// maxMessage limits the sources that the message of a snapshot describes.
const maxMessage = 50

// snapshotMessage says what changed in each source, and which version of upstream it has now. Of
// many sources, it describes the first maxMessage.
func (m *Manager) snapshotMessage(changes []snapshotChange) string {
	counts := map[string]*space.SyncCounts{}
	for _, c := range changes {
		parts := strings.SplitN(string(c.path), "/", 3)
		n := counts[parts[1]]
		if n == nil {
			n = &space.SyncCounts{}
			counts[parts[1]] = n
		}
		switch {
		case c.blob == "":
			n.Deleted++
		case c.had.Blob == "":
			n.Added++
		default:
			n.Changed++
		}
	}
	var ids []string
	for id := range counts {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	if len(ids) == 1 {
		row := m.rowOf(ids[0])
		return message(ids[0], addressOf(row), "", row.Version, *counts[ids[0]])
	}
	text := fmt.Sprintf("Sync %d sources", len(ids))
	for _, id := range ids[:min(len(ids), maxMessage)] {
		row := m.rowOf(id)
		text += "\n\n" + message(id, addressOf(row), "", row.Version, *counts[id])
	}
	return text
}

// rowOf returns the row of a sync, or an empty row for a source that was removed.
func (m *Manager) rowOf(id string) syncRow {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.entries[id]; e != nil {
		return e.row
	}
	return syncRow{}
}
