package web_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"satchel/gitstore/sources"
	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/tools"
	"satchel/tools/index"
	"satchel/web"
)

// shelf is a world with a library: a real manager of sources over real spaces.
type shelf struct {
	*held
	*sources.Manager
}

func newShelf(t *testing.T, files ...string) *shelf {
	t.Helper()
	s := &shelf{}
	s.held = newHeldWith(t, func(o *web.Options) { o.Publishing = s }, files...)
	if _, err := s.db.Migrate(t.Context(), sources.Migrations()...); err != nil {
		t.Fatal(err)
	}
	s.Manager = sources.New(sources.Options{
		DB: s.db, Store: s.git, Dir: filepath.Join(t.TempDir(), "library"), Now: s.clock, LookEvery: time.Hour,
		Owned: func(ctx context.Context, u space.UserID) ([]space.SpaceID, error) {
			all, err := s.SpacesOf(ctx, u)
			var out []space.SpaceID
			for _, m := range all {
				if m.Role == space.Owner {
					out = append(out, m.ID)
				}
			}
			return out, err
		},
	})
	t.Cleanup(s.Manager.Close)
	must(t, s.Manager.Start(t.Context(), sources.Index{
		Changed: func(space.SpaceID) {}, Dropped: func(context.Context, space.SpaceID) error { return nil },
	}))
	return s
}

// publish has ada publish knowledge/ as "notes", for everybody or for some.
func (s *shelf) publish(readers ...string) {
	s.t.Helper()
	must(s.t, s.Publish(s.t.Context(), s.ada.ID, web.PublishRequest{ID: "notes", Label: "Team notes", Space: s.space.ID, Dir: "knowledge", Everybody: len(readers) == 0, Readers: readers}))
}

func (s *shelf) Close() error { return s.held.Close() }

func (s *shelf) sourceOf(x sources.Source, u space.UserID) tools.Source {
	return tools.Source{
		ID: x.ID, Label: x.Label, Description: x.Description, Collection: x.Collection, Commit: x.Commit, Space: x.Space,
		Owner: "ada", Own: x.By == u, State: string(x.State), Problem: x.Error, Synced: x.Synced, Files: x.Files, Bytes: x.Bytes,
	}
}

func (s *shelf) Sources(ctx context.Context, u space.UserID) ([]tools.Source, error) {
	all, err := s.Visible(ctx, u)
	var out []tools.Source
	for _, x := range all {
		out = append(out, s.sourceOf(x, u))
	}
	return out, err
}

func (s *shelf) Sync(ctx context.Context, u space.UserID, id string) (tools.Source, error) {
	x, err := s.Manager.Sync(ctx, u, id)
	return s.sourceOf(x, u), err
}

func entryOf(e sources.Entry) tools.Entry {
	return tools.Entry{Path: e.Path, Dir: e.Dir, Mode: e.Mode, Blob: e.Blob, Size: e.Size}
}

func (s *shelf) Lookup(ctx context.Context, c space.SpaceID, at space.CommitID, p space.Path) (tools.Entry, error) {
	e, err := s.Manager.Lookup(ctx, c, at, p)
	return entryOf(e), err
}

func (s *shelf) Children(ctx context.Context, c space.SpaceID, at space.CommitID, dir space.Path) ([]tools.Entry, error) {
	list, err := s.Manager.Children(ctx, c, at, dir)
	var out []tools.Entry
	for _, e := range list {
		out = append(out, entryOf(e))
	}
	return out, err
}

func (s *shelf) Files(ctx context.Context, c space.SpaceID, at space.CommitID, dir space.Path) ([]tools.Entry, error) {
	list, err := s.Under(ctx, c, at, dir)
	var out []tools.Entry
	for _, f := range list {
		out = append(out, entryOf(sources.Entry{File: f}))
	}
	return out, err
}

func (s *shelf) Content(ctx context.Context, c space.SpaceID, b space.BlobID) ([]byte, error) {
	return s.ReadBlob(ctx, c, b)
}

func (s *shelf) Published(_ context.Context, id space.SpaceID) ([]web.Published, error) {
	var out []web.Published
	for _, x := range s.Of(id) {
		p := web.Published{Source: s.sourceOf(x, x.By), Dir: string(x.Dir), Everybody: x.Everybody, Since: x.Published}
		for _, u := range x.Users {
			p.Readers = append(p.Readers, string(u))
		}
		out = append(out, p)
	}
	return out, nil
}

func (s *shelf) Preview(ctx context.Context, id space.SpaceID, dir string, limit int) (web.PublishPreview, error) {
	p, err := s.Manager.Preview(ctx, id, dir, limit)
	out := web.PublishPreview{Dir: string(p.Dir), Total: p.Total, Bytes: p.Bytes, Left: p.Left, Memory: p.Memory}
	for _, f := range p.Files {
		out.Files = append(out.Files, entryOf(sources.Entry{File: f}))
	}
	return out, err
}

func (s *shelf) Publish(ctx context.Context, by space.UserID, r web.PublishRequest) error {
	q := sources.Request{ID: r.ID, Label: r.Label, Description: r.Description, Space: r.Space, Dir: r.Dir, Everybody: r.Everybody, By: by, WithMemory: r.WithMemory, New: r.New}
	for _, name := range r.Readers {
		u, err := s.FindUser(ctx, name)
		if err != nil {
			return fault.New(fault.Invalid, "There is no user %q.", name).In(sources.PartReaders)
		}
		q.Users = append(q.Users, u.ID)
	}
	_, err := s.Add(ctx, q)
	return err
}

func (s *shelf) Unpublish(ctx context.Context, _ space.UserID, id space.SpaceID, source string) error {
	return s.Remove(ctx, id, source)
}

func (s *shelf) Head(ctx context.Context, c space.SpaceID) (space.CommitID, error) {
	return s.Manager.Head(ctx, c)
}

var _ web.Publishing = (*shelf)(nil)

var _ index.Source = (*sources.Manager)(nil)
