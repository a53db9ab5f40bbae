package history

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/tools"
	"satchel/web"
)

const (
	activityPage  = 25  // number of commits on a page
	activityNames = 200 // number of commits whose names the filter offers
	filesShown    = 3   // number of files listed for a commit
	reviewsShown  = 10  // number of files that wait for a person
)

type activityPageData struct {
	Space   service.View
	Action  string
	May     bool // the visitor may write to the space
	Changes []changeItem
	Filter  activityFilter
	Tags    []filterTag // the conditions of the filter
	Span    *turn       // what one client did in a time span, which one button undoes; nil for other lists
	Clients []string    // choices for the filter
	Tools   []choice
	People  []string // choices for the filter
	Undoing bool     // the form to undo a time span is open
	Since   string   // the beginning of the time span that the form to undo offers
	Next    string   // the address of older changes
	Fresh   bool     // the page shows the newest changes, unfiltered
	Stream  string
	Said    said
	Reviews []waitingFile
	Behind  bool // the search for waiting changes is not complete
	More    int  // number of waiting files that are not listed
	Push    *web.RemoteView
	Held    int // number of the visitor's unsaved files; -1 if unknown
}

// waitingFile is a file whose change waits for a person.
type waitingFile struct {
	Shown, URL  string
	Client, How string // How is set if no client created the change
	Deleted     bool
}

type activityFilter struct {
	Client, Person, Tool, Since, Until string
}

// Any reports whether any condition is set.
func (f activityFilter) Any() bool { return f != activityFilter{} }

// filterTag is a condition of the filter: a text, or a text before a time. URL is the address of the
// list without this condition.
type filterTag struct {
	Text, URL string
	At        time.Time
}

// tags returns the conditions of the filter. base is the address of the unfiltered list.
func (f activityFilter) tags(base string) (out []filterTag) {
	tag := func(key, value, text string, at time.Time) {
		if value == "" {
			return
		}
		q := f.query()
		q.Del(key)
		t := filterTag{Text: text, URL: base, At: at}
		if len(q) > 0 {
			t.URL += "?" + q.Encode()
		}
		out = append(out, t)
	}
	since, _ := parseTime(f.Since)
	until, _ := parseTime(f.Until)
	tag("client", f.Client, "Client: "+web.Shorten(f.Client, 60), time.Time{})
	tag("person", f.Person, "Person: "+web.Shorten(f.Person, 60), time.Time{})
	tag("tool", f.Tool, "Made "+web.ToolWords(f.Tool), time.Time{})
	tag("since", f.Since, "Since", since)
	tag("until", f.Until, "Until", until)
	return out
}

// query returns the filter as the query of an address.
func (f activityFilter) query() url.Values {
	q := url.Values{}
	for k, v := range map[string]string{"client": f.Client, "person": f.Person, "tool": f.Tool, "since": f.Since, "until": f.Until} {
		if v != "" {
			q.Set(k, v)
		}
	}
	return q
}

type changeItem struct {
	ID      space.CommitID
	Subject string
	Maker   maker
	When    time.Time
	Files   []changedFile
	More    int  // number of files that are not listed
	Root    bool // the change is the first commit
	URL     string
	Undone  string // the address of the commit that undid the change
	Turn    *turn  // the turn of which this is the newest change; nil for other changes
}

type changedFile struct {
	Path, URL, What string
}

// item returns a commit in the form for lists.
func (s *pages) item(ctx context.Context, m service.View, c space.Commit) (changeItem, error) {
	files, err := s.filesOf(ctx, m, c)
	if err != nil {
		return changeItem{}, err
	}
	subject, _, _ := strings.Cut(c.Message, "\n")
	it := changeItem{
		ID: c.ID, Subject: web.Shorten(subject, 120), Maker: makerOf(c), When: c.Time, More: files.count - len(files.first), Root: c.Parent == "",
		URL: web.SpacePath(m.ID, "commits/"+string(c.ID)),
	}
	for _, f := range files.first {
		it.Files = append(it.Files, changedFile{Path: web.ShownPath(f.Path, 90), URL: tools.FileURL("", m.ID, string(f.Path)), What: statusWord(f.Status)})
	}
	if it.Subject == "" {
		it.Subject = "A change without a comment"
	}
	return it, nil
}

