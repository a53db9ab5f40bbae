package service

import (
	"context"
	"io"

	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// View reads the files and the history of a space that an actor may read. Errors are
// faults of the store of spaces. An empty commit is head, an empty path the root.
type View struct {
	store.Membership
	s *Service
}

// OpenSpaces opens the spaces that a person may read, their own first.
func (s *Service) OpenSpaces(ctx context.Context, a Actor, _ None) ([]View, error) {
	if err := s.authorize(a, "OpenSpaces"); err != nil {
		return nil, err
	}
	all, err := s.accounts.SpacesOf(ctx, a.user)
	if err != nil {
		return nil, err
	}
	out := make([]View, len(all))
	for i, m := range all {
		out[i] = View{m, s}
	}
	return out, nil
}

// open opens a space for an operation. It counts as use of the space, so that its remote
// is asked for news.
func (s *Service) open(ctx context.Context, a Actor, operation string, ref SpaceRef) (View, error) {
	m, err := s.authorizeSpace(ctx, a, operation, ref)
	if err != nil {
		return View{}, err
	}
	s.remotes.Used(m.ID)
	return View{m, s}, nil
}

// CanWrite reports whether the actor may change the space.
func (v View) CanWrite() bool { return v.Role.Includes(space.Editor) }

// Head returns the newest commit. It counts as use of the space, so that its remote is
// asked for news.
func (v View) Head(ctx context.Context) (space.CommitID, error) {
	v.s.remotes.Used(v.ID)
	return v.s.git.Head(ctx, v.ID)
}

// Resolve finds the commit that a person names: by its ID, at least 7 digits of it, or
// HEAD.
func (v View) Resolve(ctx context.Context, at string) (space.CommitID, error) {
	return v.s.git.Resolve(ctx, v.ID, at)
}

// Lookup returns the file or the directory at a path.
func (v View) Lookup(ctx context.Context, at space.CommitID, p space.Path) (space.Entry, error) {
	return v.s.git.Lookup(ctx, v.ID, at, p)
}

// Find is Lookup that reports a missing path by ok.
func (v View) Find(ctx context.Context, at space.CommitID, p space.Path) (e space.Entry, ok bool, err error) {
	e, err = v.Lookup(ctx, at, p)
	if fault.CodeOf(err) == fault.NotFound {
		return space.Entry{}, false, nil
	}
	return e, err == nil, err
}

// Children lists a directory by path.
func (v View) Children(ctx context.Context, at space.CommitID, dir space.Path) ([]space.Entry, error) {
	return v.s.git.Children(ctx, v.ID, at, dir)
}

// Files lists every file at or under a path, at any depth, by path.
func (v View) Files(ctx context.Context, at space.CommitID, dir space.Path) ([]space.Entry, error) {
	return v.s.git.Files(ctx, v.ID, at, dir)
}

// ReadBlob returns the content of a file, which must not be changed.
func (v View) ReadBlob(ctx context.Context, b space.BlobID) ([]byte, error) {
	return v.s.git.ReadBlob(ctx, v.ID, b)
}

// Bundle writes a git bundle of the whole history.
func (v View) Bundle(ctx context.Context, w io.Writer) error { return v.s.git.Bundle(ctx, v.ID, w) }

// MergeText merges by lines what ours and theirs made of base, as git merge-file does,
// with its marks of seven letters around conflicts. Its time and memory are bounded.
func (s *Service) MergeText(ctx context.Context, base, ours, theirs []byte) ([]byte, error) {
	return s.git.MergeText(ctx, base, ours, theirs)
}

// commitMeta describes a commit that the actor makes. tool names the operation, such as
// "restore"; empty is a plain write.
func (a Actor) commitMeta(tool, message string) space.Meta {
	m := space.Meta{Author: a.author, Message: message, Tool: tool, Client: a.label}
	if a.kind == person {
		m.Client, m.Tool = "browser", space.ToolWeb
		if tool != "" {
			m.Tool += "-" + tool
		}
	}
	return m
}

// WriteFilesInput is one change of a space's files.
type WriteFilesInput struct {
	Space   SpaceRef       `json:"space"`
	Changes []space.Change `json:"changes"`
	Message string         `json:"message"` // empty: a summary of the paths
	// Move says that the changes bring files to other paths, unseen.
	Move bool `json:"move"`
	// Partial commits the other files if some are refused, which Rejected lists.
	Partial bool `json:"partial"`
}

// WriteFiles commits all changes or, unless Partial is set, none. A change whose base is no longer what the space
// has is a fault.Conflict. A message that is refused is
// left out, which Rejected says.
func (s *Service) WriteFiles(ctx context.Context, a Actor, in WriteFilesInput) (space.Commit, error) {
	m, err := s.authorizeSpace(ctx, a, "WriteFiles", in.Space)
	if err != nil {
		return space.Commit{}, err
	}
	who, err := s.onBehalf(ctx, a, in.Space)
	if err != nil {
		return space.Commit{}, err
	}
	tool := ""
	if in.Move {
		tool = "move"
	}
	c, err := s.git.Commit(ctx, m.ID, space.ChangeSet{Changes: in.Changes, Policy: space.RefuseStale}, who.commitMeta(tool, in.Message))
	if err != nil {
		return space.Commit{}, err
	}
	refused := refusedFile(c)
	switch {
	case refused == nil || in.Partial:
		return c, nil
	case !c.Changed:
		return c, refused
	}
	// The caller may be gone, and the rest must be taken back all the same.
	if err := s.takeBack(context.WithoutCancel(ctx), who, m.ID, c); err != nil {
		return space.Commit{}, fault.Wrap(err, fault.Conflict, "%s Some of it was changed all the same. The space’s history has every file as it was.", fault.PublicOf(refused))
	}
	return space.Commit{}, refused
}

// refusedFile says why the first file of a change set was not committed.
func refusedFile(c space.Commit) error {
	for _, r := range c.Rejected {
		switch {
		case r.Path == space.CommentPath:
		case r.Err != nil:
			return r.Err
		default:
			return fault.New(fault.Invalid, "%s", r.Why)
		}
	}
	return nil
}

// takeBack undoes a commit of which a part was refused.
func (s *Service) takeBack(ctx context.Context, a Actor, id space.SpaceID, c space.Commit) error {
	back := make([]space.Change, 0, len(c.Files))
	for _, f := range c.Files {
		u := space.Change{Path: string(f.Path), Op: space.Delete, Mode: f.OldMode, Base: f.New, BaseMode: f.NewMode}
		if f.Old != "" {
			var err error
			u.Op = space.Write
			if u.Content, err = s.git.ReadBlob(ctx, id, f.Old); err != nil {
				return err
			}
		}
		back = append(back, u)
	}
	_, err := s.git.Commit(ctx, id, space.ChangeSet{Changes: back, Policy: space.RefuseStale}, a.commitMeta("revert", "Take back a change that was refused in part"))
	return err
}
