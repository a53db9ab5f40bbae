package space

import (
	"errors"
	"fmt"

	"satchel/internal/fault"
)

// ErrOutOfMemory is why a sandbox ended whose memory limit was reached.
var ErrOutOfMemory = errors.New("sandbox out of memory")

// ErrKilled is why a sandbox ended, or did not come up, that something outside
// of it killed: a process of it, or the runtime that starts it. It says nothing
// against the machine, and another start may well work.
var ErrKilled = errors.New("sandbox killed from outside")

// ErrSandboxEnded is in the tree of the error of a command whose sandbox ended
// under it, whatever the reason: what the command did is lost or not known.
var ErrSandboxEnded = errors.New("sandbox ended under a command")

// Damaged returns the fault of a file that cannot be read because bytes on the
// server's disk have changed or are gone.
func Damaged(p Path, err error) error {
	return fault.Wrap(err, fault.Damaged, "%q is damaged on the server's disk and cannot be read. %s", string(p), DamagedAdvice)
}

// DamagedDirectory is Damaged for a directory whose list of entries is damaged.
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
