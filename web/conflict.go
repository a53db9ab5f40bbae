package web

import (
	"net/http"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/web/merge"
)

// conflict is what somebody sees whose file changed while they edited it.
type conflict struct {
	// Gone tells that the file was deleted; NoText that it is no text any more.
	Gone, NoText bool
	// Places is how many both changed; where there are none the text of the page
	// has both changes.
	Places int
	// Yours and Theirs are what either changed of Had, which they began from.
	Yours, Theirs       []merge.Hunk
	YoursCut, TheirsCut bool
	// Had, Sent and Now are the three texts.
	Had, Sent, Now string
	// By is the commit that changed it last.
	By *space.Commit
}

const (
	conflictContext = 3   // lines around a change
	conflictLines   = 400 // of a comparison
)

// collide answers to a save of a file that is not what it was. Nothing is lost:
// the page has what was there, what is there now, what was sent, and both
// together, from which the person goes on.
func (e *editing) collide(v *visit, f found, there bool, body editPage) error {
	c := &conflict{Gone: !there, Sent: body.Text}
	base, err := e.baseText(v, f.ID, body.Base)
	if err != nil {
		if fault.CodeOf(err) != fault.NotFound {
			return err
		}
		base = "" // the form names what was never there, or is purged
	}
	if !textual(base) || int64(len(base)) > e.limits.MaxText {
		base = ""
	}
	c.Had = merge.Plain(base)
	if log, err := e.o.History.Log(v.r.Context(), f.ID, LogQuery{Path: f.path, Limit: 1}); err == nil && len(log) == 1 {
		c.By = &log[0]
	}
	body.Conflict, body.Base = c, ""
	if !there {
		body.Back = dirURL(f.ID, e.nearest(v, f))
	} else {
		now, ok, err := e.entryText(v, f.ID, f.Entry)
		if err != nil {
			return err
		}
		body.Base, body.Mode = f.Blob, modeName(f.Mode)
		c.NoText = !ok || int64(len(now)) > e.limits.MaxText
		if !c.NoText {
			c.Now = merge.Plain(now)
			both := merge.Three(v.r.Context(), e.o.History, c.Had, c.Sent, c.Now)
			body.Text, c.Places = both.Text, both.Conflicts
			c.Theirs, c.TheirsCut = merge.Changes(c.Had, c.Now, conflictContext, conflictLines)
		}
	}
	c.Yours, c.YoursCut = merge.Changes(c.Had, c.Sent, conflictContext, conflictLines)
	text := "Nothing is saved yet: the file changed since you opened it. Your text and the change are both in the field; read it and save it again."
	switch {
	case c.Gone:
		text = "Nothing is saved yet: the file was deleted since you opened it. Save your text to make it again, or leave it deleted."
	case c.NoText:
		text = "Nothing is saved yet: since you opened it, the file became something that is no text. Save your text to replace it, or leave it."
	case c.Places > 0:
		text = "Nothing is saved yet: the file changed since you opened it, in a place that you changed too. The places are marked in the field; decide for each and save it again."
	}
	return e.form(v, http.StatusConflict, f.Membership, f.path, body, &problem{text, "text"})
}
