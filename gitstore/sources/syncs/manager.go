package syncs

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"

	"satchel/gitstore/sources"
	"satchel/internal/database"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// Manager keeps the syncs. Its methods are safe for concurrent use.
type Manager struct {
	o      Options
	ctx    context.Context
	stop   context.CancelFunc
	work   sync.WaitGroup
	wake   chan struct{}
	places chan struct{} // limits the runs at a time
	desk   chan struct{} // limits the uploads that are converted or stored at a time

	opening sync.Mutex // held while the engine is opened or closed

	mu      sync.Mutex
	engine  dbos.Context      // nil before the first run
	broken  dbos.Context      // an engine that failed, until it is closed
	entries map[string]*entry // by source ID
	owned   map[space.SpaceID]bool
	left    []*run // the runs of an earlier process, until the engine is open
}

// entry is the sync of a source. Manager.mu guards it.
type entry struct {
	row syncRow
	run *run // nil if none runs
	// pushed reports that somebody pushed to upstream since the run began.
	pushed bool
}

// New returns a Manager. Call Load before every other method, and Close at the end.
func New(o Options) *Manager {
	o = o.withDefaults()
	m := &Manager{o: o, wake: make(chan struct{}, 1), places: make(chan struct{}, o.AtOnce), desk: make(chan struct{}, o.AtOnce), entries: map[string]*entry{}, owned: map[space.SpaceID]bool{}}
	m.ctx, m.stop = context.WithCancel(context.Background())
	return m
}

