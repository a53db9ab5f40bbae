package files

import (
	"errors"
	"strings"

	"satchel/auth/store"
	"satchel/internal/space"
	"satchel/web"
)

// dirURL is the address of the listing of a directory.
func dirURL(id space.SpaceID, dir space.Path) string {
	if dir == "" {
		return web.SpaceURL(id, "files", "")
	}
	return web.SpaceURL(id, "files", dir) + "/"
}

// found is what is at the address of a page, at one commit.
type found struct {
	store.Membership
	at   space.CommitID
	path space.Path
	space.Entry
}

// target finds what the address of a page names, for who may change it.
func (s *pages) target(v *web.Visit) (found, error) {
	m, err := s.WritableSpace(v)
	if err != nil {
		return found{}, err
	}
	p, err := space.ParsePath(v.R.PathValue("path"))
	if err != nil {
		return found{}, web.ErrGone
	}
	f := found{Membership: m, path: p}
	if f.at, err = s.Workspace.Head(v.R.Context(), m.ID); err != nil {
		return found{}, web.Gone(err)
	}
	f.Entry, err = s.Workspace.Lookup(v.R.Context(), m.ID, f.at, p)
	return f, err
}

// message is the note of a form.
func message(v *web.Visit) string {
	return strings.TrimSpace(strings.ReplaceAll(v.R.PostFormValue("message"), "\r\n", "\n"))
}

// maxMessage bounds a note, in bytes.
const maxMessage = 2000

var errNoBase = errors.New("what the form says it was made from is nothing that can be")
