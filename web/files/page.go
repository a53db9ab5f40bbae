package files

import (
	"bytes"
	"html/template"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"satchel/internal/bytesize"
	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/web"
	"satchel/web/render"
)

// Bounds of the page of a file.
const (
	// fileWalk is how many commits are looked through for a file's last change.
	fileWalk = 300
)

// filePage is a file.
type filePage struct {
	Crumbs []web.Crumb
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
func (s *pages) showContent(v *web.Visit, l web.Location, e space.Entry) error {
	body := filePage{
		Crumbs: l.Crumbs(), Path: web.ShownPath(l.Path, 300), Size: bytesize.Text(e.Size), ETag: string(e.Blob), Mode: web.ModeWords(e.Mode),
		Write: l.MayWrite() && l.At == "", Raw: l.URL("raw"), History: l.URL("history"),
		Edit: l.Now("edit"), Rename: l.Now("rename"), Delete: l.Now("delete"),
	}
	body.Done, body.Whole, body.At = doneWords(v), string(l.Path), l.At
	body.Save = body.Raw + "?download"
	if l.At != "" {
		body.Save = body.Raw + "&download"
	}
	var err error
	if body.Notice, err = s.noticeOf(v, l, "files"); err != nil {
		return err
	}
	if l.At != "" {
		if err := s.addVersion(v, l, e, &body); err != nil {
			return err
		}
	}
	log, _, err := s.History.LogPage(v.R.Context(), l.Space.ID, l.Commit, l.Path, "", 1, fileWalk)
	if err != nil {
		return err
	}
	if len(log) == 1 {
		body.Last, body.LastSubject, body.LastTime = &log[0], web.SubjectOf(log[0].Message), log[0].Time
		if space.IsWebTool(log[0].Tool) {
			body.LastHow = web.OnPages
		}
		body.LastURL = "/spaces/" + string(l.Space.ID) + "/commits/" + string(log[0].ID)
	}
	if o := conflictOf(l.Path); o != "" {
		body.Original, body.OriginalURL = web.ShownPath(o, 300), web.PageURL(l.Space.ID, "files", o, "")
	}
	if err := s.addContent(v, l, e, &body); err != nil {
		return err
	}
	if !body.Editable && body.Kind != "link" {
		body.Upload = web.SpacePath(l.Space.ID, "upload")
		if dir := path.Dir(string(l.Path)); dir != "." {
			body.Upload += "?" + web.URLQuery("dir", dir)
		}
	}
	return s.Page(v, http.StatusOK, "files", web.Page{Title: l.Name(), Wide: true, Current: "files", Space: &l.Space, Styles: []string{"files.css"}, Body: filesPage{File: &body}})
}

// addVersion says what can be done with an old version.
func (s *pages) addVersion(v *web.Visit, l web.Location, e space.Entry, body *filePage) error {
	head, err := s.Workspace.Head(v.R.Context(), l.Space.ID)
	if err != nil {
		return err
	}
	now, err := s.Workspace.Lookup(v.R.Context(), l.Space.ID, head, l.Path)
	switch c := fault.CodeOf(err); {
	case err != nil && c != fault.NotFound:
		return err
	case err == nil && !now.Dir && web.SameFile(e, now):
		return nil
	}
	base := "/spaces/" + string(l.Space.ID)
	body.Compare = base + "/compare?" + url.Values{"from": {string(l.At)}, "path": {string(l.Path)}}.Encode()
	if l.MayWrite() && !now.Dir { // no file of a directory goes for it
		body.Restore = base + "/restore"
	}
	return nil
}

// addContent shows what a page can show of a file.
func (s *pages) addContent(v *web.Visit, l web.Location, e space.Entry, body *filePage) error {
	name := string(l.Path)
	switch {
	case e.Size == 0:
		body.Kind, body.Editable = "empty", true
		return nil
	case e.Mode == space.Symlink && e.Size > space.MaxPathBytes:
		body.Kind = "binary"
		return nil
	case e.Mode != space.Symlink && web.PictureType(name) != "":
		body.Kind = "picture"
		return nil
	case e.Size > web.MaxOpened:
		body.Kind = "large"
		return nil
	}
	data, err := web.ReadContent(v.R.Context(), s.Workspace, l.Space.ID, e)
	if err != nil {
		return err
	}
	if e.Mode == space.Symlink {
		body.Kind, body.Target = "link", web.Shorten(string(data), 300)
		if t, err := space.ParsePath(path.Join(path.Dir(name), string(data))); err == nil && !strings.HasPrefix(string(data), "/") {
			body.TargetAt = web.PageURL(l.Space.ID, "files", t, l.At)
		}
		return nil
	}
	if !web.IsText(data) {
		body.Kind = "binary"
		return nil
	}
	body.Editable = s.EditsText(data)
	body.Lines = bytes.Count(data, []byte("\n"))
	if data[len(data)-1] != '\n' {
		body.Lines++
	}
	if web.IsMarkdown(name) && len(data) <= render.MaxMarkdown {
		body.Both = true
		body.Rendered, body.AsSource = l.URL("files"), l.Now("files")+"?view=source"
		if l.At != "" {
			body.AsSource += "&at=" + string(l.At)
		}
		if v.R.URL.Query().Get("view") != "source" {
			doc, ok := render.Markdown(data, placeOf(l, l.Path))
			if ok {
				body.Kind, body.Document = "document", doc
				return nil
			}
			body.Both = false
		}
	}
	body.Kind = "text"
	shown := data
	if len(shown) > web.MaxSource {
		shown = shown[:web.MaxSource]
		if i := bytes.LastIndexByte(shown, '\n'); i > 0 {
			shown = shown[:i]
		}
		body.Cut = true
	}
	source, cut := render.Source(strings.ToValidUTF8(string(shown), "\uFFFD"), name, web.MaxLines)
	body.Source, body.Cut = source, body.Cut || cut
	return nil
}
