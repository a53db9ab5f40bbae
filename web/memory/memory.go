// Package memory serves the pages of memory facts: their list, and the form of one fact.
package memory

import (
	"cmp"
	"context"
	"embed"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"satchel/internal/facts"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/web"
)

//go:embed templates
var templates embed.FS

type pages struct {
	*web.Site
	facts *lru.Cache[space.BlobID, facts.Fact] // parsed facts; a blob never changes, and everyone who can name one may read it
}

// Register adds the pages to a site.
func Register(site *web.Site) error {
	cache, err := lru.New[space.BlobID, facts.Fact](factCacheEntries)
	if err != nil {
		return err
	}
	s := &pages{site, cache}
	s.Handle("GET /spaces/{id}/memory", web.LimitPage, web.SignedIn, s.showMemory)
	s.Handle("GET /spaces/{id}/memory/new", web.LimitPage, web.SignedIn, s.showNewFact)
	s.Handle("POST /spaces/{id}/memory/new", web.LimitPage, web.SignedIn, s.saveNewFact)
	s.Handle("GET /spaces/{id}/memory/fact/{path...}", web.LimitPage, web.SignedIn, s.showFact)
	s.Handle("POST /spaces/{id}/memory/fact/{path...}", web.LimitPage, web.SignedIn, s.correctFact)
	s.Handle("POST /spaces/{id}/memory/confirm", web.LimitPage, web.SignedIn, s.confirmFact)
	s.Handle("POST /spaces/{id}/memory/forget", web.LimitPage, web.SignedIn, s.forgetFact)
	return s.AddTemplates(templates)
}

// A page lists at most factsShown facts and othersShown damaged files.
const (
	factsShown  = 30
	othersShown = 20
)

// maxFactBytes limits the size of a file that is read as a fact.
const maxFactBytes = 256 << 10

// factCacheEntries limits the number of parsed facts in the cache.
const factCacheEntries = 16384

// knownFact is a fact and its place.
type knownFact struct {
	facts.Fact
	Type, Key string
	Name      string // type/key, as forms name it
	Base      space.BlobID
	Page      string // the address of the page that corrects it
	Edit      string // the address that edits its file
	Raw       string // the address of its file
}

// linked returns the fact with the addresses of its pages.
func (f knownFact) linked(id space.SpaceID) knownFact {
	p := factPath(f.Type, f.Key)
	f.Page, f.Edit, f.Raw = web.SpaceURL(id, "memory/fact", space.Path(f.Name)), web.SpaceURL(id, "edit", p), web.SpaceURL(id, "files", p)
	return f
}

func factPath(kind, key string) space.Path {
	return space.Path(facts.Path(kind, key))
}

// allFacts reads the facts of a space. left is the number of facts above the limit.
func (s *pages) allFacts(ctx context.Context, m service.View) (all []knownFact, left int, err error) {
	at, err := m.Head(ctx)
	if err != nil {
		return nil, 0, err
	}
	kinds, err := childrenOf(ctx, m, at, facts.Dir)
	if err != nil {
		return nil, 0, err
	}
	for _, k := range kinds {
		if !k.Dir {
			continue
		}
		files, err := childrenOf(ctx, m, at, k.Path)
		if err != nil {
			return nil, 0, err
		}
		kind := path.Base(string(k.Path))
		for _, c := range files {
			if c.Dir || c.Mode == space.Symlink || path.Ext(string(c.Path)) != ".md" {
				continue
			}
			if len(all) >= s.Editing.MaxFacts {
				left++
				continue
			}
			f, err := s.fact(ctx, m, c)
			if err != nil {
				return nil, 0, err
			}
			key := strings.TrimSuffix(path.Base(string(c.Path)), ".md")
			all = append(all, knownFact{Fact: f, Type: kind, Key: key, Name: kind + "/" + key, Base: c.Blob})
		}
	}
	return all, left, nil
}

// childrenOf lists a directory. The list is empty if the directory does not exist.
func childrenOf(ctx context.Context, m service.View, at space.CommitID, dir space.Path) ([]space.Entry, error) {
	list, err := m.Children(ctx, at, dir)
	if fault.CodeOf(err) == fault.NotFound {
		return nil, nil
	}
	return list, err
}

