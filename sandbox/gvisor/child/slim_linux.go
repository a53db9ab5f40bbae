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
	// slimEvery is how often a sentry or gofer looks whether it idles. After
	// the first it has booted for certain.
	slimEvery = time.Second
	// slimQuiet is how many looks in a row must have found it idle.
	slimQuiet = 2
	// slimIdle is how much a process allocates between two looks at most while
	// it idles; a command makes the sentry allocate many times that.
	slimIdle = 64 << 10
)

// slim makes a process that is about to become a sentry or a gofer small
// whenever it has come to rest: it then gives back free heap and the pages of
// the program that it ran through, about 9 MB of each sandbox's proportional
// share after the start alone.
//
// It also begins with one processor: gVisor drops forty capabilities on every
// thread, one after the other, and each thread costs a round. The sentry sets
// its own number later.
func slim() {
	all := runtime.GOMAXPROCS(1)
	// Without one, the heap alone is given back.
	reclaimer, _ := procmem.NewReclaimer()
	// Where the sentry opens files itself, the gofer has little to do.
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

// rest reports when a process has come to rest.
type rest struct {
	last  uint64
	quiet int
	done  bool // told since the last work
}

// idles takes what the process has allocated so far, at every look, and tells
// once after each stretch of work that it is over.
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
