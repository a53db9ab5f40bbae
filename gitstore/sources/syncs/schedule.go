package syncs

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"satchel/gitstore/sources/upstream"
	"satchel/internal/database"
	"satchel/internal/fault"
	"satchel/internal/space"
)

func (m *Manager) rouse() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// idle is how long the schedule waits if no sync is due.
const idle = time.Hour

// maxReopen is the longest pause between two tries to continue the runs of an earlier process.
const maxReopen = time.Minute

func (m *Manager) schedule() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	reopen := m.o.Retry
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
				wait = min(wait, time.Minute)
			}
		}
		if err := m.continueOthers(); err != nil && m.ctx.Err() == nil {
			m.o.Logger.Error("continue the syncs of an earlier process", "error", err)
			wait = min(wait, reopen)
			reopen = min(2*reopen, maxReopen)
		}
		if m.adopt() {
			wait = min(wait, 10*m.o.Retry)
		}
		timer.Reset(wait)
	}
}

// adopt ends the runs of earlier processes that another server with the same database has
// ended, and reports whether some are left. The engine gives each run to one of the servers.
func (m *Manager) adopt() (left bool) {
	m.mu.Lock()
	var runs []*run
	for _, e := range m.entries {
		if e.run != nil && e.run.earlier && !e.run.entered {
			runs = append(runs, e.run)
		}
	}
	m.mu.Unlock()
	for _, r := range runs {
		ended, err := m.ended(m.ctx, r)
		if err != nil && m.ctx.Err() == nil {
			m.o.Logger.Error("look whether another server has ended a sync", "source", r.Source, "error", err)
		}
		left = left || !ended
	}
	return left
}

// ended reports whether a run has ended according to the database, and if so, ends it here.
func (m *Manager) ended(ctx context.Context, r *run) (bool, error) {
	var row syncRow
	var result runRow
	err := m.o.DB.Read(ctx).Take(&result, "id = ?", r.Run).Error
	if err != nil || result.Ended == 0 {
		return false, err
	}
	if err := m.o.DB.Read(ctx).Take(&row, "source_id = ?", r.Source).Error; err != nil {
		return false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if e := m.entries[r.Source]; e != nil && e.run == r && !r.entered {
		e.row, e.run, r.result = row, nil, result.run()
		close(r.done)
	}
	return true, nil
}

// continueOthers opens the workflow engine if runs of an earlier process wait for it.
func (m *Manager) continueOthers() error {
	m.mu.Lock()
	waiting := len(m.left) > 0
	m.mu.Unlock()
	if !waiting {
		return nil
	}
	_, err := m.open()
	return err
}

// due returns the sources whose sync is due, and lowers wait to the time until the next sync.
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
		// A delay longer than both limits means that the clock was set back.
		if left <= 0 || left > max(e.row.every(), longestLimit) {
			out = append(out, id)
		} else {
			*wait = min(*wait, left)
		}
	}
	slices.Sort(out)
	return out
}

// The delays after a failure. firstAgain doubles with each failure in a row, up to lastAgain.
// longestLimit is the longest delay for which upstream can ask.
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
	next := every - time.Duration(rand.Int64N(int64(every)/10+1)) // so that not all sources sync at once
	switch code := fault.CodeOf(out.err); {
	case row.State == string(space.SyncEnded):
		res.State = space.SyncCanceled
	case out.err == nil:
		row.State, row.Problem, row.Failures = string(space.SyncReady), "", 0
		row.Version, row.CommitID, row.Checked = out.version, string(out.commit), database.Millis(now)
		if !out.same {
			row.Package = out.pkg.text()
		}
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
			cur.row.Version, cur.row.CommitID, cur.row.Next, cur.row.Package = row.Version, row.CommitID, row.Next, row.Package
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

// pushEvery is the least time between two syncs of a source because of pushes.
const pushEvery = time.Minute

// Pushed starts the syncs that follow the branch to which somebody pushed. It leaves out
// sources that are synced only on request, and sources whose upstream asked Satchel to wait. If a
// sync of the source runs, another sync follows. Many pushes start at most one sync of a source a
// minute.
func (m *Manager) Pushed(p upstream.Push) {
	m.mu.Lock()
	for _, e := range m.entries {
		if e.row.every() == 0 || e.row.State == string(space.SyncLimited) {
			continue
		}
		u, err := upstream.Open(e.row.Kind, []byte(e.row.Settings))
		if err != nil || !upstream.Follows(u, p) {
			continue // if the settings are wrong, the next sync reports it
		}
		if e.run != nil {
			e.pushed = true
		} else {
			m.hurry(e)
		}
	}
	m.mu.Unlock()
	m.rouse()
}

// hurry plans the next sync of an entry because of a push. The caller holds Manager.mu.
func (m *Manager) hurry(e *entry) {
	at := m.o.Now()
	if last := database.Time(e.row.Checked); e.row.Checked != 0 && at.Before(last.Add(pushEvery)) {
		at = last.Add(pushEvery)
	}
	if next := database.Millis(at); e.row.Next == 0 || next < e.row.Next {
		e.row.Next = next
	}
}

func faultOf(err error) *fault.Error {
	f, _ := errors.AsType[*fault.Error](err)
	return f
}
