package space

import (
	"errors"
	"fmt"

	"satchel/internal/fault"
)

// ErrOutOfMemory is the error of a sandbox that ended because it reached its memory limit.
var ErrOutOfMemory = errors.New("sandbox out of memory")

// ErrKilled is the error of a sandbox that ended, or did not start, because something
// outside killed one of its processes or the runtime that starts it. The machine may be
// fine, and another start may succeed.
var ErrKilled = errors.New("sandbox killed from outside")

// ErrSandboxEnded is in the error tree of a command whose sandbox ended during the command.
// The effects of the command are lost or unknown.
var ErrSandboxEnded = errors.New("sandbox ended under a command")

// Damaged returns the fault of a file that cannot be read because its data on the server's
// disk has changed or is missing.
func Damaged(p Path, err error) error {
	return fault.Wrap(err, fault.Damaged, "%q is damaged on the server's disk and cannot be read. %s", string(p), DamagedAdvice)
}

// DamagedDirectory is like Damaged, for a directory whose list of entries is damaged.
func DamagedDirectory(p Path, err error) error {
	name := "The space's top directory"
	if p != "" {
		name = fmt.Sprintf("The directory %q", string(p))
	}
	return fault.Wrap(err, fault.Damaged, "%s is damaged on the server's disk: nothing in it can be read or changed. Ask %s", name, askToRepair)
}

const (
	// DamagedAdvice says what to do about a damaged file.
	DamagedAdvice = "Write it again if you know its content, or ask " + askToRepair

	askToRepair = "the server's operator to repair it from the remote or from a backup; satchel doctor names what is damaged."
)
