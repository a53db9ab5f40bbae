package history

import (
	"bytes"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/web"
	"satchel/web/render"
)

// Limits of a page of changes.
const (
	changesListed = 200       // number of named files
	changesShown  = 25        // number of files whose lines are shown
	changesMany   = 100       // above this number of files, changesOfMany applies
	changesOfMany = 5         // number of files whose lines are shown if there are many files
	changesLines  = 4000      // number of lines after which no further file's lines are shown
	changesBytes  = 512 << 10 // size of a file in bytes; a larger file is only named
)

// changesPage is the page of a commit or of a comparison.
type changesPage struct {
	Commit *commitView // nil for a comparison
	From   *commitRow  // start of a comparison; nil for the beginning of the history
	To     *commitRow
	Path   string // the path of the comparison; "" for everything

	Files          []changeOfFile
	More           int // number of files that are not named
	Count          int
	Unshown        bool // the lines of some files are not shown
	Added, Removed int
	Write          bool
	Restore        string // the address of the forms that restore a version
	At, Before     space.CommitID
	Newest         bool   // At is the current version
	History        string // the address of the history
	// Done confirms the last action. UndoAgain is the address of the form that undoes it.
	Done, UndoAgain string
}

type commitView struct {
	Row             commitRow
	Rest            string // the message after its first line
	ID              string
	Time            time.Time
	Tool            string // the tool of the client that made the change
	Waits           string // the address where a person reviews the change; empty if the change does not wait
	Parent          string // address of the parent commit; the fields below are addresses too
	Files, Download string
	Undo, Undone    string
}

type changeOfFile struct {
	ID, Name  string
	Path      space.Path
	Status    string // "added", "changed" or "deleted"
	Note      string // why no lines are shown
	Now, Was  string // addresses of the file after and before the change
	Lines     string // the address of the lines that this page omits
	Diff      *render.Change
	CanBefore bool // the file existed before
	CanAfter  bool
}

// showCommit handles GET /spaces/{id}/commits/{commit}.
func (s *pages) showCommit(v *web.Visit) error {
	m, err := s.Space(v)
	if err != nil {
		return err
	}
	at, _, err := web.CommitOf(v, m, v.R.PathValue("commit"))
	if err != nil {
		return err
	}
	log, err := m.Log(v.R.Context(), space.LogQuery{From: at, Limit: 1})
	if err != nil || len(log) == 0 {
		return goneOr(web.Gone(err))
	}
	c := log[0]
	base := "/spaces/" + string(m.ID)
	body := changesPage{Commit: &commitView{
		Row: rowOf(base, c), Rest: messageOf(c.Message), ID: string(c.ID), Time: c.Time,
		Files: web.PageURL(m.ID, "files", "", c.ID), Download: base + "/download/zip?at=" + string(c.ID),
	}, Write: m.Role != space.Reader, Restore: base + "/restore", At: c.ID, Before: c.Parent}
	if space.IsAITool(c.Tool) {
		body.Commit.Tool = c.Tool
	}
	if body.Write {
		waiting, _, err := web.ReviewsIn(v.R.Context(), m)
		if err != nil {
			return err
		}
		for _, r := range waiting {
			if r.Commit != c.ID {
				continue
			}
			if body.Commit.Waits != "" { // several files of the change wait
				body.Commit.Waits = web.SpacePath(m.ID, "reviews")
				break
			}
			body.Commit.Waits = web.SpacePath(m.ID, "reviews?"+web.URLQuery("path", string(r.Path)))
		}
	}
	if c.Parent != "" {
		newest, err := m.Log(v.R.Context(), space.LogQuery{Limit: activityNames})
		if err != nil {
			return err
		}
		if by := service.UndoneBy(newest)[c.ID.Short()]; by != "" {
			body.Commit.Undone = web.SpacePath(m.ID, "commits/"+string(by))
		}
		body.Commit.Undo = web.SpacePath(m.ID, "revert?here")
		body.Commit.Parent = base + "/commits/" + string(c.Parent)
	}
	body.Done = web.DoneIn(v, map[string]string{"undone": "The change was undone by this new change.", "restored": "All files were restored."})
	if body.Done != "" && c.Parent != "" && body.Commit.Undone == "" && body.Write && space.IsWebTool(c.Tool) {
		body.UndoAgain = body.Commit.Undo
	}
	if err := s.addChanges(v, m, &body, c.Parent, c.ID, ""); err != nil {
		return err
	}
	return s.Page(v, http.StatusOK, "changes", web.Page{Title: body.Commit.Row.Subject, Wide: true, Current: "files", Space: &m, Styles: []string{"files.css", "browse.css"}, Body: body})
}

