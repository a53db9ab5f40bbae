package admin

import (
	"context"
	"time"

	"satchel/auth/store"
	"satchel/gitstore/sources"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// Sources is what the command line may ask of published spaces. An empty user is
// the first admin, but for Sources.
type Sources interface {
	// Sources lists sources: those that one person may read, or all where user is
	// empty.
	Sources(ctx context.Context, user string) ([]SourceInfo, error)
	// PublishSource publishes a directory of a space in the name of its owner, or
	// changes how that is done.
	PublishSource(ctx context.Context, r PublishRequest) (SourceInfo, error)
	// UnpublishSource ends a source, whoever published it.
	UnpublishSource(ctx context.Context, id string) error
}

// PublishRequest says what is published, and for whom.
type PublishRequest struct {
	SpaceRequest
	ID          string   `json:"id"`
	Title       string   `json:"title"`
	Description string   `json:"description"`
	Dir         string   `json:"dir"`
	Readers     []string `json:"readers"` // names of users; none: everybody on the server
	OnlyOwner   bool     `json:"only_owner"`
	WithMemory  bool     `json:"with_memory"`
}

// SourceInfo is a published source. The JSON form is part of the command line's
// contract.
type SourceInfo struct {
	ID          string         `json:"id"`
	Title       string         `json:"title"`
	Description string         `json:"description,omitempty"`
	Kind        string         `json:"kind"`
	Space       space.SpaceID  `json:"space"`
	Dir         string         `json:"dir"`
	By          string         `json:"by"`
	Everybody   bool           `json:"everybody"`
	Readers     []string       `json:"readers,omitempty"` // beside who published it
	State       string         `json:"state"`
	Problem     string         `json:"problem,omitempty"`
	Commit      space.CommitID `json:"commit,omitempty"`
	Files       int            `json:"files"`
	Bytes       int64          `json:"bytes"`
	Synced      *time.Time     `json:"synced,omitempty"`
}

// Sources lists published sources.
func (l *Local) Sources(ctx context.Context, user string) ([]SourceInfo, error) {
	all := l.Published.All()
	if user != "" {
		u, err := l.Accounts.FindUser(ctx, user)
		if err != nil {
			return nil, err
		}
		if all, err = l.Published.Visible(ctx, u.ID); err != nil {
			return nil, err
		}
	}
	names, err := l.Accounts.UserNames(ctx)
	if err != nil {
		return nil, err
	}
	out := []SourceInfo{}
	for _, s := range all {
		out = append(out, sourceInfo(s, names))
	}
	return out, nil
}

func sourceInfo(s sources.Source, names map[space.UserID]store.UserName) SourceInfo {
	out := SourceInfo{
		ID: s.ID, Title: s.Label, Description: s.Description, Kind: string(s.Kind), Space: s.Space, Dir: string(s.Dir), By: names[s.By].Name,
		Everybody: s.Everybody, State: string(s.State), Problem: s.Error, Commit: s.Commit, Files: s.Files, Bytes: s.Bytes,
	}
	for _, u := range s.Users {
		if n := names[u]; !n.Removed {
			out.Readers = append(out.Readers, n.Name)
		}
	}
	if !s.Synced.IsZero() {
		out.Synced = &s.Synced
	}
	return out
}

// PublishSource publishes a directory of a space.
func (l *Local) PublishSource(ctx context.Context, r PublishRequest) (SourceInfo, error) {
	m, err := l.space(ctx, r.SpaceRequest)
	if err != nil {
		return SourceInfo{}, err
	}
	q := sources.Request{
		ID: r.ID, Label: r.Title, Description: r.Description, Space: m.ID, Dir: r.Dir, By: m.Owner, WithMemory: r.WithMemory,
		Everybody: len(r.Readers) == 0 && !r.OnlyOwner,
	}
	if m.Role != space.Owner {
		return SourceInfo{}, fault.New(fault.Forbidden, "The space %s is not theirs but of %s, who alone can publish it.", m.Name, m.OwnerLabel())
	}
	for _, name := range r.Readers {
		u, err := l.Accounts.FindUser(ctx, name)
		if err != nil {
			return SourceInfo{}, err
		}
		q.Users = append(q.Users, u.ID)
	}
	s, err := l.Published.Add(ctx, q)
	if fault.PartOf(err) == sources.PartMemory {
		return SourceInfo{}, fault.New(fault.CodeOf(err), "%s With --with-memory it is shown.", fault.PublicOf(err)).In(sources.PartMemory)
	}
	if err != nil {
		return SourceInfo{}, err
	}
	err = l.Accounts.Record(ctx, operator, "source.publish", s.ID, map[string]any{"space": s.Space, "dir": s.Dir, "everybody": s.Everybody, "users": s.Users})
	if err != nil {
		return SourceInfo{}, err
	}
	names, err := l.Accounts.UserNames(ctx)
	return sourceInfo(s, names), err
}

// UnpublishSource ends a source.
func (l *Local) UnpublishSource(ctx context.Context, id string) error {
	for _, s := range l.Published.All() {
		if s.ID == id {
			if err := l.Published.Remove(ctx, s.Space, id); err != nil {
				return err
			}
			return l.Accounts.Record(ctx, operator, "source.unpublish", id, map[string]any{"space": s.Space})
		}
	}
	return sources.NotThere(id)
}

// handleSources answers for Sources on the socket.
func handleSources(m *socketMux, s Sources) {
	handle(m, "sources/list", func(ctx context.Context, user string) (any, error) { return s.Sources(ctx, user) })
	handle(m, "sources/publish", func(ctx context.Context, in PublishRequest) (any, error) { return s.PublishSource(ctx, in) })
	handle(m, "sources/unpublish", func(ctx context.Context, id string) (any, error) { return struct{}{}, s.UnpublishSource(ctx, id) })
}

// Sources asks the server.
func (c *Remote) Sources(ctx context.Context, user string) ([]SourceInfo, error) {
	return call[[]SourceInfo](ctx, c, "sources/list", user)
}

// PublishSource asks the server.
func (c *Remote) PublishSource(ctx context.Context, r PublishRequest) (SourceInfo, error) {
	return call[SourceInfo](ctx, c, "sources/publish", r)
}

// UnpublishSource asks the server.
func (c *Remote) UnpublishSource(ctx context.Context, id string) error {
	_, err := call[struct{}](ctx, c, "sources/unpublish", id)
	return err
}