// Load reads the syncs from the database.
func (m *Manager) Load(ctx context.Context) error {
	var rows []syncRow
	var left []runRow
	err := m.o.DB.Read(ctx).Find(&rows).Error
	if err == nil {
		err = m.o.DB.Read(ctx).Where("ended = 0").Order("started DESC, id DESC").Find(&left).Error
	}
	if err != nil {
		return fmt.Errorf("load syncs: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range rows {
		m.entries[r.SourceID] = &entry{row: r}
		m.owned[space.SpaceID(r.SpaceID)] = true
	}
	for _, l := range left {
		if e := m.entries[l.SourceID]; e != nil && e.run == nil {
			e.run = m.newRun(job{Run: l.ID, Source: l.SourceID, Reset: l.ResetAll, Confirm: l.Confirmed}, database.Time(l.Started))
			e.run.earlier = true
			m.left = append(m.left, e.run)
		}
	}
	return nil
}

// Start begins to run syncs on their schedules, and continues those that an earlier process left.
// Call it once, after Load and after sources.Manager.Start.
func (m *Manager) Start() {
	m.removeStages()
	m.endOrphans()
	m.work.Go(m.schedule)
}

// removeStages removes the files of runs that have ended.
func (m *Manager) removeStages() {
	m.mu.Lock()
	running := map[string]bool{}
	for _, r := range m.left {
		running[r.Run] = true
	}
	m.mu.Unlock()
	list, _ := os.ReadDir(m.o.Dir) // before the first sync, the directory does not exist
	for _, d := range list {
		if !running[d.Name()] {
			if err := os.RemoveAll(filepath.Join(m.o.Dir, d.Name())); err != nil {
				m.o.Logger.Warn("the files of an old sync were not removed", "error", err)
			}
		}
	}
}

// Close interrupts the running syncs. The next start continues them.
func (m *Manager) Close() error {
	m.stop()
	m.opening.Lock()
	m.mu.Lock()
	c, broken := m.engine, m.broken
	m.mu.Unlock()
	var err error
	if c != nil {
		err = dbos.Shutdown(c, shutdownGrace)
	}
	if broken != nil {
		m.shutdown(broken)
	}
	m.opening.Unlock()
	m.work.Wait()
	return err
}

// Owns reports whether a space belongs to a sync.
func (m *Manager) Owns(id space.SpaceID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.owned[id]
}

// Reserve makes a new space belong to a sync, before Add. Otherwise the search index would index
// the space's first commit.
func (m *Manager) Reserve(id space.SpaceID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.owned[id] = true
}

// start begins a run, or returns the run in progress. The error is a fault.Conflict if the run
// in progress does not do what the job asks.
func (m *Manager) start(ctx context.Context, j job) (*run, error) {
	m.mu.Lock()
	e := m.entries[j.Source]
	if e == nil {
		m.mu.Unlock()
		return nil, sources.NotThere(j.Source)
	}
	if r := e.run; r != nil {
		m.mu.Unlock()
		if j.Reset && !r.Reset || j.Confirm && !r.Confirm {
			return nil, fault.New(fault.Conflict, "An update of %s is already running. Wait until it ends, or cancel it.", j.Source)
		}
		_, err := m.open() // continues the run if an earlier process left it
		return r, err
	}
	r := m.take(e, j)
	m.mu.Unlock()
	if err := m.begin(ctx, r); err != nil {
		m.giveUp(e, r, err)
		return nil, err
	}
	return r, nil
}

// take creates a run and stores it in an entry. The caller holds m.mu.
func (m *Manager) take(e *entry, j job) *run {
	j.Run = string(space.NewSpaceID())
	e.run = m.newRun(j, m.o.Now())
	return e.run
}

// giveUp ends a run that could not begin.
func (m *Manager) giveUp(e *entry, r *run, why error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e.run == r {
		e.run = nil
		r.result = space.SyncRun{ID: r.Run, Source: r.Source, State: stateOf(why), Problem: fault.PublicOf(why)}
		close(r.done)
	}
}

func (m *Manager) begin(ctx context.Context, r *run) error {
	c, err := m.open()
	if err != nil {
		return err
	}
	if err := m.beginRun(ctx, r); err != nil {
		return err
	}
	if _, err := dbos.RunWorkflow(c, m.workflow, r.job, dbos.WithWorkflowID(r.Run)); err != nil {
		m.discard()
		err = fmt.Errorf("start a sync: %w", err)
		m.end(context.WithoutCancel(ctx), r, outcome{err: err})
		return err
	}
	return nil
}

// enter returns the run of a job that the engine starts. ok is false if the run has ended, or
// its source was removed.
func (m *Manager) enter(j job) (r *run, row syncRow, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entries[j.Source]
	if e == nil || e.run == nil || e.run.Run != j.Run {
		return nil, syncRow{}, false
	}
	e.run.entered = true
	e.run.Uploaded = j.Uploaded // Load cannot set Uploaded, because the database does not store it
	return e.run, e.row, true
}

// Sync runs a sync of a source, or waits for the running one. progress reports its steps. A failed
// sync is not an error: the result has its state and its problem.
func (m *Manager) Sync(ctx context.Context, id string, reset, confirm bool, progress func(space.SyncProgress)) (space.SyncRun, error) {
	r, err := m.start(ctx, job{Source: id, Reset: reset, Confirm: confirm})
	if err != nil {
		return space.SyncRun{}, err
	}
	return m.wait(ctx, r, progress)
}

// wait waits for the end of a run, and returns its result. It calls progress regularly.
func (m *Manager) wait(ctx context.Context, r *run, progress func(space.SyncProgress)) (space.SyncRun, error) {
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for {
		select {
		case <-r.done:
			return r.result, nil
		case <-ctx.Done():
			return space.SyncRun{}, fault.Wrap(ctx.Err(), fault.Canceled, "The request ended. The update continues.")
		case <-m.ctx.Done():
			return space.SyncRun{}, fault.New(fault.Unavailable, "The server is shutting down. The update continues after its next start.")
		case <-tick.C:
			m.mu.Lock()
			at := r.at
			m.mu.Unlock()
			progress(at)
		}
	}
}

const progressEvery = 200 * time.Millisecond

// Begin starts a sync in the background.
func (m *Manager) Begin(ctx context.Context, id string, reset, confirm bool) error {
	_, err := m.start(ctx, job{Source: id, Reset: reset, Confirm: confirm})
	return err
}

// Cancel ends the running sync of a source. The error is a fault.Conflict if none runs.
func (m *Manager) Cancel(ctx context.Context, id string) error {
	m.mu.Lock()
	e := m.entries[id]
	var r *run
	if e != nil {
		r = e.run
	}
	m.mu.Unlock()
	switch {
	case e == nil:
		return sources.NotThere(id)
	case r == nil:
		return fault.New(fault.Conflict, "No update of %s is running.", id)
	}
	r.cancel(errCanceled)
	if _, err := m.open(); err != nil { // continues the run if an earlier process left it
		return err
	}
	select {
	case <-r.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-m.ctx.Done():
		return fault.New(fault.Unavailable, "The server is shutting down.")
	}
}

// Overlay adds the state of the sync to a source.
func (m *Manager) Overlay(s *space.Source) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entries[s.ID]
	if e == nil || e.row.SpaceID != string(s.Space) {
		return
	}
	if e.row.Checked != 0 {
		s.Synced = database.Time(e.row.Checked)
	}
	switch st := space.SyncState(e.row.State); {
	case e.row.Problem != "":
		problem := e.row.Problem
		if e.row.Next != 0 && (st == space.SyncFailed || st == space.SyncLimited) {
			problem += " Satchel tries again later."
		}
		s.State, s.Problem = space.SourceFailed, cmp.Or(s.Problem, problem)
	case e.run != nil || st == space.SyncNew:
		s.State = space.SourceWaiting
	}
}