func statusWord(s space.FileStatus) string {
	switch s {
	case space.Added:
		return "added"
	case space.Deleted:
		return "deleted"
	}
	return "changed"
}

type commitKey struct {
	space  space.SpaceID
	commit space.CommitID
}

type commitFiles struct {
	first []space.FileChange
	count int
}

// cachedCommits is the maximum number of commits in the cache of changed files.
const cachedCommits = 4000

// filesOf returns the first files that a commit changed, and the number of all changed files.
func (s *pages) filesOf(ctx context.Context, m service.View, c space.Commit) (commitFiles, error) {
	key := commitKey{m.ID, c.ID}
	if f, ok := s.files.Get(key); ok {
		return f, nil
	}
	whole, err := m.Show(ctx, c.ID)
	if fault.CodeOf(err) == fault.TooLarge {
		return commitFiles{}, nil // too many to list; the page of the commit says so
	}
	if err != nil {
		return commitFiles{}, err
	}
	f := commitFiles{first: slices.Clone(whole.Files[:min(len(whole.Files), filesShown)]), count: len(whole.Files)}
	s.files.Add(key, f)
	return f, nil
}

// timeForms are the accepted formats of a time. Browsers send the first format for an input
// of the type datetime-local.
var timeForms = []string{"2006-01-02T15:04", "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02", time.RFC3339}

