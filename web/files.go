package web

import (
	"context"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"satchel/auth/store"
	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/tools"
)

// routeFiles adds the pages that show what a space holds and held: files,
// history, differences, search, downloads.
func (s *Site) routeFiles() {
	get := func(pattern string, h Handler) { s.Handle("GET /spaces/{id}/"+pattern, LimitPage, SignedIn, h) }
	get("files", s.toFiles)
	get("files/{path...}", s.showFile)
	get("raw/{path...}", s.rawFile)
	get("history", s.toHistory)
	get("history/{path...}", s.showHistory)
	get("commits/{commit}", s.showCommit)
	get("compare", s.showCompare)
	s.Handle("POST /spaces/{id}/restore", LimitPage, SignedIn, s.restore)
	get("search", s.showSearch)
	get("download/{kind}", s.download)
}

// location is a path of a space at a commit, as an address names it.
type location struct {
	space store.Membership
	path  space.Path // "" for the whole space
	slash bool       // the address ends in a slash
	// commit is what is shown: the one that the address names, or head. at is ""
	// for head.
	commit space.CommitID
	at     space.CommitID
}

// locate reads where an address leads. What it cannot be that of is not there.
func (s *Site) locate(v *Visit) (location, error) {
	var l location
	var err error
	if l.space, err = s.Space(v); err != nil {
		return l, err
	}
	// One path has one address: a slash that is written otherwise is none.
	if strings.Contains(strings.ToLower(v.R.URL.EscapedPath()), "%2f") {
		return l, ErrGone
	}
	p, slash := strings.CutSuffix(v.R.PathValue("path"), "/")
	l.slash = slash || p == ""
	if p != "" {
		if l.path, err = space.ParsePath(p); err != nil {
			return l, ErrGone
		}
	}
	l.commit, l.at, err = s.commitOf(v, l.space.ID, v.R.URL.Query().Get("at"))
	return l, err
}

// commitOf finds the commit that an address names, and head for "".
func (s *Site) commitOf(v *Visit, id space.SpaceID, named string) (commit, at space.CommitID, err error) {
	if named == "" {
		commit, err = s.Workspace.Head(v.R.Context(), id)
		return commit, "", err
	}
	commit, err = s.History.Resolve(v.R.Context(), id, named)
	if c := fault.CodeOf(err); c == fault.NotFound || c == fault.Invalid {
		err = ErrGone
	}
	return commit, commit, err
}

// toFiles leads to the directory of all files.
func (s *Site) toFiles(v *Visit) error {
	m, err := s.Space(v)
	if err != nil {
		return err
	}
	return s.See(v, PageURL(m.ID, "files", "", ""))
}

// toHistory leads to the history of everything.
func (s *Site) toHistory(v *Visit) error {
	m, err := s.Space(v)
	if err != nil {
		return err
	}
	return s.See(v, PageURL(m.ID, "history", "", ""))
}

// url is the address of another page about the same.
func (l location) url(page string) string { return PageURL(l.space.ID, page, l.path, l.at) }

// now is the address of the same page at head.
func (l location) now(page string) string { return PageURL(l.space.ID, page, l.path, "") }

// crumb is a directory that leads to what a page is about.
type crumb struct{ Name, URL string }

// crumbs are the directories above a path, the space's root first.
func (l location) crumbs() []crumb {
	out := []crumb{{Name: "Files", URL: PageURL(l.space.ID, "files", "", l.at)}}
	segs := strings.Split(string(l.path), "/")
	for i := range segs[:len(segs)-1] {
		dir := space.Path(strings.Join(segs[:i+1], "/"))
		out = append(out, crumb{Name: ShownPath(segs[i], 60), URL: PageURL(l.space.ID, "files", dir, "") + "/" + atQuery(l.at)})
	}
	return out
}

