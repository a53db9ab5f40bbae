package agent

import (
	"sync"
	"time"

	"satchel/internal/procmem"
)

// defaultRestAfter is longer than a client pauses between the commands of one
// thought; the next command pays for what it needs again.
const defaultRestAfter = 2 * time.Second

func restAfter(b Boot) time.Duration {
	if b.RestAfter <= 0 {
		return defaultRestAfter
	}
	return b.RestAfter
}

// restTimer gives the agent's memory back when it fires: the heap of its start
// and of the last commands, and the program's pages. Every request resets it.
func restTimer(after time.Duration) *time.Timer {
	// Not at the boot, which somebody waits for.
	reclaimer := sync.OnceValue(func() *procmem.Reclaimer {
		g, _ := procmem.NewSandboxedReclaimer() // without one, the heap alone is given back
		return g
	})
	return time.AfterFunc(after, func() { reclaimer().Reclaim() })
}
