package agent

import (
	"sync"
	"time"

	"satchel/internal/procmem"
)

// defaultRestAfter is longer than a client's usual pause between commands, because the next
// command is slower after a rest.
const defaultRestAfter = 2 * time.Second

func restAfter(b Boot) time.Duration {
	if b.RestAfter <= 0 {
		return defaultRestAfter
	}
	return b.RestAfter
}

// restTimer returns the agent's unused memory when it fires: heap and pages of the program.
// Every request resets it.
func restTimer(after time.Duration) *time.Timer {
	// Not during the boot, because somebody waits for it.
	reclaimer := sync.OnceValue(func() *procmem.Reclaimer {
		g, _ := procmem.NewSandboxedReclaimer() // without it, only the heap is returned
		return g
	})
	return time.AfterFunc(after, func() { reclaimer().Reclaim() })
}
