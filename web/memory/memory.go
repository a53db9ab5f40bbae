// Package memory serves the pages of memory facts: their list, and the form of one fact.
package memory

import (
	"cmp"
	"context"
	"embed"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"satchel/internal/facts"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/web"
)

//go:embed templates
var templates embed.FS

type pages struct{ *web.Site }

// Register adds the pages to a site.
func Register(site *web.Site) error {
	s := &pages{site}
	s.Handle("GET /spaces/{id}/memory", web.LimitPage, web.SignedIn, s.showMemory)
	s.Handle("GET /spaces/{id}/memory/new", web.LimitPage, web.SignedIn, s.showNewFact)
	s.Handle("POST /spaces/{id}/memory/new", web.LimitPage, web.SignedIn, s.saveNewFact)
	s.Handle("GET /spaces/{id}/memory/fact/{path...}", web.LimitPage, web.SignedIn, s.showFact)
	s.Handle("POST /spaces/{id}/memory/fact/{path...}", web.LimitPage, web.SignedIn, s.correctFact)
	s.Handle("POST /spaces/{id}/memory/confirm", web.LimitPage, web.SignedIn, s.confirmFact)
	s.Handle("POST /spaces/{id}/memory/forget", web.LimitPage, web.SignedIn, s.forgetFact)
	s.Handle("POST /spaces/{id}/memory/repair", web.LimitPage, web.SignedIn, s.repairFact)
	s.Handle("POST /spaces/{id}/memory/undo", web.LimitPage, web.SignedIn, s.undoChange)
	return s.AddTemplates(templates)
}

// A page lists at most factsShown facts and othersShown damaged files.
const (
	factsShown  = 30
	othersShown = 20
)

// knownFact is a fact with the addresses of its pages.
type knownFact struct {
	service.MemoryFact
	Page    string // where a person corrects the fact
	Edit    string // where a person edits its file
	Raw     string // its file
	History string // the changes of its file
	Row     string // where a person edits the fact in the list
}

func linked(f service.MemoryFact, id space.SpaceID) knownFact {
	return knownFact{
		MemoryFact: f, Page: web.SpaceURL(id, "memory/fact", space.Path(f.Name())),
		Edit: web.SpaceURL(id, "edit", f.Path), Raw: web.SpaceURL(id, "files", f.Path), History: web.PageURL(id, "history", f.Path, ""),
	}
}

// Why says why the file is not a fact, without the words of the parser.
func (f knownFact) Why() string {
	for _, w := range [...][2]string{
		{"A fact belongs at", "The file is not at the path of a fact, such as memory/person/ann.md."},
		{"It has no front matter", "The file has no header (front matter) that makes it a fact."},
		{"It cannot be read", "The header (front matter) of the file is not valid."},
		{"Its front matter", "The header (front matter) of the file has no value."},
	} {
		if strings.HasPrefix(f.Problem, w[0]) {
			return w[1]
		}
	}
	if rest, ok := strings.CutPrefix(f.Problem, "It "); ok {
		return "The file " + rest
	}
	return f.Problem
}

// From names the client or the program that a fact comes from, or says that a person saved the fact.
// A fact does not say which person that was.
func (f knownFact) From() string {
	switch {
	case f.ByPerson:
		return "A person"
	case f.Source == facts.Imported:
		return "Import"
	case f.Client != "":
		return f.Client
	}
	return "Origin unknown" // for example, a file that was repaired
}

// How says how the fact came to be, and how certain it is unless it is certain.
func (f knownFact) How() string {
	how := ""
	switch {
	case f.ByPerson && f.Client == facts.ToolCommand:
		how = "on the command line"
	case f.ByPerson:
		how = web.InBrowser
	case f.Source == facts.Imported && f.Client != "":
		how = "from " + f.Client
	case f.Client == "":
		return "" // the file was repaired or written by hand, so its other claims are not proven
	case f.Source == facts.Inferred:
		how = "inferred"
	case f.Source != facts.Explicit:
		return ""
	default:
		how = "a person said so"
	}
	if f.HasSure && f.Sure < 1 {
		how = strings.TrimPrefix(how+", "+f.percent()+" certain", ", ")
	}
	return how
}

