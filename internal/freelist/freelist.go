// Package freelist keeps objects that are expensive to create, for later use.
package freelist

import "sync"

// maxKept is how many objects a list keeps. If more objects are in use at once, the users create
// the others.
const maxKept = 2

// List keeps a few objects for their next users. The zero List is empty. A sync.Pool would lose
// them at every second garbage collection, and a few searches already cause two.
type List[T any] struct {
	mu   sync.Mutex
	kept []*T
}

// Get removes an object from the list and returns it. It returns nil if the list is empty.
func (l *List[T]) Get() *T {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.kept)
	if n == 0 {
		return nil
	}
	one := l.kept[n-1]
	l.kept = l.kept[:n-1]
	return one
}

// Put adds an object to the list, unless it is nil or the list is full.
func (l *List[T]) Put(one *T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if one != nil && len(l.kept) < maxKept {
		l.kept = append(l.kept, one)
	}
}
