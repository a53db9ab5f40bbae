package web

import (
	"context"
	"sync"
	"time"

	"satchel/internal/space"
)

// Defaults of LiveOptions.
const (
	DefaultMaxStreams = 16
	DefaultHeartbeat  = 20 * time.Second
)

// LiveOptions bound the streams of what happens.
type LiveOptions struct {
	// MaxStreams is how many one person may have open at once; below 0 is none,
	// 0 the default.
	MaxStreams int
	// Heartbeat is how often a stream says that it is there, and looks whether
	// who reads it still may.
	Heartbeat time.Duration
}

// Live tells the pages that are open of new commits. It follows the store's
// events; a page that does not keep up is told to load again rather than waited
// for. It starts no goroutine and is safe for concurrent use.
type Live struct {
	o LiveOptions

	mu     sync.Mutex
	subs   map[space.SpaceID]map[*subscription]bool
	counts map[space.UserID]int
	closed bool
}

var _ space.Events = (*Live)(nil)

// NewLive returns a hub without streams.
func NewLive(o LiveOptions) *Live {
	if o.MaxStreams == 0 {
		o.MaxStreams = DefaultMaxStreams
	}
	if o.Heartbeat <= 0 {
		o.Heartbeat = DefaultHeartbeat
	}
	return &Live{o: o, subs: map[space.SpaceID]map[*subscription]bool{}, counts: map[space.UserID]int{}}
}

// waitingEvents is how many commits may wait for a stream to write them.
const waitingEvents = 32

// subscription is one stream.
type subscription struct {
	space  space.SpaceID
	user   space.UserID
	events chan space.Event
	end    context.CancelFunc
	lost   chan struct{} // closed when it did not keep up
	behind bool          // lost is closed
}

// Publish implements space.Events.
func (l *Live) Publish(e space.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for s := range l.subs[e.Space] {
		if s.behind {
			continue
		}
		select {
		case s.events <- e:
		default:
			s.behind = true
			close(s.lost)
		}
	}
}

// End ends the streams of a person in a space, or with "" in all.
func (l *Live) End(user space.UserID, id space.SpaceID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for of, subs := range l.subs {
		if id != "" && of != id {
			continue
		}
		for s := range subs {
			if s.user == user {
				s.end()
			}
		}
	}
}

// Close ends every stream, and lets no other begin.
func (l *Live) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for _, subs := range l.subs {
		for s := range subs {
			s.end()
		}
	}
}

// Streams tells how many are open.
func (l *Live) Streams() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, subs := range l.subs {
		n += len(subs)
	}
	return n
}

// subscribe begins a stream, whose context ends with it; leave must be called. It
// returns nil where the person has too many, or the hub is closed.
func (l *Live) subscribe(ctx context.Context, user space.UserID, id space.SpaceID) (_ context.Context, s *subscription, leave func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.counts[user] >= l.o.MaxStreams {
		return ctx, nil, nil
	}
	ctx, end := context.WithCancel(ctx)
	s = &subscription{space: id, user: user, events: make(chan space.Event, waitingEvents), end: end, lost: make(chan struct{})}
	if l.subs[id] == nil {
		l.subs[id] = map[*subscription]bool{}
	}
	l.subs[id][s] = true
	l.counts[user]++
	return ctx, s, func() {
		end()
		l.mu.Lock()
		defer l.mu.Unlock()
		if delete(l.subs[id], s); len(l.subs[id]) == 0 {
			delete(l.subs, id)
		}
		if l.counts[user]--; l.counts[user] <= 0 {
			delete(l.counts, user)
		}
	}
}
