package tools

import (
	"context"

	"satchel/internal/space"
)

// Workspace reads a space or a source of the library at one of its commits. Every
// answer of one call is read at one commit, so that it agrees with itself.
type Workspace interface {
	// Head returns the newest commit of a space; fault.NotFound if there is
	// no such space.
	Head(ctx context.Context, id space.SpaceID) (space.CommitID, error)
	// Lookup finds what is at a path; fault.NotFound if there is nothing.
	// The empty path is the root directory.
	Lookup(ctx context.Context, id space.SpaceID, at space.CommitID, p space.Path) (space.Entry, error)
	// Children lists one directory, sorted by path; fault.NotFound if dir is not a
	// directory. The empty path is the root.
	Children(ctx context.Context, id space.SpaceID, at space.CommitID, dir space.Path) ([]space.Entry, error)
	// Files lists every file at or under a path, at any depth, sorted by path;
	// none if nothing is there. The empty path is the root.
	Files(ctx context.Context, id space.SpaceID, at space.CommitID, dir space.Path) ([]space.Entry, error)
	// ReadBlob returns a blob of the space. The caller does not change it.
	ReadBlob(ctx context.Context, id space.SpaceID, b space.BlobID) ([]byte, error)
}
