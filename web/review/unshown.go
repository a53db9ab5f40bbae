package review

import (
	"bytes"
	"context"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"satchel/internal/bytesize"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/web"
	"satchel/web/render"
)

// unshown describes a waiting file that a page cannot show completely, so that a person can
// look at it elsewhere and keep exactly that version.
type unshown struct {
	Kind, Size string
	Version    string // the beginning of the blob's id
	Editable   bool   // a page can edit the text
	Hidden     int    // number of invisible characters in a text
	Raw, Save  string // addresses of the unchanged bytes of this version
	Page       string // the address of this version's page
}

const versionShown = 12 // digits of a blob's id

// describe describes a file that the page does not show completely. It returns nil if the
// content cannot be read, because then nobody can look at it.
func (s *pages) describe(ctx context.Context, m service.View, r space.Review) *unshown {
	if r.Blob == "" { // there is nothing to look at
		return &unshown{Kind: "nothing: the file is deleted"}
	}
	e, err := m.Lookup(ctx, r.Head, r.Path)
	if err != nil || e.Dir || e.Blob != r.Blob {
		return nil
	}
	u := &unshown{
		Kind: "too large to inspect here", Size: bytesize.Text(e.Size), Version: string(r.Blob[:min(len(r.Blob), versionShown)]),
		Raw: web.PageURL(m.ID, "raw", r.Path, r.Head), Page: web.PageURL(m.ID, "files", r.Path, r.Head),
	}
	u.Save = u.Raw + "&download"
	if e.Size > web.MaxOpened {
		return u
	}
	data, err := m.ReadBlob(ctx, r.Blob)
	if err != nil {
		return nil
	}
	if !web.IsText(data) {
		u.Kind = "not text"
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
