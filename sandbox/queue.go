package sandbox

import (
	"slices"
	"time"

	"satchel/internal/space"
)

// pending is one start that one or more commands wait for.
type pending struct {
	key     key
	ready   chan struct{} // closed once box or err is set
	gone    chan struct{} // of one that was stopped as it started: closed once nothing of it is left
	box     *box
	err     error
	waiters int // each owns one of box.refs once ready is closed
	queued  bool
	since   time.Time
	waited  time.Duration // in the queue; set when it left it
	short   bool          // the machine was short of memory meanwhile
	dropped error         // set where it was stopped before it was ready
	why     StopReason
}

// queue holds starts that wait for room: first come, first served within a
// user, and the users in turn.
type queue struct {
	byUser map[space.UserID][]*pending
	turn   []space.UserID // the users that wait, next one first
	n      int
}

func newQueue() *queue { return &queue{byUser: map[space.UserID][]*pending{}} }

func (q *queue) len() int { return q.n }

func (q *queue) push(s *pending) {
	u := s.key.user
	if len(q.byUser[u]) == 0 {
		q.turn = append(q.turn, u)
	}
	q.byUser[u] = append(q.byUser[u], s)
	s.queued = true
	q.n++
}

// pop returns the next start; nil if none waits.
func (q *queue) pop() *pending {
	if q.n == 0 {
		return nil
	}
	u := q.turn[0]
	q.turn = q.turn[1:]
	s := q.byUser[u][0]
	q.take(s)
	if len(q.byUser[u]) > 0 {
		q.turn = append(q.turn, u)
	}
	return s
}

// remove takes s out before its turn.
func (q *queue) remove(s *pending) {
	if !s.queued {
		return
	}
	q.take(s)
	if len(q.byUser[s.key.user]) == 0 {
		q.turn = slices.DeleteFunc(q.turn, func(u space.UserID) bool { return u == s.key.user })
	}
}

func (q *queue) take(s *pending) {
	u := s.key.user
	q.byUser[u] = slices.DeleteFunc(q.byUser[u], func(o *pending) bool { return o == s })
	if len(q.byUser[u]) == 0 {
		delete(q.byUser, u)
	}
	s.queued = false
	q.n--
}
