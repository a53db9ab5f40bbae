package files

import (
	"bytes"
	"html/template"
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

const (
	// fileWalk is how many commits are searched for the last change of a file.
	fileWalk = 300
)

type filePage struct {
	Crumbs []web.Crumb
	Path   string
	Notice *notice

	Size, Mode, ETag string
	Lines            int
	// Kind is "document", "text", "picture", "link", "binary", "large" or "empty".
	Kind        string
	Document    render.Document
	Source      template.HTML
	Cut         bool // some lines are missing
	Target      string
	TargetAt    string // the address of the link's target in this space
	Original    string // path of the file of which this file is a conflict copy
	OriginalURL string // the address of Original

	// Rendered and AsSource are the addresses of the two views of a document. Both reports
	// whether the file has both views.
	Rendered, AsSource string
	Both               bool

	Contents []render.Heading // the headings to list; nil for a short page
	Head     space.CommitID   // the commit of the page

	Write                                    bool
	Editable                                 bool // a page can edit the text
	Raw, Save, History, Edit, Rename, Delete string
	Upload                                   string // the address to upload a new version; empty for editable files and links
	Last                                     *space.Commit
	LastURL, LastSubject                     string
	LastTime                                 time.Time
	LastHow                                  string // set if the last change was made on the pages

	Done done
	// Restore and Compare are set for a version that differs from the current one. Restore
	// is the address that restores the version; it is empty for readers. Compare is the
	// address of the comparison. Whole is the full path of the file.
	Restore, Whole, Compare string
	At                      space.CommitID
}

// showContent handles GET /spaces/{id}/files/{path...} for a file.
func (s *pages) showContent(v *web.Visit, l web.Location, e space.Entry) error {
	body := filePage{
		Crumbs: l.Crumbs(), Path: web.ShownPath(l.Path, 300), Size: bytesize.Text(e.Size), ETag: string(e.Blob), Mode: web.ModeWords(e.Mode),
		Write: l.Space.CanWrite() && l.At == "", Raw: l.URL("raw"), History: l.URL("history"),
		Edit: l.Now("edit"), Rename: l.Now("rename"), Delete: l.Now("delete"),
	}
	body.Done, body.Whole, body.At = doneOf(v), string(l.Path), l.At
	d := listsOf(v, l)
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
	log, _, err := l.Space.LogPage(v.R.Context(), l.Commit, l.Path, "", 1, fileWalk)
	if err != nil {
		return err
	}
	if len(log) == 1 {
		body.Last, body.LastSubject, body.LastTime = &log[0], web.SubjectOf(log[0].Message), log[0].Time
		if space.IsWebTool(log[0].Tool) {
			body.LastHow = web.InBrowser
		}
		body.LastURL = "/spaces/" + string(l.Space.ID) + "/commits/" + string(log[0].ID)
		body.Head = l.Commit
		body.Done.undo(l, log[0], s.Now())
	}
	if o := conflictOf(l.Path); o != "" {
		body.Original, body.OriginalURL = web.ShownPath(o, 300), web.PageURL(l.Space.ID, "files", o, "")
	}
	if err := s.addContent(v, d, e, &body); err != nil {
		return err
	}
	if !body.Editable && body.Kind != "link" {
		body.Upload = web.SpacePath(l.Space.ID, "upload")
		if dir := path.Dir(string(l.Path)); dir != "." {
			body.Upload += "?" + web.URLQuery("dir", dir)
		}
	}
	return s.filesPage(v, d, filesPage{File: &body})
}

// addVersion adds the addresses that restore an old version and compare it.
func (s *pages) addVersion(v *web.Visit, l web.Location, e space.Entry, body *filePage) error {
	head, err := l.Space.Head(v.R.Context())
	if err != nil {
		return err
	}
	now, err := l.Space.Lookup(v.R.Context(), head, l.Path)
	switch c := fault.CodeOf(err); {
	case err != nil && c != fault.NotFound:
		return err
	case err == nil && !now.Dir && web.SameFile(e, now):
		return nil
	}
	base := "/spaces/" + string(l.Space.ID)
	body.Compare = base + "/compare?" + url.Values{"from": {string(l.At)}, "path": {string(l.Path)}}.Encode()
	if l.Space.CanWrite() && !now.Dir { // a file cannot replace a directory
		body.Restore = base + "/restore"
	}
	return nil
}

// addContent adds as much of the content as a page can show.
func (s *pages) addContent(v *web.Visit, d *lists, e space.Entry, body *filePage) error {
	l := d.l
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
	data, err := web.ReadContent(v.R.Context(), l.Space, e)
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
			doc, ok := render.Markdown(data, placeOf(d, l.Path))
			if ok {
				body.Kind, body.Document, body.Contents = "document", doc, contentsOf(doc.Headings)
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

// Limits of the contents list of a page.
const (
	contentsFrom  = 3 // a page with fewer headings has no list
	contentsMost  = 80
	contentsLevel = 3
)

// contentsOf returns the headings for the contents list. A title above all other headings
// is left out.
func contentsOf(all []render.Heading) []render.Heading {
	var out []render.Heading
	top := 0
	for _, h := range all {
		if h.Level == 1 {
			top++
		}
	}
	for _, h := range all {
		if top == 1 {
			h.Level--
		}
		if h.Anchor == "" || h.Text == "" || h.Level < 1 || h.Level > contentsLevel-1 {
			continue
		}
		if out = append(out, h); len(out) == contentsMost {
			break
		}
	}
	if len(out) < contentsFrom {
		return nil
	}
	return out
}
