package history

import (
	"net/http"
	"time"

	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/web"
)

// maxUndone is the maximum number of changes that one request undoes, so that a person can
// review all of them first.
const maxUndone = 200

// undoListed is the maximum number of changes on one page of a client's changes.
const undoListed = 100

// maxMovesTold is the maximum number of files for which the page looks for a move.
const maxMovesTold = 20

// keptFile is a file that an undo leaves unchanged. History is the address of its history. Gone
// reports whether the file no longer exists at its path. If it was moved, MovedTo is its new path,
// and Moved is the address of the file there.
type keptFile struct {
	Path, History  string
	Gone           bool
	MovedTo, Moved string
}

// kept describes a file that an undo leaves unchanged. It looks for a move only if look is set.
func (s *pages) kept(v *web.Visit, m service.View, p space.Path, look bool) (keptFile, error) {
	k := keptFile{Path: string(p), History: web.PageURL(m.ID, "history", p, "")}
	if !look {
		return k, nil
	}
	_, err := m.Lookup(v.R.Context(), "", p)
	if fault.CodeOf(err) != fault.NotFound {
		return k, err
	}
	k.Gone = true
	list, _, err := m.LogPage(v.R.Context(), "", p, "", 1, historyWalk)
	if err != nil || len(list) == 0 {
		return k, err
	}
	to, err := web.MovedTo(v, m, p, list[0])
	if to != "" {
		k.MovedTo, k.Moved = string(to), web.SpaceURL(m.ID, "files", to)
	}
	return k, err
}

// revertPage asks whether to undo changes, and reports the result.
type revertPage struct {
	Space   service.View
	Action  string
	Back    string
	Changes []changeItem
	Client  string
	Since   time.Time
	Of      string // the full name of the client, for the address of further changes
	From    string // the value of Since in the request
	To      string // the end of the span, as the address has it
	After   string // the last commit of this page, if there may be more
	Older   string // the address of the next page
	Skipped int    // number of changes that are undone already and not listed
	// The fields below describe the result.
	Done    bool
	Changed bool
	Made    string
	Again   string     // the new commit, which can be undone
	Kept    []keptFile // files that changed later, and that the undo leaves unchanged
	Refused []space.Rejection
}

// previewRevert handles GET /spaces/{id}/revert. It lists the changes of the client in
// ?client= since the time in ?since=, for a person who chooses which of them to undo.
func (s *pages) previewRevert(v *web.Visit) error {
	m, err := s.WritableSpace(v)
	if err != nil {
		return err
	}
	ctx, q := v.R.Context(), v.R.URL.Query()
	body := revertPage{Space: m, Action: web.SpacePath(m.ID, "revert"), Back: web.SpacePath(m.ID, "activity")}
	body.Client = q.Get("client")
	since, err := parseTime(q.Get("since"))
	if err == nil && (body.Client == "" || since.IsZero()) { // the form on the page Activity asks for both
		return s.See(v, web.SpacePath(m.ID, "activity?"+web.URLQuery("undo", "1", "client", body.Client)+"#client-undo"))
	}
	if err != nil {
		return err
	}
	until, err := parseTime(q.Get("until"))
	if err != nil {
		return err
	}
	after := space.CommitID(q.Get("after"))
	if after != "" && !after.Valid() {
		return web.ErrGone
	}
	page, err := m.NotUndone(ctx, service.UndoClientInput{Client: body.Client, Since: since, Until: until}, after, undoListed)
	if err != nil {
		return web.Gone(err)
	}
	body.Since, body.Skipped = since, page.Skipped
	if page.More != "" {
		body.Of, body.From, body.To, body.After = body.Client, q.Get("since"), q.Get("until"), string(page.More)
		body.Older = olderOf(m.ID, body.Of, body.From, body.To, body.After)
	}
	body.Client = web.Shorten(space.ClientName(body.Client), 60)
	for _, c := range page.Commits {
		it, err := s.item(ctx, m, c)
		if err != nil {
			return err
		}
		body.Changes = append(body.Changes, it)
	}
	title := "Choose the changes to undo"
	switch len(body.Changes) {
	case 0:
		title = "Nothing to undo"
	case 1:
		title = "Undo this change?"
	}
	return s.Page(v, http.StatusOK, "revert", web.Page{Title: title, Current: "activity", Space: &m, Styles: []string{"activity.css"}, Body: body})
}

// olderOf returns the address of a client's changes in a span that are older than a commit. It
// returns "" if an argument is invalid.
func olderOf(id space.SpaceID, client, since, until, after string) string {
	if _, err := parseTime(until); err != nil {
		return ""
	}
	if t, err := parseTime(since); err != nil || t.IsZero() || client == "" || !space.CommitID(after).Valid() {
		return ""
	}
	return web.SpacePath(id, "revert?"+web.URLQuery("client", client, "since", since, "until", until, "after", after))
}

// revert handles POST /spaces/{id}/revert. It undoes the commits in the form, which are
// those that the person saw.
func (s *pages) revert(v *web.Visit) error {
	m, err := s.WritableSpace(v)
	if err != nil {
		return err
	}
	ids := v.R.PostForm["commit"]
	if len(ids) == 0 || len(ids) > maxUndone {
		return fault.New(fault.Invalid, "Choose between 1 and %d changes to undo.", maxUndone)
	}
	commits := make([]space.CommitID, len(ids))
	for i, id := range ids {
		if commits[i] = space.CommitID(id); !commits[i].Valid() {
			return web.ErrGone
		}
	}
	c, err := s.Service.Revert(v.R.Context(), v.Actor(), service.RevertInput{
		Space: service.SpaceRef{ID: m.ID}, Commits: commits,
	})
	if err != nil {
		return web.Gone(err)
	}
	if c.Changed && len(c.Conflicts) == 0 && len(c.Rejected) == 0 {
		if to := s.undoneAt(v, m, c.ID); to != "" {
			return s.See(v, to)
		}
	}
	// The list from which the person came would have the changes of the kept files again, so the
	// result links to older changes instead.
	return s.undone(v, m, c, olderOf(m.ID, v.R.PostFormValue("of"), v.R.PostFormValue("from"), v.R.PostFormValue("to"), v.R.PostFormValue("after")))
}
