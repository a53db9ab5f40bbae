package sandbox

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// Pool keeps the sandboxes of all users. Its methods may be called from many
// goroutines.
type Pool struct {
	o    Options
	hard context.Context // ends when Close stops waiting
	kill context.CancelFunc
	wg   sync.WaitGroup

	mu        sync.Mutex
	closed    bool
	instances map[key]*instance // started and not yet gone
	starts    map[key]*startup  // queued or in progress
	lives     map[key]life
	queue     *queue
	starting  int
	short     bool // the machine has too little memory for a start, as last seen
	count     counters
	quit      chan struct{} // closed by Close
}

// life is the record of a key's earlier sandboxes.
type life struct {
	gen   uint64
	ended StopReason
}

type counters struct {
	starts, failures                     uint64
	idle, evictions, deaths, outOfMemory uint64
	reaped                               uint64
}

func (c *counters) stopped(why StopReason) {
	switch why {
	case StopIdle:
		c.idle++
	case StopEvicted:
		c.evictions++
	case StopDied, StopHung:
		c.deaths++
	case StopMemory:
		c.outOfMemory++
	}
}

// New returns a Pool and starts its housekeeping. Call Reap before the first Exec, and
// Close at the end. Close does not close the Runtime.
func New(o Options) (*Pool, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	p := &Pool{
		o:         o,
		instances: map[key]*instance{},
		starts:    map[key]*startup{},
		lives:     map[key]life{},
		queue:     newQueue(),
		quit:      make(chan struct{}),
	}
	p.hard, p.kill = context.WithCancel(context.Background())
	p.wg.Go(p.housekeep)
	if o.ReapEvery > 0 {
		p.wg.Go(p.reapOrphans)
	}
	return p, nil
}

// Reap destroys the remains of sandboxes that this pool does not own, such as those of an
// earlier process, and returns the number of these sandboxes.
func (p *Pool) Reap(ctx context.Context) (int, error) {
	n, err := p.o.Runtime.Reap(ctx)
	if ctx.Err() == nil {
		p.o.Metrics.reaped(n, err)
	}
	p.mu.Lock()
	p.count.reaped += uint64(n)
	p.mu.Unlock()
	return n, err
}

// reapTime limits one search for orphans.
const reapTime = time.Minute

// reapOrphans reaps until the pool is closed, so that the remains of a failed stop, a
// killed process or a bug do not stay until the next start.
func (p *Pool) reapOrphans() {
	t := time.NewTicker(p.o.ReapEvery)
	defer t.Stop()
	for {
		select {
		case <-p.quit:
			return
		case <-t.C:
		}
		ctx, cancel := context.WithTimeout(p.hard, reapTime)
		n, err := p.Reap(ctx)
		cancel()
		switch {
		case p.hard.Err() != nil:
		case err != nil:
			p.o.Logger.Error("what no sandbox owns could not be removed", "err", err)
		case n > 0:
			p.o.Logger.Warn("removed what no sandbox owned", "sandboxes", n)
		}
	}
}

// Check returns a fault.Unavailable that explains why no sandbox can start here, or
// nil if one can.
func (p *Pool) Check(ctx context.Context) error { return p.o.Runtime.Check(ctx) }

func errClosed() error {
	return fault.New(fault.Unavailable, "The server is shutting down. Try again in a moment.")
}

// Close prevents further starts, gives running commands the time Grace, commits the changes and
// stops every sandbox. If ctx ends first, Close kills the rest without collecting changes, and
// returns ctx's error. Close may be called more than once.
func (p *Pool) Close(ctx context.Context) error {
	p.mu.Lock()
	if !p.closed {
		p.closed = true
		close(p.quit)
	}
	p.stopLocked(func(key) bool { return true }, StopClosed)
	p.mu.Unlock()
	done := make(chan struct{})
	go func() {
		p.wg.Wait()
		close(done)
	}()
	if p.drain(ctx, done) {
		p.kill()
		return nil
	}
	p.kill()
	p.mu.Lock()
	left := make([]*instance, 0, len(p.instances))
	for _, b := range p.instances {
		left = append(left, b)
	}
	p.mu.Unlock()
	for _, b := range left {
		p.destroy(b.sandbox)
	}
	<-done
	return ctx.Err()
}