// parseTime parses a time. The time is in UTC unless the text names a zone. It returns the
// zero time for "".
func parseTime(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, form := range timeForms {
		if t, err := time.Parse(form, text); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, fault.New(fault.Invalid, "“%s” is not a time. Write it as 2026-01-31 or 2026-01-31 18:30, in UTC.", web.Shorten(text, 40))
}

// fieldTime returns a parsed time in the format that a field of a form accepts.
func fieldTime(text string, at time.Time) string {
	if at.IsZero() || len(text) == len(timeForms[0]) {
		return text
	}
	return at.Format(timeForms[1])
}

func filterOf(q url.Values) (activityFilter, space.LogQuery, error) {
	f := activityFilter{Client: q.Get("client"), Person: q.Get("person"), Tool: q.Get("tool"), Since: strings.TrimSpace(q.Get("since")), Until: strings.TrimSpace(q.Get("until"))}
	if space.IsWebTool(f.Tool) {
		f.Tool = space.ToolWeb
	}
	since, err := parseTime(f.Since)
	if err != nil {
		return f, space.LogQuery{}, err
	}
	until, err := parseTime(f.Until)
	if err != nil {
		return f, space.LogQuery{}, err
	}
	f.Since, f.Until = fieldTime(f.Since, since), fieldTime(f.Until, until)
	log := space.LogQuery{Client: f.Client, Author: f.Person, Tool: f.Tool, Since: since, Until: until}
	switch {
	case f.Client != "":
		log.Tools = space.AITools()
	case f.Tool == space.ToolWeb: // stands for all tools of the web pages
		log.Tool, log.Tools = "", space.WebTools()
	}
	return f, log, nil
}

// showActivity handles GET /spaces/{id}/activity.
func (s *pages) showActivity(v *web.Visit) error {
	m, err := s.Space(v)
	if err != nil {
		return err
	}
	ctx, q := v.R.Context(), v.R.URL.Query()
	p := web.Page{Title: "Activity", Current: "activity", Space: &m, Styles: []string{"activity.css", "timeline.css"}, Scripts: []string{"live.js"}}
	f, log, err := filterOf(q)
	if err != nil {
		if fault.CodeOf(err) != fault.Invalid {
			return err
		}
		p.Problem, p.Field, log = fault.PublicOf(err), "since", space.LogQuery{}
		if _, bad := parseTime(f.Since); bad == nil {
			p.Field = "until"
		}
	}
	body := activityPageData{Space: m, Action: "/spaces/" + string(m.ID), May: m.Role != space.Reader, Filter: f}
	log.After, log.Limit = space.CommitID(q.Get("after")), activityPage+1
	if log.After != "" && !log.After.Valid() {
		return web.ErrGone
	}
	list, err := m.Log(ctx, log)
	if err != nil {
		return err
	}
	if len(list) > activityPage {
		list = list[:activityPage]
		next := f.query()
		next.Set("after", string(list[len(list)-1].ID))
		body.Next = web.SpacePath(m.ID, "activity?"+next.Encode())
	}
	newest, err := m.Log(ctx, space.LogQuery{Limit: activityNames})
	if err != nil {
		return err
	}
	undone := service.UndoneBy(newest)
	turns := turnsOf(list, undone)
	if body.Next != "" {
		for i := len(list) - 1; i >= 0; i-- { // the last turn can continue on the next page
			if t := turns[list[i].ID]; t != nil {
				t.Whole = false
				break
			}
		}
	}
	if body.May && f.Tool == "" && f.Person == "" && f.Client != "" && f.Since != "" && p.Problem == "" {
		span := &turn{Whole: body.Next == "" && log.After == ""}
		for _, t := range turns {
			span.Count, span.Total = span.Count+t.Count, span.Total+t.Total
		}
		if span.Count > 0 || !span.Whole {
			body.Span = span
		}
	}
	for _, c := range list {
		it, err := s.item(ctx, m, c)
		if err != nil {
			return err
		}
		if it.Turn = turns[c.ID]; it.Turn != nil {
			// The button of a turn undoes all changes between its first and its last one on the page.
			it.Turn.May = body.May && body.Span == nil && it.Turn.Client != "" && it.Turn.Count > 1 && f.Tool == "" && f.Person == ""
		}
		if by := undone[c.ID.Short()]; by != "" {
			it.Undone = web.SpacePath(m.ID, "commits/"+string(by))
		}
		body.Changes = append(body.Changes, it)
	}
	body.Clients, body.People, body.Tools = makersIn(newest, f)
	body.Fresh = log.After == "" && !f.Any()
	if head, err := m.Resolve(ctx, ""); err == nil {
		at := head
		if body.Fresh && len(list) > 0 {
			at = list[0].ID // the newest change on the page, even if there is a newer one by now
		}
		body.Stream = web.SpacePath(m.ID, "events?since="+string(at))
	}
	if body.Fresh {
		waiting, behind, err := web.ReviewsIn(ctx, m)
		if err != nil {
			return err
		}
		for _, r := range waiting[:min(len(waiting), reviewsShown)] {
			body.Reviews = append(body.Reviews, waitingFile{
				Shown: web.ShownPath(r.Path, web.WholePath), URL: web.SpacePath(m.ID, "reviews?"+web.URLQuery("path", string(r.Path))),
				Client: web.Shorten(space.ClientName(r.Client), 60), How: web.HowMade(r.Tool), Deleted: r.Blob == "",
			})
		}
		body.More, body.Behind = len(waiting)-len(body.Reviews), behind
		body.Push, body.Held = s.remote(v, m.ID), s.PendingIn(v, m.ID)
	}
	body.Undoing = q.Has("undo")
	if body.Since = f.Since; body.Since == "" {
		body.Since = s.Now().UTC().Format("2006-01-02") + "T00:00"
	}
	body.Said = s.said(v, m)
	if p.Problem == "" {
		body.Tags = f.tags(body.Action + "/activity")
	}
	p.Body = body
	return s.Page(v, http.StatusOK, "activity", p)
}

// remote returns the status of a space's remote. It returns nil if there is none to show.
func (s *pages) remote(v *web.Visit, id space.SpaceID) *web.RemoteView {
	st, err := s.RemoteOf(v, id)
	if err != nil || st.Remote == nil {
		return nil
	}
	return &st
}

type choice struct{ Value, Words string }

// makersIn returns the AI clients, the people and the tools of the newest changes, and those
// in the filter.
func makersIn(list []space.Commit, f activityFilter) (clients, people []string, with []choice) {
	var by []string
	note := func(to *[]string, name string) {
		if name != "" && len(*to) < 50 && !slices.Contains(*to, name) {
			*to = append(*to, name)
		}
	}
	note(&clients, f.Client)
	note(&people, f.Person)
	note(&by, f.Tool)
	for _, c := range list {
		if web.MakerOf(c) == "ai" {
			note(&clients, space.ClientName(c.Client)) // without the version
		}
		note(&people, c.Author.Name)
		switch {
		case space.IsWebTool(c.Tool):
			note(&by, space.ToolWeb)
		default:
			note(&by, c.Tool)
		}
	}
	slices.Sort(clients)
	slices.Sort(people)
	slices.Sort(by)
	for _, tool := range by {
		with = append(with, choice{tool, web.ToolWords(tool)})
	}
	return clients, people, with
}
