//go:build unix

package faults

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// stats counts what really happened, over all schedules of a run.
type stats struct {
	mu sync.Mutex
	n  map[string]int
}

func (s *stats) add(what string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.n == nil {
		s.n = map[string]int{}
	}
	s.n[what] += n
}

// String lists the counts, one per line.
func (s *stats) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(s.n)) {
		fmt.Fprintf(&b, "%8d  %s\n", s.n[k], k)
	}
	return b.String()
}