// name is what a page about the location is called.
func (l location) name() string {
	if l.path == "" {
		return "Files"
	}
	return ShownPath(path.Base(string(l.path)), 120)
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
func (s *Site) noticeOf(v *Visit, l location, page string) (*notice, error) {
	if l.at == "" {
		return nil, nil
	}
	head, err := s.Workspace.Head(v.R.Context(), l.space.ID)
	if err != nil {
		return nil, err
	}
	n := &notice{Commit: PageURL(l.space.ID, "commits", space.Path(l.at), ""), ID: l.at.Short(), Now: l.now(page), Newest: head == l.at}
	log, err := s.History.Log(v.R.Context(), l.space.ID, space.LogQuery{From: l.at, Limit: 1})
	if err != nil {
		return nil, err
	}
	if len(log) == 1 {
		n.Time, n.Subject = log[0].Time, SubjectOf(log[0].Message)
	}
	return n, nil
}

// SubjectOf is the first line of a message.
func SubjectOf(message string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(message), "\n")
	if first = Shorten(first, 120); first == "" {
		return "No message"
	}
	return first
}

// contentOf reads a file. If the file is damaged, the error names its path.
func contentOf(ctx context.Context, w tools.Workspace, id space.SpaceID, e space.Entry) ([]byte, error) {
	data, err := w.ReadBlob(ctx, id, e.Blob)
	if fault.CodeOf(err) == fault.Damaged {
		err = space.Damaged(e.Path, err)
	}
	return data, err
}

// showFile is GET /spaces/{id}/files/{path...}: a directory, or a file.
func (s *Site) showFile(v *Visit) error {
	l, err := s.locate(v)
	if err != nil {
		return err
	}
	e, err := s.Workspace.Lookup(v.R.Context(), l.space.ID, l.commit, l.path)
	if err != nil {
		return s.notThere(v, l, err)
	}
	if l.path != "" && e.Dir != l.slash {
		to := l.now("files")
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
func (s *Site) notThere(v *Visit, l location, err error) error {
	if fault.CodeOf(err) != fault.NotFound {
		return err
	}
	if l.at != "" || l.path == "" {
		return ErrGone
	}
	log, _, lerr := s.History.LogPage(v.R.Context(), l.space.ID, "", l.path, "", 1, missingWalk)
	if lerr != nil || len(log) == 0 {
		return ErrGone
	}
	body := gonePage{
		Crumbs: l.crumbs(), History: l.now("history"), Last: log[0].Time, Commit: PageURL(l.space.ID, "commits", space.Path(log[0].ID), ""), Subject: SubjectOf(log[0].Message),
	}
	// The last version is the one before it was deleted.
	if before := log[0].Parent; before != "" && l.mayWrite() {
		if _, err := s.Workspace.Lookup(v.R.Context(), l.space.ID, before, l.path); err == nil {
			body.Restore, body.Path, body.Before = "/spaces/"+string(l.space.ID)+"/restore", string(l.path), before
			body.Version = PageURL(l.space.ID, "files", l.path, before)
		}
	}
	return s.Page(v, http.StatusNotFound, "gone", Page{Title: l.name() + " is not there any more", Current: "files", Space: &l.space, Styles: filesStyles(), Body: body})
}

// missingWalk is how many commits are looked through for the last one of a file
// that is gone.
const missingWalk = 500

// gonePage is of a file that was.
type gonePage struct {
	Crumbs                   []crumb
	History, Commit, Subject string
	Last                     time.Time
	// What brings back the last version; Restore is "" where nothing does.
	Restore, Version, Path string
	Before                 space.CommitID
}

// told is an address whose page says what was done there: one of doneWords.
func told(where, done string) string { return where + "?done=" + done }

// doneWords are what the pages of files say was done, by the word in their address.
func doneWords(v *Visit) string {
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

func filesStyles() []string { return []string{"files.css"} }

// mayWrite reports whether the visitor may change the space.
func (l location) mayWrite() bool { return l.space.Role != space.Reader }

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
