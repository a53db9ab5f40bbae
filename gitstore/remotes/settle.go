package remotes

import (
	"context"
	"satchel/internal/space"
	"time"
)

func newEntry(r space.Remote, sealed []byte) *entry {
	return &entry{remote: r, sealed: sealed}
}

// next returns the outcome that follows from a sync's result.
func (o outcome) next(r result, now time.Time) outcome {
	n := outcome{lastCheck: o.lastCheck, lastSync: o.lastSync}
	if r.checked {
		n.lastCheck = now
	}
	t := r.trouble
	if t == nil {
		if !r.quiet {
			n.lastSync = now
		}
		return n
	}
	n.failingSince = o.failingSince
	if n.failingSince.IsZero() {
		n.failingSince = now
	}
	if r.wait > 0 && t.retryAfter > 0 {
		n.waitUntil = now.Add(r.wait)
	}
	n.attempts = o.attempts + 1
	n.problem, n.detail, n.remedy, n.locations = t.problem, t.detail, t.remedy, t.locations
	return n
}

// record logs and stores the outcome of a sync. It does not store a check that found
// nothing new.
func (m *Manager) record(ctx context.Context, s *syncing, r result, n outcome, took time.Duration) {
	if r.quiet {
		return
	}
	log, result := m.o.Logger.With("space", s.remote.Space), "ok"
	if t := r.trouble; t != nil {
		result = string(t.problem)
		log.WarnContext(ctx, "space and remote are not in step", "problem", t.problem, "attempt", n.attempts, "error", t.err)
	} else if s.before.problem != "" {
		log.InfoContext(ctx, "space and remote are in step again", "after", s.before.problem)
	}
	m.o.Metrics.Synced(result, took)
	if r.trouble == nil && s.before.problem == "" && !s.moved {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	if err := m.storeOutcome(ctx, s.remote.Space, n); err != nil {
		log.WarnContext(ctx, "how a sync ended is kept in memory alone", "error", err)
	}
}

// settle records the end of a sync, and plans the next one. The caller holds m.mu.
func (m *Manager) settle(e *entry, w want, r result, n outcome, cut bool) {
	e.phase, e.transit, e.cancel = idle, false, nil
	e.syncs++
	close(e.ended)
	here := m.entries[e.remote.Space] == e
	if cut || !here {
		e.want |= w
		e.waiters = append(e.current, e.waiters...)
		e.current = nil
		switch {
		case !here:
			e.release(errNoRemote())
		case m.closed:
			e.release(errClosing())
		default:
			m.ask(e, e.want) // starts nothing while the space is paused
		}
		return
	}
	now := time.Now()
	e.outcome = n
	if !r.quiet {
		e.checked = now
	}
	if r.trouble == nil {
		e.synced = r.synced
		e.forgive()
		if e.published == r.synced {
			e.want &^= wantPush // the head was pushed before its event came
		} else if e.published != "" {
			r.again = true
		}
		e.behindSince = time.Time{}
		if r.again {
			e.want |= wantPush
			e.behindSince = now
		}
	} else {
		e.tries++
		e.nextTry, e.waitAsked = now.Add(r.wait), r.trouble.retryAfter > 0
		e.want |= w
	}
	for _, x := range e.current {
		x.finish(nil)
	}
	e.current = nil
	switch {
	case m.closed:
		e.release(errClosing())
	case len(e.waiters) > 0:
		e.forgive() // somebody requested a sync while this one ran
		m.ask(e, wantCheck|wantPush)
	case e.want != 0 && r.trouble == nil:
		m.ask(e, e.want)
	default:
		m.arm(e)
	}
}

// delay returns the time until a failed sync is retried.
func (m *Manager) delay(tries int, t *trouble) time.Duration {
	b := m.o.Backoff
	d := b.Max
	if tries < 32 {
		d = min(b.Max, b.Min<<(tries-1))
	}
	if d <= 0 {
		d = b.Max
	}
	d = time.Duration(m.o.Random() * float64(d))
	if t.slow {
		// Spread by a tenth, so that remotes that failed together are not retried together.
		d = b.Slow + time.Duration(m.o.Random()*float64(b.Slow)/10)
	}
	if wait := min(t.retryAfter, b.Longest); wait > d {
		d = wait + time.Duration(m.o.Random()*float64(min(wait/10, b.Max)))
	}
	return d
}

// arm sets the entry's timer: for a retry after a failure, or for a check of the remote of
// a space in use. Otherwise it sets no timer. The caller holds m.mu.
func (m *Manager) arm(e *entry) {
	if m.closed || e.phase != idle {
		return
	}
	at := e.checked.Add(m.o.PollEvery)
	switch {
	case e.failing() || time.Until(e.nextTry) > 0:
		at = e.nextTry
	case m.o.PollEvery < 0 || e.used.IsZero() || at.Sub(e.used) > m.o.Recent:
		return
	}
	e.disarm()
	var t *time.Timer
	t = time.AfterFunc(max(0, time.Until(at)), func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if e.timer != t || m.entries[e.remote.Space] != e {
			return
		}
		e.timer, e.nextTry, e.waitAsked = nil, time.Time{}, false
		m.ask(e, wantCheck)
	})
	e.timer = t
}
