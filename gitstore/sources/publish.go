package sources

import (
	"context"
	"os"
	"slices"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// Preview is what others would see of a directory.
type Preview struct {
	Dir   space.Path
	Files []File // at most as many as were asked for
	Total int
	Bytes int64
	Left  int // links and names that would be left out
	// Memory tells that the space's memory is in it.
	Memory bool
}

// Preview shows what publishing a directory of a space would show.
func (m *Manager) Preview(ctx context.Context, id space.SpaceID, dir string, limit int) (Preview, error) {
	r := Request{ID: "preview", Space: id, Dir: dir, WithMemory: true}
	_, d, err := r.checked()
	if err != nil {
		return Preview{}, err
	}
	head, err := m.o.Store.Head(ctx, id)
	if err != nil {
		return Preview{}, err
	}
	sn, err := m.read(ctx, Source{Space: id, Dir: d}, head)
	if err != nil {
		return Preview{}, err
	}
	p := Preview{Dir: d, Total: len(sn.files), Bytes: sn.bytes, Left: sn.left}
	_, _, err = Request{ID: "preview", Dir: string(d)}.checked()
	p.Memory = err != nil && (d != "" || len(sn.under(memoryDir)) > 0)
	p.Files = sn.files[:min(limit, len(sn.files))]
	return p, nil
}

// Add publishes a directory of a space, or changes for whom and under which title
// it is published, by its owner; a name never passes to another directory. The error is a fault.Invalid for what the request says, a
// fault.Forbidden for who does not own the space, a fault.Conflict where the id
// is taken, and a fault.TooLarge.
func (m *Manager) Add(ctx context.Context, r Request) (Source, error) {
	r, dir, err := r.checked()
	if err != nil {
		return Source{}, err
	}
	m.changing.Lock()
	defer m.changing.Unlock()
	owned, err := m.o.Owned(ctx, r.By)
	if err != nil {
		return Source{}, err
	}
	if !slices.Contains(owned, r.Space) {
		return Source{}, fault.New(fault.Forbidden, "Only who owns a space can publish it.")
	}
	now := m.o.Now()
	s := Source{
		ID: r.ID, Label: r.Label, Description: r.Description, Kind: KindSpace, Space: r.Space, Dir: dir,
		Everybody: r.Everybody, Users: slices.DeleteFunc(r.Users, func(u space.UserID) bool { return u == r.By }), By: r.By,
		Published: now, Changed: now, Collection: space.NewSpaceID(), State: Waiting,
	}
	m.mu.Lock()
	e := m.entries[r.ID]
	mine := 0
	for _, o := range m.entries {
		if o.src.By == r.By {
			mine++
		}
	}
	m.mu.Unlock()
	if e != nil {
		old := m.source(e)
		switch {
		case old.Space != r.Space || old.By != r.By:
			return Source{}, errTaken(r.ID)
		case r.New || old.Dir != dir:
			// What stands there would be lost without a word.
			return Source{}, fault.New(fault.Conflict, "You publish %s as %q already. Choose another name, or unpublish that first.", named(old.Dir), r.ID).In(PartName)
		}
		return m.change(ctx, e, s)
	}
	if mine >= m.o.MaxSources {
		return Source{}, fault.New(fault.Limited, "You have published %d sources, as many as are allowed.", mine)
	}
	head, err := m.o.Store.Head(ctx, s.Space)
	if err != nil {
		return Source{}, err
	}
	sn, err := m.read(ctx, s, head)
	if err == nil {
		err = m.fits(sn)
	}
	if err != nil {
		return Source{}, err
	}
	if len(sn.files) == 0 {
		return Source{}, fault.New(fault.Invalid, "There are no files in %q to be published.", string(dir)+"/").In(PartDir)
	}
	return m.begin(ctx, s)
}

// named is what people call a directory of their space.
func named(dir space.Path) string {
	if dir == "" {
		return "the whole space"
	}
	return string(dir) + "/"
}

// Taken tells whether a source on this server has the id. That is no secret: who
// asks for the name is told so.
func (m *Manager) Taken(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.entries[id] != nil
}

func (m *Manager) begin(ctx context.Context, s Source) (Source, error) {
	if err := m.storeSource(ctx, s, true); err != nil {
		return Source{}, err
	}
	e := newEntry(s)
	m.mu.Lock()
	m.entries[s.ID] = e
	m.mu.Unlock()
	if err := m.sync(ctx, e, false); err != nil {
		m.tell(e, err)
		m.again(e)
	}
	return m.source(e), nil
}

// again has a source looked at once more, soon.
func (m *Manager) again(e *entry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e.dirty = true
	m.rouse()
}

// change writes what people may change of a source, and keeps its snapshot.
func (m *Manager) change(ctx context.Context, e *entry, s Source) (Source, error) {
	old := m.source(e)
	s.Collection, s.Published = old.Collection, old.Published
	if err := m.storeSource(ctx, s, false); err != nil {
		return Source{}, err
	}
	m.mu.Lock()
	e.src.Label, e.src.Description, e.src.Everybody, e.src.Users, e.src.Changed = s.Label, s.Description, s.Everybody, s.Users, s.Changed
	m.mu.Unlock()
	m.Refresh(ctx)
	return m.source(e), nil
}

// Remove unpublishes a source of a space. Who asks has made sure that the asker
// may.
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

// RemoveAll unpublishes all of a space, for one that was deleted. The index of what
// was published is dropped by who has it open, at the latest at the next start.
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

// end makes a source be none: for readers first, then on disk.
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
		// A search that runs may use the index until it ends.
		m.work.Go(func() { m.drop(m.ctx, s.Collection) })
	}
	m.mu.Unlock()
	m.Refresh(ctx)
	if tree == "" {
		return nil
	}
	// Out of the way at once, however long it takes to remove it.
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

// Peek returns the content of a file of a preview, by its space.
func (m *Manager) Peek(ctx context.Context, id space.SpaceID, f File) ([]byte, error) {
	return m.o.Store.ReadBlob(ctx, id, f.Blob)
}