// Guess says how certain the AI was that inferred the fact, or is empty.
func (f knownFact) Guess() string {
	if f.Source != facts.Inferred || !f.HasSure || f.Client == "" {
		return ""
	}
	return "The AI was " + f.percent() + " certain."
}

func (f knownFact) percent() string { return strconv.FormatFloat(f.Percent(), 'f', 0, 64) + "\u00a0%" }

// Do is the text of the button that confirms the fact, and Does says what the button does.
func (f knownFact) Do() string {
	switch {
	case f.Expired:
		return "Keep"
	case f.Stated():
		return "Still true"
	}
	return "Confirm"
}

// Does says what the button Do does.
func (f knownFact) Does() string {
	switch {
	case f.Expired:
		return "Removes the end date of the fact"
	case f.Stated():
		return "Sets the last confirmation to today"
	}
	return "Says that the fact is true"
}

// alone reports whether the visitor is the only member of a space.
func (s *pages) alone(v *web.Visit, m service.View) bool {
	all, err := s.Service.ListMembers(v.R.Context(), v.Actor(), service.ListMembersInput{Space: service.SpaceRef{ID: m.ID}})
	return err == nil && len(all) == 1
}

// allFacts reads the facts of a space.
func allFacts(ctx context.Context, m service.View) (service.FactList, error) {
	at, err := m.Head(ctx)
	if err != nil {
		return service.FactList{}, err
	}
	return m.Memory(ctx, at)
}

// memoryPage lists facts.
type memoryPage struct {
	Action string
	Writes bool
	Alone  bool // the visitor is the only member of the space
	Query  string
	Type   string
	Show   string // "" or "expired"
	Types  []string
	Groups []factGroup
	// Found is the number of matching facts. Total is the number of valid facts that
	// have not expired.
	Found, Total  int
	Expired       int
	ExpiredURL    string
	ExpiredAbove  bool // Asks lists all expired facts or links to them
	expiredListed int
	CurrentURL    string
	Asks          []ask // what to look at; only on the first page of all facts
	Asking        int   // number of facts to look at, with those that Asks leaves out
	Damaged       []knownFact
	MoreDamaged   int
	Left          int
	Page, Pages   int
	Before, After string // addresses of the previous and the next page
	Back          string // the query that forms return to
	Editing       *editedRow
	Said          string // confirms what the visitor just did
	Undo          string // the commit of what the visitor just did
}

type factGroup struct {
	Type  string
	Facts []knownFact
}

// editedRow is the row of the list whose fields are open, with what they contain.
type editedRow struct {
	Name, Value, Confidence, Expires string
}

// memoryQuery is the query of a list of facts.
type memoryQuery struct {
	text, kind, show string
	page             int
	edit             string // the name of the fact whose fields are open
}

func readMemoryQuery(q url.Values) memoryQuery {
	m := memoryQuery{text: web.Shorten(q.Get("q"), 200), kind: web.Shorten(q.Get("type"), 255), show: q.Get("show"), edit: q.Get("edit")}
	if m.show != "expired" {
		m.show = ""
	}
	m.page, _ = strconv.Atoi(q.Get("page"))
	m.page = max(m.page, 1)
	return m
}

func (m memoryQuery) values() url.Values {
	v := url.Values{}
	for k, s := range map[string]string{"q": m.text, "type": m.kind, "show": m.show, "edit": m.edit} {
		if s != "" {
			v.Set(k, s)
		}
	}
	if m.page > 1 {
		v.Set("page", strconv.Itoa(m.page))
	}
	return v
}

func (m memoryQuery) encode() string {
	if v := m.values(); len(v) > 0 {
		return "?" + v.Encode()
	}
	return ""
}

// all reports whether the query selects all current facts, on any page.
func (m memoryQuery) all() bool { return m.text == "" && m.kind == "" && m.show == "" }

func (m memoryQuery) matches(f service.MemoryFact) bool {
	if m.kind != "" && f.Type != m.kind {
		return false
	}
	for w := range strings.FieldsSeq(strings.ToLower(m.text)) {
		if !strings.Contains(strings.ToLower(f.Value), w) && !strings.Contains(strings.ToLower(f.Name()), w) {
			return false
		}
	}
	return true
}

