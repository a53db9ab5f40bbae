package semantic

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// Errors for a query that continues without the model. The caller adds the model's name.
var (
	// ErrSlow means that the model did not answer within QueryWait.
	ErrSlow = errors.New("it does not answer in time")
	// ErrResting means that the model failed recently and is not called for a while.
	ErrResting = errors.New("it failed recently and is tried again in a moment")
	// ErrBusy means that the model works on MaxAsking queries already.
	ErrBusy = errors.New("it is busy")
)

// Vector is a query's vector.
type Vector struct{ q *query }

// Answer is a query's vector that may still be under way.
type Answer struct {
	e     *Engine
	job   *job
	until time.Time // when the search continues without the vector
}

// job is one request to the model. Its results are valid after done is closed.
type job struct {
	until  time.Time // when the search that started the job continues without the vector
	done   chan struct{}
	vector *Vector
	err    error
}

// asked holds the vectors of recent queries, and the requests for vectors that are under way.
type asked struct {
	o Options

	mu     sync.Mutex
	known  *simplelru.LRU[string, *Vector]
	under  map[string]*job
	health *Breaker
}

func (a *asked) init(o Options) {
	a.o = o
	a.known, _ = simplelru.NewLRU[string, *Vector](o.QueryCache, nil)
	a.under = map[string]*job{}
	a.health = NewBreaker(o.BreakAfter, o.BreakFor, o.Now)
}

// Ask starts to embed a query with the model of id, and returns at once. If the vector is late,
// the work continues in the background, and the next search with the same query uses the
// vector.
func (e *Engine) Ask(id Identity, text string) *Answer {
	if e == nil {
		return nil
	}
	now := e.o.Now()
	text = id.cut(text)
	key := id.slug() + "\x00" + text
	a := &e.asked
	a.mu.Lock()
	defer a.mu.Unlock()
	settled := func(v *Vector, err error) *Answer {
		j := &job{done: make(chan struct{}), vector: v, err: err}
		close(j.done)
		return &Answer{e: e, job: j}
	}
	if v, ok := a.known.Get(key); ok {
		return settled(v, nil)
	}
	until := now.Add(e.o.QueryWait)
	if j := a.under[key]; j != nil {
		return &Answer{e, j, until}
	}
	switch {
	case e.ctx.Err() != nil:
		return settled(nil, e.ctx.Err())
	case len(a.under) >= e.o.MaxAsking:
		return settled(nil, ErrBusy)
	case !a.health.Allow(e.o.QueryWait):
		return settled(nil, ErrResting)
	}
	j := &job{done: make(chan struct{}), until: until}
	a.under[key] = j
	e.wg.Go(func() { e.answer(j, id, key, text) })
	return &Answer{e, j, until}
}

// answer calls the model. It runs in its own goroutine.
func (e *Engine) answer(j *job, id Identity, key, text string) {
	ctx, cancel := context.WithTimeout(e.ctx, e.o.QueryTimeout)
	defer cancel()
	vectors, err := e.o.Embedder.Embed(ctx, id, Search, []string{text})
	if err == nil && len(vectors) != 1 {
		err = fmt.Errorf("%w: %d vectors for one text", ErrVector, len(vectors))
	}
	if err == nil && len(vectors[0]) > MaxDimensions {
		err = fmt.Errorf("%w: it has %d numbers", ErrVector, len(vectors[0]))
	}
	if err == nil {
		err = normalise(vectors[0])
	}
	a := &e.asked
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.under, key)
	if j.err = err; err != nil {
		if !errors.Is(err, ErrInput) && e.ctx.Err() == nil {
			a.health.Failed()
		}
	} else {
		j.vector = &Vector{prepare(vectors[0])}
		a.known.Add(key, j.vector)
		if !e.o.Now().After(j.until) {
			a.health.Succeeded()
		}
	}
	close(j.done)
}

// Wait returns the vector when it is ready, or the reason why the search continues without it:
// ErrSlow, ErrResting, ErrBusy, the error of ctx, or the model's error.
func (n *Answer) Wait(ctx context.Context) (*Vector, error) {
	select {
	case <-n.job.done:
		return n.job.vector, n.job.err
	default:
	}
	t := time.NewTimer(n.until.Sub(n.e.o.Now()))
	defer t.Stop()
	select {
	case <-n.job.done:
		return n.job.vector, n.job.err
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-t.C:
		n.e.asked.health.Failed()
		return nil, ErrSlow
	}
}
