package tools

import (
	"context"

	"satchel/internal/space"
)

// Workspace reads a space at one of its commits. gitstore satisfies it. Every
// answer of one call is read at one commit, so that it agrees with itself.
type Workspace interface {
	// Head returns the newest commit of a space; fault.NotFound where there is
	// no such space.
	Head(ctx context.Context, id space.SpaceID) (space.CommitID, error)
	// Lookup finds what is at a path; fault.NotFound where there is nothing.
	// The empty path is the root directory.
	Lookup(ctx context.Context, id space.SpaceID, at space.CommitID, p space.Path) (Entry, error)
	// Children lists one directory, sorted by path; fault.NotFound where dir is
	// no directory. The empty path is the root.
	Children(ctx context.Context, id space.SpaceID, at space.CommitID, dir space.Path) ([]Entry, error)
	// Files lists every file under a directory, at any depth, sorted by path;
	// none where dir is no directory. The empty path is the root.
	Files(ctx context.Context, id space.SpaceID, at space.CommitID, dir space.Path) ([]Entry, error)
	// Content returns a blob of the space. The caller does not change it.
	Content(ctx context.Context, id space.SpaceID, b space.BlobID) ([]byte, error)
}

// Entry is one file or directory of a commit.
type Entry struct {
	Path space.Path
	Dir  bool
	// Of a file:
	Mode space.Mode
	Blob space.BlobID
	Size int64 // in bytes; -1 where it is not known
}
