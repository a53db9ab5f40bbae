package app

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"satchel/auth/store"
	"satchel/gitstore/secretscan"
	"satchel/gitstore/sources"
	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/tools"
	"satchel/web"
	"satchel/web/api"
)

// addPublishing gives the pages the published spaces.
func (s *Server) addPublishing(o *web.Options) { o.Publishing = s.library() }

// openSources makes what keeps the published spaces; nothing is followed yet.
func (c *Core) openSources(ctx context.Context) error {
	cfg := c.Config.Library
	c.sources = sources.New(sources.Options{
		DB: c.DB, Store: c.Git, Owned: ownedBy(c.Accounts), Dir: filepath.Join(c.Config.DataDir, "run", "library"),
		MaxSources: cmp.Or(cfg.MaxSources, -1), MaxFiles: cfg.MaxFiles, MaxBytes: cfg.MaxSize,
		Logger: c.Log.With("part", "sources"),
	})
	return c.sources.Load(ctx)
}

// ownedBy finds what a person owns who may use the server.
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

// followSources lets the index follow what is published.
func (s *Server) followSources(ctx context.Context) error {
	s.shared = s.index.Follow(s.sources)
	dropped := func(ctx context.Context, collection space.SpaceID) error { return s.dropFrom(ctx, s.index, collection) }
	return s.sources.Start(ctx, sources.Index{Changed: s.shared.Refresh, Dropped: dropped})
}

// purgedSources forgets what was published of a space's old history.
func (c *Core) purgedSources(ctx context.Context, id space.SpaceID, anew func(ctx context.Context, collection space.SpaceID) error) error {
	all, err := c.sources.Purged(ctx, id)
	for _, collection := range all {
		if e := anew(ctx, collection); err == nil {
			err = e
		}
	}
	return err
}

// library is the published spaces, as tools, pages and the API have them.
type library struct {
	*sources.Manager
	accounts *store.Store
	secrets  *secretscan.Scanner
}

var (
	_ tools.Library  = library{}
	_ web.Publishing = library{}
)

func (c *Core) library() library { return library{c.sources, c.Accounts, c.secrets} }

// List lists what a user may read, for the API.
func (l library) List(ctx context.Context, user space.UserID) ([]tools.Source, error) {
	return l.Sources(ctx, user)
}

// Sources lists what a user may read.
func (l library) Sources(ctx context.Context, user space.UserID) ([]tools.Source, error) {
	all, err := l.Visible(ctx, user)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	names := l.names(ctx)
	out := make([]tools.Source, len(all))
	for i, s := range all {
		out[i] = sourceOf(s, user, names)
	}
	return out, nil
}

// Sync makes a newer snapshot.
func (l library) Sync(ctx context.Context, user space.UserID, id string) (tools.Source, error) {
	s, err := l.Manager.Sync(ctx, user, id)
	if err != nil {
		return tools.Source{}, err
	}
	return sourceOf(s, user, l.names(ctx)), nil
}

// names finds what people are called, once each.
func (l library) names(ctx context.Context) func(space.UserID) string {
	known := map[space.UserID]string{}
	return func(id space.UserID) string {
		if n, ok := known[id]; ok {
			return n
		}
		u, err := l.accounts.User(ctx, id)
		if err != nil {
			return "" // they were removed, or nobody can say now
		}
		known[id] = u.Name
		return u.Name
	}
}

func sourceOf(s sources.Source, user space.UserID, name func(space.UserID) string) tools.Source {
	return tools.Source{
		ID: s.ID, Label: s.Label, Description: s.Description, Collection: s.Collection, Commit: s.Commit,
		Space: s.Space, Owner: name(s.By), Own: s.By == user,
		State: string(s.State), Problem: s.Error, Synced: s.Synced, Files: s.Files, Bytes: s.Bytes,
	}
}

// Lookup implements tools.Workspace.
func (l library) Lookup(ctx context.Context, c space.SpaceID, at space.CommitID, p space.Path) (tools.Entry, error) {
	e, err := l.Manager.Lookup(ctx, c, at, p)
	return sharedEntry(e), err
}

// Children implements tools.Workspace.
func (l library) Children(ctx context.Context, c space.SpaceID, at space.CommitID, dir space.Path) ([]tools.Entry, error) {
	list, err := l.Manager.Children(ctx, c, at, dir)
	if err != nil {
		return nil, err
	}
	out := make([]tools.Entry, len(list))
	for i, e := range list {
		out[i] = sharedEntry(e)
	}
	return out, nil
}

// Files implements tools.Workspace.
func (l library) Files(ctx context.Context, c space.SpaceID, at space.CommitID, dir space.Path) ([]tools.Entry, error) {
	list, err := l.Under(ctx, c, at, dir)
	if err != nil {
		return nil, err
	}
	return sharedFiles(list), nil
}

// Content implements tools.Workspace.
func (l library) Content(ctx context.Context, c space.SpaceID, b space.BlobID) ([]byte, error) {
	return l.ReadBlob(ctx, c, b)
}

func sharedEntry(e sources.Entry) tools.Entry {
	return tools.Entry{Path: e.Path, Dir: e.Dir, Mode: e.Mode, Blob: e.Blob, Size: e.Size}
}

func sharedFiles(list []sources.File) []tools.Entry {
	out := make([]tools.Entry, len(list))
	for i, f := range list {
		out[i] = sharedEntry(sources.Entry{File: f})
	}
	return out
}

