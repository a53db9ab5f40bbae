package syncs

import (
	"context"
	"slices"
	"strings"
	"time"

	"satchel/gitstore/sources"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// Status describes the sync of a source, with its last runs.
func (m *Manager) Status(ctx context.Context, id string) (space.Sync, error) {
	out, err := m.now(id)
	if err != nil {
		return out, err
	}
	out.Runs, err = m.runs(ctx, id)
	return out, err
}

// now describes the sync of a source, without its runs.
func (m *Manager) now(id string) (space.Sync, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entries[id]
	if e == nil {
		return space.Sync{}, sources.NotThere(id)
	}
	return e.sync(), nil
}

// sync describes an entry. The caller holds Manager.mu.
func (e *entry) sync() space.Sync {
	out := e.row.sync()
	if e.run != nil {
		at := e.run.at
		out.Running = &at
	}
	return out
}

// Wait returns the status of a source, without its runs, as soon as differs reports true for it.
// If the context ends first, the error is that of the context.
func (m *Manager) Wait(ctx context.Context, id string, differs func(space.Sync) bool) (space.Sync, error) {
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for {
		st, err := m.now(id)
		if err != nil || differs(st) {
			return st, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return st, ctx.Err()
		case <-m.ctx.Done():
			return st, fault.New(fault.Unavailable, "The server is shutting down.")
		}
	}
}

// All returns the syncs, sorted by source ID, without their runs.
func (m *Manager) All() []space.Sync {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]space.Sync, 0, len(m.entries))
	for _, e := range m.entries {
		out = append(out, e.sync())
	}
	slices.SortFunc(out, func(a, b space.Sync) int { return strings.Compare(a.Source, b.Source) })
	return out
}