func (s *pages) today() string { return s.Now().UTC().Format(time.DateOnly) }

// showMemory handles GET /spaces/{id}/memory.
func (s *pages) showMemory(v *web.Visit) error {
	m, err := s.Space(v)
	if err != nil {
		return err
	}
	return s.listFacts(v, http.StatusOK, m, readMemoryQuery(v.R.URL.Query()), nil, nil)
}

// listFacts shows the list. typed is what the visitor typed into the row with open fields, or
// nil if no such row was sent.
func (s *pages) listFacts(v *web.Visit, status int, m service.View, q memoryQuery, typed *editedRow, p *web.Problem) error {
	all, err := allFacts(v.R.Context(), m)
	if err != nil {
		return web.Gone(err)
	}
	body := memoryPage{Action: "/spaces/" + string(m.ID) + "/memory", Writes: m.Role != space.Reader, Query: q.text, Type: q.kind, Show: q.show, Left: all.Left, Alone: s.alone(v, m)}
	body.ExpiredURL, body.CurrentURL = body.Action+"?show=expired", body.Action
	asked := map[space.Path]bool{}
	if q.all() { // on later pages too, because the table omits the facts in asked
		if asked, err = s.asks(v, m, all.Facts, &body); err != nil {
			return err
		}
	}
	var list []service.MemoryFact
	for _, f := range all.Facts {
		switch {
		case f.Problem != "":
			body.Damaged = append(body.Damaged, linked(f, m.ID))
			continue
		case f.Expired:
			body.Expired++
		default:
			body.Total++
		}
		if f.Expired == (q.show == "expired") && q.matches(f) && (!asked[f.Path] || f.Name() == q.edit) {
			list = append(list, f)
		}
	}
	body.Types = typesOf(all.Facts)
	if len(body.Damaged) > othersShown {
		body.MoreDamaged, body.Damaged = len(body.Damaged)-othersShown, body.Damaged[:othersShown]
	}
	slices.SortFunc(list, func(a, b service.MemoryFact) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(b.Confirmed, a.Confirmed), cmp.Compare(a.Key, b.Key))
	})
	body.Found = len(list)
	body.Pages = max((len(list)+factsShown-1)/factsShown, 1)
	q.page = min(q.page, body.Pages)
	edit := q.edit
	q.edit = ""
	body.Page, body.Back = q.page, q.encode()
	at := func(change func(*memoryQuery)) string {
		other := q
		change(&other)
		return body.Action + other.encode()
	}
	if q.page > 1 {
		body.Before = at(func(o *memoryQuery) { o.page-- })
	}
	if q.page < body.Pages {
		body.After = at(func(o *memoryQuery) { o.page++ })
	}
	from := (q.page - 1) * factsShown
	for _, f := range list[from:min(from+factsShown, len(list))] {
		if n := len(body.Groups); n == 0 || body.Groups[n-1].Type != f.Type {
			body.Groups = append(body.Groups, factGroup{Type: f.Type})
		}
		g := &body.Groups[len(body.Groups)-1]
		k := linked(f, m.ID)
		k.Row = at(func(o *memoryQuery) { o.edit = f.Name() })
		g.Facts = append(g.Facts, k)
		if body.Writes && f.Name() == edit {
			if body.Editing = typed; typed == nil {
				if body.Editing, err = rowOf(v.R.Context(), m, f); err != nil {
					return err
				}
			}
		}
	}
	body.ExpiredAbove = q.page == 1 && body.expiredListed == body.Expired
	if q.page > 1 {
		body.Asks = nil
	}
	if status == http.StatusOK {
		body.Said, body.Undo = s.said(v, m, all.Facts)
	}
	out := web.Page{Title: "Memory", Space: &m, Current: "memory", Styles: []string{"editing.css", "memory.css"}, Body: &body}
	if q.show == "expired" {
		out.Title = "Expired facts"
	}
	if p != nil {
		out.Problem, out.Field = p.Text, p.Field
	}
	return s.Page(v, status, "memory", out)
}
