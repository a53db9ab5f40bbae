package app

import (
	"context"
	"log/slog"
	"sync"

	"satchel/cmd/satchel/internal/admin"
	"satchel/gitstore"
	"satchel/internal/space"
)

// Every commit is a small pack of its own. Reads hardly notice some hundreds of
// them (gitstore's benchmarks), so that is when they are made one.
const (
	commitsBetweenLooks = 100
	packsWorthPacking   = 300
)

// upkeep does what makes later work quick, one space at a time, off every other
// path: it packs what many commits left, and makes the checkout that the next
// sandbox of a space starts from.
type upkeep struct {
	git  *gitstore.Store
	log  *slog.Logger
	wake chan struct{}

	mu      sync.Mutex
	commits map[space.SpaceID]int // since the last look
	cold    []space.SpaceID       // without a checkout
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
	switch {
	case e.Commit.Tool == admin.ImportTool:
		u.warm(e.Space)
	case due:
		u.wakeUp()
	}
}

// warm makes the checkouts of spaces, in this order.
func (u *upkeep) warm(ids ...space.SpaceID) {
	u.mu.Lock()
	u.cold = append(u.cold, ids...)
	u.mu.Unlock()
	u.wakeUp()
}

func (u *upkeep) wakeUp() {
	select {
	case u.wake <- struct{}{}:
	default: // it is awake already
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
		cold, due := u.work()
		for _, id := range cold {
			u.tell(ctx, "make a checkout", id, u.git.Warm(ctx, id))
		}
		for _, id := range due {
			u.tell(ctx, "pack a space", id, u.pack(ctx, id))
		}
	}
}

func (u *upkeep) tell(ctx context.Context, what string, id space.SpaceID, err error) {
	if err != nil && ctx.Err() == nil {
		u.log.Warn(what, "space", id, "err", err)
	}
}

func (u *upkeep) work() (cold, due []space.SpaceID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	cold, u.cold = u.cold, nil
	for id, n := range u.commits {
		if n >= commitsBetweenLooks {
			due = append(due, id)
			delete(u.commits, id)
		}
	}
	return cold, due
}

func (u *upkeep) pack(ctx context.Context, id space.SpaceID) error {
	st, err := u.git.Stats(ctx, id)
	if err != nil || st.Packs < packsWorthPacking {
		return err
	}
	return u.git.Maintain(ctx, id)
}
