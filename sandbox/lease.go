package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"satchel/internal/bytesize"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// lease is one use of an instance.
type lease struct {
	*instance
	cold bool   // the caller waited for the start
	note string // says that the wait for room was long; may be empty
}

// acquire returns a lease of the live instance of k, and starts an instance if there is
// none. The caller must release the lease.
func (p *Pool) acquire(ctx context.Context, k key, phase func(Phase)) (lease, error) {
	for {
		p.mu.Lock()
		if p.closed {
			p.mu.Unlock()
			return lease{}, errClosed()
		}
		if b := p.instances[k]; b != nil {
			if b.state == live {
				b.refs++
				p.mu.Unlock()
				return lease{instance: b}, nil
			}
			settled := b.settled
			p.mu.Unlock()
			phase(PhaseStarting)
			select {
			case <-settled:
				continue
			case <-ctx.Done():
				return lease{}, canceled(ctx)
			}
		}
		s := p.starts[k]
		if s == nil {
			if p.queue.len() >= p.o.MaxQueue {
				p.mu.Unlock()
				return lease{}, p.errFull(&startup{short: p.short})
			}
			s = &startup{key: k, ready: make(chan struct{}), since: time.Now()}
			p.starts[k] = s
			p.queue.push(s)
			p.dispatch()
		}
		s.waiters++
		if s.queued {
			phase(PhaseQueued)
		} else {
			phase(PhaseStarting)
		}
		p.mu.Unlock()
		b, err := p.await(ctx, s)
		if err != nil {
			return lease{}, err
		}
		if b.stateNow() == live {
			return lease{instance: b, cold: true, note: s.waitNote()}, nil
		}
		b.release() // the instance was stopped before anybody used it
	}
}

func (b *instance) stateNow() state {
	b.pool.mu.Lock()
	defer b.pool.mu.Unlock()
	return b.state
}

// await waits until s is ready. It returns an error if ctx ends first, or if s is still queued
// after QueueTime. The caller is one of the waiters of s.
func (p *Pool) await(ctx context.Context, s *startup) (*instance, error) {
	patience := time.NewTimer(p.o.QueueTime)
	defer patience.Stop()
	for {
		select {
		case <-s.ready:
			return s.instance, s.err
		case <-patience.C:
			if err := p.abandon(s, true, func() error { return p.errFull(s) }); err != nil {
				return nil, err
			}
		case <-ctx.Done():
			if err := p.abandon(s, false, func() error { return canceled(ctx) }); err != nil {
				return nil, err
			}
			return s.instance, s.err // s became ready at the same moment; Exec checks ctx next
		}
	}
}

// abandon removes one waiter from s and returns the error that the function why makes. It does
// nothing and returns nil if s has become ready or, with onlyQueued, if s has left the queue.
func (p *Pool) abandon(s *startup, onlyQueued bool, why func() error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-s.ready:
		return nil
	default:
	}
	if onlyQueued && !s.queued {
		return nil
	}
	s.waiters--
	if s.waiters == 0 && s.queued {
		p.queue.remove(s)
		delete(p.starts, s.key)
	}
	return why()
}

// errFull returns an error that explains why a start found no room. The caller holds mu.
func (p *Pool) errFull(s *startup) error {
	f := fault.New(fault.Limited, "All sandboxes of this server are in use by others. Try again in a minute.")
	if s.short {
		f = fault.New(fault.Limited, "The server has too little memory left for another sandbox. Try again in a minute; "+
			"its operator can give it more (%s must stay free).", bytesize.Text(p.o.FreeMemory))
	}
	f.RetryAfter = time.Minute
	return f
}

// longWait is the least wait for a sandbox that an answer mentions.
const longWait = 2 * time.Second

// waitNote returns a note about a long wait, or "" after a short one.
func (s *startup) waitNote() string {
	if s.waited < longWait {
		return ""
	}
	why := "all sandboxes of this server were in use by others"
	if s.short {
		why = "the server was short of memory"
	}
	return fmt.Sprintf("The command waited %s for a sandbox, because %s.", s.waited.Round(time.Second), why)
}

func canceled(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fault.Wrap(ctx.Err(), fault.Unavailable, "The sandbox was not ready in time. Try again in a moment.")
	}
	return fault.Wrap(ctx.Err(), fault.Canceled, "The call was cancelled before the command began.")
}

// dispatch gives free room to waiting starts, and frees more room if it can. The caller
// holds mu.
func (p *Pool) dispatch() {
	for p.queue.len() > 0 && !p.closed {
		if !p.room() {
			for _, s := range p.starts {
				s.short = s.short || p.short
			}
			p.makeRoom()
			return
		}
		s := p.queue.pop()
		p.starting++
		s.waited = time.Since(s.since)
		p.o.Metrics.waited(s.waited)
		p.wg.Go(func() { p.boot(s) })
	}
}

// room reports whether one more sandbox may start. The caller holds mu.
func (p *Pool) room() bool {
	n := len(p.instances) + p.starting
	if n >= p.o.MaxSandboxes {
		return false
	}
	if p.isShort() {
		return false
	}
	if n == 0 {
		return true // otherwise a MaxMemory that is too small would prevent every start
	}
	memory := int64(p.starting+1) * p.o.StartMemory
	for _, b := range p.instances {
		memory += b.memory
	}
	return memory <= p.o.MaxMemory
}

