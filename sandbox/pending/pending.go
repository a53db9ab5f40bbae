// Package pending keeps the files of sandboxes that could not be committed: a
// secret that was screened, a path that a space may not have, a file over the
// limits. They are sealed under the server's key, apart for each user and
// space, until they are committed, deleted or dropped.
//
// It promises that
//   - what Save took is on disk when it returns, and whole after a crash at
//     any moment: the old state or the new;
//   - nothing newer replaces a kept file: Save rejects files over a user's bounds,
//     and returns them;
//   - a file that was changed on disk, or that belongs to another user or
//     space, is an error and never content.
//
// Paths and contents come from a sandbox and are an attacker's: here they are
// data inside sealed files, never names of files.
package pending

import (
	"time"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// File is what is kept of one path of a sandbox.
type File struct {
	// Path is relative to the space, in the bytes that the sandbox's file
	// system holds. It need not be a valid path of a space.
	Path    string
	Mode    space.Mode
	Content []byte // a Symlink's target
	// Base and BaseMode are the file that the change was made from; empty if
	// there was none.
	Base     space.BlobID
	BaseMode space.Mode
	// Why says why it was not committed, as a sentence for the caller, and Code
	// how the error was classed.
	Why  string
	Code fault.Code
	// Lost says why there is no Content: the file could not be read, or is none.
	// It is then only named.
	Lost string
	// Since is when it was first held; Save fills it in.
	Since time.Time
}

// NotStored is a File that Save did not take.
type NotStored struct {
	Path string
	Why  string // the end of a sentence: "100 files are held for you already, …"
	// Older reports that what Save took earlier for the path is still kept.
	Older bool
}
