package web

import (
	"bytes"
	"mime"
	"net/http"
	"path"
	"strings"
	"time"

	"satchel/internal/space"
)

// policyRaw is on what a member or an AI wrote, served as it is: it runs nothing,
// loads nothing and has no origin.
const policyRaw = "default-src 'none'; sandbox; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// rawFile is GET /spaces/{id}/raw/{path...}: a file as it is. Only text and
// pictures are shown, everything else is saved.
func (s *Site) rawFile(v *Visit) error {
	l, err := s.locate(v)
	if err != nil {
		return err
	}
	if l.path == "" || l.slash {
		return ErrGone
	}
	e, err := s.Workspace.Lookup(v.R.Context(), l.space.ID, l.commit, l.path)
	if err != nil {
		return Gone(err)
	}
	if e.Dir {
		return ErrGone
	}
	h := v.W.Header()
	h.Set("Content-Security-Policy", policyRaw)
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	// It may be kept, and is asked for again: who lost the space sees no more of it.
	h.Set("Cache-Control", "private, no-cache")
	h.Set("ETag", `"`+string(e.Blob)+`"`)
	ctx, w, leave, err := s.beginDownload(v, l.space.ID, true)
	if err != nil {
		return err
	}
	defer leave()
	data, err := contentOf(ctx, s.Workspace, l.space.ID, e)
	if err != nil {
		return err
	}
	kind := "application/octet-stream"
	switch picture := pictureOf(string(l.path)); {
	case e.Mode == space.Symlink:
		kind = "text/plain; charset=utf-8"
	case picture != "" && (http.DetectContentType(data) == picture || picture == "image/avif" && isAVIF(data)):
		kind = picture
	case isText(data):
		kind = "text/plain; charset=utf-8"
	}
	h.Set("Content-Type", kind)
	if kind == "application/octet-stream" || v.R.URL.Query().Has("download") {
		h.Set("Content-Disposition", attachment(path.Base(string(l.path))))
	}
	http.ServeContent(w, v.R, "", time.Time{}, bytes.NewReader(data))
	return nil
}

// isAVIF reports whether bytes begin as an AVIF picture does (ISO/IEC 14496-12
// section 4.3), which net/http does not know.
func isAVIF(data []byte) bool {
	return len(data) > 16 && string(data[4:8]) == "ftyp" && (string(data[8:12]) == "avif" || string(data[8:12]) == "avis")
}

// attachment is a Content-Disposition that saves a file under its name.
func attachment(name string) string {
	name = strings.Map(func(r rune) rune {
		if r < ' ' || strings.ContainsRune(`/\:*?"<>|`, r) {
			return '_'
		}
		return r
	}, Shorten(name, 150))
	if d := mime.FormatMediaType("attachment", map[string]string{"filename": name}); d != "" {
		return d
	}
	return "attachment"
}
