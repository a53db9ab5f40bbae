package app

import (
	"context"
	"sync"

	"satchel/auth"
	"satchel/internal/space"
)

// tell tells of a link, where nobody waits for it.
func (c *Client) tell(ctx context.Context, l auth.RepositoryLink) {
	if err := c.o.OnState(ctx, l); err != nil {
		c.log.Error("a connected repository has changed, and what hangs on it did not follow", "space", l.Space, "state", l.State, "error", err)
	}
}

// tellSoon tells of a link after a while.
func (c *Client) tellSoon(_ context.Context, l auth.RepositoryLink) { c.told.add(l) }

// telling is what OnState shall be told, the newest of each space.
type telling struct {
	mu   sync.Mutex
	by   map[space.SpaceID]auth.RepositoryLink
	some chan struct{} // of one
}

func (t *telling) start() {
	t.by, t.some = map[space.SpaceID]auth.RepositoryLink{}, make(chan struct{}, 1)
}

func (t *telling) add(l auth.RepositoryLink) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.by[l.Space] = l
	select {
	case t.some <- struct{}{}:
	default:
	}
}

func (t *telling) take() map[space.SpaceID]auth.RepositoryLink {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.by
	t.by = map[space.SpaceID]auth.RepositoryLink{}
	return all
}

// followTold tells of one link after the other, until ctx ends.
func (c *Client) followTold(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.told.some:
			for _, l := range c.told.take() {
				if ctx.Err() == nil {
					c.tell(ctx, l)
				}
			}
		}
	}
}
