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

// benchThroughput has 1, 4 and 16 people run one command after the other, each
// in a space of 1,000 files of their own, through the
// server and, beside it, with bash and git on
// the host.
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
	clone := func(user int) string { return filepath.Join(b.dir, fmt.Sprintf("curve-host-%d", user)) }
	for i := range most {
		if err := runGit(ctx, b.dir, "clone", "-q", "file://"+dir, clone(i)); err != nil {
			return err
		}
	}
	for _, users := range levels {
		mine, rate, err := b.load(ctx, users, 8*time.Second, func(ctx context.Context, user int, t task) error {
			return clients[user].bash(ctx, t.command)
		})
		if err != nil {
			return err
		}
		theirs, otherRate, err := b.load(ctx, users, 4*time.Second, func(ctx context.Context, user int, t task) error {
			if err := inDir(ctx, clone(user), t.command); err != nil || !t.writes {
				return err
			}
			return commitAll(ctx, clone(user), false)
		})
		if err != nil {
			return err
		}
		const against = "bash and git commit on the host"
		name := fmt.Sprintf("bash_users_%d", users)
		b.alone(name+"_rate", rate, "commands/s")
		b.versus(name, 1000/rate, "ms per command", against, 1000/otherRate)
		b.versus(name+"_p50", mine.median(), "ms", against, theirs.median())
		b.versus(name+"_p95", mine.p(0.95), "ms", against, theirs.p(0.95))
	}
	return nil
}

// load has so many people run commands, one after the other, for so long and to
// the end of the last one, and returns how long each command took and how many
// ended in a second.
func (b *bench) load(ctx context.Context, users int, length time.Duration, run func(ctx context.Context, user int, t task) error) (times, float64, error) {
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
				if err := mine.add(func() error { return run(ctx, user, mixed(i)) }); err != nil {
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
