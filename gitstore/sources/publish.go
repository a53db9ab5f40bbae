package sources

import (
	"context"
	"os"
	"slices"
	"time"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// Preview is what readers of a source would see.
type Preview struct {
	Dir   space.Path    `json:"dir"`
	Files []space.Entry `json:"files"` // at most as many as the caller asked for
	Total int           `json:"total"` // the number of all files
	Bytes int64         `json:"bytes"` // the bytes of all files
	Left  int           `json:"left"`  // links and names that a source leaves out
	// Memory reports whether readers would see files of the space's memory.
	Memory bool `json:"memory"`
}

// Preview returns what readers would see if a directory of a space were published.
func (m *Manager) Preview(ctx context.Context, id space.SpaceID, dir string, limit int) (Preview, error) {
	src, err := checked(space.Source{ID: "preview", Space: id, Dir: space.Path(dir)}, true)
	if err != nil {
		return Preview{}, err
	}
	head, err := m.o.Store.Head(ctx, id)
	if err != nil {
		return Preview{}, err
	}
	sn, err := m.read(ctx, src, head)
	if err != nil {
		return Preview{}, err
	}
	return Preview{
		Dir: src.Dir, Files: sn.files[:min(limit, len(sn.files))], Total: len(sn.files), Bytes: sn.bytes, Left: sn.left,
		Memory: hasMemory(src.Dir) && (src.Dir != "" || len(sn.under(memoryDir)) > 0),
	}, nil
}

// Add publishes the directory s.Dir of the space s.Space in the name of its owner s.By,
// or changes the texts and the audience of a source that By publishes from this
// directory. Add ignores the state and snapshot in s, which the manager sets itself.
// The error is a fault.Invalid for a bad value, a fault.Forbidden if By does not own the
// space, a fault.Conflict if the ID is taken, a fault.Limited if By has published as many
// sources as one person may, and a fault.TooLarge if the directory exceeds the limits.
func (m *Manager) Add(ctx context.Context, s space.Source, consent Consent) (space.Source, error) {
	s, err := checked(s, consent.WithMemory)
	if err != nil {
		return space.Source{}, err
	}
	m.changing.Lock()
	defer m.changing.Unlock()
	owned, err := m.o.Owned(ctx, s.By)
	if err != nil {
		return space.Source{}, err
	}
	if !slices.Contains(owned, s.Space) {
		return space.Source{}, fault.New(fault.Forbidden, "Only the owner of a space can publish it.")
	}
	m.mu.Lock()
	e := m.entries[s.ID]
	m.mu.Unlock()
	s.Owner, s.Readers, s.Changed = "", nil, m.o.Now()
	if e != nil {
		old := m.source(e)
		switch {
		case old.Space != s.Space || old.By != s.By:
			return space.Source{}, Taken(s.ID)
		case consent.New || old.Dir != s.Dir:
			// Otherwise this request would silently replace an existing source.
			return space.Source{}, fault.New(fault.Conflict, "You already publish %s as %q. Choose another ID, or unpublish that source first.", named(old.Dir), s.ID).In(space.SourceName)
		}
		return m.change(ctx, e, s)
	}
	s.Kind, s.Published, s.Collection = space.SourceSpace, s.Changed, space.NewSpaceID()
	s.State, s.Problem, s.Commit, s.Synced, s.Files, s.Bytes = space.SourceWaiting, "", "", time.Time{}, 0, 0
	if mine := m.countOf(s.By); mine >= m.o.MaxSources {
		return space.Source{}, fault.New(fault.Limited, "You have published %d sources, which is the limit.", mine)
	}
	head, err := m.o.Store.Head(ctx, s.Space)
	if err != nil {
		return space.Source{}, err
	}
	sn, err := m.read(ctx, s, head)
	if err == nil {
		err = m.fits(sn)
	}
	if err != nil {
		return space.Source{}, err
	}
	if len(sn.files) == 0 {
		return space.Source{}, fault.New(fault.Invalid, "There are no files in %q to publish.", string(s.Dir)+"/").In(space.SourceDir)
	}
	return m.begin(ctx, s)
}

// named returns the name of a directory for people.
func named(dir space.Path) string {
	if dir == "" {
		return "the whole space"
	}
	return string(dir) + "/"
}

// Find returns the source with an ID, without checking who may read it. If there is none,
// the error is a fault.NotFound.
func (m *Manager) Find(id string) (space.Source, error) {
	m.mu.Lock()
	e := m.entries[id]
	m.mu.Unlock()
	if e == nil {
		return space.Source{}, NotThere(id)
	}
	return m.source(e), nil
}

func (m *Manager) begin(ctx context.Context, s space.Source) (space.Source, error) {
	if err := m.storeSource(ctx, s, true); err != nil {
		return space.Source{}, err
	}
	e := newEntry(s)
	m.mu.Lock()
	m.entries[s.ID] = e
	m.mu.Unlock()
	if err := m.sync(ctx, e, false); err != nil {
		m.logFailure(e, err)
		m.again(e)
	}
	return m.source(e), nil
}

// again requests another check of a source soon.
func (m *Manager) again(e *entry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e.dirty = true
	m.rouse()
}

// change stores the fields of a source that people may change. Its snapshot stays.
func (m *Manager) change(ctx context.Context, e *entry, s space.Source) (space.Source, error) {
	if err := m.storeSource(ctx, keep(s, m.source(e)), false); err != nil {
		return space.Source{}, err
	}
	m.mu.Lock()
	e.src = keep(s, e.src)
	m.mu.Unlock()
	m.Refresh(ctx)
	return m.source(e), nil
}

// keep returns s, but with the values of old in the fields that the manager sets.
func keep(s, old space.Source) space.Source {
	s.Kind, s.Published, s.Collection = old.Kind, old.Published, old.Collection
	s.State, s.Problem, s.Commit, s.Synced, s.Files, s.Bytes = old.State, old.Problem, old.Commit, old.Synced, old.Files, old.Bytes
	return s
}

// Remove unpublishes a source of a space. The caller checks permissions.
func (m *Manager) Remove(ctx context.Context, id space.SpaceID, source string) error {
	m.changing.Lock()
	defer m.changing.Unlock()
	m.mu.Lock()
	e := m.entries[source]
	m.mu.Unlock()
	if e == nil || m.source(e).Space != id {
		return NotThere(source)
	}
	return m.end(ctx, e)
}

// RemoveAll unpublishes all sources of a deleted space. The process that has the sources'
// indexes open drops them, at its next start at the latest.
func (m *Manager) RemoveAll(ctx context.Context, id space.SpaceID) error {
	m.changing.Lock()
	defer m.changing.Unlock()
	for _, e := range m.all() {
		if m.source(e).Space != id {
			continue
		}
		if err := m.end(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// end removes a source, first for readers, then on disk.
func (m *Manager) end(ctx context.Context, e *entry) error {
	s := m.source(e)
	if err := m.deleteSource(ctx, s); err != nil {
		return err
	}
	m.mu.Lock()
	if m.entries[s.ID] == e {
		delete(m.entries, s.ID)
	}
	tree := e.tree
	e.tree, e.cur, e.prev = "", nil, nil
	if m.started && !m.closed {
		// Drop the index in the background, because a running search may still use it.
		m.work.Go(func() { m.drop(m.ctx, s.Collection) })
	}
	m.mu.Unlock()
	m.Refresh(ctx)
	if tree == "" {
		return nil
	}
	// Move the tree away at once, because its removal may take long.
	gone := m.scratch()
	if err := os.Rename(tree, gone); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil // the next start removes everything
	}
	m.work.Go(func() {
		if err := removeTree(gone); err != nil {
			m.o.Logger.Warn("the files of an ended source were not removed", "error", err)
		}
	})
	return nil
}

func (m *Manager) drop(ctx context.Context, c space.SpaceID) {
	err := m.index.Dropped(ctx, c)
	if err == nil {
		err = m.forgetEnded(ctx, c)
	}
	if err != nil && ctx.Err() == nil {
		m.o.Logger.Warn("the index of an ended source was not removed; the next start tries again", "error", err)
	}
}

// Peek returns the content of a file that Preview listed for the space.
func (m *Manager) Peek(ctx context.Context, id space.SpaceID, f space.Entry) ([]byte, error) {
	return m.o.Store.ReadBlob(ctx, id, f.Blob)
}