// drain waits until done is closed, and returns false if ctx ends first. The housekeeping
// has ended by then, so drain checks for sandboxes that hang.
func (p *Pool) drain(ctx context.Context, done <-chan struct{}) bool {
	t := time.NewTicker(p.o.SweepEvery)
	defer t.Stop()
	for {
		select {
		case <-done:
			return true
		case <-ctx.Done():
			return false
		case now := <-t.C:
			p.mu.Lock()
			for _, b := range p.instances {
				b.heartbeat(now)
			}
			p.mu.Unlock()
		}
	}
}

// StopUser ends every sandbox of a removed user as Close does, and returns when they are gone.
func (p *Pool) StopUser(ctx context.Context, u space.UserID) error {
	return p.stop(ctx, func(k key) bool { return k.user == u }, StopAsked)
}

// StopSpace ends every sandbox over a space as Close does, and returns when they are gone. It is
// for a change of the space's history, which the next answers give as the reason.
func (p *Pool) StopSpace(ctx context.Context, id space.SpaceID) error {
	return p.stop(ctx, func(k key) bool { return k.space == id }, StopHistory)
}

// EndSpace is like StopSpace, for a space that was deleted.
func (p *Pool) EndSpace(ctx context.Context, id space.SpaceID) error {
	return p.stop(ctx, func(k key) bool { return k.space == id }, StopAsked)
}

// StopMember ends the sandbox of one user in one space, for a member who was removed or may no
// longer write.
func (p *Pool) StopMember(ctx context.Context, u space.UserID, id space.SpaceID) error {
	return p.stop(ctx, func(k key) bool { return k == key{u, id} }, StopAsked)
}

