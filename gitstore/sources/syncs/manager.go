package syncs

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
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
	desk   chan struct{} // limits the uploads that are converted at a time

	opening sync.Mutex // held while the engine is opened or closed

	mu      sync.Mutex
	engine  dbos.Context      // nil before the first run
	broken  dbos.Context      // an engine that failed, until it is closed
	entries map[string]*entry // by source
	owned   map[space.SpaceID]bool
	left    []*run // of an earlier process, until the engine is open
}

// entry is the sync of a source. It is under Manager.mu.
type entry struct {
	row syncRow
	run *run // nil if none runs
	// pushed reports that upstream has changed since the run began.
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
	m.mu.Lock()
	some := len(m.entries) > 0
	m.mu.Unlock()
	m.work.Go(func() {
		if some {
			if _, err := m.open(); err != nil {
				m.o.Logger.Error("open the workflow engine", "error", err)
			}
		}
		m.schedule()
	})
}

// removeStages removes the files of runs that have ended.
func (m *Manager) removeStages() {
	m.mu.Lock()
	running := map[string]bool{}
	for _, r := range m.left {
		running[r.Run] = true
	}
	m.mu.Unlock()
	list, _ := os.ReadDir(m.o.Dir) // there is none before the first sync
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

// Reserve makes a new space belong to a sync, before Add. Otherwise the search index would index the
// space's first commit.
func (m *Manager) Reserve(id space.SpaceID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.owned[id] = true
}

func (m *Manager) rouse() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// idle is how long the schedule waits if no sync is due.
const idle = time.Hour

func (m *Manager) schedule() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-m.ctx.Done():
			return
		case <-timer.C:
		case <-m.wake:
		}
		wait := idle
		for _, id := range m.due(&wait) {
			if _, err := m.start(m.ctx, job{Source: id}); err != nil && m.ctx.Err() == nil {
				m.o.Logger.Error("start a sync", "source", id, "error", err)
				wait = time.Minute
			}
		}
		timer.Reset(wait)
	}
}

// due returns the sources whose sync is due, and lowers wait to the time of the next one.
func (m *Manager) due(wait *time.Duration) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.o.Now()
	var out []string
	for id, e := range m.entries {
		if e.run != nil || e.row.Next == 0 || e.row.State == string(space.SyncEnded) {
			continue
		}
		left := database.Time(e.row.Next).Sub(now)
		if left <= 0 || left > max(e.row.every(), longestLimit) { // the clock was set back
			out = append(out, id)
		} else {
			*wait = min(*wait, left)
		}
	}
	slices.Sort(out)
	return out
}

// start begins a run, or returns the one that runs. The error is a fault.Conflict if one runs
// that cannot do what the job asks.
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
			return nil, fault.New(fault.Conflict, "A sync of %s runs already. Wait until it ends, or cancel it.", j.Source)
		}
		_, err := m.open() // it may be a run of an earlier process
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

// take makes a new run the one of an entry. The caller holds m.mu.
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

// enter returns the run of a job that the engine starts. ok is false if its source was removed.
func (m *Manager) enter(j job) (r *run, row syncRow, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.entries[j.Source]
	if e == nil || e.run == nil || e.run.Run != j.Run {
		return nil, syncRow{}, false
	}
	return e.run, e.row, true
}

// The delays after a failure. The first doubles with each failure in a row.
const (
	firstAgain   = time.Minute
	lastAgain    = time.Hour
	longestLimit = 24 * time.Hour
)

