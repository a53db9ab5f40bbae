package admin

import (
	"context"
	"strings"
	"time"

	"satchel/auth/store"
	"satchel/gitstore"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// History is what the command line may ask of a space's history. An empty user
// is the first admin.
type History interface {
	// Log lists commits, newest first.
	Log(ctx context.Context, r LogRequest) ([]CommitInfo, error)
	// Show tells of one commit.
	Show(ctx context.Context, r ShowRequest) (Shown, error)
	// Restore makes a path, or everything, what it was at a commit, as a new
	// commit.
	Restore(ctx context.Context, r RestoreRequest) (Restored, error)
}

// LogRequest chooses commits.
type LogRequest struct {
	User   string `json:"user"`
	Path   string `json:"path"` // empty: all
	Tool   string `json:"tool"`
	Client string `json:"client"`
	Limit  int    `json:"limit"` // at most 1,000
}

// CommitInfo is a commit as it is listed.
type CommitInfo struct {
	Commit  space.CommitID `json:"commit"`
	Author  string         `json:"author"`
	Date    time.Time      `json:"date"`
	Message string         `json:"message"`
	Tool    string         `json:"tool,omitempty"`
	Client  string         `json:"client,omitempty"`
}

// ShowRequest names a commit, in full or by its first digits; empty is head.
type ShowRequest struct {
	User   string `json:"user"`
	Commit string `json:"commit"`
	Path   string `json:"path"` // empty: all
	// Content asks for the file at Path as the commit has it, and not for what
	// the commit changed.
	Content bool `json:"content"`
}

// Shown is a commit with what it changed, or a file of it.
type Shown struct {
	CommitInfo
	Files   []ChangedFile `json:"files"`
	Patch   string        `json:"patch,omitempty"`
	Content []byte        `json:"content,omitempty"`
}

// ChangedFile is a file that a commit changed. Status is git's letter.
type ChangedFile struct {
	Path   space.Path `json:"path"`
	Status string     `json:"status"`
}

// RestoreRequest says what is to be as it was at a commit.
type RestoreRequest struct {
	User   string `json:"user"`
	Commit string `json:"commit"`
	Path   string `json:"path"` // empty: everything
}

// Restored is what came of it.
type Restored struct {
	Commit  space.CommitID `json:"commit"`
	Changed bool           `json:"changed"` // false: it was so already
	Files   []ChangedFile  `json:"files"`
	Refused []Refused      `json:"refused,omitempty"`
}

// spaceOf finds a person and a space of theirs: NAME is their first, NAME/SPACE
// another one.
func (l *Local) spaceOf(ctx context.Context, ref string) (store.User, space.SpaceID, error) {
	name, which, _ := strings.Cut(ref, "/")
	u, err := l.user(ctx, name)
	if err != nil {
		return store.User{}, "", err
	}
	m, err := l.Accounts.FindSpace(ctx, u.ID, which)
	if err != nil {
		return store.User{}, "", err
	}
	return u, m.ID, nil
}

// pathOf reads a path that may be empty, and a directory's with the slash that
// shells complete it with.
func pathOf(s string) (space.Path, error) {
	if s = strings.TrimSuffix(s, "/"); s == "" {
		return "", nil
	}
	return space.ParsePath(s)
}

// resolve finds the commit that a person names, however they copied it.
func (l *Local) resolve(ctx context.Context, id space.SpaceID, at string) (space.CommitID, error) {
	if at != "HEAD" {
		at = strings.ToLower(strings.TrimSpace(at))
	}
	return l.Git.Resolve(ctx, id, at)
}

// Log lists commits.
func (l *Local) Log(ctx context.Context, r LogRequest) ([]CommitInfo, error) {
	path, err := pathOf(r.Path)
	if err != nil {
		return nil, err
	}
	_, id, err := l.spaceOf(ctx, r.User)
	if err != nil {
		return nil, err
	}
	commits, err := l.Git.Log(ctx, id, gitstore.LogOptions{Path: path, Tool: r.Tool, Client: r.Client, Limit: r.Limit})
	if err != nil {
		return nil, err
	}
	if len(commits) == 0 && path != "" && r.Tool == "" && r.Client == "" {
		return nil, fault.New(fault.NotFound, "No commit of this space has changed %q.", string(path))
	}
	out := make([]CommitInfo, len(commits))
	for i, c := range commits {
		out[i] = commitInfo(c)
	}
	return out, nil
}

func commitInfo(c space.Commit) CommitInfo {
	return CommitInfo{Commit: c.ID, Author: c.Author.Name, Date: c.Time, Message: c.Message, Tool: c.Tool, Client: c.Client}
}

// Show tells of a commit.
func (l *Local) Show(ctx context.Context, r ShowRequest) (Shown, error) {
	path, err := pathOf(r.Path)
	if err != nil {
		return Shown{}, err
	}
	if r.Content && path == "" {
		return Shown{}, fault.New(fault.Invalid, "Name the file whose content you want.")
	}
	_, id, err := l.spaceOf(ctx, r.User)
	if err != nil {
		return Shown{}, err
	}
	at, err := l.resolve(ctx, id, r.Commit)
	if err != nil {
		return Shown{}, err
	}
	c, err := l.Git.Show(ctx, id, at)
	if err != nil {
		return Shown{}, err
	}
	out := Shown{CommitInfo: commitInfo(c), Files: changedFiles(c.Files, path)}
	if len(out.Files) == 0 && path != "" && !r.Content {
		return Shown{}, fault.New(fault.NotFound, "The commit %s did not change %q. For the file as it was then, add --content.", at.Short(), string(path))
	}
	if r.Content {
		_, out.Content, err = l.Git.Open(ctx, id, at, path)
	} else {
		out.Patch, err = l.Git.Patch(ctx, id, c.Parent, at, path)
	}
	return out, err
}

func changedFiles(files []space.FileChange, under space.Path) []ChangedFile {
	out := []ChangedFile{}
	for _, f := range files {
		if under == "" || f.Path == under || strings.HasPrefix(string(f.Path), string(under)+"/") {
			out = append(out, ChangedFile{f.Path, string(rune(f.Status))})
		}
	}
	return out
}

// RestoreTool is the tool that a commit of a restore names.
const RestoreTool = "restore"

// Restore restores.
func (l *Local) Restore(ctx context.Context, r RestoreRequest) (Restored, error) {
	path, err := pathOf(r.Path)
	if err != nil {
		return Restored{}, err
	}
	u, id, err := l.spaceOf(ctx, r.User)
	if err != nil {
		return Restored{}, err
	}
	at, err := l.resolve(ctx, id, r.Commit)
	if err != nil {
		return Restored{}, err
	}
	c, err := l.Git.Restore(ctx, id, path, at, space.Meta{Author: author(u), Tool: RestoreTool})
	if err != nil {
		return Restored{}, err
	}
	out := Restored{Commit: c.ID, Changed: c.Changed, Files: changedFiles(c.Files, "")}
	for _, f := range c.Rejected {
		out.Refused = append(out.Refused, Refused{f.Path, f.Why})
	}
	return out, nil
}
