package review

import (
	"bytes"
	"context"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"satchel/auth/store"
	"satchel/internal/bytesize"
	"satchel/internal/space"
	"satchel/web"
	"satchel/web/render"
)

// unshown is what a page tells of a file that waits and that it cannot show whole, so
// that a person can look at it elsewhere and keep that very version.
type unshown struct {
	Kind, Size string
	Version    string // the beginning of the content's id, by which it is kept
	Editable   bool   // its text can be edited in a page
	Hidden     int    // characters of a text that cannot be seen
	Raw, Save  string // this version, as it is
	Page       string // the page of this version
}

const versionShown = 12 // letters of a content's id

// describe finds out what can be told of a file of which not all is shown; nil if
// its content cannot be read, so that nobody can look at it.
func (s *pages) describe(ctx context.Context, m store.Membership, r space.Review) *unshown {
	if r.Blob == "" { // there is nothing of it to look at
		return &unshown{Kind: "nothing: the file is deleted"}
	}
	e, err := s.Workspace.Lookup(ctx, m.ID, r.Head, r.Path)
	if err != nil || e.Dir || e.Blob != r.Blob {
		return nil
	}
	u := &unshown{
		Kind: "too large to look into here", Size: bytesize.Text(e.Size), Version: string(r.Blob[:min(len(r.Blob), versionShown)]),
		Raw: web.PageURL(m.ID, "raw", r.Path, r.Head), Page: web.PageURL(m.ID, "files", r.Path, r.Head),
	}
	u.Save = u.Raw + "&download"
	if e.Size > web.MaxOpened {
		return u
	}
	data, err := s.Workspace.ReadBlob(ctx, m.ID, r.Blob)
	if err != nil {
		return nil
	}
	if !web.IsText(data) {
		u.Kind = "no text"
		if kind, _, _ := strings.Cut(http.DetectContentType(data), ";"); kind != "application/octet-stream" && kind != "text/plain" {
			u.Kind += ", but looks like " + kind
		}
		return u
	}
	lines := bytes.Count(data, []byte("\n"))
	if len(data) > 0 && data[len(data)-1] != '\n' {
		lines++
	}
	u.Editable, u.Kind = s.EditsText(data), "text of "+strconv.Itoa(lines)+" lines"
	if lines == 1 {
		u.Kind = "text of one line"
	}
	for rest := data; len(rest) > 0; {
		c, n := utf8.DecodeRune(rest)
		if rest = rest[n:]; c != '\n' && c != '\r' && render.Odd(c) {
			u.Hidden++
		}
	}
	return u
}
