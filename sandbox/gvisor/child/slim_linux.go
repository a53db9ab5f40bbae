package child

import (
	"os"
	"runtime"
	"runtime/metrics"
	"slices"
	"time"

	"satchel/internal/procmem"
)

const (
	// slimEvery is how often a sentry or gofer checks whether it is idle. At the first
	// check it has certainly booted.
	slimEvery = time.Second
	// slimQuiet is how many checks in a row must find it idle.
	slimQuiet = 2
	// slimIdle is how much an idle process allocates at most between two checks; a command
	// makes the sentry allocate many times as much.
	slimIdle = 64 << 10
)

// slim returns memory of a sentry or gofer whenever it becomes idle: free heap and pages of
// the program, which are about 9 MB of each sandbox's proportional share after the start.
//
// It also starts with one processor, because gVisor drops forty capabilities on every
// thread, one after the other. The sentry sets its own number later.
func slim() {
	all := runtime.GOMAXPROCS(1)
	// Without it, only the heap is returned.
	reclaimer, _ := procmem.NewReclaimer()
	// If the sentry opens files itself, the gofer has little to do.
	busy := os.Args[0] == "runsc-gofer" && slices.Contains(os.Args, "--directfs=false")
	go func() {
		t := time.NewTicker(slimEvery) // for the life of the process
		<-t.C
		if busy {
			runtime.GOMAXPROCS(all)
		}
		var r rest
		for range t.C {
			if r.idles(allocated()) {
				reclaimer.Reclaim()
			}
		}
	}()
}

// allocated is how many bytes this process has ever allocated. Reading it stops
// no thread.
func allocated() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// rest detects when a process becomes idle.
type rest struct {
	last  uint64
	quiet int
	done  bool // reported since the last work
}

// idles gets the bytes allocated so far at each check, and returns true once after each
// period of work.
func (r *rest) idles(allocated uint64) bool {
	if allocated-r.last > slimIdle {
		r.quiet, r.done = 0, false
	} else {
		r.quiet++
	}
	r.last = allocated
	if r.done || r.quiet < slimQuiet {
		return false
	}
	r.done = true
	return true
}
