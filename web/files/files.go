// Package files serves the pages of files: the contents of a space, its search and
// downloads, and the forms that write, upload, move and delete files. Call [Register].
package files

import (
	"embed"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/web"
)

//go:embed templates
var templates embed.FS

type pages struct {
	*web.Site
	uploads chan struct{} // limits the number of uploads and moves in memory
}

// Register adds the pages to a site.
func Register(site *web.Site) error {
	s := &pages{site, make(chan struct{}, site.Editing.Uploads)}
	get := func(pattern string, h web.Handler) {
		s.Handle("GET /spaces/{id}/"+pattern, web.LimitPage, web.SignedIn, h)
	}
	get("files", s.toFiles)
	get("files/{path...}", s.showFile)
	get("raw/{path...}", s.rawFile)
	get("search", s.showSearch)
	get("jump", s.jump)
	get("tree/{path...}", s.branch)
	get("download/{kind}", s.download)
	get("edit/{path...}", s.showEdit)
	get("new", s.showNew)
	get("upload", s.showUpload)
	get("rename/{path...}", s.showRename)
	get("delete/{path...}", s.showDelete)
	s.Handle("POST /spaces/{id}/rename/{path...}", web.LimitPage, web.SignedIn, s.saveRename)
	s.Handle("POST /spaces/{id}/delete/{path...}", web.LimitPage, web.SignedIn, s.saveDelete)
	// Form encoding can double the line ends of a text, or turn each byte into three.
	text := 3*s.Editing.MaxText + web.MaxFormBytes
	s.HandleLarge("POST /spaces/{id}/edit/{path...}", text, s.CanWrite, s.saveEdit)
	s.HandleLarge("POST /spaces/{id}/new", text, s.CanWrite, s.saveNew)
	s.HandleLarge("POST /spaces/{id}/upload", s.Editing.MaxChange+1<<20, s.CanWrite, s.saveUpload)
	return s.AddTemplates(templates)
}

// toFiles redirects to the root directory of the files.
func (s *pages) toFiles(v *web.Visit) error {
	m, err := s.Space(v)
	if err != nil {
		return err
	}
	return s.See(v, web.PageURL(m.ID, "files", "", ""))
}

// notice describes the commit that a page shows, if the address of the page names one.
type notice struct {
	Commit, Now string // addresses of the commit and of the current version
	ID          string // the short id of the commit
	Subject     string
	Time        time.Time
	Newest      bool
}

// noticeOf returns the notice for a page, or nil if the address of the page names no commit.
func (s *pages) noticeOf(v *web.Visit, l web.Location, page string) (*notice, error) {
	if l.At == "" {
		return nil, nil
	}
	head, err := l.Space.Head(v.R.Context())
	if err != nil {
		return nil, err
	}
	n := &notice{Commit: web.PageURL(l.Space.ID, "commits", space.Path(l.At), ""), ID: l.At.Short(), Now: l.Now(page), Newest: head == l.At}
	log, err := l.Space.Log(v.R.Context(), space.LogQuery{From: l.At, Limit: 1})
	if err != nil {
		return nil, err
	}
	if len(log) == 1 {
		n.Time, n.Subject = log[0].Time, web.SubjectOf(log[0].Message)
	}
	return n, nil
}

// showFile handles GET /spaces/{id}/files/{path...} and shows a directory or a file.
func (s *pages) showFile(v *web.Visit) error {
	l, err := s.Locate(v)
	if err != nil {
		return err
	}
	e, err := l.Space.Lookup(v.R.Context(), l.Commit, l.Path)
	if err != nil {
		return s.notThere(v, l, err)
	}
	if l.Path != "" && e.Dir != l.Slash {
		to := l.Now("files")
		if e.Dir {
			to += "/"
		}
		if q := v.R.URL.RawQuery; q != "" {
			to += "?" + q
		}
		return s.See(v, to)
	}
	if e.Dir {
		return s.showTree(v, l)
	}
	return s.showContent(v, l, e)
}

