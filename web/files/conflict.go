package files

import (
	"net/http"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/web"
	"satchel/web/merge"
)

// conflict is what somebody sees whose file changed while they edited it.
type conflict struct {
	// Gone reports that the file was deleted; NoText that it is no text any more.
	Gone, NoText bool
	// Places is how many both changed; where there are none the text of the page
	// has both changes.
	Places int
	// Yours and Theirs are what either changed of Had, which they began from.
	Yours, Theirs       []merge.Hunk
	YoursCut, TheirsCut bool
	// Had, Sent and Now are the three texts, and From is the blob of the first.
	Had, Sent, Now string
	From           space.BlobID
	// MovedTo is where the file is now, and Moved its address; "" where nothing
	// tells.
	MovedTo, Moved string
	// By is the commit that changed it last.
	By *space.Commit
}

const (
	conflictContext = 3   // lines around a change
	conflictLines   = 400 // of a comparison
)

// sides is what became of the text from which somebody began, whose blob is had, in
// their own text and in what is at the path now.
func (s *pages) sides(v *web.Visit, f found, there bool, had space.BlobID, sent string) (*conflict, error) {
	c := &conflict{Gone: !there, From: had, Sent: sent}
	base, err := s.baseText(v, f.ID, had)
	if err != nil {
		if fault.CodeOf(err) != fault.NotFound {
			return nil, err
		}
		base = "" // the form names what was never there, or is purged
	}
	if !web.Textual(base) || int64(len(base)) > s.Editing.MaxText {
		base = ""
	}
	c.Had = merge.Plain(base)
	if log, err := s.History.Log(v.R.Context(), f.ID, space.LogQuery{Path: f.path, Limit: 1}); err == nil && len(log) == 1 {
		c.By = &log[0]
	}
	if there {
		now, ok, err := s.entryText(v, f.ID, f.Entry)
		if err != nil {
			return nil, err
		}
		c.NoText = !ok || int64(len(now)) > s.Editing.MaxText
		if !c.NoText {
			c.Now = merge.Plain(now)
			c.Theirs, c.TheirsCut = merge.Changes(c.Had, c.Now, conflictContext, conflictLines)
		}
	} else if c.By != nil {
		to, err := s.MovedTo(v, f.ID, f.path, *c.By)
		if err != nil {
			return nil, err
		}
		if to != "" {
			c.MovedTo, c.Moved = string(to), web.SpaceURL(f.ID, "files", to)
		}
	}
	c.Yours, c.YoursCut = merge.Changes(c.Had, c.Sent, conflictContext, conflictLines)
	return c, nil
}

// stillOpen is the conflict of a form that was sent from its page and is shown
// again; nil if it comes from another page.
func (s *pages) stillOpen(v *web.Visit, f found, there bool) (*conflict, error) {
	if v.R.PostFormValue("conflict") == "" {
		return nil, nil
	}
	had, sent := space.BlobID(v.R.PostFormValue("had")), merge.Plain(v.R.PostFormValue("sent"))
	if had != "" && !had.Valid() || int64(len(sent)) > s.Editing.MaxText {
		return nil, web.BadForm(errNoBase)
	}
	return s.sides(v, f, there, had, sent)
}

// collide answers to a save of a file that is not what it was. Nothing is lost:
// the page has what was there, what is there now, what was sent, and both
// together, from which the person goes on.
func (s *pages) collide(v *web.Visit, f found, there bool, body editPage) error {
	c, err := s.sides(v, f, there, body.Base, body.Text)
	if err != nil {
		return err
	}
	body.Conflict, body.Base = c, ""
	if there {
		body.Base, body.Mode = f.Blob, modeName(f.Mode)
		if !c.NoText {
			both := merge.Three(v.R.Context(), s.History, c.Had, c.Sent, c.Now)
			body.Text, c.Places = both.Text, both.Conflicts
		}
	} else {
		body.Back = dirURL(f.ID, s.nearest(v, f))
	}
	text := "Nothing is saved yet: the file changed since you opened it. Your text and the change are both in the field; read it and save it again."
	switch {
	case c.MovedTo != "":
		text = "Nothing is saved yet: the file was moved since you opened it. Save your text to make it again at the old path, or make your change at the new one."
	case c.Gone:
		text = "Nothing is saved yet: the file was deleted since you opened it. Save your text to make it again, or leave it deleted."
	case c.NoText:
		text = "Nothing is saved yet: since you opened it, the file became something that is no text. Save your text to replace it, or leave it."
	case c.Places > 0:
		text = "Nothing is saved yet: the file changed since you opened it, in a place that you changed too. The places are marked in the field; decide for each and save it again."
	}
	return s.form(v, http.StatusConflict, f.Membership, f.path, body, &web.Problem{Text: text, Field: "text"})
}
