package files

import (
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"satchel/internal/bytesize"
	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/web"
	"satchel/web/render"
)

// Limits of the page of a directory.
const (
	// treeWalk is how many commits are searched for the last change of each name. A
	// directory with more than treeDated names shows no changes.
	treeWalk  = 200
	treeDated = 2000
)

// filesPage is a directory or a file.
type filesPage struct {
	Tree *treePage
	File *filePage
	Side *side
}

// filesPage answers with a directory or a file, and the tree beside it.
func (s *pages) filesPage(v *web.Visit, d *lists, body filesPage) error {
	var err error
	if body.Side, err = s.sideOf(d); err != nil {
		return err
	}
	return s.Page(v, http.StatusOK, "files", web.Page{
		Title: d.l.Name(), Wide: true, Current: "files", Space: &d.l.Space, Styles: []string{"files.css", "browse.css"},
		Beside: []string{"browse.js"}, Asks: body.Side.Load, Body: body,
	})
}

type treePage struct {
	Crumbs []web.Crumb
	Name   string // the name of a directory below the root; "" for readers
	Notice *notice
	Rows   []treeRow
	Dated  bool // some rows show their last change
	Total  int
	Hidden int // number of names that cannot be in an address
	// Before and After are the addresses of the previous and the next page.
	Before, After string
	From, To      int

	Readme, ReadmeURL string // name and address of the file that describes the directory
	Document          render.Document

	Write, Root                                bool
	Space, History, New, Upload, Search, Under string
	Zip, Export, Bring                         string // "" below the root
	Publish                                    string // set only for the owner of the space
	Rename, Delete                             string // "" at the root, and for readers
	Done                                       done
	Zone                                       string // the address to which dropped files are uploaded; "" for readers
	Folders                                    string // the address of the page that imports folders, for this directory
}

type treeRow struct {
	Name, URL string
	Kind      string // "dir", "file", "link", "program" or "conflict"
	Size      string
	Subject   string
	Commit    string // the address of the last change
	When      time.Time
}

// showTree handles GET /spaces/{id}/files/{path...} for a directory.
func (s *pages) showTree(v *web.Visit, l web.Location) error {
	d := listsOf(v, l)
	all, err := d.of(l.Path)
	if err != nil {
		return err
	}
	body := treePage{Crumbs: l.Crumbs(), Total: len(all), Write: l.Space.CanWrite() && l.At == "", Root: l.Path == "", Under: string(l.Path)}
	if l.Path == "" {
		body.Crumbs = nil
	}
	base := "/spaces/" + string(l.Space.ID)
	body.Space, body.History, body.Search = base, l.URL("history"), base+"/search"
	if l.Path != "" {
		body.Search += "?" + web.URLQuery("under", string(l.Path))
	}
	body.New, body.Upload = base+"/new", base+"/upload"
	if body.Write && l.Path != "" {
		body.Name, body.Rename, body.Delete = l.Name(), l.Now("rename"), l.Now("delete")
	}
	if body.Write && l.Path != "" && l.Space.Role == space.Owner {
		body.Publish = base + "/publish?" + web.URLQuery("dir", string(l.Path))
	}
	if body.Write {
		into := web.URLQuery("dir", string(l.Path))
		body.Zone, body.Folders = base+"/upload?"+into, base+"/bring?"+into+"#folders"
	}
	if l.Path != "" {
		body.New += "?dir=" + url.QueryEscape(string(l.Path))
		body.Upload += "?dir=" + url.QueryEscape(string(l.Path))
	}
	body.Done = doneOf(v)
	if body.Root {
		body.Zip, body.Export = base+"/download/zip"+web.AtQuery(l.At), base+"/export"
		if body.Write {
			body.Bring = base + "/bring"
		}
	}
	if body.Notice, err = s.noticeOf(v, l, "files"); err != nil {
		return err
	}
	if err := s.addReadme(v, d, all, &body); err != nil {
		return err
	}
	page1, _ := strconv.Atoi(v.R.URL.Query().Get("page")) // an invalid number counts as the first page
	page1 = min(max(1, page1), max(1, (len(all)+web.MaxNames-1)/web.MaxNames))
	from := (page1 - 1) * web.MaxNames
	list := all[from:min(len(all), from+web.MaxNames)]
	body.From, body.To = from+1, from+len(list)
	dir := l.Now("files")
	if l.Path != "" {
		dir += "/"
	}
	at := func(n int) string {
		u := dir + "?page=" + strconv.Itoa(n)
		if l.At != "" {
			u += "&at=" + string(l.At)
		}
		return u
	}
	if page1 > 1 {
		body.Before = at(page1 - 1)
	}
	if from+len(list) < len(all) {
		body.After = at(page1 + 1)
	}
	changes := map[string]space.Commit{}
	if len(all) <= treeDated {
		if changes, err = l.Space.LastChanges(v.R.Context(), l.Commit, l.Path, treeWalk); err != nil {
			return err
		}
	}
	for _, e := range list {
		r, ok := s.treeRow(l, e)
		if !ok {
			body.Hidden++
			continue
		}
		if c, ok := changes[path.Base(string(e.Path))]; ok {
			r.Subject, r.When = web.SubjectOf(c.Message), c.Time
			r.Commit = base + "/commits/" + string(c.ID)
			body.Dated = true
		}
		body.Rows = append(body.Rows, r)
	}
	if body.Done.Text != "" {
		if err := s.addUndo(v, l, &body.Done); err != nil {
			return err
		}
	}
	return s.filesPage(v, d, filesPage{Tree: &body})
}

