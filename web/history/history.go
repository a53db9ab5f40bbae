// Package history serves the pages of the changes in a space: the history of files,
// commits and comparisons, recent activity, and the undoing of changes.
package history

import (
	"embed"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/hashicorp/golang-lru/v2"

	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/web"
)

//go:embed templates
var templates embed.FS

type pages struct {
	*web.Site
	files *lru.Cache[commitKey, commitFiles] // the changed files of commits, which never change
}

// Register adds the pages to a site.
func Register(site *web.Site) error {
	cache, err := lru.New[commitKey, commitFiles](cachedCommits)
	if err != nil {
		return err
	}
	s := &pages{site, cache}
	s.Handle("GET /spaces/{id}/history", web.LimitPage, web.SignedIn, s.toHistory)
	s.Handle("GET /spaces/{id}/history/{path...}", web.LimitPage, web.SignedIn, s.showHistory)
	s.Handle("GET /spaces/{id}/commits/{commit}", web.LimitPage, web.SignedIn, s.showCommit)
	s.Handle("GET /spaces/{id}/compare", web.LimitPage, web.SignedIn, s.showCompare)
	s.Handle("POST /spaces/{id}/restore", web.LimitPage, web.SignedIn, s.restore)
	s.Handle("GET /spaces/{id}/activity", web.LimitPage, web.SignedIn, s.showActivity)
	s.Handle("GET /spaces/{id}/revert", web.LimitPage, web.SignedIn, s.previewRevert)
	s.Handle("POST /spaces/{id}/revert", web.LimitPage, web.SignedIn, s.revert)
	s.Handle("POST /spaces/{id}/undo-client", web.LimitPage, web.SignedIn, s.undoClient)
	s.Handle("GET /spaces/{id}/events", web.LimitPage, web.SignedIn, s.Events)
	return s.AddTemplates(templates)
}

// Limits of a page of history.
const (
	historyRows = 50
	// historyWalk is how many commits one page searches for changes to a path.
	historyWalk = 1000
)

// historyPage lists the changes to a path, newest first.
type historyPage struct {
	Crumbs []web.Crumb
	Name   string
	Whole  bool // the history is that of the whole space
	Days   []historyDay
	// Older is the address of the next page. Further reports whether this page reached
	// historyWalk before it was full.
	Older   string
	Further bool
	First   bool
	Newest  string // the address of the first page
	File    string // the address of the current version
	Walked  int
	Path    string
	// Compare is the address that compares two versions. It is empty if there are fewer
	// than two versions.
	Compare string
	// Choosing reports whether the visitor chooses two versions to compare. Choose is the
	// address that begins the choice, or ends it.
	Choosing bool
	Choose   string
	Restore  string // the address of the forms that restore a version; empty for readers
	// Moved is the earlier path of the file or directory, and MovedFrom is the address of
	// its history there. Both are empty if the file or directory did not move.
	Moved, MovedFrom string
}

type historyDay struct {
	Machine, Day string // the day as a machine-readable text and as text for people
	Rows         []commitRow
}

type commitRow struct {
	URL, ID, Subject string
	Maker            maker
	Time             time.Time
	Twin             bool // another commit of the list was made in the same minute
	Files            int  // number of changed files, in the history of the whole space; 0 if unknown
	// Version and Back are set only in the history of a path.
	Version string // the address of the path at this commit; "" if it did not exist
	Current bool   // the version is the current one, and the newest
	Back    bool   // the version can be restored, because it differs from the current one
	At      space.CommitID
	// From and To mark the initial selection of the comparison.
	From, To bool
}

func (s *pages) toHistory(v *web.Visit) error {
	m, err := s.Space(v)
	if err != nil {
		return err
	}
	return s.See(v, web.PageURL(m.ID, "history", "", ""))
}

