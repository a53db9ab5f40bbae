package space

import "errors"

// ErrOutOfMemory is why a sandbox ended whose memory limit was reached.
var ErrOutOfMemory = errors.New("sandbox out of memory")

// ErrSandboxEnded is in the tree of the error of a command whose sandbox ended
// under it, whatever the reason: what the command did is lost or not known.
var ErrSandboxEnded = errors.New("sandbox ended under a command")