func (p *Pool) stop(ctx context.Context, match func(key) bool, why StopReason) error {
	p.mu.Lock()
	waits := p.stopLocked(match, why)
	p.mu.Unlock()
	for _, w := range waits {
		select {
		case <-w:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// stopLocked stops the sandboxes that match, whether they run, start or wait, and returns
// channels that are closed when they are gone.
func (p *Pool) stopLocked(match func(key) bool, why StopReason) []<-chan struct{} {
	err := error(fault.New(fault.Unavailable, "The sandbox was stopped before the command began."))
	if why == StopClosed {
		err = errClosed()
	}
	var waits []<-chan struct{}
	for k, s := range p.starts {
		switch {
		case !match(k):
		case s.queued:
			p.queue.remove(s)
			delete(p.starts, k)
			s.err = err
			close(s.ready)
		default:
			if s.dropped, s.why = err, why; s.gone == nil {
				s.gone = make(chan struct{})
			}
			waits = append(waits, s.gone)
		}
	}
	for k, b := range p.instances {
		if match(k) {
			b.stop(why, p.o.Grace)
			waits = append(waits, b.gone)
		}
	}
	return waits
}

// running returns the live instance of a key, or nil. The caller must release the instance.
func (p *Pool) running(k key) *instance {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := p.instances[k]
	if b == nil || b.state != live {
		return nil
	}
	b.refs++
	return b
}

// Memory returns how many bytes one sandbox may use.
func (p *Pool) Memory() int64 { return p.o.Limits.Memory }

// Status describes a pool now and since its start.
type Status struct {
	Sandboxes int   `json:"sandboxes"` // started and not gone
	Busy      int   `json:"busy"`      // with a command or a job
	Starting  int   `json:"starting"`
	Queued    int   `json:"queued"` // starts that wait for room
	Memory    int64 `json:"memory"` // bytes, as last measured
	Closed    bool  `json:"closed"`

	Starts      uint64 `json:"starts"`
	Failures    uint64 `json:"failures"` // starts that failed
	IdleStops   uint64 `json:"idle_stops"`
	Evictions   uint64 `json:"evictions"`
	Deaths      uint64 `json:"deaths"`
	OutOfMemory uint64 `json:"out_of_memory"`
	Reaped      uint64 `json:"reaped"` // orphans of earlier processes or failed stops
}

// Status returns the pool's status.
func (p *Pool) Status() Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := Status{
		Sandboxes: len(p.instances), Starting: p.starting, Queued: p.queue.len(), Closed: p.closed,
		Starts: p.count.starts, Failures: p.count.failures, IdleStops: p.count.idle,
		Evictions: p.count.evictions, Deaths: p.count.deaths, OutOfMemory: p.count.outOfMemory, Reaped: p.count.reaped,
	}
	for _, b := range p.instances {
		s.Memory += b.memory
		if b.busy() {
			s.Busy++
		}
	}
	return s
}

// housekeep calls sweep periodically until the pool is closed.
func (p *Pool) housekeep() {
	t := time.NewTicker(p.o.SweepEvery)
	defer t.Stop()
	for {
		select {
		case <-p.quit:
			return
		case <-t.C:
			p.sweep(time.Now())
		}
	}
}

// sweep stops idle sandboxes and those that hang. It measures the memory of the sandboxes in use,
// and stops more sandboxes if memory is scarce.
func (p *Pool) sweep(now time.Time) {
	p.mu.Lock()
	var doubtful, measure []*instance
	for _, b := range p.instances {
		b.heartbeat(now)
		if b.state != live {
			continue
		}
		for _, j := range b.jobs {
			if now.After(j.expires) {
				doubtful = append(doubtful, b)
				break
			}
		}
		if b.idle(now) && now.Sub(b.lastUsed) >= cmp.Or(b.idleStop, p.o.IdleStop) {
			b.stop(StopIdle, p.o.Grace)
			continue
		}
		if b.busy() || now.Sub(b.lastUsed) < 2*p.o.SweepEvery || b.memory == p.o.StartMemory {
			measure = append(measure, b)
		}
	}
	p.mu.Unlock()
	for _, b := range doubtful {
		b.checkJobs(p.hard, now)
	}
	for _, b := range measure {
		p.measure(b)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.relieve()
	p.dispatch()
}

// measureTime limits one measurement of a sandbox's memory.
const measureTime = 2 * time.Second

// measure records an instance's memory, and ends the instance if it exceeds its limit by more
// than a quarter. This is the last resort if no cgroup enforces the limit.
func (p *Pool) measure(b *instance) {
	ctx, cancel := context.WithTimeout(p.hard, measureTime)
	defer cancel()
	st, err := b.sandbox.Stats(ctx)
	if err != nil {
		select {
		case <-b.sandbox.Done():
		default:
			if !errors.Is(err, context.Canceled) {
				p.o.Logger.Debug("a sandbox could not be measured", "space", b.key.space, "err", err)
			}
		}
		return
	}
	p.mu.Lock()
	b.memory = st.Memory
	over := p.o.Limits.Memory > 0 && st.Memory > p.o.Limits.Memory+p.o.Limits.Memory/4 && b.state == live
	if over {
		b.leave(dead, StopMemory)
		p.wg.Go(b.bury)
	}
	p.mu.Unlock()
	if over {
		p.o.Logger.Warn("a sandbox was ended: it used more memory than its limit",
			"space", b.key.space, "memory", st.Memory, "limit", p.o.Limits.Memory)
	}
}

// relieve stops the least recently used idle sandboxes while all sandboxes together use more
// memory than they may, or the machine has too little left. The caller holds mu.
func (p *Pool) relieve() {
	if len(p.instances) == 0 {
		return
	}
	var total int64
	for _, b := range p.instances {
		if b.state == live {
			total += b.memory
		}
	}
	lacks := p.lacking(0)
	for total > p.o.MaxMemory || lacks > 0 {
		b := p.leastRecent()
		if b == nil {
			return
		}
		total -= b.memory
		lacks -= b.memory
		b.stop(StopEvicted, p.o.Grace)
	}
}

// leastRecent returns the idle instance that was used longest ago; nil if none is idle. The caller
// holds mu.
func (p *Pool) leastRecent() *instance {
	var oldest *instance
	now := time.Now()
	for _, b := range p.instances {
		if b.idle(now) && (oldest == nil || b.lastUsed.Before(oldest.lastUsed)) {
			oldest = b
		}
	}
	return oldest
}

// ByUser counts the sandboxes of each user who has any.
func (p *Pool) ByUser() map[space.UserID]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := map[space.UserID]int{}
	for k := range p.instances {
		n[k.user]++
	}
	return n
}
