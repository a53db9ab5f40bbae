package gitcmd

import (
	"errors"
	"strings"
)

// DefaultMemory is what a process of git may have, where Runner.Memory does not
// say; in bytes.
const DefaultMemory = 1 << 30

// memoryConfig has git do its work in little memory: what is larger than the
// threshold is streamed, and not compared with other versions of it.
var memoryConfig = []string{
	"pack.threads=1",
	"pack.windowMemory=64m",
	"pack.deltaCacheSize=64m",
	"core.bigFileThreshold=32m",
}

// memory returns the limit in bytes; 0 is none.
func (r Runner) memory() int64 {
	switch {
	case r.Memory == 0:
		return DefaultMemory
	case r.Memory < 0:
		return 0
	}
	return r.Memory
}

// OutOfMemory reports whether err is of a run that needed more memory than it may
// have (Runner.Memory), by the words of the programs on this side.
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
