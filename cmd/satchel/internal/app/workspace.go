package app

import (
	"context"

	"satchel/gitstore"
	"satchel/gitstore/remotes"
	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/tools"
)

// workspace lets the tools read spaces.
type workspace struct {
	git     *gitstore.Store
	remotes *remotes.Manager
}

var _ tools.Workspace = workspace{}

func (w workspace) Head(ctx context.Context, id space.SpaceID) (space.CommitID, error) {
	w.remotes.Used(id) // so that what comes to its remote comes here soon
	return w.git.Head(ctx, id)
}

func (w workspace) Lookup(ctx context.Context, id space.SpaceID, at space.CommitID, p space.Path) (tools.Entry, error) {
	f, err := w.git.Stat(ctx, id, at, p)
	if err == nil {
		return fileEntry(f), nil
	}
	// A directory is what has a listing.
	if _, lerr := w.git.List(ctx, id, at, p); fault.CodeOf(lerr) == fault.Damaged {
		return tools.Entry{}, lerr
	} else if lerr != nil {
		return tools.Entry{}, err
	}
	return tools.Entry{Path: p, Dir: true}, nil
}

func (w workspace) Children(ctx context.Context, id space.SpaceID, at space.CommitID, dir space.Path) ([]tools.Entry, error) {
	list, err := w.git.List(ctx, id, at, dir)
	if err != nil {
		return nil, err
	}
	out := make([]tools.Entry, len(list))
	for i, e := range list {
		out[i] = fileEntry(e.File)
		out[i].Dir = e.Dir
		out[i].Path = space.Path(e.Name)
		if dir != "" {
			out[i].Path = dir + "/" + space.Path(e.Name)
		}
	}
	return out, nil
}

func (w workspace) Files(ctx context.Context, id space.SpaceID, at space.CommitID, dir space.Path) ([]tools.Entry, error) {
	list, err := w.git.Files(ctx, id, at, dir)
	if err != nil {
		return nil, err
	}
	out := make([]tools.Entry, len(list))
	for i, f := range list {
		out[i] = tools.Entry{Path: f.Path, Mode: f.NewMode, Blob: f.New, Size: f.Size}
	}
	return out, nil
}

func (w workspace) Content(ctx context.Context, id space.SpaceID, b space.BlobID) ([]byte, error) {
	return w.git.ReadBlob(ctx, id, b)
}

func fileEntry(f gitstore.File) tools.Entry {
	return tools.Entry{Path: f.Path, Mode: f.Mode, Blob: f.Blob, Size: f.Size}
}
