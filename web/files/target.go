package files

import (
	"errors"
	"strings"

	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/web"
)

func dirURL(id space.SpaceID, dir space.Path) string {
	if dir == "" {
		return web.SpaceURL(id, "files", "")
	}
	return web.SpaceURL(id, "files", dir) + "/"
}

// crumbsOf returns the links to a directory and to those above it.
func crumbsOf(m service.View, dir space.Path) []web.Crumb {
	if dir != "" {
		dir += "/"
	}
	return web.Location{Space: m, Path: dir}.Crumbs()
}

// found is a file or directory at one commit.
type found struct {
	service.View
	at   space.CommitID
	path space.Path
	space.Entry
}

// target returns the file or directory in the address of a page. The visitor must have the
// right to write to the space.
func (s *pages) target(v *web.Visit) (found, error) {
	m, err := s.WritableSpace(v)
	if err != nil {
		return found{}, err
	}
	p, err := space.ParsePath(v.R.PathValue("path"))
	if err != nil {
		return found{}, web.ErrGone
	}
	f := found{View: m, path: p}
	if f.at, err = m.Head(v.R.Context()); err != nil {
		return found{}, web.Gone(err)
	}
	f.Entry, err = m.Lookup(v.R.Context(), f.at, p)
	return f, err
}

// message returns the commit message of a form.
func message(v *web.Visit) string {
	return strings.TrimSpace(strings.ReplaceAll(v.R.PostFormValue("message"), "\r\n", "\n"))
}

// maxMessage is the maximum length of a commit message in bytes.
const maxMessage = 2000

var errNoBase = errors.New("the form has no valid base version")
