package server

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"satchel/gitstore"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
)

// The packs of a space are counted after commitsBetweenLooks commits. From packsWorthPacking packs
// on, they are merged even if the space is never idle. Every commit writes a small pack, and a few
// hundred packs hardly slow down reads (see gitstore's benchmarks).
const (
	commitsBetweenLooks = 100
	packsWorthPacking   = 300
)

// tidyAfter is how long a space has no commits before it is tidied. It is longer than a
// person's short break.
const tidyAfter = 2 * time.Minute

// sweepEvery is how often leftovers of missing spaces are searched for.
const sweepEvery = 6 * time.Hour

// upkeep does maintenance in the background, one space at a time. It tidies spaces without
// recent commits, merges the packs of busy spaces, and creates the checkout for a space's
// next sandbox.
type upkeep struct {
	git  *gitstore.Store
	log  *slog.Logger
	wake chan struct{}

	mu      sync.Mutex
	commits map[space.SpaceID]int       // number of commits since the packs were last counted
	touched map[space.SpaceID]time.Time // the time of the last commit in spaces to tidy
	cold    []space.SpaceID             // spaces to create a checkout for
}

func newUpkeep(git *gitstore.Store, log *slog.Logger) *upkeep {
	return &upkeep{git: git, log: log, wake: make(chan struct{}, 1), commits: map[space.SpaceID]int{}, touched: map[space.SpaceID]time.Time{}}
}

// Publish implements space.Events.
func (u *upkeep) Publish(e space.Event) {
	u.mu.Lock()
	first := len(u.touched) == 0
	u.touched[e.Space] = time.Now()
	u.commits[e.Space]++
	due := u.commits[e.Space] >= commitsBetweenLooks
	u.mu.Unlock()
	switch {
	case e.Commit.Tool == service.ToolImport:
		u.warm(e.Space)
	case due || first:
		u.wakeUp()
	}
}

// warm tells the loop in run to create the checkouts of spaces, in the order of ids.
func (u *upkeep) warm(ids ...space.SpaceID) {
	u.mu.Lock()
	u.cold = append(u.cold, ids...)
	u.mu.Unlock()
	u.wakeUp()
}

// forget cancels the upkeep of a deleted space.
func (u *upkeep) forget(id space.SpaceID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.commits, id)
	delete(u.touched, id)
	u.cold = slices.DeleteFunc(u.cold, func(o space.SpaceID) bool { return o == id })
}

func (u *upkeep) wakeUp() {
	select {
	case u.wake <- struct{}{}:
	default: // a wake-up is already waiting
	}
}

// run works until ctx ends.
func (u *upkeep) run(ctx context.Context) {
	sweep := time.NewTicker(sweepEvery)
	defer sweep.Stop()
	idle := time.NewTimer(tidyAfter)
	defer idle.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-sweep.C:
			_, err := u.git.Sweep(ctx)
			u.tell(ctx, "remove leftovers", "", err)
			continue
		case <-u.wake:
		case <-idle.C:
		}
		w := u.work(time.Now())
		for _, id := range w.cold {
			u.tell(ctx, "make a checkout", id, u.git.Warm(ctx, id))
		}
		for _, id := range w.busy {
			u.tell(ctx, "pack a space", id, u.pack(ctx, id))
		}
		for _, id := range w.idle {
			_, err := u.git.GC(ctx, id)
			u.tell(ctx, "tidy a space", id, err)
		}
		if w.next > 0 {
			idle.Reset(w.next)
		}
	}
}

func (u *upkeep) tell(ctx context.Context, what string, id space.SpaceID, err error) {
	// A space that is not found was deleted meanwhile.
	if err != nil && ctx.Err() == nil && fault.CodeOf(err) != fault.NotFound {
		u.log.Warn(what, "space", id, "err", err)
	}
}

// chores is the work that is due.
type chores struct {
	cold, busy, idle []space.SpaceID
	next             time.Duration // time until another space is idle; zero if there is none
}

func (u *upkeep) work(now time.Time) (w chores) {
	u.mu.Lock()
	defer u.mu.Unlock()
	w.cold, u.cold = u.cold, nil
	for id, n := range u.commits {
		if n >= commitsBetweenLooks {
			w.busy = append(w.busy, id)
			delete(u.commits, id)
		}
	}
	for id, at := range u.touched {
		left := tidyAfter - now.Sub(at)
		switch {
		case left <= 0:
			w.idle = append(w.idle, id)
			delete(u.touched, id)
			delete(u.commits, id)
		case w.next == 0 || left < w.next:
			w.next = left
		}
	}
	return w
}

func (u *upkeep) pack(ctx context.Context, id space.SpaceID) error {
	st, err := u.git.Stats(ctx, id)
	if err != nil || st.Packs < packsWorthPacking {
		return err
	}
	return u.git.Maintain(ctx, id)
}
