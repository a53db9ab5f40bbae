package child

import (
	"context"
	"os"
	"runtime"
	"slices"
	"time"

	"satchel/internal/procmem"
)

// bootTime is the longest time that a gofer takes to boot.
const bootTime = time.Second

// slim gives memory of an idle sentry or gofer back to the host: free heap and pages of
// the program, which are about 9 MB of each sandbox's proportional set size after the start.
//
// It also limits the process to one processor at first, because gVisor drops forty
// capabilities on every thread, one after the other. The sentry later sets its own number of
// processors.
func slim() {
	all := runtime.GOMAXPROCS(1)
	// If the sentry opens files itself, the gofer has little to do.
	if os.Args[0] == "runsc-gofer" && slices.Contains(os.Args, "--directfs=false") {
		time.AfterFunc(bootTime, func() { runtime.GOMAXPROCS(all) })
	}
	returnMemory(2) // a process can be idle for one check before it has started
}

// returnMemory gives memory back to the host whenever this process becomes idle. start is the
// number of idle checks in a row after which the process counts as started.
func returnMemory(start int) {
	// A command makes the sentry allocate many times idleBytes.
	const idleBytes, checks = 64 << 10, 2
	// Without a reclaimer, only the heap is returned.
	reclaimer, _ := procmem.NewReclaimer()
	go reclaimer.Watch(context.Background(), procmem.Idle{Bytes: idleBytes, Start: start, Checks: checks})
}