// showHistory handles GET /spaces/{id}/history/{path...}.
func (s *pages) showHistory(v *web.Visit) error {
	l, err := s.Locate(v)
	if err != nil {
		return err
	}
	cursor := v.R.URL.Query().Get("after")
	list, next, err := l.Space.LogPage(v.R.Context(), l.Commit, l.Path, cursor, historyRows, historyWalk)
	if err != nil {
		return web.Gone(err)
	}
	if l.Path != "" && cursor == "" && len(list) == 0 && next == "" {
		return web.ErrGone // the path never existed
	}
	base := "/spaces/" + string(l.Space.ID)
	body := historyPage{Crumbs: l.Crumbs(), Name: l.Name(), Whole: l.Path == "", First: cursor == "", Newest: l.Now("history"), File: l.Now("files"), Walked: historyWalk}
	if l.Path == "" {
		body.Crumbs = nil
	}
	if next != "" {
		body.Older = l.Now("history") + "?after=" + next
		if l.At != "" {
			body.Older += "&at=" + string(l.At)
		}
		body.Further = len(list) < historyRows
	}
	body.Path = string(l.Path)
	if len(list) > 1 {
		body.Compare = base + "/compare"
		body.Choosing = v.R.URL.Query().Has("compare")
		q := v.R.URL.Query()
		if q.Del("compare"); !body.Choosing {
			q.Set("compare", "1")
		}
		if body.Choosing && body.Older != "" {
			body.Older += "&compare=1"
		}
		body.Choose = (&url.URL{Path: v.R.URL.Path, RawQuery: q.Encode()}).String()
	}
	if l.Space.CanWrite() {
		body.Restore = base + "/restore"
	}
	versions, err := s.versionsOf(v, l, list)
	if err != nil {
		return err
	}
	rows := make([]commitRow, len(list))
	for i, c := range list {
		rows[i] = rowOf(base, c)
		if l.Path != "" {
			continue
		}
		files, err := s.filesOf(v.R.Context(), l.Space, c)
		if v.R.Context().Err() != nil {
			return err
		}
		if err == nil { // a damaged commit is listed without its count
			rows[i].Files = files.count
		}
	}
	markTwins(rows)
	for i, c := range list {
		r := rows[i]
		r.At, r.To, r.From = c.ID, i == 0, i == 1
		if versions != nil {
			r.Back = versions[i].back
			if versions[i].there {
				r.Version = web.PageURL(l.Space.ID, "files", l.Path, c.ID)
				r.Current = i == 0 && body.First && l.At == ""
			}
		}
		if d := web.Day(c.Time); len(body.Days) == 0 || body.Days[len(body.Days)-1].Day != d {
			body.Days = append(body.Days, historyDay{Machine: c.Time.UTC().Format(time.DateOnly), Day: d})
		}
		last := &body.Days[len(body.Days)-1]
		last.Rows = append(last.Rows, r)
	}
	if last := len(list) - 1; l.Path != "" && last >= 0 && versions[last].there {
		from, before, err := s.movedFrom(v, l.Space, l.Path, list[last])
		if err != nil {
			return err
		}
		if from != "" {
			body.Moved, body.MovedFrom = string(from), web.PageURL(l.Space.ID, "history", from, before)
		}
	}
	title := "History"
	if l.Path != "" {
		title = "History of " + l.Name()
	}
	return s.Page(v, http.StatusOK, "history", web.Page{Title: title, Current: "files", Space: &l.Space, Styles: []string{"files.css"}, Body: body})
}

// version is the state of a path at a commit: whether the path exists, and whether the
// version can be restored.
type version struct{ there, back bool }

// versionsOf returns the state of a path at each commit of a list. It returns nil for the
// whole space. Neither the current version nor a directory can be restored.
func (s *pages) versionsOf(v *web.Visit, l web.Location, list []space.Commit) ([]version, error) {
	if l.Path == "" {
		return nil, nil
	}
	head, err := l.Space.Head(v.R.Context())
	if err != nil {
		return nil, err
	}
	at := func(c space.CommitID) (space.Entry, bool, error) {
		e, err := l.Space.Lookup(v.R.Context(), c, l.Path)
		if fault.CodeOf(err) == fault.NotFound {
			return space.Entry{}, false, nil
		}
		return e, err == nil, err
	}
	now, is, err := at(head)
	if err != nil {
		return nil, err
	}
	out := make([]version, len(list))
	for i, c := range list {
		e, ok, err := at(c.ID)
		if err != nil {
			return nil, err
		}
		out[i] = version{there: ok, back: ok && !e.Dir && !(is && now.Dir) && !(is && web.SameFile(e, now))}
	}
	return out, nil
}

