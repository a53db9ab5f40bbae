package remotes

import (
	"context"
	"maps"
	"slices"
	"time"

	"satchel/internal/space"
)

// statusLooks is how many times Status reads the state at most. It reads the state again if a sync
// began or ended meanwhile.
const statusLooks = 3

// statusNotes is the largest number of notices in a Status.
const statusNotes = 5

// Status returns the state of a space and its remote. It reads the space's repository, and
// does not contact the remote.
func (m *Manager) Status(ctx context.Context, id space.SpaceID) (space.RemoteStatus, error) {
	var st space.RemoteStatus
	for look := 1; ; look++ {
		before, ok := m.snapshot(id)
		var err error
		if st, err = m.status(ctx, id, before, ok); err != nil {
			return space.RemoteStatus{}, err
		}
		if after, _ := m.snapshot(id); look == statusLooks || after.syncs == before.syncs && after.phase == before.phase {
			return st, nil
		}
	}
}

// snapshot is a copy of an entry, without the secret.
type snapshot struct {
	remote space.Remote
	phase  phase
	syncs  int // the number of syncs that have ended
	outcome
	transit bool
	next    time.Time
	notes   []space.RemoteNote
}

func (m *Manager) snapshot(id space.SpaceID) (snapshot, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var s snapshot
	e := m.entries[id]
	if e != nil {
		s = snapshot{remote: e.remote, phase: e.phase, syncs: e.syncs, outcome: e.outcome, transit: e.transit, next: e.nextTry}
	}
	if list := m.fresh(id); list != nil {
		for _, n := range slices.Backward(list.all) {
			if len(s.notes) < statusNotes {
				s.notes = append(s.notes, space.RemoteNote{At: n.at, Text: n.text})
			}
		}
	}
	return s, e != nil
}

func (m *Manager) status(ctx context.Context, id space.SpaceID, s snapshot, has bool) (space.RemoteStatus, error) {
	branch := s.remote.Branch
	if branch == "" {
		branch = defaultBranch // the branch is not known yet, so every commit counts
	}
	// Read the remote's side first. A commit in between may then appear as waiting, but never as
	// pushed by mistake.
	var pushed space.CommitID
	var err error
	if has {
		if pushed, _, err = m.o.Git.Tracked(ctx, id, branch); err != nil {
			return space.RemoteStatus{}, err
		}
	}
	head, err := m.o.Git.Head(ctx, id)
	if err != nil {
		return space.RemoteStatus{}, err
	}
	if !has {
		return space.RemoteStatus{State: space.RemoteLocal, Head: head, Notes: s.notes}, nil
	}
	st := space.RemoteStatus{
		Remote: &s.remote, Head: head, Pushed: pushed, LastCheck: s.lastCheck, LastSync: s.lastSync, NextTry: s.next, Attempts: s.attempts,
		Problem: s.problem, Detail: s.detail, Remedy: s.remedy, Do: doOf(s.remedy), DoBelow: doBelow(s.remedy), Locations: s.locations, Notes: s.notes,
	}
	if pushed != head {
		if st.Unpushed, _, err = m.o.Git.Unpushed(ctx, id, branch, 0); err != nil {
			return space.RemoteStatus{}, err
		}
	}
	switch {
	case s.phase == running && (s.transit || pushed != head):
		st.State = space.RemoteSyncing
	case s.problem != "":
		st.State = space.RemoteFailed
	case pushed == head:
		st.State = space.RemotePushed
	default:
		st.State = space.RemoteQueued
	}
	return st, nil
}

// Trouble returns what answers in the space must say about its remote: why changes are not
// pushed and what to do, or nothing if there is no problem. It reports a temporary problem
// only after Options.Quiet. It only reads memory.
func (m *Manager) Trouble(id space.SpaceID) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entries[id]
	if e == nil || !e.failing() || !isSlow(e.problem) && time.Since(e.failingSince) < m.o.Quiet {
		return ""
	}
	return e.detail + " " + e.remedy
}

// State returns the State of a Status from memory, for answers that cannot wait. It includes
// changes that were committed before the call.
func (m *Manager) State(id space.SpaceID) space.RemoteState {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entries[id]
	switch {
	case e == nil:
		return space.RemoteLocal
	case e.phase == running && e.transit:
		return space.RemoteSyncing
	case e.failing():
		return space.RemoteFailed
	case e.synced != "" && e.behindSince.IsZero():
		return space.RemotePushed
	}
	return space.RemoteQueued
}

// Stats returns totals over all remotes.
func (m *Manager) Stats() Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	st := Stats{Remotes: len(m.entries), Running: m.queue.running, Failed: map[Problem]int{}}
	var oldest time.Time
	for e := range maps.Values(m.entries) {
		if e.phase == waiting {
			st.Queued++
		}
		if e.failing() {
			st.Failed[e.problem]++
		}
		if t := e.behindSince; !t.IsZero() && (oldest.IsZero() || t.Before(oldest)) {
			oldest = t
		}
	}
	if !oldest.IsZero() {
		st.OldestUnpushed = time.Since(oldest)
	}
	return st
}
