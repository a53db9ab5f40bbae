package service

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// perUserQueue limits the running and waiting calls of each user, so that one user's calls do not
// delay other users.
type perUserQueue struct {
	running, waiting int    // limits for each user
	full             string // the public message of a refused call

	mu    sync.Mutex
	users map[space.UserID]*userQueue // the users who have calls
}

type userQueue struct {
	sem   *semaphore.Weighted
	calls int // number of running and waiting calls
}

func newPerUserQueue(running, waiting int, full string) *perUserQueue {
	return &perUserQueue{running: running, waiting: waiting, full: full, users: map[space.UserID]*userQueue{}}
}

// take waits until a call of the user may run. The caller must call end after the call.
// The error is a fault.Limited if too many calls wait.
func (q *perUserQueue) take(ctx context.Context, id space.UserID) (end func(), err error) {
	q.mu.Lock()
	u := q.users[id]
	if u == nil {
		u = &userQueue{sem: semaphore.NewWeighted(int64(q.running))}
		q.users[id] = u
	}
	if u.calls >= q.running+q.waiting {
		defer q.mu.Unlock()
		e := fault.New(fault.Limited, "%s", q.full)
		e.RetryAfter = time.Second
		return nil, e
	}
	u.calls++
	q.mu.Unlock()
	if err := u.sem.Acquire(ctx, 1); err != nil {
		q.leave(id, u)
		return nil, err
	}
	return func() {
		u.sem.Release(1)
		q.leave(id, u)
	}, nil
}

func (q *perUserQueue) leave(id space.UserID, u *userQueue) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if u.calls--; u.calls == 0 {
		delete(q.users, id)
	}
}
