// Package freelist keeps objects that are expensive to create, for later use.
package freelist

import "sync"

// maxKept is how many things a list keeps: more users at once make their own.
const maxKept = 2

// List keeps a few things for their next users. The zero List is empty. A sync.Pool would
// lose them at every other garbage collection, which a few searches cause.
type List[T any] struct {
	mu   sync.Mutex
	kept []*T
}

// Get takes one from the list; nil if there is none.
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

// Put gives one back, which may be nil.
func (l *List[T]) Put(one *T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if one != nil && len(l.kept) < maxKept {
		l.kept = append(l.kept, one)
	}
}
