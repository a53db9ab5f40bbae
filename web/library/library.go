// Package library serves the pages of the library: published sources, their files, and
// the publishing of spaces.
package library

import (
	"cmp"
	"embed"
	"html/template"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"satchel/internal/bytesize"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/tools"
	"satchel/web"
	"satchel/web/render"
)

//go:embed templates
var templates embed.FS

type pages struct{ *web.Site }

// Register adds the pages to a site.
func Register(site *web.Site) error {
	s := &pages{site}
	s.HandleSettings(web.SettingsTab{Order: 5, Path: "/publish", Name: "Publishing", Find: "Publish a directory", Owner: true}, s.showPublish)
	s.Handle("POST /spaces/{id}/publish", web.LimitPage, web.SignedIn, s.publish)
	s.Handle("POST /spaces/{id}/publish/{source}/end", web.LimitPage, web.SignedIn, s.unpublish)
	s.Handle("GET /library", web.LimitPage, web.SignedIn, s.showLibrary)
	s.Handle("POST /library/sync/{source}", web.LimitPage, web.SignedIn, s.syncSource)
	s.Handle("GET /library/docs/{source}", web.LimitPage, web.SignedIn, s.toSource)
	s.Handle("GET /library/docs/{source}/{path...}", web.LimitPage, web.SignedIn, s.showShared)
	s.Handle("GET /library/raw/{source}/{path...}", web.LimitPage, web.SignedIn, s.rawShared)
	s.managedPages()
	return s.AddTemplates(templates)
}

// libraryPage lists the sources that the visitor may read and, for admins, the others that
// follow an upstream.
type libraryPage struct {
	Sources []librarySource
	Mine    []libraryMine // spaces that the visitor can publish from
	Example example       // a source that a person can add
}

type librarySource struct {
	space.Source
	URL, Size string
	Kind      string // the name of the kind for people
	Own       bool
	Named     bool // its ID differs from its title
	Updates   bool // the visitor can update it now
	State     stateView
	// The following fields are for sources that follow an upstream.
	At     string
	Sync   space.Sync
	Step   string // what the running update does
	Fix    string // see fixOf; "" if the visitor may not change the source
	Unread bool   // the visitor may not read the source
}

type libraryMine struct{ Name, URL string }

// isNameOf reports whether an ID says the same as a title, so that a list shows only the title.
func isNameOf(id, title string) bool {
	return id == strings.Join(strings.Fields(strings.ToLower(title)), "-")
}

// showLibrary handles GET /library.
func (s *pages) showLibrary(v *web.Visit) error {
	ctx := v.R.Context()
	all, err := s.Service.ListSources(ctx, v.Actor(), service.ListSourcesInput{})
	if err != nil {
		return err
	}
	syncs, err := s.Service.ListSyncs(ctx, v.Actor(), service.ListSourcesInput{})
	if err != nil {
		return err
	}
	kinds, err := s.Service.ListSourceKinds(ctx, v.Actor(), service.None{})
	if err != nil {
		return err
	}
	following := map[string]space.Sync{}
	for _, st := range syncs {
		following[st.Source] = st
	}
	body := libraryPage{Example: exampleSource()}
	add := func(row librarySource) {
		if st, ok := following[row.ID]; ok {
			row.Sync, row.State, row.At, row.Problem = st, stateOfSync(st), sourceAt(st.Source), problemWords(st)
			row.Step = stepText(st.Running)
			if row.Own || v.User.Admin {
				row.Fix = fixOf(st)
			}
			row.Kind, row.Updates = string(st.Kind), st.Kind != space.SourceUpload && st.Running == nil
			if i := slices.IndexFunc(kinds, func(k space.SourceKindInfo) bool { return k.Kind == st.Kind }); i >= 0 {
				row.Kind = kinds[i].Title
			}
		}
		row.Named = !isNameOf(row.ID, row.Title)
		body.Sources = append(body.Sources, row)
	}
	for _, x := range all {
		add(librarySource{Source: x, URL: x.Mount() + "/", Size: bytesize.Text(x.Bytes), Kind: "Published directory", Own: x.By == v.User.ID, Updates: true, State: stateOfSource(x)})
	}
	for _, st := range syncs {
		if !slices.ContainsFunc(all, func(x space.Source) bool { return x.ID == st.Source }) {
			add(librarySource{Source: space.Source{ID: st.Source, SourceText: space.SourceText{Title: st.Source}}, URL: sourceAt(st.Source), Unread: true})
		}
	}
	slices.SortStableFunc(body.Sources, func(a, b librarySource) int {
		return cmp.Or(strings.Compare(strings.ToLower(a.Title), strings.ToLower(b.Title)), strings.Compare(a.ID, b.ID))
	})
	mine, err := s.Spaces(v)
	if err != nil {
		return err
	}
	for _, m := range mine {
		if m.Role == space.Owner {
			body.Mine = append(body.Mine, libraryMine{m.Name, "/spaces/" + string(m.ID) + "/publish"})
		}
	}
	p := web.Page{Title: "Sources", Current: "library", Styles: []string{"files.css", "publishing.css", "sources.css"}, Body: body}
	p.Done = web.DoneIn(v, map[string]string{"removed": "The source is removed.", "started": "The update has started."})
	return s.Page(v, http.StatusOK, "library", p)
}

