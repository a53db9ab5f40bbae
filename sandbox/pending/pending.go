// Package pending keeps files of sandboxes that could not be committed: a file with a
// secret, a file at a path that no space may have, or a file over the limits. The files
// of each user and space are sealed separately, under the server's key, until they are
// committed, deleted or dropped. Call [Open] first, then [Store.Save] and [Store.Load].
//
// It promises:
//
//   - Files that Save accepted are on disk when it returns. A crash leaves the old
//     state or the new one, complete.
//   - A newer file never displaces a kept file of another path: Save rejects and
//     returns files that exceed a user's limits.
//   - A file that was changed on disk, or that belongs to another user or space, is
//     an error and never content.
//
// Paths and contents come from a sandbox, so an attacker may have chosen them. They are
// data inside sealed files, never names of files.
package pending

import (
	"time"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// File is the kept file at one path of a sandbox.
type File struct {
	// Path is relative to the space, in the bytes of the sandbox's file system. It may be
	// invalid in a space.
	Path    string
	Mode    space.Mode
	Content []byte // for a symbolic link, its target
	// Base and BaseMode are the blob and the mode of the file that was changed. They are empty
	// if the file is new.
	Base     space.BlobID
	BaseMode space.Mode
	// Why says why the file was not committed, as a sentence for the caller. Code is the
	// code of that error.
	Why  string
	Code fault.Code
	// Lost says why there is no Content: the file could not be read, or the path is not a
	// file. Such a path is only listed.
	Lost string
	// Since is when the file was first kept. Save sets it.
	Since time.Time
}

// NotStored is a File that Save did not accept.
type NotStored struct {
	Path string
	Why  string // the end of a sentence: "100 files are held for you already, …"
	// Older reports that an earlier version of the path is still kept.
	Older bool
}
