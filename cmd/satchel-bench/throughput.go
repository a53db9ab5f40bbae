//go:build linux

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// task is one command of the mix.
type task struct {
	command string
	writes  bool // it changes a file, which is committed
}

// rareWord is in few pages of a corpus.
const rareWord = "banufa"

// mixed is the i-th command of a person who looks, searches and takes notes.
func mixed(i int) task {
	switch i % 3 {
	case 0:
		return task{command: "true"}
	case 1:
		return task{command: "grep -rn " + rareWord + " knowledge || true"}
	default:
		return task{command: fmt.Sprintf("echo 'note %d' > knowledge/note.md", i), writes: true}
	}
}

// firstOf numbers the first command of one of so many people: not all do the
// same at the same time, and nobody writes what is there.
func firstOf(user, users int) int { return user + 3000*users }

// place is where the commands of several people run.
type place struct {
	figure  string // what its figures' names end in
	against string
	time    time.Duration // for which it is measured
	run     func(ctx context.Context, user int, t task) error
}

// benchThroughput has 1, 4 and 16 people run one command after the other, each
// in a space of 1,000 files of their own, in every place.
func benchThroughput(ctx context.Context, b *bench) error {
	levels := []int{1, 4, 16}
	if b.quick {
		levels = levels[:2]
	}
	most := levels[len(levels)-1]
	dir, err := b.corpusRepository(ctx, "curve-corpus", b.size(1000), 2000)
	if err != nil {
		return err
	}
	s, err := b.serve(ctx, "curve")
	if err != nil {
		return err
	}
	defer s.stop()
	clients, err := s.users(ctx, most, dir)
	if err != nil {
		return err
	}
	defer closeAll(clients)
	ours := place{time: 8 * time.Second, run: func(ctx context.Context, user int, t task) error {
		return clients[user].bash(ctx, t.command)
	}}
	others, end, err := b.otherPlaces(ctx, most, dir)
	defer end()
	if err != nil {
		return err
	}
	for _, users := range levels {
		mine, rate, err := b.load(ctx, users, ours)
		if err != nil {
			return err
		}
		name := fmt.Sprintf("bash_users_%d", users)
		b.alone(name+"_rate", rate, "commands/s")
		for i, p := range others {
			theirs, otherRate, err := b.load(ctx, users, p)
			if err != nil {
				return fmt.Errorf("%s: %w", p.against, err)
			}
			b.versus(name+p.figure, 1000/rate, "ms per command", p.against, 1000/otherRate)
			if i == 0 {
				b.versus(name+"_p50", mine.median(), "ms", p.against, theirs.median())
				b.versus(name+"_p95", mine.p(0.95), "ms", p.against, theirs.p(0.95))
			}
		}
	}
	return nil
}

// otherPlaces are the alternatives, the one that users of gVisor would pick
// first. end must be called, with an error too.
func (b *bench) otherPlaces(ctx context.Context, users int, dir string) (all []place, end func(), err error) {
	var ends []func()
	end = func() {
		for _, f := range ends {
			f()
		}
	}
	containers := make([]*runsc, users)
	sessions := make([]*perSession, users)
	clone := func(user int) string { return filepath.Join(b.dir, fmt.Sprintf("curve-runsc-%d", user)) }
	for i := range users {
		if err := runGit(ctx, b.dir, "clone", "-q", "file://"+dir, clone(i)); err != nil {
			return nil, end, err
		}
		r, stop, err := b.detached(ctx, fmt.Sprintf("curve%02d", i), clone(i))
		if err != nil {
			return nil, end, err
		}
		containers[i], ends = r, append(ends, stop)
		if sessions[i], err = b.newPerSession(ctx, fmt.Sprintf("curve-session-%d", i), dir); err != nil {
			return nil, end, err
		}
	}
	all = append(all, place{against: "runsc exec and git commit", time: 4 * time.Second,
		run: func(ctx context.Context, user int, t task) error {
			if err := containers[user].exec(ctx, fmt.Sprintf("curve%02d", user), t.command); err != nil || !t.writes {
				return err
			}
			// What a person has to do where nobody else does it.
			return commitAll(ctx, clone(user), false)
		}})
	all = append(all, place{figure: "_session", against: "git clone, runsc run and git push for each", time: 4 * time.Second,
		run: func(ctx context.Context, user int, t task) error { return sessions[user].run(ctx, t) }})
	return all, end, nil
}

// load has so many people run commands in a place, one after the other, for
// its time and to the end of the last one, and returns how long each command
// took and how many ended in a second.
func (b *bench) load(ctx context.Context, users int, p place) (times, float64, error) {
	length := p.time
	if b.quick {
		length /= 10
	}
	var mu sync.Mutex
	var all times
	began := time.Now()
	g, ctx := errgroup.WithContext(ctx)
	for user := range users {
		g.Go(func() error {
			var mine times
			for i := firstOf(user, users); time.Since(began) < length || len(mine) < 3; i++ {
				if err := mine.add(func() error { return p.run(ctx, user, mixed(i)) }); err != nil {
					return err
				}
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, mine...)
			return nil
		})
	}
	err := g.Wait()
	return all, float64(len(all)) / time.Since(began).Seconds(), err
}