// Published lists the sources of a space.
func (l library) Published(ctx context.Context, id space.SpaceID) ([]web.Published, error) {
	names := l.names(ctx)
	var out []web.Published
	for _, s := range l.Of(id) {
		p := web.Published{Source: sourceOf(s, s.By, names), Dir: string(s.Dir), Everybody: s.Everybody, Since: s.Published}
		for _, u := range s.Users {
			if n := names(u); n != "" {
				p.Readers = append(p.Readers, n)
			}
		}
		out = append(out, p)
	}
	return out, nil
}

// What a preview looks through for secrets.
const (
	scanFiles = 300
	scanBytes = 4 << 20
)

// Preview shows what publishing a directory would show.
func (l library) Preview(ctx context.Context, id space.SpaceID, dir string, limit int) (web.PublishPreview, error) {
	p, err := l.Manager.Preview(ctx, id, dir, max(limit, scanFiles))
	if err != nil {
		return web.PublishPreview{}, err
	}
	out := web.PublishPreview{
		Dir: string(p.Dir), Files: sharedFiles(p.Files[:min(limit, len(p.Files))]), Total: p.Total, Bytes: p.Bytes, Left: p.Left, Memory: p.Memory,
	}
	left := int64(scanBytes)
	for _, f := range p.Files {
		if left -= f.Size; left < 0 || out.Scanned == scanFiles {
			break
		}
		b, err := l.Peek(ctx, id, f)
		if err != nil {
			return web.PublishPreview{}, err
		}
		out.Scanned++
		if len(l.secrets.Scan(f.Path, b)) > 0 {
			out.Secrets = append(out.Secrets, string(f.Path))
		}
	}
	return out, nil
}

// Publish publishes a directory of a space.
func (l library) Publish(ctx context.Context, by space.UserID, r web.PublishRequest) error {
	return l.publish(ctx, store.Actor{User: by, Via: "web"}, by, r)
}

func (l library) publish(ctx context.Context, actor store.Actor, by space.UserID, r web.PublishRequest) error {
	q := sources.Request{
		ID: r.ID, Label: r.Label, Description: r.Description, Space: r.Space, Dir: r.Dir, Everybody: r.Everybody, By: by, WithMemory: r.WithMemory, New: r.New,
	}
	for _, name := range r.Readers {
		u, err := l.accounts.FindUser(ctx, name)
		if fault.CodeOf(err) == fault.NotFound {
			return fault.New(fault.Invalid, "%s", fault.PublicOf(err)).In(sources.PartReaders)
		}
		if err != nil {
			return err
		}
		q.Users = append(q.Users, u.ID)
	}
	s, err := l.Add(ctx, q)
	if err != nil {
		return err
	}
	return l.accounts.Record(ctx, actor, "source.publish", s.ID, map[string]any{"space": s.Space, "dir": s.Dir, "everybody": s.Everybody, "users": s.Users})
}

// Unpublish ends a source.
func (l library) Unpublish(ctx context.Context, by space.UserID, id space.SpaceID, source string) error {
	return l.unpublish(ctx, store.Actor{User: by, Via: "web"}, id, source)
}

func (l library) unpublish(ctx context.Context, actor store.Actor, id space.SpaceID, source string) error {
	if err := l.Remove(ctx, id, source); err != nil {
		return err
	}
	return l.accounts.Record(ctx, actor, "source.unpublish", source, map[string]any{"space": id})
}

// apiSources is the library's sources as the REST API tells of them.
type apiSources struct{ library }

var _ api.Sources = apiSources{}

// Sources implements api.Sources.
func (a apiSources) Sources(ctx context.Context, user space.UserID) ([]api.Source, error) {
	all, err := a.library.Sources(ctx, user)
	if err != nil {
		return nil, err
	}
	out := make([]api.Source, len(all))
	for i, s := range all {
		out[i] = api.Source{
			ID: s.ID, Label: s.Label, Kind: string(sources.KindSpace), Path: strings.TrimPrefix(s.Mount(), "/library/"),
			State: apiState(s), Commit: string(s.Commit), Files: s.Files, Updated: s.Synced, Problem: s.Problem,
		}
	}
	slices.SortStableFunc(out, func(a, b api.Source) int { return strings.Compare(a.Label, b.Label) })
	return out, nil
}

func apiState(s tools.Source) string {
	switch {
	case s.State == string(sources.Failed):
		return "failed"
	case s.Commit == "":
		return "new"
	case s.State == string(sources.Waiting):
		return "syncing"
	}
	return "ready"
}

// Sync implements api.Sources.
func (a apiSources) Sync(ctx context.Context, user space.UserID, id string, reset bool) ([]api.Run, error) {
	sync := a.Manager.Sync
	if reset {
		sync = a.Manager.Reset
	}
	ids := []string{id}
	if id == "" {
		all, err := a.library.Sources(ctx, user)
		if err != nil {
			return nil, err
		}
		ids = nil
		for _, s := range all {
			ids = append(ids, s.ID)
		}
	}
	runs := []api.Run{}
	for _, id := range ids {
		began := time.Now()
		s, err := sync(ctx, user, id)
		if err != nil {
			return nil, err
		}
		r := api.Run{ID: s.ID + "-" + s.Commit.Short(), Source: s.ID, State: "done", Started: began, Problem: s.Error}
		if s.State == sources.Failed {
			r.State = "failed"
		}
		runs = append(runs, r)
	}
	return runs, nil
}
