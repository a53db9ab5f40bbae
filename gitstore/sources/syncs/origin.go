package syncs

import (
	"context"
	"time"

	"satchel/gitstore/sources"
	"satchel/internal/database"
	"satchel/internal/space"
)

// Get returns the sync of a source, without its runs.
func (m *Manager) Get(id string) (space.Sync, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entries[id]
	if e == nil {
		return space.Sync{}, false
	}
	return e.row.sync(), true
}

// SetOrigin records where the settings of a source come from. A source that left the configuration
// file is synced on request only. If its entry returns, the source is synced at once.
func (m *Manager) SetOrigin(ctx context.Context, id string, origin space.SyncOrigin) error {
	return m.alter(ctx, id, func(row *syncRow) {
		row.Origin = string(origin)
		row.Next = 0
		if row.every() > 0 {
			row.Next = database.Millis(m.o.Now())
		}
	})
}

// EndSource ends the sync of a source whose publication has ended, because the person who added it
// is gone. Its space stays until an admin removes the source. EndSource does nothing for a source
// without a sync.
func (m *Manager) EndSource(ctx context.Context, id string) error {
	m.mu.Lock()
	e := m.entries[id]
	m.mu.Unlock()
	if e == nil {
		return nil
	}
	err := m.alter(ctx, id, func(row *syncRow) {
		row.State, row.Next = string(space.SyncEnded), 0
		row.Problem = "The person who added this source has left this server. Remove the source, and add it again if it is needed."
	})
	m.mu.Lock()
	r := e.run
	m.mu.Unlock()
	if r != nil {
		r.cancel(errEnded)
	}
	return err
}

// endOrphans ends the syncs whose publication ended in an earlier process that stopped before
// it called EndSource.
func (m *Manager) endOrphans() {
	for _, s := range m.All() {
		if _, err := m.o.Sources.Find(s.Source); err == nil || s.State == space.SyncEnded {
			continue
		}
		if err := m.EndSource(m.ctx, s.Source); err != nil {
			m.o.Logger.Error("end the sync of a source that has ended", "source", s.Source, "error", err)
		}
	}
}

// alter changes the row of a sync with the function change, first in the database and then in
// memory.
func (m *Manager) alter(ctx context.Context, id string, change func(*syncRow)) error {
	m.mu.Lock()
	e := m.entries[id]
	var row syncRow
	if e != nil {
		row = e.row
	}
	m.mu.Unlock()
	if e == nil {
		return sources.NotThere(id)
	}
	change(&row)
	if err := m.store(ctx, row); err != nil {
		return err
	}
	m.mu.Lock()
	change(&e.row) // a run may have changed other fields meanwhile
	m.mu.Unlock()
	m.rouse()
	return nil
}

// tokenFor returns the function that gives tokens for the private repositories of a source. A
// source of a person gets tokens for the repositories that this person may read. A source of the
// operator gets tokens for the repositories that the server may read.
func (m *Manager) tokenFor(row syncRow) func(context.Context, string, string) (string, error) {
	by := row.by
	if row.SourceID != "" {
		s, err := m.o.Sources.Find(row.SourceID)
		if err != nil {
			return nil
		}
		by = s.By
	}
	if m.o.Token == nil || by == "" && !row.Trusted {
		return nil
	}
	return func(ctx context.Context, host, repository string) (string, error) {
		return m.o.Token(ctx, by, host, repository)
	}
}

// Stats are totals over all syncs, for metrics and the health of the server.
type Stats struct {
	Syncs, Running int
	// States counts the syncs by the state of their last run.
	States map[space.SyncState]int
	// Left are the syncs whose entry left the configuration file. Failing are the other syncs
	// whose last run failed. Both are sorted by source ID.
	Failing, Left []space.Sync
	// Oldest is the longest time since the last successful sync of a source with a schedule.
	Oldest time.Duration
}

// Stats returns the totals.
func (m *Manager) Stats() Stats {
	st := Stats{States: map[space.SyncState]int{}}
	for _, s := range m.All() {
		st.Syncs++
		st.States[s.State]++
		switch {
		case s.Origin == space.OriginLeft:
			st.Left = append(st.Left, s)
		case s.Problem != "":
			st.Failing = append(st.Failing, s)
		}
	}
	now := m.o.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.entries {
		if e.run != nil {
			st.Running++
		}
		if e.row.every() > 0 && e.row.Checked != 0 {
			st.Oldest = max(st.Oldest, now.Sub(database.Time(e.row.Checked)))
		}
	}
	return st
}
