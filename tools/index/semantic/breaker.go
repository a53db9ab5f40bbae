package semantic

import (
	"sync"
	"time"
)

// Breaker stops calls of a model for a while after several failures in a row. The zero
// value is not ready: see NewBreaker.
type Breaker struct {
	after int
	first time.Duration
	now   func() time.Time

	mu     sync.Mutex
	fails  int
	rest   time.Duration // the last one's length; 0: the model is well
	resume time.Time
}

// NewBreaker returns a Breaker that rests after so many failures in a row, at
// first for so long, and twice as long with each failure after that, up to 64
// times. now is the clock.
func NewBreaker(after int, first time.Duration, now func() time.Time) *Breaker {
	return &Breaker{after: after, first: first, now: now}
}

// Allow reports whether the model may be called. After a rest it allows one caller to try, and
// the others once that trial, which takes as long as an answer may, is over.
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

// Succeeded counts an answer in time.
func (b *Breaker) Succeeded() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fails, b.rest, b.resume = 0, 0, time.Time{}
}

// Failed counts a failure or a late answer.
func (b *Breaker) Failed() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fails++; b.fails < b.after {
		return
	}
	b.rest = min(max(2*b.rest, b.first), maxDelayFactor*b.first)
	b.resume = b.now().Add(b.rest)
}
