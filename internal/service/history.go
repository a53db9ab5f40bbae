package service

import (
	"context"
	"slices"
	"strings"

	"satchel/internal/fault"
	"satchel/internal/space"
)

// Log lists commits, newest first, without their files.
func (v View) Log(ctx context.Context, q space.LogQuery) ([]space.Commit, error) {
	return v.s.git.Log(ctx, v.ID, q)
}

// LogPage lists the commits that changed a path, newest first, in pages. It reads at most
// walk commits, so that its cost does not grow with the history. cursor is the value of next
// that the call for the previous page returned. next is empty at the end.
func (v View) LogPage(ctx context.Context, at space.CommitID, p space.Path, cursor string, limit, walk int) (commits []space.Commit, next string, err error) {
	return v.s.git.LogPage(ctx, v.ID, at, p, cursor, limit, walk)
}

// LastChanges returns, for each name in a directory, the commit that last changed it. It
// reads at most walk commits, and leaves out names that none of them changed.
func (v View) LastChanges(ctx context.Context, at space.CommitID, dir space.Path, walk int) (map[string]space.Commit, error) {
	return v.s.git.LastChanges(ctx, v.ID, at, dir, walk)
}

// Show returns a commit with the files that differ from its first parent.
func (v View) Show(ctx context.Context, at space.CommitID) (space.Commit, error) {
	return v.s.git.Show(ctx, v.ID, at)
}

// Changes lists the files at or under a path that differ between two commits, at most limit
// of them. total counts them without the limit. An empty from means the empty tree.
func (v View) Changes(ctx context.Context, from, to space.CommitID, p space.Path, limit int) (files []space.FileChange, total int, err error) {
	return v.s.git.Changes(ctx, v.ID, from, to, p, limit)
}

// Patch returns a unified diff of a path, or of everything if the path is empty.
func (v View) Patch(ctx context.Context, from, to space.CommitID, p space.Path) (string, error) {
	return v.s.git.Patch(ctx, v.ID, from, to, p)
}

// FilePatch returns a unified diff of one file that Show or Changes listed.
func (v View) FilePatch(ctx context.Context, f space.FileChange) (string, error) {
	return v.s.git.FilePatch(ctx, v.ID, f)
}

// cleanPath parses a path that may be empty or end in a slash, which shells add to
// directories.
func cleanPath(text string) (space.Path, error) {
	if text = strings.TrimSuffix(text, "/"); text == "" {
		return "", nil
	}
	return space.ParsePath(text)
}

// commitOf is like Resolve, for the name of a commit as a person typed it, in upper or lower
// case.
func (v View) commitOf(ctx context.Context, name string) (space.CommitID, error) {
	if name != "HEAD" {
		name = strings.ToLower(strings.TrimSpace(name))
	}
	return v.Resolve(ctx, name)
}

// ListCommitsInput selects commits.
type ListCommitsInput struct {
	Space SpaceRef `json:"space"`
	space.LogQuery
}

// ListCommits lists commits, newest first, without their files.
func (s *Service) ListCommits(ctx context.Context, a Actor, in ListCommitsInput) ([]space.Commit, error) {
	v, err := s.open(ctx, a, "ListCommits", in.Space)
	if err != nil {
		return nil, err
	}
	if in.Path, err = cleanPath(string(in.Path)); err != nil {
		return nil, err
	}
	list, err := v.Log(ctx, in.LogQuery)
	if err == nil && len(list) == 0 && in.Path != "" && in.Tool == "" && in.Client == "" {
		return nil, fault.New(fault.NotFound, "No commit of this space has changed %q.", string(in.Path))
	}
	return list, err
}

// ShowCommitInput names a commit.
type ShowCommitInput struct {
	Space  SpaceRef `json:"space"`
	Commit string   `json:"commit"` // the full ID, its first digits, or HEAD
	Path   string   `json:"path"`   // empty: everything
	// Content asks for the content of the file at Path instead of the changes.
	Content bool `json:"content"`
}

// CommitDetail is a commit with its patch, or with the content of one file.
type CommitDetail struct {
	space.Commit
	Patch   string `json:"patch,omitempty"`
	Content []byte `json:"content,omitempty"`
}

