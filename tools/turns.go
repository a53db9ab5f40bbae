package tools

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// turns lets each user run a few calls of a kind at a time, and keeps a few more
// waiting in order, so that one user's many do not hold up the others'.
type turns struct {
	working, waiting int // the most of a user

	mu    sync.Mutex
	users map[space.UserID]*userTurns // those with calls
}

type userTurns struct {
	sem   *semaphore.Weighted
	calls int // working and waiting
}

func newTurns(working, waiting int) *turns {
	return &turns{working: working, waiting: max(waiting, 0), users: map[space.UserID]*userTurns{}}
}

// take waits for the user's turn; end, which is not nil if err is nil, gives
// it to the next. The error is ctx's, or fault.Limited if too many wait.
func (t *turns) take(ctx context.Context, id space.UserID) (end func(), err error) {
	t.mu.Lock()
	u := t.users[id]
	if u == nil {
		u = &userTurns{sem: semaphore.NewWeighted(int64(t.working))}
		t.users[id] = u
	}
	if u.calls >= t.working+t.waiting {
		defer t.mu.Unlock()
		e := fault.New(fault.Limited, "You have %d searches running and %d waiting, which is all that one user may have. Wait for some of them to end.", t.working, t.waiting)
		e.RetryAfter = time.Second
		return nil, e
	}
	u.calls++
	t.mu.Unlock()
	if err := u.sem.Acquire(ctx, 1); err != nil {
		t.leave(id, u)
		return nil, err
	}
	return func() {
		u.sem.Release(1)
		t.leave(id, u)
	}, nil
}

func (t *turns) leave(id space.UserID, u *userTurns) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if u.calls--; u.calls == 0 {
		delete(t.users, id)
	}
}
