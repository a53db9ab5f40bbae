package sources_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"satchel/gitstore/sources"
	"satchel/internal/space"
)

// watchedStore counts the listings of a store, and blocks those of one space.
type watchedStore struct {
	sources.Store
	listed atomic.Int64
	slow   atomic.Pointer[space.SpaceID]
	let    chan struct{}
}

func (s *watchedStore) Files(ctx context.Context, id space.SpaceID, at space.CommitID, under space.Path) ([]space.Entry, error) {
	s.listed.Add(1)
	if slow := s.slow.Load(); slow != nil && *slow == id {
		select {
		case <-s.let:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return s.Store.Files(ctx, id, at, under)
}

// watched puts a watchedStore in front of the world's store.
func watched(st *watchedStore) func(*sources.Options) {
	return func(o *sources.Options) {
		st.Store, o.Store = o.Store, st
		o.MaxFiles = 3
	}
}

func TestAttackManySourcesOfOneHugeDirectory(t *testing.T) {
	st := &watchedStore{}
	w := newWorld(t, sqlite(t), map[string]string{"knowledge/a.md": "a"}, watched(st))
	const n = 12
	for i := range n {
		w.add(func(r *request) { r.ID = fmt.Sprintf("s%d", i) })
	}
	w.write(map[string]string{"knowledge/b.md": "b", "knowledge/c.md": "c", "knowledge/d.md": "d"})
	before := st.listed.Load()
	for range 3 {
		for i := range n {
			if s := w.synced(fmt.Sprintf("s%d", i)); s.State != space.SourceFailed || s.Problem == "" {
				t.Fatalf("a directory that is too large: %+v", s)
			}
		}
		w.Look(t.Context())
	}
	if got := st.listed.Load() - before; got != 1 {
		t.Errorf("the directory was listed %d times, want once", got)
	}
	// A directory that fits again is shown at once.
	w.write(map[string]string{"knowledge/b.md": "DELETE"})
	if s := w.synced("s0"); s.State != space.SourceReady {
		t.Errorf("when it fits again: %+v", s)
	}
}

func TestAttackSlowSourcesHoldUpNobodyElse(t *testing.T) {
	st := &watchedStore{let: make(chan struct{})}
	w := newWorld(t, sqlite(t), map[string]string{"knowledge/a.md": "a"}, watched(st))
	w.add()
	theirs := space.NewSpaceID()
	_, err := w.git.Create(t.Context(), theirs, changes(map[string]string{"knowledge/x.md": "x"}), meta)
	must(t, err)
	w.own(eve, theirs)
	other := w.add(func(r *request) { r.ID, r.Space, r.By = "theirs", theirs, eve })
	for len(w.changes) > 0 {
		<-w.changes
	}
	st.slow.Store(&w.id)
	defer close(st.let)
	w.write(map[string]string{"knowledge/b.md": "b"})
	w.Publish(space.Event{Space: w.id})
	_, err = w.git.Commit(t.Context(), theirs, changes(map[string]string{"knowledge/y.md": "y"}), meta)
	must(t, err)
	w.Publish(space.Event{Space: theirs})
	if got := <-w.changes; got != other.Collection {
		t.Errorf("the first snapshot is of %s, want %s", got, other.Collection)
	}
	// A lost space does not stay in memory.
	w.own(eve)
	w.Look(t.Context())
	if got := w.sees(bob); got != "team-notes" {
		t.Errorf("bob sees %q", got)
	}
}
