package ratelimit

import (
	"hash/maphash"
	"math"
	"sync"
	"time"
)

// The limits if Options sets none.
const (
	DefaultPerMinute = 60
	DefaultMaxKeys   = 65_536
)

// Options are the limits of a [Limiter].
type Options struct {
	// PerMinute is how many requests of one key are allowed per minute in the long run. If it
	// is not positive, DefaultPerMinute applies.
	PerMinute float64
	// Burst is how many requests are allowed at once after a pause. If it is not positive, it
	// is the number of requests per minute.
	Burst int
	// MaxKeys is how many keys are remembered, at about 60 bytes each. If it is not positive,
	// DefaultMaxKeys applies.
	MaxKeys int
	// Now is the clock. Nil means time.Now.
	Now func() time.Time
}

// Limiter counts the requests of each key. A nil Limiter allows everything. Its methods are
// safe for concurrent use.
type Limiter struct {
	interval int64 // nanoseconds until one more request is allowed
	span     int64 // nanoseconds until an empty bucket is full again
	max      int
	now      func() time.Time
	base     time.Time
	seed     maphash.Seed // secret, so that nobody can choose a key with the hash of another

	mu     sync.Mutex
	at     map[uint64]int // where a key's bucket is in the heap
	bucket []bucket       // a heap: the fullest bucket first
}

// bucket says when the bucket of a key is full again. The time is later for a key that has
// spent more.
type bucket struct {
	key  uint64
	full int64 // when it is full, in nanoseconds since the limiter was made
}

// longest limits all times, so that their sums do not overflow.
const longest = int64(1) << 60

// New returns a limiter for which all buckets are full.
func New(o Options) *Limiter {
	if !(o.PerMinute > 0) {
		o.PerMinute = DefaultPerMinute
	}
	if o.Burst <= 0 {
		o.Burst = int(min(max(1, math.Ceil(o.PerMinute)), math.MaxInt32))
	}
	if o.MaxKeys <= 0 {
		o.MaxKeys = DefaultMaxKeys
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	interval := bounded(float64(time.Minute) / o.PerMinute)
	return &Limiter{
		interval: interval, span: max(interval, bounded(float64(interval)*float64(o.Burst))),
		max: o.MaxKeys, now: o.Now, base: o.Now(), seed: maphash.MakeSeed(), at: map[uint64]int{},
	}
}

func bounded(ns float64) int64 {
	if ns >= float64(longest) {
		return longest
	}
	return max(1, int64(ns))
}

// Allow takes one request from the bucket of a key. If the bucket is empty, Allow takes nothing
// and returns how long the caller must wait.
func (l *Limiter) Allow(key string) (wait time.Duration, ok bool) {
	if l == nil {
		return 0, true
	}
	k := maphash.String(l.seed, key)
	l.mu.Lock()
	defer l.mu.Unlock()
	i, known, now, full := l.next(k)
	if over := full - now - l.span; over > 0 {
		return time.Duration(over), false
	}
	if !known {
		i = l.add(k, now)
	}
	l.bucket[i].full = full
	l.down(i)
	return 0, true
}

// Ready returns what Allow would return, and takes nothing.
func (l *Limiter) Ready(key string) (wait time.Duration, ok bool) {
	if l == nil {
		return 0, true
	}
	k := maphash.String(l.seed, key)
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _, now, full := l.next(k)
	over := full - now - l.span
	return time.Duration(max(0, over)), over <= 0
}

// next returns the time at which the bucket of a key would be full again after one more request.
// The caller holds the lock.
func (l *Limiter) next(k uint64) (i int, known bool, now, full int64) {
	now = min(int64(l.now().Sub(l.base)), longest)
	i, known = l.at[k]
	full = now
	if known {
		full = max(full, l.bucket[i].full)
	}
	return i, known, now, full + l.interval
}

// add adds a key and returns its index. A full bucket is no different from an unknown one, so
// add first removes up to two full buckets. If there is still no room, add removes the bucket
// that has spent the least.
func (l *Limiter) add(k uint64, now int64) int {
	for range 2 {
		if len(l.bucket) > 0 && l.bucket[0].full <= now {
			l.pop()
		}
	}
	if len(l.bucket) >= l.max {
		l.pop()
	}
	// The new bucket is first for now. The caller sets its time and moves it down.
	l.bucket = append(l.bucket, bucket{key: k, full: math.MinInt64})
	i := len(l.bucket) - 1
	l.at[k] = i
	for i > 0 {
		up := (i - 1) / 2
		l.swap(i, up)
		i = up
	}
	return i
}

func (l *Limiter) pop() {
	delete(l.at, l.bucket[0].key)
	last := len(l.bucket) - 1
	if last > 0 {
		l.bucket[0] = l.bucket[last]
		l.at[l.bucket[0].key] = 0
	}
	l.bucket = l.bucket[:last]
	if last > 1 {
		l.down(0)
	}
}

func (l *Limiter) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(l.bucket) {
			return
		}
		if r := child + 1; r < len(l.bucket) && l.bucket[r].full < l.bucket[child].full {
			child = r
		}
		if l.bucket[i].full <= l.bucket[child].full {
			return
		}
		l.swap(i, child)
		i = child
	}
}

func (l *Limiter) swap(i, j int) {
	l.bucket[i], l.bucket[j] = l.bucket[j], l.bucket[i]
	l.at[l.bucket[i].key], l.at[l.bucket[j].key] = i, j
}
