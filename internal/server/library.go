package server

import (
	"context"
	"path/filepath"

	"satchel/auth"
	"satchel/auth/store"
	"satchel/gitstore/sources"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/tools"
)

// openSources opens the manager of published sources. Nothing follows them yet.
func (c *Core) openSources(ctx context.Context) error {
	c.sources = sources.New(sources.Options{
		DB: c.DB, Store: c.Git, Owned: ownedBy(c.Accounts), Dir: filepath.Join(c.Config.DataDir, "run", "library"),
		Logger: c.Log.With("part", "sources"),
	})
	return c.sources.Load(ctx)
}

// ownedBy returns a function that lists the spaces of a person who may use the server.
func ownedBy(accounts *store.Store) func(context.Context, space.UserID) ([]space.SpaceID, error) {
	return func(ctx context.Context, user space.UserID) ([]space.SpaceID, error) {
		u, err := accounts.User(ctx, user)
		if fault.CodeOf(err) == fault.NotFound || err == nil && !u.Suspended.IsZero() {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		all, err := accounts.SpacesOf(ctx, user)
		var ids []space.SpaceID
		for _, m := range all {
			if m.Role == space.Owner {
				ids = append(ids, m.ID)
			}
		}
		return ids, err
	}
}

// followSources makes the index follow the published sources.
func (s *Server) followSources(ctx context.Context) error {
	s.shared = s.index.Follow(s.sources)
	dropped := func(ctx context.Context, collection space.SpaceID) error { return s.dropFrom(ctx, s.index, collection) }
	return s.sources.Start(ctx, sources.Index{Changed: s.shared.Refresh, Dropped: dropped})
}

// library lets the tools read the published sources.
type library struct {
	*sources.Manager
	service *service.Service
}

var _ tools.Library = library{}

func (c *Core) library() library { return library{c.sources, c.Service} }

// Sources lists the sources that a user may read.
func (l library) Sources(ctx context.Context, user space.UserID) ([]space.Source, error) {
	reader := service.Client(auth.Principal{User: user, Scopes: []space.Scope{space.ScopeRead}}, "tools")
	return l.service.ListSources(ctx, reader, service.ListSourcesInput{})
}
