package procmem

import (
	"context"
	"runtime/metrics"
	"time"
)

// checkEvery is how often Watch checks whether the process is idle.
const checkEvery = time.Second

// Idle defines when a process is idle.
type Idle struct {
	// Bytes is the most that an idle process allocates between two checks, a second apart.
	Bytes uint64
	// Start is how many checks in a row must find a process idle after the start of the process.
	Start int
	// Checks is how many checks in a row must find a process idle after a later period of work.
	Checks int
}

// Watch reclaims whenever this process becomes idle, until ctx ends.
func (g *Reclaimer) Watch(ctx context.Context, idle Idle) {
	t := time.NewTicker(checkEvery)
	defer t.Stop()
	w := watch{Idle: idle, last: workDone()}
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		if w.idles(workDone()) {
			g.Reclaim()
			w.last = workDone() // so that the collections of Reclaim don't count
		}
	}
}

// work is the total work of a process so far.
type work struct {
	allocated   uint64 // bytes
	collections uint64 // garbage collections
}

// workDone returns the work of this process so far. It stops no thread.
func workDone() work {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}, {Name: "/gc/cycles/total:gc-cycles"}}
	metrics.Read(s)
	return work{s[0].Value.Uint64(), s[1].Value.Uint64()}
}

// watch detects when a process becomes idle.
type watch struct {
	Idle
	last    work // at the last check
	quiet   int  // checks in a row that found the process idle
	started bool // the start was reported
	done    bool // the last period of work was reported
}

// idles gets the work so far at each check. It returns true once after each period of work, and
// after each garbage collection, because a collection loads most of the program's tables again.
// An idle process collects every two minutes.
func (w *watch) idles(now work) bool {
	if now.allocated-w.last.allocated > w.Bytes {
		w.quiet, w.done = 0, false
	} else {
		w.quiet++
	}
	if now.collections != w.last.collections {
		w.done = false
	}
	w.last = now
	checks := w.Start
	if w.started {
		checks = w.Checks
	}
	if w.done || w.quiet < checks {
		return false
	}
	w.done, w.started = true, true
	return true
}
