package gitcmd

import (
	"errors"
	"strings"
)

// DefaultMemory is the default of Runner.Memory, in bytes.
const DefaultMemory = 1 << 30

// memoryConfig makes git use little memory. git streams objects above core.bigFileThreshold,
// and computes no deltas of them.
var memoryConfig = []string{
	"pack.threads=1",
	"pack.windowMemory=64m",
	"pack.deltaCacheSize=64m",
	"core.bigFileThreshold=32m",
}

// memory returns the limit in bytes, or 0 for none.
func (r Runner) memory() int64 {
	switch {
	case r.Memory == 0:
		return DefaultMemory
	case r.Memory < 0:
		return 0
	}
	return r.Memory
}

// OutOfMemory reports whether err comes from a run that needed more memory than Runner.Memory,
// judging by the messages of the local programs.
func OutOfMemory(err error) bool {
	var g *Error
	if !errors.As(err, &g) {
		return false
	}
	for line := range strings.Lines(g.Stderr) {
		if !g.Here && strings.HasPrefix(line, "remote:") || strings.HasPrefix(line, "fatal: remote error:") {
			continue
		}
		line = strings.ToLower(line)
		for _, words := range []string{"out of memory", "cannot allocate memory", "failed to allocate memory", "unable to create thread", "can't allocate"} {
			if strings.Contains(line, words) {
				return true
			}
		}
	}
	return false
}
