package syncs

import (
	"context"
	"path/filepath"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// Limits of one commit, whose contents are in memory. A larger sync makes several commits; readers
// see only the last one.
const (
	commitBytes   = 32 << 20
	commitEntries = 20_000
)

// committed is the result of the step commit.
type committed struct {
	Commit space.CommitID `json:"commit"`
	// Refused counts the files that the space refuses, such as those with secrets if the space has
	// a remote.
	Refused int `json:"refused"`
}

// commit makes the head of a space equal to a stage. It begins with the deletions, because a
// directory may replace a file.
func (m *Manager) commit(ctx context.Context, r *run, row syncRow, message string) (out committed, err error) {
	id, dir := space.SpaceID(row.SpaceID), m.stageDir(r.Run)
	files, err := readStage(dir)
	if err != nil {
		return out, err
	}
	if out.Commit, err = m.o.Store.Head(ctx, id); err != nil {
		return out, err
	}
	entries, err := m.o.Store.Files(ctx, id, out.Commit, "")
	if err != nil {
		return out, err
	}
	head := make(map[space.Path]space.Entry, len(entries))
	for _, e := range entries {
		head[e.Path] = e
	}
	for _, f := range files {
		if e, ok := head[f.Path]; ok && e.Mode != space.Symlink {
			delete(head, f.Path)
		}
	}
	b := batch{m: m, id: id, meta: space.Meta{Author: space.Server(), Message: message, Tool: "sync"}, out: &out}
	for _, e := range entries {
		if _, gone := head[e.Path]; gone {
			if err := b.add(ctx, space.Change{Path: string(e.Path), Op: space.Delete, Base: e.Blob, BaseMode: e.Mode}); err != nil {
				return out, err
			}
		}
	}
	head = make(map[space.Path]space.Entry, len(entries))
	for _, e := range entries {
		head[e.Path] = e
	}
	r.step("commit", 0, len(files))
	for i, f := range files {
		e, ok := head[f.Path]
		if ok && e.Blob == f.Blob && e.Mode == space.Regular {
			continue
		}
		c := space.Change{Path: string(f.Path), Base: e.Blob, BaseMode: e.Mode}
		if e.Mode == space.Symlink {
			c.Base, c.BaseMode = "", space.Regular // the batch has already deleted the link
		}
		var staged bool
		if c.Content, staged, err = content(dir, f); err == nil && !staged {
			c.Content, err = m.o.Store.ReadBlob(ctx, id, f.Blob)
			if fault.CodeOf(err) == fault.NotFound { // an earlier commit refused the file, or its content was purged
				out.Refused++
				continue
			}
		}
		if err == nil {
			err = b.add(ctx, c)
		}
		if err != nil {
			return out, err
		}
		r.step("commit", i+1, len(files))
	}
	return out, b.flush(ctx)
}

// batch collects changes, and commits them when they reach the limits of one commit.
type batch struct {
	m     *Manager
	id    space.SpaceID
	meta  space.Meta
	out   *committed
	cs    space.ChangeSet
	bytes int
}

func (b *batch) add(ctx context.Context, c space.Change) error {
	if len(b.cs.Changes) > 0 && (b.bytes+len(c.Content) > commitBytes || len(b.cs.Changes) >= commitEntries) {
		if err := b.flush(ctx); err != nil {
			return err
		}
	}
	b.cs.Changes, b.bytes = append(b.cs.Changes, c), b.bytes+len(c.Content)
	return nil
}

func (b *batch) flush(ctx context.Context) error {
	if len(b.cs.Changes) == 0 {
		return nil
	}
	c, err := b.m.o.Store.Commit(ctx, b.id, b.cs, b.meta)
	if fault.CodeOf(err) == fault.Conflict {
		return fault.Wrap(err, fault.Unavailable, "The space of the source changed during the update.")
	}
	if err != nil {
		return err
	}
	for _, r := range c.Rejected {
		if r.Path != space.CommentPath {
			b.out.Refused++
		}
	}
	b.out.Commit, b.cs, b.bytes = c.ID, space.ChangeSet{}, 0
	return nil
}

// message describes a sync in its commit: what changed, and which version of upstream.
func message(source, address, from, to string, c space.SyncCounts) string {
	text := "Sync " + source
	if changes := c.Text(); changes != "" {
		text += ": " + changes
	}
	if address != "" {
		text += "\n\nUpstream: " + address
	} else {
		text += "\n"
	}
	if to != "" {
		text += "\nVersion: " + to
	}
	if from != "" && from != to {
		text += "\nBefore: " + from
	}
	return text
}

func (m *Manager) stageDir(run string) string { return filepath.Join(m.o.Dir, run) }

// damagedStage wraps the error of a damaged stage in a fault with a text for people.
func damagedStage(err error) error {
	return fault.Wrap(err, fault.Unavailable, "The fetched files were lost. The next update fetches them again.")
}
