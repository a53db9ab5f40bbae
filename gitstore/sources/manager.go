package sources

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// Manager keeps the sources and their snapshots. Its methods are safe for
// concurrent use.
type Manager struct {
	o Options

	ctx  context.Context
	stop context.CancelFunc
	work sync.WaitGroup
	wake chan struct{}

	changing sync.Mutex // held while a source is published, changed or ended
	mu       sync.Mutex
	index    Index
	started  bool
	closed   bool
	entries  map[string]*entry // by id
	libs     map[space.UserID]*lib
	made     int // number of directories so far; each has its number in its name
	// busy holds the publishers whose sources are being processed. Sources of one
	// publisher are processed one at a time, so that a publisher with many sources
	// does not delay others. places limits the publishers processed at a time.
	busy   map[space.UserID]bool
	places chan struct{}
	listed listings
}

// entry is a source with its snapshots. Manager.mu guards all fields except turn.
type entry struct {
	turn chan struct{} // a lock, which a run of sync holds while it creates a snapshot
	src  space.Source
	// final is the commit that a synced source (see AddSynced) shows. The source's space may
	// have newer commits, of a sync that has not ended.
	final space.CommitID
	dirty bool // the source's space may have changed
	// failed is the head whose snapshot failed, why is the error, and again is when the snapshot
	// is tried again. failures counts the tries.
	failed   space.CommitID
	why      error
	again    time.Time
	failures int
	// prev is the snapshot before cur, for calls that began with it.
	cur, prev *snapshot
	tree      string // the directory with the files of cur; empty if there is none yet
}

func newEntry(s space.Source) *entry {
	return &entry{turn: make(chan struct{}, 1), src: s, final: s.Commit}
}

var _ space.Events = (*Manager)(nil)

// New returns a Manager. Call Load before every other method, and Close at the end.
func New(o Options) *Manager {
	m := &Manager{
		o: o.withDefaults(), wake: make(chan struct{}, 1),
		entries: map[string]*entry{}, libs: map[space.UserID]*lib{},
		busy: map[space.UserID]bool{}, places: make(chan struct{}, publishersAtOnce),
	}
	m.ctx, m.stop = context.WithCancel(context.Background())
	return m
}

// Load reads the sources from the database. It starts no goroutine.
func (m *Manager) Load(ctx context.Context) error {
	all, err := m.loadRows(ctx)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range all {
		if m.entries[s.ID] == nil {
			m.entries[s.ID] = newEntry(s)
		}
	}
	return nil
}

// Start begins to follow the published spaces in the background, and checks each once. Call
// it once, after Load.
func (m *Manager) Start(ctx context.Context, x Index) error {
	if m.o.Dir != "" {
		err := removeTree(m.o.Dir)
		for _, sub := range []string{"", treesDir, usersDir, scratchDir} {
			err = errors.Join(err, os.MkdirAll(filepath.Join(m.o.Dir, sub), 0o700))
		}
		if err != nil {
			return fmt.Errorf("make the library's directory: %w", err)
		}
	}
	gone, err := m.ended(ctx)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.index, m.started = x, true
	for _, e := range m.entries {
		e.dirty = true
		x.Changed(e.src.Collection)
	}
	m.work.Go(func() {
		for _, c := range gone {
			m.drop(m.ctx, c)
		}
		m.run()
	})
	m.rouse()
	return nil
}

// Close stops the background goroutines. Unfinished work is done after the next start.
func (m *Manager) Close() {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.stop()
	m.work.Wait()
}

// Publish implements space.Events. It requests a snapshot of the new head.
func (m *Manager) Publish(ev space.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.entries {
		if e.src.Space == ev.Space && !e.src.Upstream() {
			e.dirty = true
			m.rouse()
		}
	}
}

func (m *Manager) rouse() {
	select {
	case m.wake <- struct{}{}:
	default: // a request is already pending
	}
}

// publishersAtOnce is how many publishers' snapshots are created at the same time.
const publishersAtOnce = 2

func (m *Manager) run() {
	look := time.NewTicker(m.o.LookEvery)
	defer look.Stop()
	for {
		select {
		case <-m.ctx.Done():
			return
		case <-look.C:
			m.Look(m.ctx)
			m.retry()
		case <-m.wake:
		}
		m.mu.Lock()
		for _, e := range m.entries {
			if by := e.src.By; e.dirty && !m.busy[by] {
				m.busy[by] = true
				m.work.Go(func() { m.follow(by) })
			}
		}
		m.mu.Unlock()
	}
}

// follow creates the snapshots of a publisher's sources until none is due.
func (m *Manager) follow(by space.UserID) {
	for {
		due := m.due(by)
		if len(due) == 0 {
			return
		}
		select {
		case m.places <- struct{}{}:
		case <-m.ctx.Done():
			return
		}
		for _, e := range due {
			if m.ctx.Err() == nil {
				m.logFailure(e, m.sync(m.ctx, e, false))
			}
		}
		<-m.places
		select {
		case <-time.After(m.o.Settle):
		case <-m.ctx.Done():
			return
		}
	}
}

// retry marks the failed sources whose next try is due.
func (m *Manager) retry() {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.o.Now()
	for _, e := range m.entries {
		if e.src.State == space.SourceFailed && !now.Before(e.again) {
			e.dirty = true
		}
	}
}

