// Package files is the pages of files: what a space holds, its search and downloads,
// and the forms that write, upload, move and delete files.
package files

import (
	"embed"
	"net/http"
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
	uploads chan struct{} // one for each upload or move in memory
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
	get("download/{kind}", s.download)
	get("edit/{path...}", s.showEdit)
	get("new", s.showNew)
	get("upload", s.showUpload)
	get("rename/{path...}", s.showRename)
	get("delete/{path...}", s.showDelete)
	s.Handle("POST /spaces/{id}/rename/{path...}", web.LimitPage, web.SignedIn, s.saveRename)
	s.Handle("POST /spaces/{id}/delete/{path...}", web.LimitPage, web.SignedIn, s.saveDelete)
	// A text is sent with its line ends doubled, or each byte as three.
	text := 3*s.Editing.MaxText + web.MaxFormBytes
	s.HandleLarge("POST /spaces/{id}/edit/{path...}", text, s.saveEdit)
	s.HandleLarge("POST /spaces/{id}/new", text, s.saveNew)
	s.HandleLarge("POST /spaces/{id}/upload", s.Editing.MaxChange+1<<20, s.saveUpload)
	return s.AddTemplates(templates)
}

// toFiles leads to the directory of all files.
func (s *pages) toFiles(v *web.Visit) error {
	m, err := s.Space(v)
	if err != nil {
		return err
	}
	return s.See(v, web.PageURL(m.ID, "files", "", ""))
}

// notice says at which commit a page shows something, where that is not head.
type notice struct {
	Commit, Now string // addresses
	ID          string // the commit's, short
	Subject     string
	Time        time.Time
	Newest      bool
}

// noticeOf is nil for a page of head.
func (s *pages) noticeOf(v *web.Visit, l web.Location, page string) (*notice, error) {
	if l.At == "" {
		return nil, nil
	}
	head, err := s.Workspace.Head(v.R.Context(), l.Space.ID)
	if err != nil {
		return nil, err
	}
	n := &notice{Commit: web.PageURL(l.Space.ID, "commits", space.Path(l.At), ""), ID: l.At.Short(), Now: l.Now(page), Newest: head == l.At}
	log, err := s.History.Log(v.R.Context(), l.Space.ID, space.LogQuery{From: l.At, Limit: 1})
	if err != nil {
		return nil, err
	}
	if len(log) == 1 {
		n.Time, n.Subject = log[0].Time, web.SubjectOf(log[0].Message)
	}
	return n, nil
}

// showFile is GET /spaces/{id}/files/{path...}: a directory, or a file.
func (s *pages) showFile(v *web.Visit) error {
	l, err := s.Locate(v)
	if err != nil {
		return err
	}
	e, err := s.Workspace.Lookup(v.R.Context(), l.Space.ID, l.Commit, l.Path)
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

// notThere leads from a file that is gone to its history, where it has one.
func (s *pages) notThere(v *web.Visit, l web.Location, err error) error {
	if fault.CodeOf(err) != fault.NotFound {
		return err
	}
	if l.At != "" || l.Path == "" {
		return web.ErrGone
	}
	log, _, lerr := s.History.LogPage(v.R.Context(), l.Space.ID, "", l.Path, "", 1, missingWalk)
	if lerr != nil || len(log) == 0 {
		return web.ErrGone
	}
	body := gonePage{
		Crumbs: l.Crumbs(), History: l.Now("history"), Last: log[0].Time, Commit: web.PageURL(l.Space.ID, "commits", space.Path(log[0].ID), ""), Subject: web.SubjectOf(log[0].Message),
	}
	// The last version is the one before it was deleted.
	if before := log[0].Parent; before != "" && l.MayWrite() {
		if _, err := s.Workspace.Lookup(v.R.Context(), l.Space.ID, before, l.Path); err == nil {
			body.Restore, body.Path, body.Before = "/spaces/"+string(l.Space.ID)+"/restore", string(l.Path), before
			body.Version = web.PageURL(l.Space.ID, "files", l.Path, before)
		}
	}
	return s.Page(v, http.StatusNotFound, "gone", web.Page{Title: l.Name() + " is not there any more", Current: "files", Space: &l.Space, Styles: []string{"files.css"}, Body: body})
}

// missingWalk is how many commits are looked through for the last one of a file
// that is gone.
const missingWalk = 500

// gonePage is of a file that was.
type gonePage struct {
	Crumbs                   []web.Crumb
	History, Commit, Subject string
	Last                     time.Time
	// What brings back the last version; Restore is "" where nothing does.
	Restore, Version, Path string
	Before                 space.CommitID
}

// doneWords are what the pages of files say was done, by the word in their address.
func doneWords(v *web.Visit) string {
	switch v.R.URL.Query().Get("done") {
	case "uploaded":
		return "The files are uploaded."
	case "saved":
		return "It is saved."
	case "created":
		return "The file is made."
	case "moved":
		return "It is moved."
	case "deleted":
		return "It is deleted. The History here keeps it, and brings it back."
	case "restored":
		return "The version is brought back, as a new change."
	}
	return ""
}

// conflictOf is the path of which a conflict copy is one; "" for what is none.
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
