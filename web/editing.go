package web

import (
	"errors"
	"strings"

	"satchel/auth/store"
	"satchel/internal/space"
)

// editing is the pages that change what a space holds.
type editing struct {
	*Site
	limits  EditLimits
	uploads chan struct{} // one for each upload or move in memory
}

// routeEditing adds the pages that change files.
func (s *Site) routeEditing() {
	e := &editing{Site: s, limits: s.Editing}
	e.uploads = make(chan struct{}, e.limits.Uploads)
	// A text is sent with its line ends doubled, or each byte as three.
	text := 3*e.limits.MaxText + MaxFormBytes
	e.HandleLarge("POST /spaces/{id}/edit/{path...}", text, e.saveEdit)
	e.HandleLarge("POST /spaces/{id}/new", text, e.saveNew)
	e.HandleLarge("POST /spaces/{id}/upload", e.limits.MaxChange+1<<20, e.saveUpload)
	s.Handle("GET /spaces/{id}/edit/{path...}", LimitPage, SignedIn, e.showEdit)
	s.Handle("GET /spaces/{id}/new", LimitPage, SignedIn, e.showNew)
	s.Handle("GET /spaces/{id}/upload", LimitPage, SignedIn, e.showUpload)
	s.Handle("GET /spaces/{id}/rename/{path...}", LimitPage, SignedIn, e.showRename)
	s.Handle("POST /spaces/{id}/rename/{path...}", LimitPage, SignedIn, e.saveRename)
	s.Handle("GET /spaces/{id}/delete/{path...}", LimitPage, SignedIn, e.showDelete)
	s.Handle("POST /spaces/{id}/delete/{path...}", LimitPage, SignedIn, e.saveDelete)
}

// dirURL is the address of the listing of a directory.
func dirURL(id space.SpaceID, dir space.Path) string {
	if dir == "" {
		return SpaceURL(id, "files", "")
	}
	return SpaceURL(id, "files", dir) + "/"
}

// found is what is at the address of a page, at one commit.
type found struct {
	store.Membership
	at   space.CommitID
	path space.Path
	space.Entry
}

// target finds what the address of a page names, for who may change it.
func (e *editing) target(v *Visit) (found, error) {
	m, err := e.WritableSpace(v)
	if err != nil {
		return found{}, err
	}
	p, err := space.ParsePath(v.R.PathValue("path"))
	if err != nil {
		return found{}, ErrGone
	}
	f := found{Membership: m, path: p}
	if f.at, err = e.Workspace.Head(v.R.Context(), m.ID); err != nil {
		return found{}, Gone(err)
	}
	f.Entry, err = e.Workspace.Lookup(v.R.Context(), m.ID, f.at, p)
	return f, err
}

// message is the note of a form.
func message(v *Visit) string {
	return strings.TrimSpace(strings.ReplaceAll(v.R.PostFormValue("message"), "\r\n", "\n"))
}

// maxMessage bounds a note, in bytes.
const maxMessage = 2000

var errNoBase = errors.New("what the form says it was made from is nothing that can be")