// notThere answers a request for a missing file with a page that names the path and leads to
// the nearest directory. If the file existed before, the page also leads to its history.
func (s *pages) notThere(v *web.Visit, l web.Location, err error) error {
	if fault.CodeOf(err) != fault.NotFound {
		return err
	}
	if l.Path == "" {
		return web.ErrGone
	}
	dir := s.nearest(v, l.Space, l.Commit, l.Path)
	above := web.Location{Space: l.Space, Path: dir, At: l.At}
	body := gonePage{
		Shown: web.ShownPath(l.Path, web.WholePath), Dir: above.URL("files"), DirName: web.Shorten(strings.TrimSuffix(path.Base(string(dir)), "."), 60), History: above.Now("history"), Crumbs: l.Crumbs(),
		At: l.At != "",
	}
	if dir != "" {
		body.Dir = web.PageURL(l.Space.ID, "files", dir, "") + "/" + web.AtQuery(l.At)
		body.Crumbs = body.Crumbs[:2+strings.Count(string(dir), "/")]
	} else {
		body.Crumbs = body.Crumbs[:1]
	}
	title := l.Name() + " does not exist"
	log, _, lerr := l.Space.LogPage(v.R.Context(), "", l.Path, "", 1, missingWalk)
	switch {
	case lerr != nil || len(log) == 0:
	case l.At != "":
		body.History, body.Found = l.Now("history"), true
		if _, ok, _ := l.Space.Find(v.R.Context(), "", l.Path); ok {
			body.Now = l.Now("files")
		}
	default:
		title = l.Name() + " no longer exists"
		body.History, body.Found, body.Last = l.Now("history"), true, log[0].Time
		body.Commit, body.Subject = web.PageURL(l.Space.ID, "commits", space.Path(log[0].ID), ""), web.SubjectOf(log[0].Message)
		// The parent of the deletion has the last version.
		if before := log[0].Parent; before != "" {
			if _, err := l.Space.Lookup(v.R.Context(), before, l.Path); err == nil {
				body.Version = web.PageURL(l.Space.ID, "files", l.Path, before)
				if l.Space.CanWrite() {
					body.Restore, body.Path, body.Before = "/spaces/"+string(l.Space.ID)+"/restore", string(l.Path), before
				}
			}
		}
	}
	return s.Page(v, http.StatusNotFound, "gone", web.Page{Title: title, Current: "files", Space: &l.Space, Styles: []string{"files.css"}, Body: body})
}

// missingWalk is how many commits are searched for the last change of a missing file.
const missingWalk = 500

// gonePage is the page of a path at which there is nothing.
type gonePage struct {
	Shown string // the path
	// At says that the page is about an old version. Found says that the path has a history.
	At, Found bool
	Crumbs    []web.Crumb
	// Dir is the address of the nearest directory that exists, and DirName its path, which is
	// "" for the root.
	Dir, DirName string
	// History is the address of the path's history, or of the directory's if the path has none.
	// Now is the address of the current file if the page is about an old version.
	History, Now string
	// Commit is the address of the last change of the path; it is empty if there is none.
	Commit, Subject string
	Last            time.Time
	// Version is the address of the last version, and Restore the address that restores it.
	// Restore is empty if the visitor may not write. Path and Before are the path and the commit
	// of the version.
	Version, Restore, Path string
	Before                 space.CommitID
}

// conflictOf returns the path of the original of a conflict copy, or "" for another path.
func conflictOf(p space.Path) space.Path {
	if !space.IsConflictCopy(p) {
		return ""
	}
	segs := strings.Split(string(p), "/")
	for i, seg := range slices.Backward(segs) {
		stem, rest, ok := strings.Cut(seg, space.ConflictMark)
		if !ok {
			continue
		}
		ext := ""
		if j := strings.IndexByte(rest, '.'); j >= 0 {
			ext = rest[j:]
		}
		segs[i] = stem + ext
		if o, err := space.ParsePath(strings.Join(segs, "/")); err == nil {
			return o
		}
		return ""
	}
	return ""
}
