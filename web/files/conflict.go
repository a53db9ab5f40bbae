package files

import (
	"net/http"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/web"
	"satchel/web/merge"
)

// conflict describes a file that changed while the visitor edited it.
type conflict struct {
	// Gone reports whether the file was deleted. NoText reports whether the file is no
	// longer text.
	Gone, NoText bool
	// Places is the number of places that both sides changed. If it is zero, the text of the
	// page contains both changes.
	Places int
	// Yours and Theirs are the changes of each side to Had, the common base.
	Yours, Theirs       []merge.Hunk
	YoursCut, TheirsCut bool
	// Had, Sent and Now are the three texts. From is the blob of Had.
	Had, Sent, Now string
	From           space.BlobID
	// MovedTo is the new path of the file, and Moved is its address. Both are empty if the
	// file did not move or its new path is unknown.
	MovedTo, Moved string
	// By is the last commit that changed the file.
	By *space.Commit
}

const (
	conflictContext = 3   // lines around a change
	conflictLines   = 400 // maximum number of lines of a comparison
)

// sides compares the base, whose blob is had, with the visitor's text and with the current
// file.
func (s *pages) sides(v *web.Visit, f found, there bool, had space.BlobID, sent string) (*conflict, error) {
	c := &conflict{Gone: !there, From: had, Sent: sent}
	base, err := s.baseText(v, f.View, had)
	if err != nil {
		if fault.CodeOf(err) != fault.NotFound {
			return nil, err
		}
		base = "" // the form names a blob that never existed or was purged
	}
	if !web.Textual(base) || int64(len(base)) > s.Editing.MaxText {
		base = ""
	}
	c.Had = merge.Plain(base)
	if log, err := f.Log(v.R.Context(), space.LogQuery{Path: f.path, Limit: 1}); err == nil && len(log) == 1 {
		c.By = &log[0]
	}
	if there {
		now, ok, err := s.entryText(v, f.View, f.Entry)
		if err != nil {
			return nil, err
		}
		c.NoText = !ok || int64(len(now)) > s.Editing.MaxText
		if !c.NoText {
			c.Now = merge.Plain(now)
			c.Theirs, c.TheirsCut = merge.Changes(c.Had, c.Now, conflictContext, conflictLines)
		}
	} else if c.By != nil {
		to, err := web.MovedTo(v, f.View, f.path, *c.By)
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

// stillOpen returns the conflict if the form comes from the conflict page and is shown
// again. It returns nil for a form of another page.
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

// collide answers a save of a file that has changed meanwhile. The page keeps the base, the
// current text, the sent text, and a merge of both, so that nothing is lost.
func (s *pages) collide(v *web.Visit, f found, there bool, body editPage) error {
	c, err := s.sides(v, f, there, body.Base, body.Text)
	if err != nil {
		return err
	}
	body.Conflict, body.Base = c, ""
	if there {
		body.Base, body.Mode = f.Blob, modeName(f.Mode)
		if !c.NoText {
			both := merge.Three(v.R.Context(), s.Service.MergeText, c.Had, c.Sent, c.Now)
			body.Text, c.Places = both.Text, both.Conflicts
		}
	} else {
		body.Back = dirURL(f.ID, s.nearest(v, f.View, "", f.path))
	}
	text := "Nothing is saved yet: the file changed since you opened it. The merged text below has both changes. Read it and save."
	switch {
	case c.MovedTo != "":
		text = "Nothing is saved yet: the file was moved since you opened it. Save your text to create the file again at the old path, or make your change at the new path."
	case c.Gone:
		text = "Nothing is saved yet: the file was deleted since you opened it. Save your text to create the file again, or discard your text."
	case c.NoText:
		text = "Nothing is saved yet: the file is no longer text. Save your text to replace the file, or keep the file as it is."
	case c.Places > 0:
		text = "Nothing is saved yet: somebody else changed the same lines. The merged text below marks these places. Choose at each mark and save."
	}
	return s.form(v, http.StatusConflict, f.View, f.path, body, &web.Problem{Text: text, Field: "text"})
}
