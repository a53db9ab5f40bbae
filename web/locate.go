package web

import (
	"path"
	"slices"
	"strings"

	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// Location is a path of a space at a commit, as an address names it.
type Location struct {
	Space store.Membership
	Path  space.Path // "" for the whole space
	Slash bool       // the address ends in a slash
	// Commit is shown: the one that the address names, or head. At is "" for head.
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
	// One path has one address: a slash that is written otherwise is none.
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
	l.Commit, l.At, err = s.CommitOf(v, l.Space.ID, v.R.URL.Query().Get("at"))
	return l, err
}

// CommitOf finds the commit that an address names, and head for "".
func (s *Site) CommitOf(v *Visit, id space.SpaceID, named string) (commit, at space.CommitID, err error) {
	if named == "" {
		commit, err = s.Workspace.Head(v.R.Context(), id)
		return commit, "", err
	}
	commit, err = s.History.Resolve(v.R.Context(), id, named)
	if c := fault.CodeOf(err); c == fault.NotFound || c == fault.Invalid {
		err = ErrGone
	}
	return commit, commit, err
}

// URL is the address of another page about the same.
func (l Location) URL(page string) string { return PageURL(l.Space.ID, page, l.Path, l.At) }

// Now is the address of the same page at head.
func (l Location) Now(page string) string { return PageURL(l.Space.ID, page, l.Path, "") }

// Crumb is a directory that leads to what a page is about.
type Crumb struct{ Name, URL string }

// Crumbs are the directories above a path, the space's root first.
func (l Location) Crumbs() []Crumb {
	out := []Crumb{{Name: "Files", URL: PageURL(l.Space.ID, "files", "", l.At)}}
	segs := strings.Split(string(l.Path), "/")
	for i := range segs[:len(segs)-1] {
		dir := space.Path(strings.Join(segs[:i+1], "/"))
		out = append(out, Crumb{Name: ShownPath(segs[i], 60), URL: PageURL(l.Space.ID, "files", dir, "") + "/" + AtQuery(l.At)})
	}
	return out
}

// Name is what a page about the location is called.
func (l Location) Name() string {
	if l.Path == "" {
		return "Files"
	}
	return ShownPath(path.Base(string(l.Path)), 120)
}

// MayWrite reports whether the visitor may change the space.
func (l Location) MayWrite() bool { return l.Space.Role != space.Reader }

// SubjectOf is the first line of a message.
func SubjectOf(message string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(message), "\n")
	if first = Shorten(first, 120); first == "" {
		return "No message"
	}
	return first
}

// DoneURL is the address of a page of a file that says what was done there.
func DoneURL(where, done string) string { return where + "?done=" + done }

// MaxMoved bounds how many files of a commit are looked at for where a path came
// from.
const MaxMoved = 2000

// MovedTo returns where a commit put the file that it took from a path; "" where it
// did not, or put it to several places.
func (s *Site) MovedTo(v *Visit, id space.SpaceID, p space.Path, c space.Commit) (to space.Path, err error) {
	if c.Parent == "" {
		return "", nil
	}
	files, total, err := s.History.Changes(v.R.Context(), id, c.Parent, c.ID, "", MaxMoved)
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
