package server

import (
	"context"

	"satchel/gitstore"
	"satchel/gitstore/remotes"
	"satchel/internal/space"
	"satchel/tools"
)

// workspace lets the tools read spaces. A read counts as use of the space, so that the
// server soon fetches changes from its remote.
type workspace struct {
	*gitstore.Store
	remotes *remotes.Manager
}

var _ tools.Workspace = workspace{}

func (w workspace) Head(ctx context.Context, id space.SpaceID) (space.CommitID, error) {
	w.remotes.Used(id)
	return w.Store.Head(ctx, id)
}
