package agent

import (
	"runtime/debug"
	"time"
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

// restTimer gives the heap of the agent's start and of the last commands back when
// it fires. Every request resets it.
func restTimer(after time.Duration) *time.Timer { return time.AfterFunc(after, debug.FreeOSMemory) }
