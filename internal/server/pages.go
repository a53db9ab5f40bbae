package server

import (
	"context"

	"satchel/gitstore"
	"satchel/internal/space"
	"satchel/web"
)

// addSpaces gives the pages what spaces hold.
func (s *Server) addSpaces(o *web.Options) {
	o.Workspace, o.History, o.Committer = workspace{s.Git, s.remotes}, history{s.Git}, s.Git
	o.Tools = s.finds
	o.Editing = web.EditLimits{MaxFile: s.Config.Space.MaxFile, MaxChange: s.Config.Space.MaxChange()}
	s.addConnect(o)
}

// history is the store of spaces as the pages have it.
type history struct{ *gitstore.Store }

var _ web.History = history{}

func (h history) Log(ctx context.Context, id space.SpaceID, q web.LogQuery) ([]space.Commit, error) {
	return h.Store.Log(ctx, id, space.LogQuery{From: q.From, After: q.After, Path: q.Path, Tool: q.Tool, Tools: q.Tools, Client: q.Client, Since: q.Since, Until: q.Until, Limit: q.Limit})
}
