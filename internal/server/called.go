package server

import (
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"satchel/internal/space"
	"satchel/web"
)

// Limits of what is kept about callers.
const (
	maxCalled   = 10_000 // grants
	maxCalledAs = 8      // names of one grant
)

// called keeps the names that clients give themselves, by grant. With them the pages can
// distinguish several clients that use one key. The names are lost when the server stops,
// because only the pages show them.
type called struct {
	now func() time.Time
	by  *lru.Cache[space.GrantID, *lru.Cache[string, time.Time]]
}

func newCalled(now func() time.Time) *called {
	by, err := lru.New[space.GrantID, *lru.Cache[string, time.Time]](maxCalled)
	if err != nil {
		panic(err) // the size is positive
	}
	return &called{now: now, by: by}
}

// note records a call. An empty name, which a client may send, is not recorded.
func (c *called) note(id space.GrantID, name string) {
	if id == "" || name == "" {
		return
	}
	names, ok := c.by.Get(id)
	if !ok {
		fresh, err := lru.New[string, time.Time](maxCalledAs)
		if err != nil {
			panic(err) // the size is positive
		}
		if names, ok, _ = c.by.PeekOrAdd(id, fresh); !ok {
			names = fresh
		}
	}
	names.Add(name, c.now())
}

// of returns the names of a grant, the newest first.
func (c *called) of(id space.GrantID) []web.CalledAs {
	names, ok := c.by.Peek(id)
	if !ok {
		return nil
	}
	keys := names.Keys() // the oldest first
	out := make([]web.CalledAs, 0, len(keys))
	for i := len(keys) - 1; i >= 0; i-- {
		if at, ok := names.Peek(keys[i]); ok {
			out = append(out, web.CalledAs{Name: keys[i], At: at})
		}
	}
	return out
}
