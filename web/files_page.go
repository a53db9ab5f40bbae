package web

import (
	"bytes"
	"html/template"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"satchel/internal/bytesize"
	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/web/render"
)

// Bounds of the page of a file.
const (
	maxSource = 512 << 10 // bytes of a file that are shown
	maxLines  = 10_000
	// fileWalk is how many commits are looked through for a file's last change.
	fileWalk = 300
)

// filePage is a file.
type filePage struct {
	Crumbs []crumb
	Path   string
	Notice *notice

	Size, Mode, ETag string
	Lines            int
	// Kind is what is shown: "document", "text", "picture", "link", "binary",
	// "large", "empty".
	Kind        string
	Document    render.Document
	Source      template.HTML
	Cut         bool // not all lines are shown
	Target      string
	TargetAt    string // where the link leads, in this space
	Original    string // of which it is a conflict copy
	OriginalURL string // its address

	// Rendered and AsSource lead to the other view of a document.
	Rendered, AsSource string
	Both               bool

	Write                                    bool
	Editable                                 bool // its text can be edited in a page
	Raw, Save, History, Edit, Rename, Delete string
	Upload                                   string // of a new version; "" where the content is edited
	Last                                     *space.Commit
	LastURL, LastSubject                     string
	LastTime                                 time.Time
	LastHow                                  string // where it was made by no client

	Done string // what was done, just now
	// Of a version that is another than what is there now: what brings it back
	// (Restore is "" for who only reads), and compares them.
	Restore, Whole, Compare string
	At                      space.CommitID
}

// showContent is GET /spaces/{id}/files/{path...} of a file.
func (s *Site) showContent(v *Visit, l location, e space.Entry) error {
	body := filePage{
		Crumbs: l.crumbs(), Path: ShownPath(l.path, 300), Size: bytesize.Text(e.Size), ETag: string(e.Blob), Mode: modeWords(e.Mode),
		Write: l.mayWrite() && l.at == "", Raw: l.url("raw"), History: l.url("history"),
		Edit: l.now("edit"), Rename: l.now("rename"), Delete: l.now("delete"),
	}
	body.Done, body.Whole, body.At = doneWords(v), string(l.path), l.at
	body.Save = body.Raw + "?download"
	if l.at != "" {
		body.Save = body.Raw + "&download"
	}
	var err error
	if body.Notice, err = s.noticeOf(v, l, "files"); err != nil {
		return err
	}
	if l.at != "" {
		if err := s.addVersion(v, l, e, &body); err != nil {
			return err
		}
	}
	log, _, err := s.History.LogPage(v.R.Context(), l.space.ID, l.commit, l.path, "", 1, fileWalk)
	if err != nil {
		return err
	}
	if len(log) == 1 {
		body.Last, body.LastSubject, body.LastTime = &log[0], SubjectOf(log[0].Message), log[0].Time
		if space.IsWebTool(log[0].Tool) {
			body.LastHow = onPages
		}
		body.LastURL = "/spaces/" + string(l.space.ID) + "/commits/" + string(log[0].ID)
	}
	if o := conflictOf(l.path); o != "" {
		body.Original, body.OriginalURL = ShownPath(o, 300), PageURL(l.space.ID, "files", o, "")
	}
	if err := s.addContent(v, l, e, &body); err != nil {
		return err
	}
	if !body.Editable && body.Kind != "link" {
		body.Upload = SpacePath(l.space.ID, "upload")
		if dir := path.Dir(string(l.path)); dir != "." {
			body.Upload += "?" + URLQuery("dir", dir)
		}
	}
	return s.Page(v, http.StatusOK, "files", Page{Title: l.name(), Wide: true, Current: "files", Space: &l.space, Styles: filesStyles(), Body: filesPage{File: &body}})
}

