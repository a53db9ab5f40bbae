package web

import (
	"path"
	"slices"
	"strings"

	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
)

// Location is a path of a space at a commit, read from the address of a page.
type Location struct {
	Space service.View
	Path  space.Path // "" for the whole space
	Slash bool       // the address ends in a slash
	// Commit is the commit to show. At is the commit in the address. If At is "", Commit is
	// head.
	Commit space.CommitID
	At     space.CommitID
}

// Locate reads the location of an address.
func (s *Site) Locate(v *Visit) (Location, error) {
	var l Location
	var err error
	if l.Space, err = s.Space(v); err != nil {
		return l, err
	}
	// Each path has one address, so an escaped slash is not accepted.
	if strings.Contains(strings.ToLower(v.R.URL.EscapedPath()), "%2f") {
		return l, ErrGone
	}
	p, slash := strings.CutSuffix(v.R.PathValue("path"), "/")
	l.Slash = slash || p == ""
	if p != "" {
		if l.Path, err = space.ParsePath(p); err != nil {
			return l, ErrGone
		}
	}
	l.Commit, l.At, err = CommitOf(v, l.Space, v.R.URL.Query().Get("at"))
	return l, err
}

// CommitOf finds the commit that an address names. If named is "", commit is head and at is "".
func CommitOf(v *Visit, m service.View, named string) (commit, at space.CommitID, err error) {
	if named == "" {
		commit, err = m.Head(v.R.Context())
		return commit, "", err
	}
	commit, err = m.Resolve(v.R.Context(), named)
	if c := fault.CodeOf(err); c == fault.NotFound || c == fault.Invalid {
		err = ErrGone
	}
	return commit, commit, err
}

// URL returns the address of another page for the location.
func (l Location) URL(page string) string { return PageURL(l.Space.ID, page, l.Path, l.At) }

// Now returns the address of a page for the location at head.
func (l Location) Now(page string) string { return PageURL(l.Space.ID, page, l.Path, "") }

// Crumb is a directory above the path of a page.
type Crumb struct{ Name, URL string }

// Crumbs returns the directories above the path, the space's root first.
func (l Location) Crumbs() []Crumb {
	out := []Crumb{{Name: "Files", URL: PageURL(l.Space.ID, "files", "", l.At)}}
	segs := strings.Split(string(l.Path), "/")
	for i := range segs[:len(segs)-1] {
		dir := space.Path(strings.Join(segs[:i+1], "/"))
		out = append(out, Crumb{Name: ShownPath(segs[i], 60), URL: PageURL(l.Space.ID, "files", dir, "") + "/" + AtQuery(l.At)})
	}
	return out
}

// Name returns the title of a page for the location.
func (l Location) Name() string {
	if l.Path == "" {
		return "Files"
	}
	return ShownPath(path.Base(string(l.Path)), 120)
}

// SubjectOf returns the first line of a commit message.
func SubjectOf(message string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(message), "\n")
	if first = Shorten(first, 120); first == "" {
		return "No message"
	}
	return first
}

// DoneURL returns the address of a page that confirms an action.
func DoneURL(where, done string) string { return where + "?done=" + done }

// MaxMoved limits how many files of a commit are searched for a move.
const MaxMoved = 2000

// MovedTo returns the path to which a commit moved the file at p. The path is "" if the commit
// did not move the file, added copies of it at several paths, or changed more than MaxMoved
// files.
func MovedTo(v *Visit, m service.View, p space.Path, c space.Commit) (to space.Path, err error) {
	if c.Parent == "" {
		return "", nil
	}
	files, total, err := m.Changes(v.R.Context(), c.Parent, c.ID, "", MaxMoved)
	if err != nil || total > len(files) {
		return "", err
	}
	i := slices.IndexFunc(files, func(f space.FileChange) bool { return f.Path == p && f.Status == space.Deleted })
	if i < 0 {
		return "", nil
	}
	for _, f := range files {
		if f.Status != space.Added || f.New != files[i].Old || f.NewMode != files[i].OldMode {
			continue
		}
		if to != "" {
			return "", nil
		}
		to = f.Path
	}
	return to, nil
}
