package tools

import (
	"context"

	"satchel/internal/space"
)

// Workspace reads a space or a source of the library at a commit. All reads of one call use
// the same commit, so that the answer is consistent.
type Workspace interface {
	// Head returns the newest commit of a space, or a fault.NotFound for an unknown space.
	Head(ctx context.Context, id space.SpaceID) (space.CommitID, error)
	// Lookup returns the file or directory at a path, or a fault.NotFound. The empty path
	// is the root directory.
	Lookup(ctx context.Context, id space.SpaceID, at space.CommitID, p space.Path) (space.Entry, error)
	// Children lists one directory, sorted by path. It returns a fault.NotFound if dir is
	// not a directory. The empty path is the root.
	Children(ctx context.Context, id space.SpaceID, at space.CommitID, dir space.Path) ([]space.Entry, error)
	// Files lists every file at or under a path, sorted by path. A missing path has no
	// files. The empty path is the root.
	Files(ctx context.Context, id space.SpaceID, at space.CommitID, dir space.Path) ([]space.Entry, error)
	// ReadBlob returns a blob of the space. The caller must not modify it.
	ReadBlob(ctx context.Context, id space.SpaceID, b space.BlobID) ([]byte, error)
}
