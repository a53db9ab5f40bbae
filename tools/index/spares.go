package index

import "sync"

// maxSpares is how many are kept of what a search works with: searches that run
// at once beyond that make their own.
const maxSpares = 2

// spares keeps what is dear to make for the next who needs it. A sync.Pool would
// lose it at every other collection of garbage, which a few searches make.
type spares[T any] struct {
	mu   sync.Mutex
	kept []*T
}

// get returns one, nil if there is none.
func (s *spares[T]) get() *T {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.kept)
	if n == 0 {
		return nil
	}
	one := s.kept[n-1]
	s.kept = s.kept[:n-1]
	return one
}

// put gives one back; nil is ignored.
func (s *spares[T]) put(one *T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one != nil && len(s.kept) < maxSpares {
		s.kept = append(s.kept, one)
	}
}