// end stores how a run ended, and plans the next one.
func (m *Manager) end(ctx context.Context, r *run, out outcome) {
	now := m.o.Now()
	res := space.SyncRun{ID: r.Run, Source: r.Source, Started: r.started, Ended: now, Version: out.version, Commit: out.commit, SyncCounts: out.counts}
	m.mu.Lock()
	e := m.entries[r.Source]
	if e == nil || e.run != r {
		m.mu.Unlock()
		return
	}
	row := e.row
	m.mu.Unlock()
	every := row.every()
	next := every - time.Duration(rand.Int64N(int64(every)/10+1)) // so that not all sources come at once
	switch code := fault.CodeOf(out.err); {
	case row.State == string(space.SyncEnded):
		res.State = space.SyncCanceled
	case out.err == nil:
		row.State, row.Problem, row.Failures = string(space.SyncReady), "", 0
		row.Version, row.CommitID, row.Checked = out.version, string(out.commit), database.Millis(now)
		res.State = space.SyncReady
		if out.same || !out.counts.Differs() && !r.Reset {
			res.State = space.SyncUnchanged
		}
	case code == fault.Canceled:
		res.State = space.SyncCanceled
	default:
		row.State, row.Problem = string(stateOf(out.err)), fault.PublicOf(out.err)
		row.Failures++
		res.State, res.Problem = space.SyncState(row.State), row.Problem
		if again := again(out.err, row.Failures); again > 0 && every > 0 {
			next = min(every, again)
			if res.State == space.SyncLimited {
				next = again
			}
		}
	}
	if row.Next = 0; every > 0 {
		row.Next = database.Millis(now.Add(next))
	}
	if err := m.endRun(ctx, row, res); err != nil {
		m.o.Logger.Error("store the end of a sync", "source", r.Source, "error", err)
	}
	m.o.Logger.Info("a sync ended", "source", r.Source, "state", res.State, "files", res.Files)
	if err := os.RemoveAll(m.stageDir(r.Run)); err != nil {
		m.o.Logger.Warn("the files of a sync were not removed", "source", r.Source, "error", err)
	}
	m.mu.Lock()
	if cur := m.entries[r.Source]; cur == e {
		// The settings may have changed meanwhile. Then the next run is due at once.
		if cur.row.Settings == row.Settings {
			cur.row.Version, cur.row.CommitID, cur.row.Next = row.Version, row.CommitID, row.Next
		}
		if cur.row.every() == 0 {
			cur.row.Next = 0
		} else if cur.pushed {
			m.hurry(cur)
		}
		cur.pushed = false
		cur.row.State, cur.row.Problem, cur.row.Checked, cur.row.Failures = row.State, row.Problem, row.Checked, row.Failures
		cur.run = nil
	}
	r.result = res
	close(r.done)
	m.mu.Unlock()
	m.o.Ended(res)
	m.rouse()
	m.forget(r.Run)
}

func stateOf(err error) space.SyncState {
	switch code := fault.CodeOf(err); {
	case fault.FieldOf(err) == fieldShrunk && code == fault.Conflict:
		return space.SyncStopped
	case code == fault.Limited:
		return space.SyncLimited
	case code == fault.NotFound:
		return space.SyncGone
	case code == fault.Forbidden || code == fault.Unauthenticated || code == fault.Invalid || code == fault.TooLarge || code == fault.Conflict:
		return space.SyncRefused
	}
	return space.SyncFailed
}

// again returns the delay before a failed sync is tried again; 0 for the usual interval.
func again(err error, failures int) time.Duration {
	var asked time.Duration
	if f := faultOf(err); f != nil {
		asked = f.RetryAfter
	}
	switch stateOf(err) {
	case space.SyncLimited:
		return min(max(asked, firstAgain), longestLimit)
	case space.SyncFailed:
		return max(min(firstAgain<<min(failures-1, 10), lastAgain), min(asked, longestLimit))
	}
	return 0
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

// wait returns how a run ended.
func (m *Manager) wait(ctx context.Context, r *run, progress func(space.SyncProgress)) (space.SyncRun, error) {
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for {
		select {
		case <-r.done:
			return r.result, nil
		case <-ctx.Done():
			return space.SyncRun{}, fault.Wrap(ctx.Err(), fault.Canceled, "The request ended. The sync continues.")
		case <-m.ctx.Done():
			return space.SyncRun{}, fault.New(fault.Unavailable, "The server is shutting down. The sync continues after its next start.")
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
		return fault.New(fault.Conflict, "No sync of %s runs.", id)
	}
	r.cancel(errCanceled)
	if _, err := m.open(); err != nil { // it may be a run of an earlier process
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
		s.State, s.Problem = space.SourceFailed, cmp.Or(s.Problem, e.row.Problem)
	case e.run != nil || st == space.SyncNew:
		s.State = space.SourceWaiting
	}
}
