package tools

import (
	"context"
	"sync"
	"time"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// turns lets each user have a few calls of a kind at work at a time, and some
// more wait for them, in the order in which they came: so one user's many do not
// hold up the others'.
type turns struct {
	working, waiting int // the most of a user

	mu    sync.Mutex
	users map[space.UserID]*userTurns
}

// userTurns are one user's, while there are any.
type userTurns struct {
	working int
	queue   []chan struct{} // closed where it is the turn of who waits on it
}

func newTurns(working, waiting int) *turns {
	return &turns{working: working, waiting: waiting, users: map[space.UserID]*userTurns{}}
}

// take waits for the user's turn; end, which is not nil where err is nil, gives
// it to the next. The error is ctx's, or fault.Limited where too many wait.
func (t *turns) take(ctx context.Context, id space.UserID) (end func(), err error) {
	t.mu.Lock()
	u := t.users[id]
	if u == nil {
		u = &userTurns{}
		t.users[id] = u
	}
	end = func() { t.end(id, u) }
	if u.working < t.working {
		u.working++
		t.mu.Unlock()
		return end, nil
	}
	if len(u.queue) >= t.waiting {
		defer t.mu.Unlock()
		e := fault.New(fault.Limited, "You have %d searches running and %d waiting, which is all that one user may have. Wait for some of them to end.", u.working, len(u.queue))
		e.RetryAfter = time.Second
		return nil, e
	}
	turn := make(chan struct{})
	u.queue = append(u.queue, turn)
	t.mu.Unlock()
	select {
	case <-turn:
		return end, nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	for i, other := range u.queue {
		if other == turn {
			u.queue = append(u.queue[:i], u.queue[i+1:]...)
			t.mu.Unlock()
			return nil, ctx.Err()
		}
	}
	t.mu.Unlock()
	end() // it was given the turn at the same moment
	return nil, ctx.Err()
}

func (t *turns) end(id space.UserID, u *userTurns) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(u.queue) > 0 {
		close(u.queue[0])
		u.queue = u.queue[1:]
		return
	}
	if u.working--; u.working == 0 {
		delete(t.users, id)
	}
}
