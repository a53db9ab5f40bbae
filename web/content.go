package web

import (
	"bytes"
	"context"
	"mime"
	"net/http"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
)

// Limits of the pages of files.
const (
	MaxSource = 512 << 10 // bytes of a file that are shown
	MaxLines  = 10_000
	MaxOpened = 4 << 20 // a larger file is only described
	MaxNames  = 500     // names of a directory on one page
)

// ReadContent reads a file. If the file is damaged, the error names its path.
func ReadContent(ctx context.Context, m service.View, e space.Entry) ([]byte, error) {
	data, err := m.ReadBlob(ctx, e.Blob)
	if fault.CodeOf(err) == fault.Damaged {
		err = space.Damaged(e.Path, err)
	}
	return data, err
}

// IsText reports whether data is text: UTF-8, or data in another encoding whose beginning has no
// odd control characters. As in git, data with a NUL is binary.
func IsText(data []byte) bool {
	return bytes.IndexByte(data, 0) < 0 && (utf8.Valid(data) || mostlyText(data[:min(len(data), 8000)]))
}

// mostlyText reports whether data has no control characters except those that texts have, such
// as line breaks.
func mostlyText(data []byte) bool {
	odd := 0
	for _, b := range data {
		if b < ' ' && b != '\n' && b != '\r' && b != '\t' && b != '\f' && b != 0x1b {
			odd++
		}
	}
	return odd == 0
}

// IsMarkdown reports whether a file name is that of a Markdown file.
func IsMarkdown(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".md", ".markdown", ".mdown", ".mkd":
		return true
	}
	return false
}

// PictureType returns the media type of a picture, from its file name. It returns "" for
// other files and for pictures that can run scripts, such as SVG.
func PictureType(name string) string {
	switch strings.ToLower(path.Ext(name)) {
	case ".png":
		return "image/png"
	case ".jpg", ".jpeg":
		return "image/jpeg"
	case ".gif":
		return "image/gif"
	case ".webp":
		return "image/webp"
	case ".avif":
		return "image/avif"
	}
	return ""
}

// ModeWords returns the word that pages use for a kind of file.
func ModeWords(m space.Mode) string {
	switch m {
	case space.Executable:
		return "program"
	case space.Symlink:
		return "link"
	}
	return "file"
}

// RawPolicy is the content security policy of files that are served unchanged: they run
// nothing, load nothing and have no origin.
const RawPolicy = "default-src 'none'; sandbox; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// isAVIF reports whether data starts like an AVIF picture (ISO/IEC 14496-12 section 4.3),
// which net/http does not detect.
func isAVIF(data []byte) bool {
	return len(data) > 16 && string(data[4:8]) == "ftyp" && (string(data[8:12]) == "avif" || string(data[8:12]) == "avis")
}

// Attachment returns a Content-Disposition that saves a file under its name.
func Attachment(name string) string {
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

// EditsText reports whether a page can edit a file with this content.
func (s *Site) EditsText(data []byte) bool {
	return int64(len(data)) <= s.Editing.MaxText && Textual(string(data))
}

// SameFile reports whether two files have the same content and mode.
func SameFile(a, b space.Entry) bool { return a.Blob == b.Blob && a.Mode == b.Mode }

// ServeRaw serves a file unchanged. Browsers show text and pictures, and download all
// other files.
func ServeRaw(w http.ResponseWriter, r *http.Request, p space.Path, e space.Entry, data []byte) {
	kind := "application/octet-stream"
	switch picture := PictureType(string(p)); {
	case e.Mode == space.Symlink:
		kind = "text/plain; charset=utf-8"
	case picture != "" && (http.DetectContentType(data) == picture || picture == "image/avif" && isAVIF(data)):
		kind = picture
	case IsText(data):
		kind = "text/plain; charset=utf-8"
	}
	h := w.Header()
	h.Set("Content-Security-Policy", RawPolicy)
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	// Browsers must revalidate the file, so that people who lost access no longer see it.
	h.Set("Cache-Control", "private, no-cache")
	h.Set("ETag", `"`+string(e.Blob)+`"`)
	h.Set("Content-Type", kind)
	if kind == "application/octet-stream" || r.URL.Query().Has("download") {
		h.Set("Content-Disposition", Attachment(path.Base(string(p))))
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
}