// toSource redirects to the root directory of a source.
func (s *pages) toSource(v *web.Visit) error {
	x, err := s.snapshot(v)
	if err != nil {
		return err
	}
	return s.See(v, x.Source.Mount()+"/")
}

// sharedPage is a directory or a file of a source.
type sharedPage struct {
	Source         space.Source
	Own            bool
	Crumbs         []web.Crumb
	Root           bool
	Rows           []sharedRow // of a directory
	IsDir          bool
	From, To       int
	Total          int
	Before, After  string
	Readme, Readat string

	// These fields describe a file, as on the page of a file in a space.
	Kind               string
	Document           render.Document
	Heading, About     string // the title and the description of the document, or ""
	Headed             bool   // the document begins with its title
	File               string // the name of the file
	Text               template.HTML
	Cut                bool
	Target, TargetAt   string
	Size               string
	Raw, Save          string
	Rendered, AsSource string
}

// maxHeading limits a title or a description at the top of a page, in characters.
const maxHeading = 300

type sharedRow struct{ Name, URL, Kind, Size string }

// showShared handles GET /library/docs/{source}/{path...}.
func (s *pages) showShared(v *web.Visit) error {
	n, err := s.snapshot(v)
	if err != nil {
		return err
	}
	x := n.Source
	p, slash, err := sharedPath(v)
	if err != nil {
		return err
	}
	body := sharedPage{Source: x, Own: x.By == v.User.ID, Crumbs: sharedCrumbs(x, p), Root: p == ""}
	title := web.Shorten(x.Title, 80)
	if p != "" {
		title = web.ShownPath(path.Base(string(p)), 120)
		body.File = title
	}
	pg := func() error {
		title = cmp.Or(body.Heading, title)
		return s.Page(v, http.StatusOK, "shared", web.Page{Title: title, Current: "library", Styles: []string{"files.css", "publishing.css"}, Body: body})
	}
	if x.Commit == "" {
		if p != "" {
			return web.ErrGone
		}
		return pg()
	}
	e, err := n.Lookup(v.R.Context(), p)
	if err != nil {
		return web.Gone(err)
	}
	if p != "" && e.Dir != slash {
		to := sharedURL(x, p)
		if e.Dir {
			to += "/"
		}
		return s.See(v, to)
	}
	if e.Dir {
		err = s.sharedTree(v, n, p, &body)
	} else {
		err = s.sharedFile(v, n, p, e, &body)
	}
	if err != nil {
		return err
	}
	return pg()
}

func sharedURL(x space.Source, p space.Path) string {
	return tools.LibraryURL("", x.Mount()+"/"+string(p))
}

func sharedRaw(x space.Source, p space.Path) string {
	return tools.LibraryURL("", "/library/raw/"+x.ID+"/"+string(p))
}

func sharedCrumbs(x space.Source, p space.Path) []web.Crumb {
	out := []web.Crumb{{Name: "Sources", URL: "/library"}}
	if p == "" {
		return out
	}
	out = append(out, web.Crumb{Name: web.Shorten(x.Title, 60), URL: x.Mount() + "/"})
	segs := strings.Split(string(p), "/")
	for i := range segs[:len(segs)-1] {
		out = append(out, web.Crumb{Name: web.ShownPath(segs[i], 60), URL: sharedURL(x, space.Path(strings.Join(segs[:i+1], "/"))) + "/"})
	}
	return out
}

func (s *pages) sharedTree(v *web.Visit, n service.Snapshot, dir space.Path, body *sharedPage) error {
	x := n.Source
	all, err := n.Children(v.R.Context(), dir)
	if err != nil {
		return web.Gone(err)
	}
	slices.SortStableFunc(all, func(a, b space.Entry) int {
		if a.Dir != b.Dir {
			if a.Dir {
				return -1
			}
			return 1
		}
		return strings.Compare(strings.ToLower(string(a.Path)), strings.ToLower(string(b.Path)))
	})
	number, _ := strconv.Atoi(v.R.URL.Query().Get("page")) // an invalid number counts as the first page
	number = min(max(1, number), max(1, (len(all)+web.MaxNames-1)/web.MaxNames))
	from := (number - 1) * web.MaxNames
	list := all[from:min(len(all), from+web.MaxNames)]
	body.IsDir, body.Total, body.From, body.To = true, len(all), from+1, from+len(list)
	if number > 1 {
		body.Before = "?page=" + strconv.Itoa(number-1)
	}
	if body.To < len(all) {
		body.After = "?page=" + strconv.Itoa(number+1)
	}
	for _, e := range list {
		r := sharedRow{Name: web.ShownPath(path.Base(string(e.Path)), 120), URL: sharedURL(x, e.Path), Kind: "file"}
		switch {
		case e.Dir:
			r.Kind, r.URL = "dir", r.URL+"/"
		case e.Mode == space.Symlink:
			r.Kind = "link"
		}
		if !e.Dir {
			r.Size = bytesize.Text(e.Size)
		}
		body.Rows = append(body.Rows, r)
	}
	i := slices.IndexFunc(all, func(e space.Entry) bool {
		name := strings.ToLower(path.Base(string(e.Path)))
		return !e.Dir && e.Mode != space.Symlink && (name == "readme.md" || name == "index.md") && e.Size <= render.MaxMarkdown
	})
	if i < 0 {
		return nil
	}
	data, err := n.ReadBlob(v.R.Context(), all[i].Blob)
	if err != nil {
		return web.Gone(err)
	}
	if doc, ok := render.Markdown(data, sharedPlace(x, all[i].Path)); ok {
		body.Document, body.Readme, body.Readat = doc, web.Shorten(path.Base(string(all[i].Path)), 60), sharedURL(x, all[i].Path)
	}
	return nil
}