// markTwins marks the commits of a list that were made in the same minute.
func markTwins(rows []commitRow) {
	count := map[time.Time]int{}
	for _, r := range rows {
		count[r.Time.UTC().Truncate(time.Minute)]++
	}
	for i, r := range rows {
		rows[i].Twin = count[r.Time.UTC().Truncate(time.Minute)] > 1
	}
}

// rowOf returns a commit in the form for lists.
func rowOf(base string, c space.Commit) commitRow {
	return commitRow{
		URL: base + "/commits/" + string(c.ID), ID: c.ID.Short(), Subject: web.SubjectOf(c.Message),
		Maker: makerOf(c), Time: c.Time,
	}
}

// maker says who made a change: a client for a person, a person, or the server itself.
type maker struct {
	Client string // the client; empty if there is none
	Person string // the person, or Satchel
	How    string // how the person made the change without a client; may be empty
	Server bool   // the server made the change by itself
	Claims bool   // the message claims, without proof, that the server made the change
}

// makerOf returns the maker of a commit.
func makerOf(c space.Commit) maker {
	by := maker{Person: web.Shorten(c.Author.Name, 60)}
	if by.Person == "" {
		by.Person = "somebody"
	}
	switch web.MakerOf(c) {
	case "ai":
		if by.Client = web.Shorten(space.ClientName(c.Client), 60); by.Client == "" {
			by.Client = "A client without a name"
		}
	case "web":
		by.How = web.InBrowser
	case "git":
		by.How, by.Claims = "with git", c.ClaimedTool != ""
	default:
		switch c.Tool {
		case space.ToolStart, space.ToolSync:
			by.Person, by.Server = "Satchel", true
		}
		if c.Tool != space.ToolStart {
			by.How = web.ToolWords(c.Tool)
		}
	}
	return by
}

// restore handles POST /spaces/{id}/restore. It creates a commit that restores a path, or
// the whole space, to its state at an earlier commit.
func (s *pages) restore(v *web.Visit) error {
	m, err := s.WritableSpace(v)
	if err != nil {
		return err
	}
	at, _, err := web.CommitOf(v, m, v.R.PostFormValue("at"))
	if err != nil || v.R.PostFormValue("at") == "" {
		return goneOr(err)
	}
	var p space.Path
	if text := v.R.PostFormValue("path"); text != "" {
		if p, err = space.ParsePath(text); err != nil {
			return web.ErrGone
		}
	} else if v.R.PostFormValue("all") != "1" {
		return fault.New(fault.Invalid, "Choose what to restore.")
	}
	c, err := s.Service.Restore(v.R.Context(), v.Actor(), service.RestoreInput{Space: service.SpaceRef{ID: m.ID}, Commit: string(at), Path: string(p)})
	if err != nil {
		return web.Gone(v.NamedError(err))
	}
	if len(c.Rejected) > 0 {
		return fault.New(fault.Conflict, "Some files cannot be restored: %s", web.Shorten(v.Named(c.Rejected[0].Why), 600))
	}
	if p == "" || !c.Changed {
		to := "/spaces/" + string(m.ID) + "/commits/" + string(c.ID)
		if c.Changed {
			to = web.DoneURL(to, "restored")
		}
		return s.See(v, to)
	}
	if _, err := m.Lookup(v.R.Context(), c.ID, p); err != nil {
		return s.See(v, "/spaces/"+string(m.ID)+"/commits/"+string(c.ID)) // the path did not exist at that commit
	}
	return s.See(v, web.DoneURL(web.PageURL(m.ID, "files", p, ""), "restored"))
}

// fileName returns a path in the form for lists of changes.
func fileName(p space.Path) string {
	dir, base := path.Split(string(p))
	return web.ShownPath(dir, 200) + web.ShownPath(base, 150)
}

// messageOf returns the message of a commit without its first line, shortened if it is long.
func messageOf(message string) string {
	_, rest, _ := strings.Cut(strings.TrimSpace(message), "\n")
	var lines []string
	for line := range strings.Lines(rest) {
		if len(lines) == 200 {
			lines = append(lines, "…")
			break
		}
		lines = append(lines, web.Shorten(line, 500))
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}
