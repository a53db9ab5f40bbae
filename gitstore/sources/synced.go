package sources

import (
	"context"
	"time"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// AddSynced publishes a source whose files a sync commits to the space s.Space. The source shows
// nothing before the first Switch. The error is a fault.Invalid, a fault.Conflict or a
// fault.Limited, as for Add.
func (m *Manager) AddSynced(ctx context.Context, s space.Source) (space.Source, error) {
	s.Dir = ""
	s, err := checked(s, true)
	if err != nil {
		return space.Source{}, err
	}
	m.changing.Lock()
	defer m.changing.Unlock()
	if _, err := m.Find(s.ID); err == nil {
		return space.Source{}, Taken(s.ID)
	}
	if mine := m.countOf(s.By); s.By != "" && mine >= m.o.MaxSources {
		return space.Source{}, fault.New(fault.Limited, "You have published %d sources, which is the limit.", mine)
	}
	s.Owner, s.Readers, s.Changed = "", nil, m.o.Now()
	s.Published, s.Collection = s.Changed, space.NewSpaceID()
	s.State, s.Problem, s.Commit, s.Synced, s.Files, s.Bytes = space.SourceWaiting, "", "", time.Time{}, 0, 0
	return m.begin(ctx, s)
}

// ChangeSynced changes the texts and the audience of a synced source.
func (m *Manager) ChangeSynced(ctx context.Context, s space.Source) (space.Source, error) {
	s.Dir = ""
	s, err := checked(s, true)
	if err != nil {
		return space.Source{}, err
	}
	m.changing.Lock()
	defer m.changing.Unlock()
	m.mu.Lock()
	e := m.entries[s.ID]
	m.mu.Unlock()
	if e == nil || !m.source(e).Upstream() {
		return space.Source{}, NotThere(s.ID)
	}
	s.Owner, s.Readers, s.Changed = "", nil, m.o.Now()
	return m.change(ctx, e, s)
}

// Switch makes a synced source show the commit at, which a complete sync made in its space. If the
// snapshot cannot be made, the previous one stays, and Switch returns the error.
func (m *Manager) Switch(ctx context.Context, id string, at space.CommitID, reset bool) (space.Source, error) {
	m.mu.Lock()
	e := m.entries[id]
	if e != nil && e.src.Upstream() {
		e.final, e.failed = at, ""
	}
	m.mu.Unlock()
	if e == nil || !m.source(e).Upstream() {
		return space.Source{}, NotThere(id)
	}
	if err := m.sync(ctx, e, reset); err != nil {
		return space.Source{}, err
	}
	return m.source(e), nil
}

// countOf returns the number of a person's sources.
func (m *Manager) countOf(by space.UserID) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for _, e := range m.entries {
		if e.src.By == by {
			n++
		}
	}
	return n
}
