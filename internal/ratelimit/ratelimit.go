package ratelimit

import (
	"hash/maphash"
	"math"
	"sync"
	"time"
)

// The limits where Options names none.
const (
	DefaultPerMinute = 60
	DefaultMaxKeys   = 65_536
)

// Options are the limits of a [Limiter].
type Options struct {
	// PerMinute is how many requests of one key are allowed per minute in the long
	// run; DefaultPerMinute where it is not positive.
	PerMinute float64
	// Burst is how many are allowed at once after a pause; where it is not
	// positive, a minute's.
	Burst int
	// MaxKeys is how many keys are remembered, at some 60 bytes each;
	// DefaultMaxKeys where it is not positive.
	MaxKeys int
	// Now is the clock; time.Now where it is nil.
	Now func() time.Time
}

// Limiter counts the requests of each key. A nil Limiter allows everything. It is
// for any number of goroutines.
type Limiter struct {
	interval int64 // nanoseconds in which one request comes back
	span     int64 // nanoseconds in which an empty bucket is full again
	max      int
	now      func() time.Time
	base     time.Time
	seed     maphash.Seed // unknown outside, so that nobody can choose keys that are taken for another's

	mu     sync.Mutex
	at     map[uint64]int // where a key's bucket is in the heap
	bucket []bucket       // a heap: the fullest bucket first
}

// bucket is what is remembered of a key: when its bucket is full again. Who has
// spent more has a later time.
type bucket struct {
	key  uint64
	full int64 // nanoseconds since the limiter was made
}

// longest bounds all times, so that sums of them fit.
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

// Allow takes a request of a key's from its bucket. Where the bucket is empty it
// takes nothing, and returns how long the caller must wait for the next.
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

// Ready reports what Allow would, and takes nothing.
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

// next is when the bucket of a key would be full again after one more request; the
// lock is held.
func (l *Limiter) next(k uint64) (i int, known bool, now, full int64) {
	now = min(int64(l.now().Sub(l.base)), longest)
	i, known = l.at[k]
	full = now
	if known {
		full = max(full, l.bucket[i].full)
	}
	return i, known, now, full + l.interval
}

// add makes room for a key. Buckets that are full again are no different from
// unknown ones, so two of them go for each that comes; where all places are taken
// by others, the one goes that has spent the least.
func (l *Limiter) add(k uint64, now int64) int {
	for range 2 {
		if len(l.bucket) > 0 && l.bucket[0].full <= now {
			l.pop()
		}
	}
	if len(l.bucket) >= l.max {
		l.pop()
	}
	// Before all others for now: the caller sets its time and moves it down.
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
