package tools

import (
	"context"

	"satchel/internal/fault"
	"satchel/internal/frontmatter"
	"satchel/internal/space"
)

// docHead is what a list shows of a document.
type docHead struct {
	fields  frontmatter.Document // without its Body
	problem string               // why the front matter cannot be read
	size    int64
	digest  string // "sha256:<hex>"; empty if the content cannot be read
}

// view reads one space, or one source of the library, at one commit, during one call.
type view struct {
	s   *Registry
	w   Workspace
	id  space.SpaceID
	at  space.CommitID
	all *[]space.Entry // every file, once allFiles was called

	user    space.UserID
	origin  string // the base of the URLs of pages
	library *shared
	source  *space.Source // nil: the view is of the space
}

func (s *Registry) view(ctx context.Context, c Caller) (view, error) {
	at, err := s.o.Workspace.Head(ctx, c.Space().ID)
	return view{s: s, w: s.o.Workspace, id: c.Space().ID, at: at, all: new([]space.Entry), user: c.User(), origin: s.origin(c), library: c.library()}, err
}

func (v view) lookup(ctx context.Context, p space.Path) (space.Entry, error) {
	return v.w.Lookup(ctx, v.id, v.at, p)
}

func (v view) children(ctx context.Context, dir space.Path) ([]space.Entry, error) {
	return v.w.Children(ctx, v.id, v.at, dir)
}

func (v view) files(ctx context.Context, dir space.Path) ([]space.Entry, error) {
	return v.w.Files(ctx, v.id, v.at, dir)
}

// allFiles lists every file of the space or the source. It reads the list only once for a view.
func (v view) allFiles(ctx context.Context) ([]space.Entry, error) {
	if *v.all == nil {
		files, err := v.files(ctx, "")
		if err != nil {
			return nil, err
		}
		*v.all = files
	}
	return *v.all, nil
}

// hold waits until a file of this size may be read, so that many calls together cannot use
// all of the server's memory. Each call holds one file at a time, and releases it before the
// next.
func (v view) hold(ctx context.Context, size int64) (release func(), err error) {
	n := min(max(size, 1), v.s.o.Limits.BytesAtOnce)
	if err := v.s.bytes.Acquire(ctx, n); err != nil {
		return nil, fault.Wrap(err, fault.Canceled, "The call was cancelled.")
	}
	return func() { v.s.bytes.Release(n) }, nil
}

func (v view) content(ctx context.Context, e space.Entry) ([]byte, error) {
	b, err := v.w.ReadBlob(ctx, v.id, e.Blob)
	if fault.CodeOf(err) == fault.Damaged {
		err = space.Damaged(e.Path, err) // names the path and not the blob
	}
	return b, err
}
