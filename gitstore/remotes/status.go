package remotes

import (
	"context"
	"maps"
	"slices"
	"time"

	"satchel/internal/space"
)

// statusLooks bounds how often Status looks again because a transfer ended
// while it looked.
const statusLooks = 3

// statusNotes bounds how many notices a Status has.
const statusNotes = 5

// Status reports how a space and its remote stand. It asks the space's
// repository, never the remote.
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

// snapshot is a copy of what an entry knows, without the secret.
type snapshot struct {
	remote space.Remote
	phase  phase
	syncs  int // that have ended
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
		branch = defaultBranch // of which nothing is known yet: all counts
	}
	// The remote's side first: what is committed or pushed meanwhile may then
	// show as waiting, and never as pushed.
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
		Problem: s.problem, Detail: s.detail, Remedy: s.remedy, Locations: s.locations, Notes: s.notes,
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

// Trouble returns what an answer to someone who works in the space must say of
// its remote: why what they change is not pushed and what to do, or nothing
// where all goes well. Temporary problems are kept back for Options.Quiet. It
// looks at memory alone.
func (m *Manager) Trouble(id space.SpaceID) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entries[id]
	if e == nil || !e.failing() || !isSlow(e.problem) && time.Since(e.failingSince) < m.o.Quiet {
		return ""
	}
	return e.detail + " " + e.remedy
}

// State is the State of a Status by what is in memory, for answers that cannot
// wait: a change that was committed before the call counts.
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

// Stats reports what all remotes come to.
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
