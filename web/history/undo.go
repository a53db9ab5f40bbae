package history

import (
	"net/http"
	"strings"
	"time"

	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/web"
)

// turnGap is the longest time between two changes of one conversation.
const turnGap = 30 * time.Minute

// turn is what one client did for one person without a long pause, which usually is one
// conversation; or successive changes that a person made in one way without a client.
type turn struct {
	Maker        maker
	Client       string // the client's name in the commits; empty if there is no client, or one without a name
	Person       string // the person's name in the commits
	Count        int    // number of its changes that are not undone
	Total        int    // number of all its changes
	Whole        bool   // the page lists all changes that its button undoes
	May          bool   // one button undoes its changes
	Since, Until string // the span of its changes, as a form sends it
}

// Do returns the text of the button that undoes the changes of the turn.
func (t *turn) Do() string {
	switch {
	case !t.Whole:
		return "Undo all these changes"
	case t.Count < t.Total:
		return "Undo the other " + web.Plural(t.Count, "change", "%d changes")
	}
	return "Undo " + web.Plural(t.Count, "this change", "these %d changes")
}

// turnsOf returns the turns in a list of commits that is sorted newest first. The key of each
// turn is its newest commit.
func turnsOf(list []space.Commit, undone map[string]space.CommitID) map[space.CommitID]*turn {
	out := map[space.CommitID]*turn{}
	var now *turn
	var last space.Commit
	for _, c := range list {
		by := makerOf(c)
		client := ""
		if by.Client != "" {
			client = c.Client
		}
		if now == nil || now.Maker != by || now.Client != client || last.Author != c.Author || by.Client != "" && last.Time.Sub(c.Time) > turnGap {
			now = &turn{Maker: by, Client: client, Person: c.Author.Name, Whole: true, Until: c.Time.Add(time.Second).UTC().Format(time.RFC3339)}
			out[c.ID] = now
		}
		last, now.Since = c, c.Time.UTC().Format(time.RFC3339)
		now.Total++
		if undone[c.ID.Short()] == "" {
			now.Count++
		}
	}
	return out
}

// undoClient handles POST /spaces/{id}/undo-client. It undoes what a client changed in a time
// span, and redirects to a page that offers to undo the undo. If the form's field look is set, it
// undoes nothing and redirects to the list of the client's changes.
func (s *pages) undoClient(v *web.Visit) error {
	m, err := s.WritableSpace(v)
	if err != nil {
		return err
	}
	form := v.R.PostFormValue
	since, err := parseTime(form("since"))
	if err != nil {
		return err
	}
	if form("look") != "" {
		return s.See(v, web.SpacePath(m.ID, "revert?"+web.URLQuery("client", form("client"), "since", form("since"), "until", form("until"))))
	}
	until, err := parseTime(form("until"))
	if err != nil {
		return err
	}
	done, err := s.Service.UndoClient(v.R.Context(), v.Actor(), service.UndoClientInput{
		Space: service.SpaceRef{ID: m.ID}, Client: form("client"), Author: form("person"), Since: since, Until: until,
	})
	switch {
	case err != nil:
		return err
	case done.Undone == 0:
		return s.See(v, web.SpacePath(m.ID, "activity?done=nothing"))
	}
	return s.undone(v, m, done.Commit, "")
}

// undone answers after an undo: with the activity if everything was undone, or else with the
// files that stay as they are.
func (s *pages) undone(v *web.Visit, m service.View, c space.Commit, older string) error {
	if c.Changed && len(c.Conflicts) == 0 && len(c.Rejected) == 0 {
		return s.See(v, web.SpacePath(m.ID, "activity?"+web.URLQuery("done", "undone", "commit", string(c.ID))))
	}
	body := revertPage{Space: m, Back: web.SpacePath(m.ID, "activity"), Done: true, Changed: c.Changed, Refused: c.Rejected, Older: older}
	body.Made = web.SpacePath(m.ID, "commits/"+string(c.ID))
	if c.Changed {
		body.Again = string(c.ID)
	}
	for i, k := range c.Conflicts {
		f, err := s.kept(v, m, k.Path, i < maxMovesTold)
		if err != nil {
			return web.Gone(err)
		}
		body.Kept = append(body.Kept, f)
	}
	title := "Undone in part"
	if !c.Changed {
		title = "Nothing was undone"
	}
	return s.Page(v, http.StatusOK, "revert", web.Page{Title: title, Current: "activity", Space: &m, Styles: []string{"activity.css"}, Body: body})
}

// undoneAt returns the address of the page that asked for an undo and shows its result: the
// file or directory in ?path=, or the directory above if nothing is there any more. It
// returns the page of the new change for ?here, and "" if the request names no page.
func (s *pages) undoneAt(v *web.Visit, m service.View, made space.CommitID) string {
	q := v.R.URL.Query()
	if q.Has("here") {
		return web.DoneURL(web.SpacePath(m.ID, "commits/"+string(made)), "undone")
	}
	if !q.Has("path") {
		return ""
	}
	p := space.Path(q.Get("path"))
	for p != "" {
		if _, err := space.ParsePath(string(p)); err != nil {
			return ""
		}
		e, err := m.Lookup(v.R.Context(), "", p)
		if err == nil && !e.Dir {
			return web.DoneURL(web.PageURL(m.ID, "files", p, ""), "undone")
		}
		if err == nil {
			return web.DoneURL(web.PageURL(m.ID, "files", p, "")+"/", "undone")
		}
		p = web.ParentOf(p)
	}
	return web.DoneURL(web.PageURL(m.ID, "files", "", ""), "undone")
}

// said confirms what the visitor just did. Again is the commit that did it, for the form that undoes
// it, and Do is the text of the button of this form. Anybody can send a link to this page, so Again
// is only a recent undo that was made on the pages.
type said struct{ Text, Again, Do string }

func (s *pages) said(v *web.Visit, m service.View) said {
	q := v.R.URL.Query()
	switch q.Get("done") {
	case "nothing":
		return said{Text: "There is nothing to undo: the client made no change in this time that is still in place."}
	case "undone":
	default:
		return said{}
	}
	c, ok := s.FreshChange(v, m, space.CommitID(q.Get("commit")))
	if !ok || c.Tool != space.ToolWebRevert || m.Role == space.Reader {
		return said{Text: "The changes were undone and stay in the history."}
	}
	if strings.HasPrefix(c.Message, "Redo ") {
		return said{"What was undone is back.", string(c.ID), ""}
	}
	text := "The changes were undone and stay in the history."
	if n := len(service.UndoneBy([]space.Commit{c})); n > 0 {
		text = web.Plural(n, "The change was undone and stays", "%d changes were undone and stay") + " in the history."
	}
	return said{text, string(c.ID), "Redo"}
}
