package web

import (
	"errors"
	"net/http"
	"path"
	"regexp"
	"strings"

	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
)

// Named puts the visitor's user name into the commands in a text.
func (v *Visit) Named(text string) string {
	if !shellName.MatchString(v.User.Name) {
		return text
	}
	return strings.ReplaceAll(text, " --user NAME ", " --user "+v.User.Name+" ")
}

// shellName matches names that need no quotes in a shell.
var shellName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// NamedError is Named for the public text of an error.
func (v *Visit) NamedError(err error) error {
	var f *fault.Error
	if !errors.As(err, &f) {
		return err
	}
	if text := v.Named(f.Public); text != f.Public {
		g := *f
		g.Public = text
		return &g
	}
	return err
}

// ParentOf returns the directory of a path; "" is the root.
func ParentOf(p space.Path) space.Path {
	if d := path.Dir(string(p)); d != "." {
		return space.Path(d)
	}
	return ""
}

// PathTaken says why no new file can be created at a path. It returns "" if the path is
// free.
func PathTaken(v *Visit, m service.View, p space.Path) (string, error) {
	at, err := m.Head(v.R.Context())
	if err != nil {
		return "", err
	}
	f, ok, err := m.Find(v.R.Context(), at, p)
	switch {
	case err != nil:
		return "", err
	case ok && f.Dir:
		return "There is a directory at that path. Add a file name to it.", nil
	case ok:
		return "There is already a file at that path. Choose another path, or edit the file.", nil
	}
	above, err := m.FileAbove(v.R.Context(), at, p)
	if err == nil && above != "" {
		return "“" + ShownPath(above, 120) + "” is a file, so nothing can be put below it.", nil
	}
	return "", err
}

// Problem says what is wrong with a form. Field is the ID of the input.
type Problem struct{ Text, Field string }

// WriteFiles commits all changes, or none. remark is what the person must know about the
// commit. If IsRefusal is true for the error, the changes were rejected; a fault.Conflict
// means that a file changed meanwhile.
func (s *Site) WriteFiles(v *Visit, id space.SpaceID, tool string, changes []space.Change, message string) (remark string, err error) {
	c, err := s.Service.WriteFiles(v.R.Context(), v.Actor(), service.WriteFilesInput{
		Space: service.SpaceRef{ID: id}, Changes: changes, Message: message, Move: tool == space.ToolWebMove,
	})
	if err != nil {
		return "", v.NamedError(err)
	}
	return v.Remark(c), nil
}

// IsRefusal reports whether an error is about the submitted form, so that the page shows
// it beside the form.
func IsRefusal(err error) bool {
	switch fault.CodeOf(err) {
	case fault.Invalid, fault.Forbidden, fault.TooLarge, fault.Conflict, fault.Limited:
		return true
	}
	return false
}

// Saved answers after a change: it redirects to the result, or shows the remark if there
// is one.
func (s *Site) Saved(v *Visit, m service.View, remark, where string) error {
	if remark == "" {
		return s.See(v, where)
	}
	return s.Page(v, http.StatusOK, "edited", Page{Title: "Saved with a remark", Space: &m, Current: "files", Body: editedPage{Text: remark, Back: where}})
}

type editedPage struct{ Text, Back string }

// maxRemarks limits how many warnings of a commit a page shows.
const maxRemarks = 5

// Remark says what a person must know about a commit: that its message was left out, or
// its warnings.
func (v *Visit) Remark(c space.Commit) string {
	var said []string
	for _, r := range c.Rejected {
		if r.Path == space.CommentPath {
			said = append(said, v.Named(r.Why))
		}
	}
	for i, w := range c.Warnings {
		if i == maxRemarks {
			said = append(said, Plural(len(c.Warnings)-i, "There is 1 more warning.", "There are %d more warnings."))
			break
		}
		at := "The note"
		if w.Path != space.CommentPath {
			at = ShownPath(w.Path, 200)
		}
		said = append(said, at+": "+v.Named(w.Why))
	}
	return strings.Join(said, " ")
}