// treeRow returns the row of an entry. It returns false if the name is not valid in a path.
// An imported history may have such a name.
func (s *pages) treeRow(l web.Location, e space.Entry) (treeRow, bool) {
	if _, err := space.ParsePath(string(e.Path)); err != nil {
		return treeRow{}, false
	}
	r := treeRow{Name: web.ShownPath(path.Base(string(e.Path)), 120), URL: web.PageURL(l.Space.ID, "files", e.Path, ""), Kind: "file"}
	switch {
	case e.Dir:
		r.URL += "/"
		r.Kind = "dir"
	case e.Mode == space.Symlink:
		r.Kind = "link"
	case space.IsConflictCopy(e.Path):
		r.Kind = "conflict"
	case e.Mode == space.Executable:
		r.Kind = "program"
	}
	r.URL += web.AtQuery(l.At)
	switch {
	case e.Dir:
	case e.Size < 0:
		r.Size = "damaged"
	default:
		r.Size = bytesize.Text(e.Size)
	}
	return r, true
}

// addReadme renders the file that describes a directory.
func (s *pages) addReadme(v *web.Visit, d *lists, all []space.Entry, body *treePage) error {
	l := d.l
	for _, want := range []string{"readme.md", "skill.md", "index.md"} {
		i := slices.IndexFunc(all, func(e space.Entry) bool {
			return !e.Dir && e.Mode != space.Symlink && strings.ToLower(path.Base(string(e.Path))) == want
		})
		if i < 0 || all[i].Size > render.MaxMarkdown {
			continue
		}
		data, err := l.Space.ReadBlob(v.R.Context(), all[i].Blob)
		if fault.CodeOf(err) == fault.Damaged {
			continue // the page of the file reports the damage
		}
		if err != nil {
			return err
		}
		doc, ok := render.Markdown(data, placeOf(d, all[i].Path))
		if !ok {
			continue
		}
		body.Document, body.Readme = doc, web.ShownPath(path.Base(string(all[i].Path)), 60)
		body.ReadmeURL = web.PageURL(l.Space.ID, "files", all[i].Path, l.At)
		return nil
	}
	return nil
}

func placeOf(d *lists, p space.Path) render.Place {
	l := d.l
	return render.Place{
		Path: string(p), Files: web.PageURL(l.Space.ID, "files", "", ""), Raw: web.PageURL(l.Space.ID, "raw", "", ""), Query: web.AtQuery(l.At), Under: 1, Find: d.find,
	}
}