// lacking returns how many bytes of memory the machine lacks for starts that take start
// bytes in all. It returns 0 if the machine has enough, if its free memory is unknown, or if
// Options switch the check off. Memory of sandboxes that are ending counts as available. The
// caller holds mu.
func (p *Pool) lacking(start int64) int64 {
	if p.o.FreeMemory < 0 {
		return 0
	}
	free, err := p.o.Available()
	if err != nil {
		return 0
	}
	for _, b := range p.instances {
		if b.state != live {
			free += b.memory
		}
	}
	return max(0, p.o.FreeMemory+start-free)
}

// isShort reports whether the machine has too little memory for one more start.
// The caller holds mu.
func (p *Pool) isShort() bool {
	lacks := p.lacking(int64(p.starting+1) * p.o.StartMemory)
	if short := lacks > 0; short != p.short {
		if p.short = short; short {
			p.o.Logger.Warn("the machine is short of memory: no sandbox starts", "lacking", lacks, "to_stay_free", p.o.FreeMemory)
		} else {
			p.o.Logger.Info("the machine has memory for sandboxes again")
		}
	}
	return p.short
}

// makeRoom stops idle instances, least recently used first, until as many instances are
// ending as starts are waiting. The caller holds mu.
func (p *Pool) makeRoom() {
	ending := 0
	for _, b := range p.instances {
		if b.state != live {
			ending++
		}
	}
	for ; ending < p.queue.len(); ending++ {
		b := p.leastRecent()
		if b == nil {
			return
		}
		b.stop(StopEvicted, p.o.Grace)
	}
}

// boot starts the sandbox that s waits for.
func (p *Pool) boot(s *startup) {
	p.mu.Lock()
	gen := p.lives[s.key].gen + 1
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(p.hard, p.o.StartTime)
	defer cancel()
	began := time.Now()
	b, err := p.start(ctx, s.key, gen)
	p.o.Metrics.started(time.Since(began), err)

	p.mu.Lock()
	defer p.mu.Unlock()
	p.starting--
	delete(p.starts, s.key)
	defer close(s.ready)
	defer p.dispatch()
	if err != nil {
		p.count.failures++
		p.o.Logger.Error("a sandbox did not start", "space", s.key.space, "err", err)
		s.err = startError(err)
		if s.dropped != nil {
			s.err = s.dropped
			close(s.gone)
		}
		return
	}
	p.count.starts++
	p.instances[s.key] = b
	b.lastUsed = time.Now()
	p.wg.Go(b.watch)
	if s.dropped != nil {
		s.err = s.dropped
		why := s.why
		if p.closed {
			why = StopClosed
		}
		b.stop(why, p.o.Grace)
		p.wg.Go(func() {
			<-b.gone
			close(s.gone)
		})
		return
	}
	s.instance = b
	b.refs = s.waiters
}

// killedRetry is how long a caller should wait before a retry, after something outside ended a
// sandbox. A new runtime is up by then.
const killedRetry = time.Second

// startError returns the error that a caller gets for a failed start.
func startError(err error) error {
	if errors.Is(err, space.ErrKilled) {
		f := fault.Wrap(err, fault.Unavailable, "The sandbox runtime was ended while the sandbox started; nothing was run. Try again.")
		f.RetryAfter = killedRetry
		return f
	}
	var f *fault.Error
	if errors.As(err, &f) {
		return err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return fault.Wrap(err, fault.Unavailable, "The sandbox took too long to start. Try again in a moment.")
	}
	return fault.Wrap(err, fault.Unavailable, "The sandbox could not be started. Try again in a moment; the server's log and `satchel doctor` say more.")
}

// startup is one start that one or more commands wait for.
type startup struct {
	key      key
	ready    chan struct{} // closed once instance or err is set
	gone     chan struct{} // set with dropped; closed when nothing of the sandbox is left
	instance *instance
	err      error
	waiters  int // each owns one of instance.refs once ready is closed
	queued   bool
	since    time.Time
	waited   time.Duration // time in the queue; set when the start leaves the queue
	short    bool          // the machine was short of memory while the start waited
	dropped  error         // set if the start was stopped before it was ready
	why      StopReason
}

// queue holds starts that wait for room: first come, first served within a
// user, and the users in turn.
type queue struct {
	byUser map[space.UserID][]*startup
	turn   []space.UserID // the users that wait, next one first
	n      int
}

func newQueue() *queue { return &queue{byUser: map[space.UserID][]*startup{}} }

func (q *queue) len() int { return q.n }

func (q *queue) push(s *startup) {
	u := s.key.user
	if len(q.byUser[u]) == 0 {
		q.turn = append(q.turn, u)
	}
	q.byUser[u] = append(q.byUser[u], s)
	s.queued = true
	q.n++
}

// pop returns the next start; nil if none waits.
func (q *queue) pop() *startup {
	if q.n == 0 {
		return nil
	}
	u := q.turn[0]
	q.turn = q.turn[1:]
	s := q.byUser[u][0]
	q.take(s)
	if len(q.byUser[u]) > 0 {
		q.turn = append(q.turn, u)
	}
	return s
}

// remove removes s from the queue.
func (q *queue) remove(s *startup) {
	if !s.queued {
		return
	}
	q.take(s)
	if len(q.byUser[s.key.user]) == 0 {
		q.turn = slices.DeleteFunc(q.turn, func(u space.UserID) bool { return u == s.key.user })
	}
}

func (q *queue) take(s *startup) {
	u := s.key.user
	q.byUser[u] = slices.DeleteFunc(q.byUser[u], func(o *startup) bool { return o == s })
	if len(q.byUser[u]) == 0 {
		delete(q.byUser, u)
	}
	s.queued = false
	q.n--
}
