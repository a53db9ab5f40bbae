package semantic

import (
	"sync"
	"time"
)

// Breaker stops calls of a model for a while after several failures in a row. NewBreaker
// returns one; the zero value is not usable.
type Breaker struct {
	after int
	first time.Duration
	now   func() time.Time

	mu     sync.Mutex
	fails  int
	rest   time.Duration // the length of the last rest; 0: the model works
	resume time.Time
}

// NewBreaker returns a Breaker that rests after the given number of failures in a row. first is
// the length of the first rest. Each further failure doubles the rest, up to 64 times first.
// now is the clock.
func NewBreaker(after int, first time.Duration, now func() time.Time) *Breaker {
	return &Breaker{after: after, first: first, now: now}
}

// Allow reports whether the model may be called. After a rest it allows a single call. Unless that
// call succeeds, it allows the next call after trial, which is the time that an answer may take.
func (b *Breaker) Allow(trial time.Duration) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	if now.Before(b.resume) {
		return false
	}
	if b.rest > 0 {
		b.resume = now.Add(trial)
	}
	return true
}

// Succeeded records an answer in time.
func (b *Breaker) Succeeded() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fails, b.rest, b.resume = 0, 0, time.Time{}
}

// Failed records a failure or a late answer.
func (b *Breaker) Failed() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fails++; b.fails < b.after {
		return
	}
	b.rest = min(max(2*b.rest, b.first), maxDelayFactor*b.first)
	b.resume = b.now().Add(b.rest)
}