// addVersion says what can be done with an old version.
func (s *Site) addVersion(v *Visit, l location, e space.Entry, body *filePage) error {
	head, err := s.Workspace.Head(v.R.Context(), l.space.ID)
	if err != nil {
		return err
	}
	now, err := s.Workspace.Lookup(v.R.Context(), l.space.ID, head, l.path)
	switch c := fault.CodeOf(err); {
	case err != nil && c != fault.NotFound:
		return err
	case err == nil && !now.Dir && sameFile(e, now):
		return nil
	}
	base := "/spaces/" + string(l.space.ID)
	body.Compare = base + "/compare?" + url.Values{"from": {string(l.at)}, "path": {string(l.path)}}.Encode()
	if l.mayWrite() && !now.Dir { // no file of a directory goes for it
		body.Restore = base + "/restore"
	}
	return nil
}

// addContent shows what a page can show of a file.
func (s *Site) addContent(v *Visit, l location, e space.Entry, body *filePage) error {
	name := string(l.path)
	switch {
	case e.Size == 0:
		body.Kind, body.Editable = "empty", true
		return nil
	case e.Mode == space.Symlink && e.Size > space.MaxPathBytes:
		body.Kind = "binary"
		return nil
	case e.Mode != space.Symlink && pictureOf(name) != "":
		body.Kind = "picture"
		return nil
	case e.Size > maxOpened:
		body.Kind = "large"
		return nil
	}
	data, err := contentOf(v.R.Context(), s.Workspace, l.space.ID, e)
	if err != nil {
		return err
	}
	if e.Mode == space.Symlink {
		body.Kind, body.Target = "link", Shorten(string(data), 300)
		if t, err := space.ParsePath(path.Join(path.Dir(name), string(data))); err == nil && !strings.HasPrefix(string(data), "/") {
			body.TargetAt = PageURL(l.space.ID, "files", t, l.at)
		}
		return nil
	}
	if !isText(data) {
		body.Kind = "binary"
		return nil
	}
	body.Editable = s.editsText(data)
	body.Lines = bytes.Count(data, []byte("\n"))
	if data[len(data)-1] != '\n' {
		body.Lines++
	}
	if isMarkdown(name) && len(data) <= render.MaxMarkdown {
		body.Both = true
		body.Rendered, body.AsSource = l.url("files"), l.now("files")+"?view=source"
		if l.at != "" {
			body.AsSource += "&at=" + string(l.at)
		}
		if v.R.URL.Query().Get("view") != "source" {
			doc, ok := render.Markdown(data, l.placeOf(l.path))
			if ok {
				body.Kind, body.Document = "document", doc
				return nil
			}
			body.Both = false
		}
	}
	body.Kind = "text"
	shown := data
	if len(shown) > maxSource {
		shown = shown[:maxSource]
		if i := bytes.LastIndexByte(shown, '\n'); i > 0 {
			shown = shown[:i]
		}
		body.Cut = true
	}
	source, cut := render.Source(strings.ToValidUTF8(string(shown), "\uFFFD"), name, maxLines)
	body.Source, body.Cut = source, body.Cut || cut
	return nil
}

// maxOpened is the size above which a file is only described.
const maxOpened = 4 << 20

func modeWords(m space.Mode) string {
	switch m {
	case space.Executable:
		return "program"
	case space.Symlink:
		return "link"
	}
	return "file"
}

// isText reports whether people can read the bytes; git looks for a NUL too.
func isText(data []byte) bool {
	return bytes.IndexByte(data, 0) < 0 && (utf8.Valid(data) || !bytes.ContainsRune(data[:min(len(data), 8000)], '\uFFFD') && mostlyText(data[:min(len(data), 8000)]))
}

// mostlyText is for files in an older encoding.
func mostlyText(data []byte) bool {
	odd := 0
	for _, b := range data {
		if b < ' ' && b != '\n' && b != '\r' && b != '\t' && b != '\f' && b != 0x1b {
			odd++
		}
	}
	return odd == 0
}

func isMarkdown(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".md", ".markdown", ".mdown", ".mkd":
		return true
	}
	return false
}

// pictureOf is the type of a picture that browsers show and that runs nothing,
// by the name of a file; "" for everything else.
func pictureOf(name string) string {
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
