package server

import (
	"maps"
	"slices"
	"sync"
	"time"

	"satchel/internal/space"
	"satchel/web"
)

// What is remembered of who called.
const (
	maxCalled   = 10_000 // grants
	maxCalledAs = 8      // names of one grant
	calledFor   = 24 * time.Hour
)

// called remembers what clients call themselves, by the grant with which they call, so
// that the pages know one from another where several have one key. It is lost with the
// server, and decides nothing.
type called struct {
	now func() time.Time
	mu  sync.Mutex
	by  map[space.GrantID]*calledAs
}

type calledAs struct {
	last  time.Time
	names map[string]time.Time
}

func newCalled(now func() time.Time) *called {
	return &called{now: now, by: map[space.GrantID]*calledAs{}}
}

// note notes a call; a client may say no name.
func (c *called) note(id space.GrantID, name string) {
	if id == "" || name == "" {
		return
	}
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.by[id]
	if g == nil {
		if len(c.by) >= maxCalled {
			c.room(now)
		}
		g = &calledAs{names: map[string]time.Time{}}
		c.by[id] = g
	}
	g.last, g.names[name] = now, now
	if len(g.names) > maxCalledAs {
		first := name
		for n, at := range g.names {
			if at.Before(g.names[first]) {
				first = n
			}
		}
		delete(g.names, first)
	}
}

// room forgets the grants that have not called for long, or any one where there are
// none.
func (c *called) room(now time.Time) {
	maps.DeleteFunc(c.by, func(_ space.GrantID, g *calledAs) bool { return now.Sub(g.last) > calledFor })
	for id := range c.by {
		if len(c.by) >= maxCalled {
			delete(c.by, id)
		}
		break
	}
}

// of returns the names of a grant, the last one first.
func (c *called) of(id space.GrantID) []web.CalledAs {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := c.by[id]
	if g == nil {
		return nil
	}
	out := make([]web.CalledAs, 0, len(g.names))
	for name, at := range g.names {
		out = append(out, web.CalledAs{Name: name, At: at})
	}
	slices.SortFunc(out, func(a, b web.CalledAs) int { return b.At.Compare(a.At) })
	return out
}
