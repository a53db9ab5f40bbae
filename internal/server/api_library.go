package server

import (
	"context"
	"os"
	"path/filepath"

	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/tools"
)

// emptyHead is the head of the empty space. The REST API uses this space for commands that see
// only the library (service.IsLibraryOnly).
const emptyHead = space.CommitID("0000000000000000000000000000000000000000")

// spaces is the part of the store of spaces that the pool of sandboxes needs.
type spaces interface {
	space.Checkouts
	space.Committer
	WaitView(ctx context.Context, id space.SpaceID) error
}

// libraries is the store of spaces for the pool of sandboxes. It adds the empty space of
// sandboxes that have only the library. The empty space accepts no commits.
type libraries struct {
	spaces
	empty string // the directory of the empty space
}

func newLibraries(s spaces, dataDir string) (*libraries, error) {
	l := &libraries{spaces: s, empty: filepath.Join(dataDir, "run", "empty", "tree")}
	if err := os.MkdirAll(l.empty, 0o700); err != nil {
		return nil, err
	}
	// Everyone can read the directory, because sandboxes run as another user. Other users
	// of the machine cannot enter the run directory.
	return l, os.Chmod(l.empty, 0o755)
}

// Checkout implements space.Checkouts.
func (l *libraries) Checkout(ctx context.Context, id space.SpaceID) (*space.Checkout, error) {
	if !service.IsLibraryOnly(id) {
		return l.spaces.Checkout(ctx, id)
	}
	return &space.Checkout{Head: emptyHead, Dir: l.empty, Release: func() {}}, nil
}

// Head implements space.Checkouts.
func (l *libraries) Head(ctx context.Context, id space.SpaceID) (space.CommitID, error) {
	if service.IsLibraryOnly(id) {
		return emptyHead, nil
	}
	return l.spaces.Head(ctx, id)
}

// Blob implements space.Checkouts.
func (l *libraries) Blob(ctx context.Context, id space.SpaceID, at space.CommitID, p space.Path) (space.BlobID, space.Mode, bool, error) {
	if service.IsLibraryOnly(id) {
		return "", 0, false, nil
	}
	return l.spaces.Blob(ctx, id, at, p)
}

// Files implements space.Checkouts.
func (l *libraries) Files(ctx context.Context, id space.SpaceID, at space.CommitID, under space.Path) ([]space.Entry, error) {
	if service.IsLibraryOnly(id) {
		return nil, nil
	}
	return l.spaces.Files(ctx, id, at, under)
}

// Diff implements space.Checkouts.
func (l *libraries) Diff(ctx context.Context, id space.SpaceID, from, to space.CommitID) ([]space.FileChange, error) {
	if service.IsLibraryOnly(id) {
		return nil, nil
	}
	return l.spaces.Diff(ctx, id, from, to)
}

// ReadBlob implements space.Checkouts.
func (l *libraries) ReadBlob(ctx context.Context, id space.SpaceID, b space.BlobID) ([]byte, error) {
	if service.IsLibraryOnly(id) {
		return nil, errEmptySpace()
	}
	return l.spaces.ReadBlob(ctx, id, b)
}

// Commit implements space.Committer. Commands of the API run read-only, so nothing commits to
// the empty space.
func (l *libraries) Commit(ctx context.Context, id space.SpaceID, cs space.ChangeSet, m space.Meta) (space.Commit, error) {
	if service.IsLibraryOnly(id) {
		return space.Commit{}, fault.New(fault.Forbidden, "The library cannot be changed.")
	}
	return l.spaces.Commit(ctx, id, cs, m)
}

// WaitView waits until sandboxes can see the history of a space up to its head.
func (l *libraries) WaitView(ctx context.Context, id space.SpaceID) error {
	if service.IsLibraryOnly(id) {
		return nil
	}
	return l.spaces.WaitView(ctx, id)
}

func errEmptySpace() error { return fault.New(fault.NotFound, "There is nothing there.") }

// libraryWorkspace adds the empty space to a workspace.
type libraryWorkspace struct{ tools.Workspace }

func (w libraryWorkspace) Head(ctx context.Context, id space.SpaceID) (space.CommitID, error) {
	if id == tools.LibraryOnly {
		return emptyHead, nil
	}
	return w.Workspace.Head(ctx, id)
}

func (w libraryWorkspace) Lookup(ctx context.Context, id space.SpaceID, at space.CommitID, p space.Path) (space.Entry, error) {
	switch {
	case id != tools.LibraryOnly:
		return w.Workspace.Lookup(ctx, id, at, p)
	case p == "":
		return space.Entry{Dir: true}, nil
	}
	return space.Entry{}, errEmptySpace()
}

func (w libraryWorkspace) Children(ctx context.Context, id space.SpaceID, at space.CommitID, dir space.Path) ([]space.Entry, error) {
	if id == tools.LibraryOnly {
		return nil, nil
	}
	return w.Workspace.Children(ctx, id, at, dir)
}

func (w libraryWorkspace) Files(ctx context.Context, id space.SpaceID, at space.CommitID, dir space.Path) ([]space.Entry, error) {
	if id == tools.LibraryOnly {
		return nil, nil
	}
	return w.Workspace.Files(ctx, id, at, dir)
}

func (w libraryWorkspace) ReadBlob(ctx context.Context, id space.SpaceID, b space.BlobID) ([]byte, error) {
	if id == tools.LibraryOnly {
		return nil, errEmptySpace()
	}
	return w.Workspace.ReadBlob(ctx, id, b)
}
