package web

import (
	"sync"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// What is sent in one form beyond spoolFrom bytes goes to files until it is answered:
// so many such forms at a time, of one person and of all.
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

// enter has a place kept for a form until leave is called.
func (s *spools) enter(user space.UserID) (leave func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.of[user] >= spoolsOfPerson:
		return nil, fault.New(fault.Limited, "You are uploading %d things already. Wait until one is done.", spoolsOfPerson)
	case s.all >= spoolsOfAll:
		return nil, fault.New(fault.Limited, "Many people are uploading just now. Try it again in a moment.")
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
