package files

import (
	"time"

	"satchel/internal/space"
	"satchel/web"
)

// done confirms what the visitor just did. The visitor can undo it if Action is set.
type done struct {
	Text   string
	Action string // the address of the form that undoes the change
	Commit space.CommitID
}

// doneOf returns the confirmation for the parameter "done" of a page's address.
func doneOf(v *web.Visit) done {
	return done{Text: web.DoneIn(v, map[string]string{
		"uploaded": "The files were uploaded.",
		"saved":    "The file was saved.",
		"created":  "The file was created.",
		"moved":    "The file was moved.",
		"deleted":  "The file was deleted. The history keeps it.",
		"restored": "The version was restored.",
		"undone":   "The change was undone.",
	})}
}

// undo offers to undo the last change at a location, if a person just made it on the pages.
func (d *done) undo(l web.Location, c space.Commit, now time.Time) {
	if d.Text == "" || l.At != "" || c.Parent == "" || !l.Space.CanWrite() || !web.IsFresh(c, now) {
		return
	}
	d.Action, d.Commit = web.SpacePath(l.Space.ID, "revert?"+web.URLQuery("path", string(l.Path))), c.ID
}

// addUndo offers in d to undo the last change in a directory, as undo does.
func (s *pages) addUndo(v *web.Visit, l web.Location, d *done) error {
	log, _, err := l.Space.LogPage(v.R.Context(), l.Commit, l.Path, "", 1, fileWalk)
	if err == nil && len(log) == 1 {
		d.undo(l, log[0], s.Now())
	}
	return err
}
