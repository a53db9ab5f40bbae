package space

import "errors"

// ErrOutOfMemory is why a sandbox ended whose memory limit was reached.
var ErrOutOfMemory = errors.New("sandbox out of memory")

// ErrKilled is why a sandbox ended, or did not come up, that something outside
// of it killed: a process of it, or the runtime that starts it. It says nothing
// against the machine, and another start may well work.
var ErrKilled = errors.New("sandbox killed from outside")

// ErrSandboxEnded is in the tree of the error of a command whose sandbox ended
// under it, whatever the reason: what the command did is lost or not known.
var ErrSandboxEnded = errors.New("sandbox ended under a command")
