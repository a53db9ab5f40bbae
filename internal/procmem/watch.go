package procmem

import (
	"context"
	"runtime/metrics"
	"time"
)

// checkEvery is how often Watch checks whether the process is idle.
const checkEvery = time.Second

// Idle says when a process is idle.
type Idle struct {
	// Bytes is how much an idle process allocates at most between two checks, a second apart.
	Bytes uint64
	// Checks is how many checks in a row must find the process idle. The first time, one
	// is enough: the process has started.
	Checks int
}

// Watch reclaims whenever this process becomes idle, once after each period of work, until
// ctx ends.
func (g *Reclaimer) Watch(ctx context.Context, idle Idle) {
	t := time.NewTicker(checkEvery)
	defer t.Stop()
	w := watch{Idle: idle, last: allocated()}
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		if w.idles(allocated()) {
			g.Reclaim()
		}
	}
}

// allocated returns how many bytes this process has ever allocated. Reading this number
// stops no thread.
func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// watch detects when a process becomes idle.
type watch struct {
	Idle
	last    uint64 // allocated until the last check
	quiet   int    // checks in a row that found the process idle
	done    bool   // reported since the last work
	started bool   // reported before
}

// idles gets the bytes allocated so far at each check, and returns true once after each
// period of work.
func (w *watch) idles(allocated uint64) bool {
	if allocated-w.last > w.Bytes {
		w.quiet, w.done = 0, false
	} else {
		w.quiet++
	}
	w.last = allocated
	checks := 1
	if w.started {
		checks = w.Checks
	}
	if w.done || w.quiet < checks {
		return false
	}
	w.done, w.started = true, true
	return true
}
