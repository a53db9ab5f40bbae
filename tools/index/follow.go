package index

import (
	"context"
	"sync"
	"time"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// Follower updates collections in the background after each commit. It is a [space.Events].
// The commits of a collection that arrive during an update are combined into the next
// update.
type Follower struct {
	index  *Index
	src    Source
	cancel context.CancelFunc
	ctx    context.Context
	wg     sync.WaitGroup

	mu      sync.Mutex
	pending []space.SpaceID        // in order, each once
	busy    map[space.SpaceID]bool // pending or being updated
	again   map[space.SpaceID]bool // another request arrived during the update
	wake    *sync.Cond
	failed  map[space.SpaceID]*retry
	closed  bool
}

// retry is a collection whose last update failed.
type retry struct {
	delay time.Duration
	timer *time.Timer
}

// maxRetryFactor is the maximum delay between retries, as a multiple of the first delay.
const maxRetryFactor = 100

// Follow starts a follower, which Close ends. After the first Publish or Refresh of a
// collection, the follower also rebuilds the database when a query finds damage in it.
func (x *Index) Follow(src Source) *Follower {
	ctx, cancel := context.WithCancel(context.Background())
	f := &Follower{index: x, src: src, ctx: ctx, cancel: cancel, busy: map[space.SpaceID]bool{}, again: map[space.SpaceID]bool{}, failed: map[space.SpaceID]*retry{}}
	f.wake = sync.NewCond(&f.mu)
	for range followWorkers {
		f.wg.Go(f.work)
	}
	return f
}

// Publish requests an update of the space's index. It never blocks.
func (f *Follower) Publish(ev space.Event) {
	if e, err := f.index.entry(ev.Space); err == nil && ev.Commit.ID != "" {
		e.noteHead(ev.Commit.ID, f.index.opts.Now())
	}
	f.Refresh(ev.Space)
}

// Refresh requests an update of a collection without a new commit. The server calls it at
// start for every collection.
func (f *Follower) Refresh(id space.SpaceID) {
	if e, err := f.index.entry(id); err == nil {
		e.follow(f, f.index.opts.Now())
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed:
	case f.busy[id]:
		f.again[id] = true
	default:
		f.busy[id] = true
		f.pending = append(f.pending, id)
		f.wake.Signal()
	}
}

// Close cancels the running updates and returns when they have ended. The next start does
// the remaining updates.
func (f *Follower) Close() {
	f.mu.Lock()
	f.closed = true
	for _, r := range f.failed {
		r.timer.Stop()
	}
	f.wake.Broadcast()
	f.mu.Unlock()
	f.cancel()
	f.wg.Wait()
}

func (f *Follower) work() {
	for {
		f.mu.Lock()
		for len(f.pending) == 0 && !f.closed {
			f.wake.Wait()
		}
		if f.closed {
			f.mu.Unlock()
			return
		}
		id := f.pending[0]
		f.pending = f.pending[1:]
		delete(f.again, id)
		f.mu.Unlock()

		err := f.index.Update(f.ctx, id, f.src)
		if err != nil && f.ctx.Err() == nil && fault.CodeOf(err) != fault.NotFound {
			f.index.opts.Logger.ErrorContext(f.ctx, "index was not updated", "collection", id, "error", err)
		}

		f.mu.Lock()
		f.settle(id, err)
		if f.again[id] {
			f.pending = append(f.pending, id)
			f.wake.Signal()
		} else {
			delete(f.busy, id)
		}
		f.mu.Unlock()
	}
}

// settle schedules a retry after a failure. The caller holds f.mu.
func (f *Follower) settle(id space.SpaceID, err error) {
	r := f.failed[id]
	if err == nil || f.closed || fault.CodeOf(err) == fault.NotFound { // a deleted space needs no index
		if r != nil {
			r.timer.Stop()
			delete(f.failed, id)
		}
		return
	}
	first := f.index.opts.retryAfter
	if r == nil {
		f.failed[id] = &retry{delay: first, timer: time.AfterFunc(first, func() { f.Refresh(id) })}
		return
	}
	r.delay = min(2*r.delay, maxRetryFactor*first)
	r.timer.Stop()
	r.timer = time.AfterFunc(r.delay, func() { f.Refresh(id) })
}
