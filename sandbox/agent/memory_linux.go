package agent

import (
	"runtime/debug"
	"time"

	"satchel/sandbox/protocol"
)

// defaultRestAfter is the time without a request after which the agent gives memory back. It is
// longer than a client's usual pause between commands, because the next command is then slower.
const defaultRestAfter = 2 * time.Second

func restAfter(b protocol.Boot) time.Duration {
	if b.RestAfter <= 0 {
		return defaultRestAfter
	}
	return b.RestAfter
}

// restTimer returns a timer that gives the agent's unused heap back to the kernel when it fires.
// Every request resets the timer.
func restTimer(after time.Duration) *time.Timer { return time.AfterFunc(after, debug.FreeOSMemory) }
