package web

import (
	"errors"
	"net/http"
	"regexp"
	"strings"

	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// Named puts the visitor's user name into the commands that a text tells them to
// run.
func (v *Visit) Named(text string) string {
	if !shellName.MatchString(v.User.Name) {
		return text
	}
	return strings.ReplaceAll(text, " --user NAME ", " --user "+v.User.Name+" ")
}

// shellName is what a shell takes as it is.
var shellName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// NamedError does the same with what an error says.
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

// maxRemarks limits how many warnings of a commit a page shows.
const maxRemarks = 5

// Remark says what a person must know about a commit: that its message was left out,
// or that something in it looks like a secret.
func (v *Visit) Remark(c space.Commit) string {
	var said []string
	for _, r := range c.Rejected {
		if r.Path == space.CommentPath {
			said = append(said, v.Named(r.Why))
		}
	}
	for i, w := range c.Warnings {
		if i == maxRemarks {
			said = append(said, plainCount(len(c.Warnings)-i, "There is 1 more warning.", "There are %d more warnings."))
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

// refusal reports whether an error is about what was sent, so that the page shows
// it beside what was sent.
func refusal(err error) bool {
	switch fault.CodeOf(err) {
	case fault.Invalid, fault.Forbidden, fault.TooLarge, fault.Conflict, fault.Limited:
		return true
	}
	return false
}

// Saved answers after a change: it redirects to the result or, if there is a remark,
// shows a page with it.
func (s *Site) Saved(v *Visit, m store.Membership, remark, where string) error {
	if remark == "" {
		return s.See(v, where)
	}
	return s.Page(v, http.StatusOK, "edited", Page{Title: "Saved, with a remark", Space: &m, Current: "files", Body: editedPage{Text: remark, Back: where}})
}

type editedPage struct{ Text, Back string }
