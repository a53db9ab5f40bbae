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

	DefaultMaxDownloads    = 4
	DefaultMaxAllDownloads = 64
	DefaultDownloadStall   = 30 * time.Second
	DefaultDownloadRate    = 16 << 10
)

// LiveOptions are the limits of event streams and downloads.
type LiveOptions struct {
	// MaxStreams is how many streams a person may have open; 0 means the default, and a
	// negative number means none.
	MaxStreams int
	// Heartbeat is how often a stream sends a sign of life and checks that its reader
	// still has access; 0 means the default.
	Heartbeat time.Duration

	// MaxDownloads is how many bundles and archives a person may download at once; four
	// times as many raw files are allowed. MaxAllDownloads is the limit for all people
	// together. 0 means the default.
	MaxDownloads, MaxAllDownloads int
	// DownloadStall is the maximum time of one write of a download. DownloadRate is how many
	// bytes a second, on average, the reader must take once writes have waited for a minute in
	// total. 0 means the default.
	DownloadStall time.Duration
	DownloadRate  int64
}

// Live sends new commits to open pages and tracks downloads. Its methods End… stop the
// streams and downloads of people who lose access. Live receives the store's events. It does
// not wait for a page that falls behind, but makes the page reload. It is safe for concurrent
// use.
type Live struct {
	o LiveOptions

	mu     sync.Mutex
	subs   map[space.SpaceID]map[*subscription]bool
	counts map[space.UserID]int
	Closed bool

	downloads  map[*downloading]bool
	downloaded chan struct{} // closed and replaced when a download ends
}

var _ space.Events = (*Live)(nil)

// NewLive returns a Live without streams.
func NewLive(o LiveOptions) *Live {
	if o.MaxStreams == 0 {
		o.MaxStreams = DefaultMaxStreams
	}
	if o.Heartbeat <= 0 {
		o.Heartbeat = DefaultHeartbeat
	}
	if o.MaxDownloads <= 0 {
		o.MaxDownloads = DefaultMaxDownloads
	}
	if o.MaxAllDownloads <= 0 {
		o.MaxAllDownloads = DefaultMaxAllDownloads
	}
	if o.DownloadStall <= 0 {
		o.DownloadStall = DefaultDownloadStall
	}
	if o.DownloadRate <= 0 {
		o.DownloadRate = DefaultDownloadRate
	}
	return &Live{o: o, subs: map[space.SpaceID]map[*subscription]bool{}, counts: map[space.UserID]int{}, downloads: map[*downloading]bool{}, downloaded: make(chan struct{})}
}

// waitingEvents is how many commits may wait in the queue of a stream.
const waitingEvents = 32

// subscription is an open stream.
type subscription struct {
	space   space.SpaceID
	user    space.UserID
	session string
	events  chan space.Event
	end     context.CancelFunc
	lost    chan struct{} // closed when the stream falls behind
	behind  bool          // whether lost is closed
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

// End ends the streams and downloads of a person in a space, or in all spaces if id is "".
func (l *Live) End(user space.UserID, id space.SpaceID) {
	l.end(func(u space.UserID, of space.SpaceID, _ string) bool { return u == user && (id == "" || of == id) })
}

// EndSpace ends the streams and downloads of everybody in a space.
func (l *Live) EndSpace(id space.SpaceID) {
	l.end(func(_ space.UserID, of space.SpaceID, _ string) bool { return of == id })
}

// EndSession ends the streams and downloads of a person's session.
func (l *Live) EndSession(user space.UserID, session string) {
	l.end(func(u space.UserID, _ space.SpaceID, of string) bool { return u == user && of == session })
}

// EndOtherSessions ends the streams and downloads of all sessions of a person except keep.
func (l *Live) EndOtherSessions(user space.UserID, keep string) {
	l.end(func(u space.UserID, _ space.SpaceID, of string) bool { return u == user && of != keep })
}

func (l *Live) end(match func(user space.UserID, id space.SpaceID, session string) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for d := range l.downloads {
		if match(d.user, d.space, d.session) {
			d.end(errDownloadRight())
		}
	}
	for _, subs := range l.subs {
		for s := range subs {
			if match(s.user, s.space, s.session) {
				s.end()
			}
		}
	}
}

// Close ends every stream and download. No new ones can begin.
func (l *Live) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.Closed = true
	for d := range l.downloads {
		d.end(errDownloadStopping())
	}
	for _, subs := range l.subs {
		for s := range subs {
			s.end()
		}
	}
}

// Streams returns the number of open streams.
func (l *Live) Streams() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, subs := range l.subs {
		n += len(subs)
	}
	return n
}

// subscribe begins a stream. The returned context is canceled when the stream ends; the
// caller must call leave. s is nil if the person has too many streams or l is closed.
func (l *Live) subscribe(ctx context.Context, user space.UserID, session string, id space.SpaceID) (_ context.Context, s *subscription, leave func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.Closed || l.counts[user] >= l.o.MaxStreams {
		return ctx, nil, nil
	}
	ctx, end := context.WithCancel(ctx)
	s = &subscription{space: id, user: user, session: session, events: make(chan space.Event, waitingEvents), end: end, lost: make(chan struct{})}
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