// ShowCommit returns a commit with the files that it changed at or under a path.
func (s *Service) ShowCommit(ctx context.Context, a Actor, in ShowCommitInput) (CommitDetail, error) {
	v, err := s.open(ctx, a, "ShowCommit", in.Space)
	if err != nil {
		return CommitDetail{}, err
	}
	path, err := cleanPath(in.Path)
	if err != nil {
		return CommitDetail{}, err
	}
	if in.Content && path == "" {
		return CommitDetail{}, fault.New(fault.Invalid, "Name the file whose content you want.")
	}
	at, err := v.commitOf(ctx, in.Commit)
	if err != nil {
		return CommitDetail{}, err
	}
	var out CommitDetail
	if out.Commit, err = v.Show(ctx, at); err != nil {
		return CommitDetail{}, err
	}
	out.Files = slices.DeleteFunc(out.Files, func(f space.FileChange) bool {
		return path != "" && f.Path != path && !strings.HasPrefix(string(f.Path), string(path)+"/")
	})
	if in.Content {
		_, out.Content, err = s.git.Open(ctx, v.ID, at, path)
		return out, err
	}
	if len(out.Files) == 0 && path != "" {
		return CommitDetail{}, fault.New(fault.NotFound, "The commit %s did not change %q. For the file as it was then, add --content.", at.Short(), string(path))
	}
	out.Patch, err = v.Patch(ctx, out.Parent, at, path)
	return out, err
}

// RestoreInput names a path and the commit to restore it from.
type RestoreInput struct {
	Space  SpaceRef `json:"space"`
	Commit string   `json:"commit"` // the full ID, its first digits, or HEAD
	Path   string   `json:"path"`   // empty: everything
}

// Restore creates a commit that restores a path, or everything, to its state at an earlier
// commit. It deletes files that were added since, and keeps the history. In the result, Changed
// is false if nothing differs.
func (s *Service) Restore(ctx context.Context, a Actor, in RestoreInput) (space.Commit, error) {
	v, err := s.open(ctx, a, "Restore", in.Space)
	if err != nil {
		return space.Commit{}, err
	}
	path, err := cleanPath(in.Path)
	if err != nil {
		return space.Commit{}, err
	}
	at, err := v.commitOf(ctx, in.Commit)
	if err != nil {
		return space.Commit{}, err
	}
	who, err := s.onBehalf(ctx, a, in.Space)
	if err != nil {
		return space.Commit{}, err
	}
	return s.git.Restore(ctx, v.ID, path, at, who.commitMeta(space.ToolRestore, ""))
}

// RevertInput names commits to undo.
type RevertInput struct {
	Space   SpaceRef         `json:"space"`
	Commits []space.CommitID `json:"commits"`
}

// Revert undoes commits in one new commit. The Conflicts of the result name the files that
// Revert left unchanged because they have changed since.
func (s *Service) Revert(ctx context.Context, a Actor, in RevertInput) (space.Commit, error) {
	m, err := s.authorizeSpace(ctx, a, "Revert", in.Space)
	if err != nil {
		return space.Commit{}, err
	}
	who, err := s.onBehalf(ctx, a, in.Space)
	if err != nil {
		return space.Commit{}, err
	}
	c, err := s.git.Revert(ctx, m.ID, in.Commits, who.commitMeta("revert", ""))
	if err != nil || !c.Changed {
		return c, err
	}
	detail := map[string]any{"commit": c.ID, "undone": len(in.Commits)}
	if client := s.clientOf(ctx, m.ID, in.Commits); client != "" {
		detail["client"] = client
	}
	s.record(ctx, a, "space.revert", string(m.ID), detail)
	return c, nil
}

// clientOf returns the client that made all of the commits, without its version. It returns ""
// if there is no such client.
func (s *Service) clientOf(ctx context.Context, id space.SpaceID, commits []space.CommitID) string {
	client := ""
	for _, at := range commits {
		c, err := s.git.Show(ctx, id, at)
		name := space.ClientName(c.Client)
		if err != nil || name == "" || client != "" && name != client {
			return ""
		}
		client = name
	}
	return client
}
