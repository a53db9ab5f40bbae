package app

import (
	"context"
	"sync"

	"satchel/auth"
	"satchel/internal/space"
)

// notify calls OnState for a link. It logs the error, because no caller handles it.
func (c *Client) notify(ctx context.Context, l auth.RepositoryLink) {
	if err := c.o.OnState(ctx, l); err != nil {
		c.log.Error("a connected repository has changed, but the change could not be applied", "space", l.Space, "state", l.State, "error", err)
	}
}

func (c *Client) notifySoon(_ context.Context, l auth.RepositoryLink) { c.notifications.add(l) }

// notifications holds the links that must be passed to OnState. It keeps only the newest link of
// each space.
type notifications struct {
	mu   sync.Mutex
	by   map[space.SpaceID]auth.RepositoryLink
	some chan struct{} // holds a value if by is not empty
}

func (t *notifications) start() {
	t.by, t.some = map[space.SpaceID]auth.RepositoryLink{}, make(chan struct{}, 1)
}

func (t *notifications) add(l auth.RepositoryLink) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.by[l.Space] = l
	select {
	case t.some <- struct{}{}:
	default:
	}
}

func (t *notifications) take() map[space.SpaceID]auth.RepositoryLink {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.by
	t.by = map[space.SpaceID]auth.RepositoryLink{}
	return all
}

// followNotifications passes links to OnState one by one, until ctx ends.
func (c *Client) followNotifications(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.notifications.some:
			for _, l := range c.notifications.take() {
				if ctx.Err() == nil {
					c.notify(ctx, l)
				}
			}
		}
	}
}