// showCompare handles GET /spaces/{id}/compare?from=&to=&path=.
func (s *pages) showCompare(v *web.Visit) error {
	m, err := s.Space(v)
	if err != nil {
		return err
	}
	q := v.R.URL.Query()
	var p space.Path
	if text := strings.TrimSuffix(q.Get("path"), "/"); text != "" {
		if p, err = space.ParsePath(text); err != nil {
			return web.ErrGone
		}
	}
	from, _, err := web.CommitOf(v, m, q.Get("from"))
	if err != nil || q.Get("from") == "" {
		return goneOr(err)
	}
	to, _, err := web.CommitOf(v, m, q.Get("to"))
	if err != nil {
		return err
	}
	body := changesPage{Path: fileName(p), Write: m.Role != space.Reader, Restore: "/spaces/" + string(m.ID) + "/restore", At: to, Before: from}
	if body.From, err = s.rowAt(v, m, from); err != nil {
		return err
	}
	if body.To, err = s.rowAt(v, m, to); err != nil {
		return err
	}
	if err := s.addChanges(v, m, &body, from, to, p); err != nil {
		return err
	}
	title := "What changed"
	if p != "" {
		title = "What changed in " + fileName(p)
	}
	return s.Page(v, http.StatusOK, "changes", web.Page{Title: title, Wide: true, Current: "files", Space: &m, Styles: []string{"files.css", "browse.css"}, Body: body})
}

func goneOr(err error) error {
	if err == nil {
		return web.ErrGone
	}
	return err
}

func (s *pages) rowAt(v *web.Visit, m service.View, at space.CommitID) (*commitRow, error) {
	log, err := m.Log(v.R.Context(), space.LogQuery{From: at, Limit: 1})
	if err != nil || len(log) == 0 {
		return nil, web.Gone(err)
	}
	r := rowOf("/spaces/"+string(m.ID), log[0])
	return &r, nil
}

// addChanges adds the files that differ, with the changed lines of the first ones.
func (s *pages) addChanges(v *web.Visit, m service.View, body *changesPage, from, to space.CommitID, p space.Path) error {
	files, total, err := m.Changes(v.R.Context(), from, to, p, changesListed)
	if err != nil {
		return web.Gone(err)
	}
	head, err := m.Head(v.R.Context())
	if err != nil {
		return err
	}
	body.Newest, body.History = head == to, web.PageURL(m.ID, "history", p, "")
	body.Count, body.More = total, total-len(files)
	shown := changesShown
	if total > changesMany {
		shown = changesOfMany
	}
	lines, budget := 0, render.NewBudget()
	for i, f := range files {
		c := changeOfFile{ID: fileID(i), Name: fileName(f.Path), Path: f.Path, CanAfter: f.Status != space.Deleted, CanBefore: f.Status != space.Added && from != ""}
		if c.CanAfter {
			c.Now = web.PageURL(m.ID, "files", f.Path, to)
		}
		if c.CanBefore {
			c.Was = web.PageURL(m.ID, "files", f.Path, from)
		}
		switch f.Status {
		case space.Added:
			c.Status = "added"
		case space.Deleted:
			c.Status = "deleted"
		default:
			c.Status = "changed"
		}
		switch {
		case f.Status == space.Modified && f.Old == f.New:
			c.Note = "Only the kind of the file changed: from " + web.ModeWords(f.OldMode) + " to " + web.ModeWords(f.NewMode) + "."
		case i >= shown || lines >= changesLines:
			body.Unshown = true
		case f.Size > changesBytes:
			c.Note = "The file is too large for its lines to be shown."
		default:
			patch, err := m.FilePatch(v.R.Context(), f)
			if err != nil {
				return err
			}
			d := render.Patch(patch, budget)
			if f.Status == space.Modified {
				content, err := m.ReadBlob(v.R.Context(), f.New)
				if err != nil {
					return err
				}
				d.End(bytes.Count(bytes.TrimSuffix(content, []byte("\n")), []byte("\n")) + 1)
			}
			lines += len(d.Rows)
			body.Added, body.Removed = body.Added+d.Added, body.Removed+d.Removed
			switch {
			case d.Binary:
				c.Note = "The file is not text."
			case len(d.Rows) == 0:
				c.Note = "The file is empty."
			default:
				c.Diff = &d
			}
		}
		if c.Diff == nil && c.Note == "" {
			c.Note = "Its lines are not shown on this page."
			q := url.Values{"from": {string(from)}, "to": {string(to)}, "path": {string(f.Path)}}
			if from != "" {
				c.Lines = "/spaces/" + string(m.ID) + "/compare?" + q.Encode()
			}
		}
		body.Files = append(body.Files, c)
	}
	return nil
}

func fileID(i int) string { return "file-" + strconv.Itoa(i+1) }
