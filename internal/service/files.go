package service

import (
	"context"
	"io"
	"path"

	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// View reads the files and the history of a space that an actor may read. In its methods, an
// empty commit means the newest commit, and an empty path means the root directory.
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

// open opens a space for an operation. It also reports that the space is in use, so that its
// remote is checked for changes soon.
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

// Head returns the newest commit. It also reports that the space is in use, so that its remote is
// checked for changes soon.
func (v View) Head(ctx context.Context) (space.CommitID, error) {
	v.s.remotes.Used(v.ID)
	return v.s.git.Head(ctx, v.ID)
}

// Resolve finds a commit by its ID, by at least 7 digits of the ID, or by HEAD.
func (v View) Resolve(ctx context.Context, at string) (space.CommitID, error) {
	return v.s.git.Resolve(ctx, v.ID, at)
}

// Lookup returns the file or directory at a path.
func (v View) Lookup(ctx context.Context, at space.CommitID, p space.Path) (space.Entry, error) {
	return v.s.git.Lookup(ctx, v.ID, at, p)
}

// Find is like Lookup, but for a missing path it returns ok false and no error.
func (v View) Find(ctx context.Context, at space.CommitID, p space.Path) (e space.Entry, ok bool, err error) {
	e, err = v.Lookup(ctx, at, p)
	if fault.CodeOf(err) == fault.NotFound {
		return space.Entry{}, false, nil
	}
	return e, err == nil, err
}

// Children lists a directory, sorted by path.
func (v View) Children(ctx context.Context, at space.CommitID, dir space.Path) ([]space.Entry, error) {
	return v.s.git.Children(ctx, v.ID, at, dir)
}

// Files lists all files at or under a path, sorted by path.
func (v View) Files(ctx context.Context, at space.CommitID, dir space.Path) ([]space.Entry, error) {
	return v.s.git.Files(ctx, v.ID, at, dir)
}

// ReadBlob returns the content of a file. Callers must not modify it.
func (v View) ReadBlob(ctx context.Context, b space.BlobID) ([]byte, error) {
	return v.s.git.ReadBlob(ctx, v.ID, b)
}

// Bundle writes a git bundle of the whole history.
func (v View) Bundle(ctx context.Context, w io.Writer) error { return v.s.git.Bundle(ctx, v.ID, w) }

// MergeText merges the changes from base to ours and from base to theirs line by line, with
// conflict markers as git merge-file writes them. Its time and memory are limited.
func (s *Service) MergeText(ctx context.Context, base, ours, theirs []byte) ([]byte, error) {
	return s.git.MergeText(ctx, base, ours, theirs)
}

// commitMeta returns the metadata of a commit by the actor. tool is the operation, such as
// "restore". It is empty for a plain write.
func (a Actor) commitMeta(tool, message string) space.Meta {
	m := space.Meta{Author: a.author, Message: message, Tool: tool, Client: a.label}
	if a.kind == person {
		m.Client, m.Tool = space.ClientBrowser, space.ToolWeb
		switch tool {
		case "", "remember", "forget": // the tool stays ToolWeb: the person saw all that changes
		default:
			m.Tool += "-" + tool
		}
	}
	return m
}

// WriteFilesInput is a set of changes to the files of a space.
type WriteFilesInput struct {
	Space   SpaceRef       `json:"space"`
	Changes []space.Change `json:"changes"`
	Message string         `json:"message"` // empty: a summary of the paths
	// Move says that the changes move files that the actor has not read.
	Move bool `json:"move"`
	// Partial commits the other files if some are refused. Rejected then lists the refused
	// files.
	Partial bool `json:"partial"`
}

// WriteFiles commits all changes. If a change is refused, WriteFiles undoes the others, unless
// Partial is set. A change is refused with a fault.Conflict if its file has changed after the
// version that the change is based on. If the message is refused, the commit has no message and
// Rejected says so. A file under memory/ that is not a valid fact gets a warning.
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
	meta := who.commitMeta(tool, in.Message)
	var c space.Commit
	if in.Partial {
		c, err = s.git.Commit(ctx, m.ID, space.ChangeSet{Changes: in.Changes, Policy: space.RefuseStale}, meta)
	} else {
		c, err = s.commitAll(ctx, who, m.ID, in.Changes, meta)
	}
	if err != nil {
		return c, err
	}
	for _, f := range (View{m, s}).notFacts(ctx, []space.Commit{c}) {
		c.Warnings = append(c.Warnings, space.Warning{Path: string(f.Path), Why: "Your AIs will not remember this file as a fact. " + f.Problem})
	}
	return c, nil
}

// FileAbove returns the file or link whose path is a parent directory of p. It returns "" if
// there is none.
func (v View) FileAbove(ctx context.Context, at space.CommitID, p space.Path) (space.Path, error) {
	for d := path.Dir(string(p)); d != "."; d = path.Dir(d) {
		e, ok, err := v.Find(ctx, at, space.Path(d))
		if err != nil || ok {
			if e.Dir {
				return "", err
			}
			return e.Path, err
		}
	}
	return "", nil
}

// commitAll commits all changes. If a change is refused, commitAll undoes the others and returns
// the refusal.
func (s *Service) commitAll(ctx context.Context, who Actor, id space.SpaceID, changes []space.Change, meta space.Meta) (space.Commit, error) {
	c, err := s.git.Commit(ctx, id, space.ChangeSet{Changes: changes, Policy: space.RefuseStale}, meta)
	if err != nil {
		return space.Commit{}, err
	}
	refused := refusedFile(c)
	switch {
	case refused == nil:
		return c, nil
	case !c.Changed:
		return c, refused
	}
	// Undo the other changes even if the caller has disconnected.
	if err := s.takeBack(context.WithoutCancel(ctx), who, id, c); err != nil {
		return space.Commit{}, fault.Wrap(err, fault.Conflict, "%s Some files were changed anyway. The history of the space has their earlier versions.", fault.PublicOf(refused))
	}
	return space.Commit{}, refused
}

// maxAttempts limits the attempts of onNewest.
const maxAttempts = 100

// onNewest runs f again while f fails with a fault.Conflict, at most maxAttempts times. f reads
// the newest commit, and another client may change the same files before f commits.
func onNewest[T any](f func() (T, error)) (T, error) {
	for range maxAttempts {
		out, err := f()
		if fault.CodeOf(err) != fault.Conflict {
			return out, err
		}
	}
	var none T
	return none, fault.New(fault.Conflict, "Other clients keep changing the same files. Try again.")
}

// refusedFile returns why the first refused file of a commit was refused, or nil.
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

// takeBack undoes a commit that was refused in part.
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
