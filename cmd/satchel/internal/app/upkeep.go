package app

import (
	"context"
	"log/slog"
	"sync"

	"satchel/gitstore"
	"satchel/internal/space"
)

// Every commit is a small pack of its own. Reads hardly notice some hundreds of
// them (gitstore's benchmarks), so that is when they are made one.
const (
	commitsBetweenLooks = 100
	packsWorthPacking   = 300
)

// upkeep packs what many commits left, one space at a time, off every other
// path.
type upkeep struct {
	git  *gitstore.Store
	log  *slog.Logger
	wake chan struct{}

	mu      sync.Mutex
	commits map[space.SpaceID]int // since the last look
}

func newUpkeep(git *gitstore.Store, log *slog.Logger) *upkeep {
	return &upkeep{git: git, log: log, wake: make(chan struct{}, 1), commits: map[space.SpaceID]int{}}
}

// Publish implements space.Events.
func (u *upkeep) Publish(e space.Event) {
	u.mu.Lock()
	u.commits[e.Space]++
	due := u.commits[e.Space] >= commitsBetweenLooks
	u.mu.Unlock()
	if due {
		select {
		case u.wake <- struct{}{}:
		default: // it is awake already
		}
	}
}

// run works until ctx ends.
func (u *upkeep) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-u.wake:
		}
		for _, id := range u.due() {
			if err := u.pack(ctx, id); err != nil && ctx.Err() == nil {
				u.log.Warn("pack a space", "space", id, "err", err)
			}
		}
	}
}

func (u *upkeep) due() []space.SpaceID {
	u.mu.Lock()
	defer u.mu.Unlock()
	var ids []space.SpaceID
	for id, n := range u.commits {
		if n >= commitsBetweenLooks {
			ids = append(ids, id)
			delete(u.commits, id)
		}
	}
	return ids
}

func (u *upkeep) pack(ctx context.Context, id space.SpaceID) error {
	st, err := u.git.Stats(ctx, id)
	if err != nil || st.Packs < packsWorthPacking {
		return err
	}
	return u.git.Maintain(ctx, id)
}