func (m *Manager) logFailure(e *entry, err error) {
	if err != nil && m.ctx.Err() == nil {
		m.o.Logger.Warn("a snapshot was not made", "source", e.src.ID, "error", err)
	}
}

// due returns the sources of a publisher whose spaces have changed. Sources of one
// directory are next to each other. If no source is due, the publisher is no longer busy.
func (m *Manager) due(by space.UserID) []*entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []*entry
	for _, e := range m.entries {
		if e.dirty && e.src.By == by {
			e.dirty = false
			out = append(out, e)
		}
	}
	if len(out) == 0 {
		delete(m.busy, by)
	}
	slices.SortFunc(out, func(a, b *entry) int {
		return cmp.Or(cmp.Compare(a.src.Space, b.src.Space), cmp.Compare(a.src.Dir, b.src.Dir), cmp.Compare(a.src.ID, b.src.ID))
	})
	return out
}

// Look ends the sources whose publisher no longer owns the space, and updates the
// sandboxes' libraries. It makes no snapshots, because they would delay the removal of
// access.
func (m *Manager) Look(ctx context.Context) {
	owned := m.ownership()
	for _, e := range m.all() {
		s := m.source(e)
		if ok, err := owned(ctx, s); err != nil {
			m.logFailure(e, err)
		} else if !ok {
			m.o.Logger.Info("a source ends, since its publisher does not own the space any more", "source", s.ID, "space", s.Space)
			m.changing.Lock()
			err := m.end(ctx, e)
			m.changing.Unlock()
			if err == nil && m.o.Ended != nil {
				err = m.o.Ended(ctx, s)
			}
			m.logFailure(e, err)
		}
	}
	m.Refresh(ctx)
}

// all returns the sources, sorted by ID.
func (m *Manager) all() []*entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]*entry, 0, len(m.entries))
	for _, e := range m.entries {
		out = append(out, e)
	}
	slices.SortFunc(out, func(a, b *entry) int { return strings.Compare(a.src.ID, b.src.ID) })
	return out
}

func (m *Manager) source(e *entry) space.Source {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := e.src
	s.Users = slices.Clone(s.Users)
	if s.State == space.SourceReady && e.dirty {
		s.State = space.SourceWaiting
	}
	return s
}

// ownership returns a function that reports whether the publisher of a source still owns
// its space. The function calls Options.Owned once per publisher.
func (m *Manager) ownership() func(context.Context, space.Source) (bool, error) {
	known := map[space.UserID][]space.SpaceID{}
	return func(ctx context.Context, s space.Source) (bool, error) {
		if s.Upstream() && s.By == "" {
			return true, nil // the operator added it
		}
		spaces, ok := known[s.By]
		if !ok {
			var err error
			if spaces, err = m.o.Owned(ctx, s.By); err != nil {
				return false, fmt.Errorf("look who owns a published space: %w", err)
			}
			known[s.By] = spaces
		}
		return slices.Contains(spaces, s.Space), nil
	}
}

// Visible returns the sources that a user may read now, sorted by ID.
func (m *Manager) Visible(ctx context.Context, user space.UserID) ([]space.Source, error) {
	if user == "" {
		return nil, nil
	}
	owned := m.ownership()
	var out []space.Source
	for _, e := range m.all() {
		s := m.source(e)
		if !inAudience(s, user) {
			continue
		}
		ok, err := owned(ctx, s)
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, s)
		}
	}
	return out, nil
}

// Of returns the sources of a space, sorted by ID. The caller checks permissions.
func (m *Manager) Of(id space.SpaceID) []space.Source {
	var out []space.Source
	for _, e := range m.all() {
		if s := m.source(e); s.Space == id {
			out = append(out, s)
		}
	}
	return out
}

// All returns every source, sorted by ID, for the operator.
func (m *Manager) All() []space.Source {
	var out []space.Source
	for _, e := range m.all() {
		out = append(out, m.source(e))
	}
	return out
}

// Sync creates a snapshot of a source that the user may read, and waits for it. If the
// snapshot fails, the returned Source says why, and the error is nil.
func (m *Manager) Sync(ctx context.Context, user space.UserID, id string) (space.Source, error) {
	return m.syncFor(ctx, user, id, false)
}

// Reset is like Sync, but makes a new snapshot even if there is one of the same commit,
// and rewrites the files that sandboxes see.
func (m *Manager) Reset(ctx context.Context, user space.UserID, id string) (space.Source, error) {
	return m.syncFor(ctx, user, id, true)
}

func (m *Manager) syncFor(ctx context.Context, user space.UserID, id string, reset bool) (space.Source, error) {
	all, err := m.Visible(ctx, user)
	if err != nil {
		return space.Source{}, err
	}
	if !slices.ContainsFunc(all, func(s space.Source) bool { return s.ID == id }) {
		return space.Source{}, NotThere(id)
	}
	m.mu.Lock()
	e := m.entries[id]
	m.mu.Unlock()
	if e == nil {
		return space.Source{}, NotThere(id)
	}
	if err := m.sync(ctx, e, reset); err != nil && ctx.Err() != nil {
		return space.Source{}, fault.Wrap(err, fault.Canceled, "The request ended.")
	}
	return m.source(e), nil
}

// inAudience reports whether the source is published for the user.
func inAudience(s space.Source, u space.UserID) bool {
	return s.Everybody || u == s.By || slices.Contains(s.Users, u)
}
