package sources

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"satchel/internal/bytesize"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// sync creates a snapshot of a source at the commit that the method head returns. If that fails,
// the previous snapshot stays, and the source shows the error. With reset, sync reuses nothing of
// the old snapshot.
func (m *Manager) sync(ctx context.Context, e *entry, reset bool) error {
	select {
	case e.turn <- struct{}{}:
		defer func() { <-e.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	changed, err := m.advance(ctx, e, reset)
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	m.mu.Lock()
	if m.entries[e.src.ID] != e {
		m.mu.Unlock()
		return nil // the source ended meanwhile
	}
	switch {
	case err != nil:
		e.src.State, e.src.Problem = space.SourceFailed, fault.PublicOf(err)
	case e.src.Upstream() && e.final == "":
		m.mu.Unlock()
		return nil // the source waits for its first sync
	default:
		e.src.State, e.src.Problem, e.src.Synced = space.SourceReady, "", m.o.Now()
		e.failed, e.why, e.failures = "", nil, 0
	}
	s, x, started := e.src, m.index, m.started
	m.mu.Unlock()
	err = errors.Join(err, m.storeSynced(ctx, s))
	if changed && started {
		x.Changed(s.Collection)
		m.Refresh(ctx)
	}
	return err
}

// advance creates the snapshot of head and shows it. The caller holds e's turn.
func (m *Manager) advance(ctx context.Context, e *entry, reset bool) (changed bool, err error) {
	m.mu.Lock()
	s, old, oldTree, started := e.src, e.cur, e.tree, m.started
	if reset {
		e.failed = ""
	}
	m.mu.Unlock()
	head, err := m.head(ctx, e)
	if err != nil || head == "" {
		return false, err
	}
	trees := started && m.o.Dir != ""
	if !reset && old != nil && old.commit == head && (oldTree != "" || !trees) {
		return false, nil
	}
	if err := m.failedAt(e, head); err != nil {
		return false, err
	}
	defer func() {
		if err != nil && ctx.Err() == nil {
			m.fail(e, head, err)
		}
	}()
	sn, err := m.list(ctx, s, head)
	if err != nil {
		return false, err
	}
	tree := oldTree
	if trees && (reset || tree == "" || !sn.same(old)) {
		m.mu.Lock()
		m.made++
		tree = filepath.Join(m.o.Dir, treesDir, string(s.Collection)+"-"+strconv.Itoa(m.made))
		m.mu.Unlock()
		linked, from := old, oldTree
		if reset {
			linked, from = nil, ""
		}
		if err := m.writeTree(ctx, s, sn, tree, linked, from); err != nil {
			return false, errors.Join(fmt.Errorf("write the files of a source: %w", err), removeTree(tree))
		}
	}
	m.mu.Lock()
	ended := m.entries[s.ID] != e
	if !ended {
		e.prev, e.cur, e.tree = e.cur, sn, tree
		e.src.Commit, e.src.Files, e.src.Bytes = head, len(sn.files), sn.bytes
	}
	m.mu.Unlock()
	switch {
	case ended && tree != "":
		return false, removeTree(tree)
	case oldTree != "" && oldTree != tree:
		return true, removeTree(oldTree) // sandboxes have their own hard links to the files
	}
	return true, nil
}

// head returns the commit that a source should show. It is empty for a synced source before its
// first sync.
func (m *Manager) head(ctx context.Context, e *entry) (space.CommitID, error) {
	m.mu.Lock()
	s, final := e.src, e.final
	m.mu.Unlock()
	if s.Upstream() {
		return final, nil
	}
	return m.o.Store.Head(ctx, s.Space)
}

// The delay before a failed snapshot of a head is tried again. It begins at firstAgain and
// doubles with each failure, up to lastAgain.
const (
	firstAgain = 30 * time.Second
	lastAgain  = time.Hour
)

// failedAt returns the error of a head's failed snapshot until it is time to try again.
func (m *Manager) failedAt(e *entry, head space.CommitID) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e.failed == head && m.o.Now().Before(e.again) {
		return e.why
	}
	return nil
}

func (m *Manager) fail(e *entry, head space.CommitID, why error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e.failed == head && m.o.Now().Before(e.again) {
		return // the snapshot was not tried, because failedAt returned the earlier error
	}
	e.failed, e.why, e.again = head, why, m.o.Now().Add(min(firstAgain<<min(e.failures, 10), lastAgain))
	e.failures++
}

// listings caches the last listed snapshot, since sources of one directory are checked one
// after the other.
type listings struct {
	mu    sync.Mutex
	space space.SpaceID
	dir   space.Path
	sn    *snapshot
	err   error
}

// list reads a snapshot within the limits of a source. If the snapshot exceeds them, list
// returns an error, and a snapshot that has the totals but no files.
func (m *Manager) list(ctx context.Context, s space.Source, at space.CommitID) (*snapshot, error) {
	l := &m.listed
	l.mu.Lock()
	if l.sn != nil && l.space == s.Space && l.dir == s.Dir && l.sn.commit == at {
		defer l.mu.Unlock()
		return l.sn, l.err
	}
	l.mu.Unlock()
	sn, err := m.read(ctx, s, at)
	if err != nil {
		return nil, err
	}
	if err = m.fits(sn); err != nil {
		sn.files, sn.blobs = nil, nil // not shown to anyone
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.space, l.dir, l.sn, l.err = s.Space, s.Dir, sn, err
	return sn, err
}

func (m *Manager) fits(sn *snapshot) error {
	if n := len(sn.files); n > m.o.MaxFiles {
		return fault.New(fault.TooLarge, "The directory has %d files, and at most %d can be published.", n, m.o.MaxFiles)
	}
	if sn.bytes > m.o.MaxBytes {
		return fault.New(fault.TooLarge, "The directory has %s, and at most %s can be published.", bytesize.Text(sn.bytes), bytesize.Text(m.o.MaxBytes))
	}
	return nil
}

// Purged drops everything that comes from the old history of a space whose history was
// rewritten. It returns the collections whose index must be rebuilt. A source whose new
// snapshot fails has no snapshot.
func (m *Manager) Purged(ctx context.Context, id space.SpaceID) ([]space.SpaceID, error) {
	m.listed.mu.Lock()
	m.listed.sn = nil
	m.listed.mu.Unlock()
	var out []space.SpaceID
	var errs []error
	for _, e := range m.all() {
		if m.source(e).Space != id {
			continue
		}
		err := m.sync(ctx, e, false)
		m.mu.Lock()
		e.prev = nil
		tree := ""
		if err != nil {
			tree, e.tree, e.cur, e.src.Commit = e.tree, "", nil, ""
		}
		out = append(out, e.src.Collection)
		m.mu.Unlock()
		if tree != "" {
			err = errors.Join(err, removeTree(tree))
		}
		errs = append(errs, err)
	}
	if len(out) > 0 {
		m.Refresh(ctx)
		errs = append(errs, m.clearRetired())
	}
	return out, errors.Join(errs...)
}