func (s *pages) fact(ctx context.Context, m service.View, c space.Entry) (facts.Fact, error) {
	if c.Size > maxFactBytes {
		return facts.Fact{Problem: "It is too large for a fact."}, nil
	}
	if f, ok := s.facts.Get(c.Blob); ok {
		return f, nil
	}
	data, err := web.ReadContent(ctx, m, c)
	if fault.CodeOf(err) == fault.Damaged {
		return facts.Fact{Problem: fault.PublicOf(err)}, nil
	}
	if err != nil {
		return facts.Fact{}, err
	}
	f := facts.Fact{Problem: "It is too large for a fact."}
	if len(data) <= maxFactBytes {
		f = facts.Read(data)
	}
	s.facts.Add(c.Blob, f)
	return f, nil
}

// memoryPage lists facts.
type memoryPage struct {
	Action string
	Writes bool
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
	CurrentURL    string
	Damaged       []knownFact
	MoreDamaged   int
	Left          int
	Page, Pages   int
	Before, After string // addresses of the previous and the next page
	Back          string // the query that forms return to
}

type factGroup struct {
	Type  string
	Facts []knownFact
}

// memoryQuery is the query of a list of facts.
type memoryQuery struct {
	text, kind, show string
	page             int
}

func readMemoryQuery(q url.Values) memoryQuery {
	m := memoryQuery{text: web.Shorten(q.Get("q"), 200), kind: web.Shorten(q.Get("type"), 255), show: q.Get("show")}
	if m.show != "expired" {
		m.show = ""
	}
	m.page, _ = strconv.Atoi(q.Get("page"))
	m.page = max(m.page, 1)
	return m
}

func (m memoryQuery) encode() string {
	v := url.Values{}
	for k, s := range map[string]string{"q": m.text, "type": m.kind, "show": m.show} {
		if s != "" {
			v.Set(k, s)
		}
	}
	if m.page > 1 {
		v.Set("page", strconv.Itoa(m.page))
	}
	if len(v) == 0 {
		return ""
	}
	return "?" + v.Encode()
}

func (m memoryQuery) matches(f knownFact) bool {
	if m.kind != "" && f.Type != m.kind {
		return false
	}
	for w := range strings.FieldsSeq(strings.ToLower(m.text)) {
		if !strings.Contains(strings.ToLower(f.Value), w) && !strings.Contains(strings.ToLower(f.Name), w) {
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
	return s.listFacts(v, http.StatusOK, m, readMemoryQuery(v.R.URL.Query()), nil)
}

func (s *pages) listFacts(v *web.Visit, status int, m service.View, q memoryQuery, p *web.Problem) error {
	all, left, err := s.allFacts(v.R.Context(), m)
	if err != nil {
		return web.Gone(err)
	}
	body := memoryPage{Action: "/spaces/" + string(m.ID) + "/memory", Writes: m.Role != space.Reader, Query: q.text, Type: q.kind, Show: q.show, Left: left}
	today := s.today()
	var list []knownFact
	kinds := map[string]bool{}
	for _, f := range all {
		over := f.Over(today)
		switch {
		case f.Problem != "":
			body.Damaged = append(body.Damaged, f)
			continue
		case over:
			body.Expired++
		default:
			body.Total++
		}
		kinds[f.Type] = true
		if over == (q.show == "expired") && q.matches(f) {
			list = append(list, f)
		}
	}
	for k := range kinds {
		body.Types = append(body.Types, k)
	}
	slices.Sort(body.Types)
	if len(body.Damaged) > othersShown {
		body.MoreDamaged, body.Damaged = len(body.Damaged)-othersShown, body.Damaged[:othersShown]
	}
	for i, f := range body.Damaged {
		body.Damaged[i] = f.linked(m.ID)
	}
	slices.SortFunc(list, func(a, b knownFact) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(b.Confirmed, a.Confirmed), cmp.Compare(a.Key, b.Key))
	})
	body.Found = len(list)
	body.Pages = max((len(list)+factsShown-1)/factsShown, 1)
	q.page = min(q.page, body.Pages)
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
	body.ExpiredURL, body.CurrentURL = body.Action+"?show=expired", body.Action
	from := (q.page - 1) * factsShown
	for _, f := range list[from:min(from+factsShown, len(list))] {
		if n := len(body.Groups); n == 0 || body.Groups[n-1].Type != f.Type {
			body.Groups = append(body.Groups, factGroup{Type: f.Type})
		}
		g := &body.Groups[len(body.Groups)-1]
		g.Facts = append(g.Facts, f.linked(m.ID))
	}
	out := web.Page{Title: "Memory", Space: &m, Current: "memory", Wide: true, Styles: []string{"editing.css"}, Body: &body}
	if q.show == "expired" {
		out.Title = "Expired facts"
	}
	if p != nil {
		out.Problem, out.Field = p.Text, p.Field
	}
	return s.Page(v, status, "memory", out)
}
