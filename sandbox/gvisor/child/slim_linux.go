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

// slim returns memory of a sentry or gofer whenever it becomes idle: free heap and pages of
// the program, which are about 9 MB of each sandbox's proportional share after the start.
//
// It also limits the process to one processor at first, because gVisor drops forty
// capabilities on every thread, one after the other. The sentry sets its own number later.
func slim() {
	all := runtime.GOMAXPROCS(1)
	// If the sentry opens files itself, the gofer has little to do.
	if os.Args[0] == "runsc-gofer" && slices.Contains(os.Args, "--directfs=false") {
		time.AfterFunc(bootTime, func() { runtime.GOMAXPROCS(all) })
	}
	returnMemory(2) // a booting process is idle for one check, too
}

// returnMemory returns memory whenever this process becomes idle, for the life of the
// process. The process counts as started after start idle checks.
func returnMemory(start int) {
	// A command makes the sentry allocate many times idleBytes.
	const idleBytes, checks = 64 << 10, 2
	// Without a reclaimer, only the heap is returned.
	reclaimer, _ := procmem.NewReclaimer()
	go reclaimer.Watch(context.Background(), procmem.Idle{Bytes: idleBytes, Start: start, Checks: checks})
}
