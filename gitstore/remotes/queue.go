package remotes

import (
	"context"
	"slices"
	"sync"
	"time"

	"satchel/internal/space"
)

// want is what the next sync of a space must do.
type want uint8

const (
	wantPush  want = 1 << iota // head may be ahead of the remote
	wantCheck                  // the remote may have news
)

type phase uint8

const (
	idle phase = iota
	waiting
	running
)

// entry is one space with a remote. Manager.mu guards it.
type entry struct {
	remote space.Remote
	sealed []byte // the secret, as it is stored

	phase   phase
	want    want
	waiters []*waiter // the callers that wait for the next sync
	current []*waiter // the callers that wait for the running sync
	cancel  context.CancelFunc
	ended   chan struct{} // closed when the sync that runs has ended
	transit bool          // the sync does more than check the remote

	// published is the newest head of a Publish since the last sync began. synced is the head
	// that was last seen at the remote.
	published, synced space.CommitID
	// behindSince is the time since which the remote has lacked commits.
	behindSince time.Time
	used        time.Time
	// checked is when this process last checked the remote.
	checked time.Time
	outcome
	// tries counts failures for the backoff. forgive resets it. outcome.attempts counts
	// failures for people.
	tries     int
	nextTry   time.Time
	waitAsked bool // the remote set nextTry, with Retry-After
	timer     *time.Timer
	syncs     int // the number of syncs that have ended
	// rewritten means that the remote's history was rewritten, and nobody was notified yet.
	rewritten bool
	replace   bool // SetRequest.Replace, until it is done
}

// failing reports whether the last sync failed.
func (e *entry) failing() bool { return e.problem != "" }

// forgive lets a failing remote be tried at once.
func (e *entry) forgive() {
	e.tries, e.nextTry, e.waitAsked = 0, time.Time{}, false
}

func (e *entry) disarm() {
	if e.timer != nil {
		e.timer.Stop()
		e.timer = nil
	}
}

// release ends the wait of everyone who waits for the next sync.
func (e *entry) release(err error) {
	for _, w := range e.waiters {
		w.finish(err)
	}
	e.waiters = nil
}

// waiter is one call that waits for a sync, such as a call of Sync.
type waiter struct {
	mu       sync.Mutex
	progress func(string)
	done     chan struct{}
	err      error
}

func newWaiter(progress func(string)) *waiter {
	return &waiter{progress: progress, done: make(chan struct{})}
}

func (w *waiter) report(line string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.progress != nil {
		w.progress(line)
	}
}

func (w *waiter) finish(err error) {
	w.mu.Lock()
	w.err = err
	w.mu.Unlock()
	close(w.done)
}

// leave ends the progress and returns why the wait ended.
func (w *waiter) leave() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.progress = nil
	return w.err
}

// queue holds the spaces that wait for a sync, in two lanes. Each lane is first come, first
// served. Remotes whose last sync failed have a lane of their own, so that they do not delay
// the others.
//
// A long sync leaves its place to another sync, so that slow remotes do not delay the others
// either. There are Options.Workers places, and as many places for long syncs. So at most twice
// Options.Workers syncs run.
type queue struct {
	sound, troubled []*entry
	running         int     // syncs in one of the Workers' places
	long            int     // syncs in one of the places for long ones
	slow            int     // running and long syncs from the troubled lane
	overdue         []*turn // long syncs without a place for long ones
	lastSlow        bool
}

// turn is a sync's place. Manager.mu guards it.
type turn struct {
	slow, long, ended bool
	timer             *time.Timer
}

func (q *queue) push(e *entry) {
	if e.failing() {
		q.troubled = append(q.troubled, e)
	} else {
		q.sound = append(q.sound, e)
	}
}

// ask requests the sync of a space. The caller holds m.mu.
func (m *Manager) ask(e *entry, w want) {
	e.want |= w
	switch {
	case m.closed, e.phase != idle, m.paused[e.remote.Space] > 0:
		return
	case time.Until(e.nextTry) > 0:
		m.arm(e)
		return
	}
	e.disarm()
	e.phase = waiting
	m.queue.push(e)
	m.dispatch()
}

// dispatch starts syncs while there is room. The caller holds m.mu.
func (m *Manager) dispatch() {
	for q := &m.queue; !m.closed && q.running < m.o.Workers; {
		var e *entry
		slow := len(q.troubled) > 0 && q.slow < max(1, m.o.Workers/2)
		if slow && len(q.sound) > 0 {
			slow = !q.lastSlow // alternate if both lanes can start a sync
		}
		switch {
		case slow:
			e, q.troubled = q.troubled[0], q.troubled[1:]
		case len(q.sound) > 0:
			e, q.sound = q.sound[0], q.sound[1:]
		default:
			return
		}
		q.lastSlow = slow
		if e.phase != waiting || m.entries[e.remote.Space] != e {
			continue // removed while it waited
		}
		if m.paused[e.remote.Space] > 0 {
			e.phase = idle // resume asks again
			continue
		}
		m.begin(e, slow)
	}
}

// begin starts a sync. The caller holds m.mu.
func (m *Manager) begin(e *entry, slow bool) {
	ctx, cancel := context.WithCancel(m.ctx)
	e.phase, e.cancel, e.ended, e.transit = running, cancel, make(chan struct{}), false
	w := e.want
	e.want, e.published = 0, ""
	e.current, e.waiters = e.waiters, nil
	t := m.takeTurn(slow)
	s := &syncing{m: m, e: e, remote: e.remote, sealed: e.sealed, want: w, before: e.outcome, tries: e.tries}
	m.work.Go(func() {
		defer cancel()
		start := time.Now()
		r := s.run(ctx)
		cut := ctx.Err() != nil
		if r.trouble != nil {
			r.wait = m.delay(s.tries+1, r.trouble)
		}
		n := s.before.next(r, time.Now())
		if !cut {
			m.record(ctx, s, r, n, time.Since(start))
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		m.queue.end(t)
		m.queue.relieve(m.o.Workers)
		m.settle(e, w, r, n, cut)
		m.dispatch()
	})
}

// takeTurn takes one of the Workers' places for a sync. slow reports that the sync comes from the
// troubled lane. The caller holds m.mu.
func (m *Manager) takeTurn(slow bool) *turn {
	t := &turn{slow: slow}
	m.queue.running++
	if slow {
		m.queue.slow++
	}
	t.timer = time.AfterFunc(m.o.LongAfter, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if t.ended {
			return
		}
		m.queue.overdue = append(m.queue.overdue, t)
		m.queue.relieve(m.o.Workers)
		m.dispatch()
	})
	return t
}

// relieve moves long syncs to free places for long ones, so that their own places become
// free. Moved syncs still count for the share of the troubled lane, so that slow failing
// remotes get no additional places.
func (q *queue) relieve(places int) {
	for len(q.overdue) > 0 && q.long < places {
		q.overdue[0].long = true
		q.overdue = q.overdue[1:]
		q.running--
		q.long++
	}
}

// end frees the place of a sync that has ended.
func (q *queue) end(t *turn) {
	t.ended = true
	t.timer.Stop()
	q.overdue = slices.DeleteFunc(q.overdue, func(o *turn) bool { return o == t })
	if t.long {
		q.long--
	} else {
		q.running--
	}
	if t.slow {
		q.slow--
	}
}
