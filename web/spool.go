package web

import (
	"sync"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// Pages that accept forms of more than spoolFrom bytes may store them in files until they are
// answered. The number of such forms at a time is limited for each person and in total.
const (
	spoolFrom      = 1 << 20
	spoolsOfPerson = 3
	spoolsOfAll    = 24
)

// spools counts the large forms that are being read or answered.
type spools struct {
	mu  sync.Mutex
	of  map[space.UserID]int
	all int
}

// enter reserves a place for a form until leave is called.
func (s *spools) enter(user space.UserID) (leave func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.of[user] >= spoolsOfPerson:
		return nil, fault.New(fault.Limited, "You already have %d uploads in progress. Wait until one finishes.", spoolsOfPerson)
	case s.all >= spoolsOfAll:
		return nil, fault.New(fault.Limited, "Too many people are uploading right now. Try again in a moment.")
	}
	if s.of == nil {
		s.of = map[space.UserID]int{}
	}
	s.of[user]++
	s.all++
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all--
		if s.of[user]--; s.of[user] == 0 {
			delete(s.of, user)
		}
	}), nil
}