func sharedPlace(x space.Source, p space.Path) render.Place {
	return render.Place{Path: string(p), Files: x.Mount() + "/", Raw: "/library/raw/" + url.PathEscape(x.ID) + "/", Under: 1}
}

func (s *pages) sharedFile(v *web.Visit, n service.Snapshot, p space.Path, e space.Entry, body *sharedPage) error {
	x := n.Source
	body.Size, body.Raw = bytesize.Text(e.Size), sharedRaw(x, p)
	body.Save = body.Raw + "?download"
	switch {
	case e.Size == 0:
		body.Kind = "empty"
		return nil
	case e.Mode != space.Symlink && web.PictureType(string(p)) != "":
		body.Kind = "picture"
		return nil
	case e.Size > web.MaxOpened:
		body.Kind = "large"
		return nil
	}
	data, err := n.ReadBlob(v.R.Context(), e.Blob)
	if err != nil {
		return web.Gone(err)
	}
	if e.Mode == space.Symlink {
		body.Kind, body.Target = "link", web.Shorten(string(data), 300)
		// A snapshot has no links that lead out of the source.
		if to, err := space.ParsePath(path.Join(path.Dir(string(p)), string(data))); err == nil {
			body.TargetAt = sharedURL(x, to)
		}
		return nil
	}
	if !web.IsText(data) {
		body.Kind = "binary"
		return nil
	}
	if web.IsMarkdown(string(p)) {
		at := sharedURL(x, p)
		if v.R.URL.Query().Get("view") != "source" {
			if doc, ok := render.Markdown(data, sharedPlace(x, p)); ok {
				body.Kind, body.Document, body.AsSource, body.Rendered = "document", doc, at+"?view=source", at
				body.takeTitle()
				return nil
			}
		} else {
			body.AsSource, body.Rendered = at+"?view=source", at
		}
	}
	body.Kind = "text"
	if len(data) > web.MaxSource {
		data, body.Cut = data[:web.MaxSource], true
	}
	source, cut := render.Source(strings.ToValidUTF8(string(data), "\uFFFD"), string(p), web.MaxLines)
	body.Text, body.Cut = source, body.Cut || cut
	return nil
}

// takeTitle moves the title and the description of the document to the top of the page. If the front
// matter has no title, this is the heading with which the document begins, unless the document has
// others of the same level.
func (b *sharedPage) takeTitle() {
	doc := &b.Document
	doc.Fields = slices.DeleteFunc(doc.Fields, func(f render.Field) bool {
		text := map[string]*string{"title": &b.Heading, "description": &b.About}[f.Name]
		if text == nil || f.Text == "" || utf8.RuneCountInString(f.Text) > maxHeading {
			return false
		}
		*text = web.Shorten(f.Text, maxHeading)
		return true
	})
	top := func(h render.Heading) bool { return h.Level == 1 }
	if !strings.HasPrefix(string(doc.HTML), "<h") || len(doc.Headings) == 0 || slices.ContainsFunc(doc.Headings[1:], top) {
		return
	}
	first := web.Shorten(doc.Headings[0].Text, maxHeading)
	b.Heading = cmp.Or(b.Heading, first)
	b.Headed = first != "" && b.Heading == first
}

// rawShared handles GET /library/raw/{source}/{path...}. The browser shows only text and
// pictures, and saves all other files.
func (s *pages) rawShared(v *web.Visit) error {
	n, err := s.snapshot(v)
	if err != nil {
		return err
	}
	x := n.Source
	p, slash, err := sharedPath(v)
	if err != nil || slash || x.Commit == "" {
		return web.ErrGone
	}
	e, err := n.Lookup(v.R.Context(), p)
	if err != nil {
		return web.Gone(err)
	}
	if e.Dir {
		return web.ErrGone
	}
	data, err := n.ReadBlob(v.R.Context(), e.Blob)
	if err != nil {
		return web.Gone(err)
	}
	web.ServeRaw(v.W, v.R, p, e, data)
	return nil
}
