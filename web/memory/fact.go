package memory

import (
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	"satchel/internal/facts"
	"satchel/internal/fault"
	"satchel/internal/frontmatter"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/web"
	"satchel/web/merge"
)

// factPage is the page that corrects or adds one fact.
type factPage struct {
	Action, Back string
	List         string // the address of all facts
	New          bool
	Writes       bool
	Fact         knownFact
	Type, Key    string // of a new fact, as typed
	Value        string
	Expires      string
	Text         string // after the front matter
	Unsaved      bool
	Now          string // the current value, if it changed meanwhile
}

func (s *pages) factForm(v *web.Visit, status int, m service.View, body factPage, p *web.Problem) error {
	body.List, body.Writes = "/spaces/"+string(m.ID)+"/memory", m.Role != space.Reader
	title := "Add a fact"
	if !body.New {
		title = "The fact " + web.Shorten(body.Fact.Name(), 120)
		body.Action = body.Fact.Page
	}
	out := web.Page{Title: title, Space: &m, Current: "memory", Styles: []string{"editing.css"}, Scripts: []string{"editing.js"}, Body: &body}
	if p != nil {
		out.Problem, out.Field = p.Text, p.Field
	}
	return s.Page(v, status, "fact", out)
}

// oneFact returns the fact that a form or an address names, and the bytes of its file if the
// fact is valid.
func (s *pages) oneFact(v *web.Visit, m service.View, name string) (knownFact, []byte, error) {
	kind, key, ok := strings.Cut(name, "/")
	p, err := space.ParsePath(facts.Path(kind, key))
	if !ok || err != nil || strings.Contains(key, "/") {
		return knownFact{}, nil, web.ErrGone
	}
	c, ok, err := m.Find(v.R.Context(), "", p)
	if err != nil {
		return knownFact{}, nil, web.Gone(err)
	}
	if !ok || c.Dir || c.Mode == space.Symlink {
		return knownFact{}, nil, web.ErrGone
	}
	f, err := m.ReadFact(v.R.Context(), c)
	if err != nil {
		return knownFact{}, nil, err
	}
	if f.Problem != "" {
		return linked(f, m.ID), nil, nil
	}
	data, err := m.ReadBlob(v.R.Context(), c.Blob)
	return linked(f, m.ID), data, err
}

// writableFact is like oneFact, for a visitor who may write to the space.
func (s *pages) writableFact(v *web.Visit, name string) (service.View, knownFact, []byte, error) {
	m, err := s.WritableSpace(v)
	if err != nil {
		return service.View{}, knownFact{}, nil, err
	}
	f, data, err := s.oneFact(v, m, name)
	return m, f, data, err
}

var errDamaged = &web.PageError{Status: http.StatusUnprocessableEntity, Title: "This fact’s file is damaged", Text: "Open the file and fix it, or delete it."}

// showFact handles GET /spaces/{id}/memory/fact/{type}/{key}.
func (s *pages) showFact(v *web.Visit) error {
	m, err := s.Space(v)
	if err != nil {
		return err
	}
	f, data, err := s.oneFact(v, m, v.R.PathValue("path"))
	if err != nil {
		return err
	}
	if f.Problem != "" {
		return errDamaged
	}
	return s.factForm(v, http.StatusOK, m, factPage{Fact: f, Value: merge.Plain(facts.Whole(data)), Expires: f.Expires, Text: factText(data)}, nil)
}

// factText returns the text after the front matter of a fact, shortened for a page.
func factText(data []byte) string {
	body := strings.TrimSpace(string(data[frontmatter.Skip(data):]))
	if r := []rune(body); len(r) > 4000 {
		return string(r[:4000]) + "…"
	}
	return body
}

// checkFact validates the input of a person. was is the previous day of expiry.
func (s *pages) checkFact(body *factPage, was string) *web.Problem {
	switch {
	case strings.TrimSpace(body.Value) == "":
		return &web.Problem{Text: "Write what is to be remembered.", Field: "value"}
	case len(body.Value) > facts.MaxValue:
		return &web.Problem{Text: "That is too long for a fact. Say it in a sentence, and put the rest into a note.", Field: "value"}
	case strings.ContainsFunc(body.Value, func(r rune) bool { return r != '\n' && r != '\t' && unicode.IsControl(r) }):
		return &web.Problem{Text: "The text has characters that cannot be shown. Take them out.", Field: "value"}
	case body.Expires == "" || body.Expires == was:
		return nil
	case len(body.Expires) != len(time.DateOnly) || facts.Day(body.Expires) == "":
		return &web.Problem{Text: "Write the day as year, month and day, such as 2027-01-31.", Field: "expires"}
	case body.Expires < s.today():
		return &web.Problem{Text: "That day has already passed in UTC.", Field: "expires"}
	}
	return nil
}

// correctFact handles POST /spaces/{id}/memory/fact/{type}/{key}. The value of a person
// is explicit and certain.
func (s *pages) correctFact(v *web.Visit) error {
	m, f, data, err := s.writableFact(v, v.R.PathValue("path"))
	if err != nil {
		return err
	}
	if f.Problem != "" {
		return errDamaged
	}
	body := factPage{Fact: f, Value: strings.TrimSpace(merge.Plain(v.R.PostFormValue("value"))), Expires: strings.TrimSpace(v.R.PostFormValue("expires")), Text: factText(data), Unsaved: true}
	if p := s.checkFact(&body, f.Expires); p != nil {
		return s.factForm(v, http.StatusUnprocessableEntity, m, body, p)
	}
	if string(f.Etag) != v.R.PostFormValue("base") {
		return s.factMoved(v, m, body, data)
	}
	today := facts.Raw(s.today())
	set := []facts.Field{{Key: "value", Value: body.Value}, {Key: "confidence", Value: facts.Raw("1")}, {Key: "source", Value: facts.Explicit}, {Key: "last_confirmed", Value: today}}
	switch {
	case body.Expires == "":
		set = append(set, facts.Field{Key: "expires"})
	case body.Expires != f.Expires:
		set = append(set, facts.Field{Key: "expires", Value: facts.Raw(body.Expires)})
	}
	return s.setFact(v, m, f, data, "Correct the memory fact "+f.Name(), set, func(err error) error {
		if fault.CodeOf(err) == fault.Conflict {
			now, data, nerr := s.oneFact(v, m, f.Name())
			if nerr != nil {
				return nerr
			}
			body.Fact = now
			return s.factMoved(v, m, body, data)
		}
		return s.factForm(v, web.AsPage(err).Status, m, body, &web.Problem{Text: fault.PublicOf(err), Field: "value"})
	})
}

// factMoved shows a correction of a fact that changed meanwhile.
func (s *pages) factMoved(v *web.Visit, m service.View, body factPage, data []byte) error {
	body.Now = merge.Plain(facts.Whole(data))
	return s.factForm(v, http.StatusConflict, m, body, &web.Problem{Text: "Nothing is saved yet: the fact changed since you opened it. Look at what it says now, and save again if yours is right.", Field: "value"})
}

// setFact commits changed fields of a fact.
func (s *pages) setFact(v *web.Visit, m service.View, f knownFact, data []byte, note string, set []facts.Field, refused func(error) error) error {
	now, err := facts.Set(data, set...)
	if err != nil {
		return errDamaged
	}
	remark, err := s.WriteFiles(v, m.ID, space.ToolWeb, []space.Change{{Path: string(f.Path), Op: space.Write, Content: now, Base: f.Etag}}, web.Shorten(note, 200))
	switch {
	case err == nil:
		return s.Saved(v, m, remark, s.factsBack(v, m))
	case web.IsRefusal(err):
		return refused(err)
	}
	return err
}

// factsBack returns the address of the list that a form came from.
func (s *pages) factsBack(v *web.Visit, m service.View) string {
	q, err := url.ParseQuery(strings.TrimPrefix(v.R.PostFormValue("back"), "?"))
	if err != nil {
		q = nil
	}
	return "/spaces/" + string(m.ID) + "/memory" + readMemoryQuery(q).encode()
}

// againFacts shows the list of facts with a problem.
func (s *pages) againFacts(v *web.Visit, m service.View, status int, text string) error {
	q, err := url.ParseQuery(strings.TrimPrefix(v.R.PostFormValue("back"), "?"))
	if err != nil {
		q = nil
	}
	return s.listFacts(v, status, m, readMemoryQuery(q), &web.Problem{Text: text})
}

// confirmFact handles POST /spaces/{id}/memory/confirm, which says that a fact is still
// true.
func (s *pages) confirmFact(v *web.Visit) error {
	m, f, data, err := s.writableFact(v, v.R.PostFormValue("fact"))
	if err != nil {
		return err
	}
	switch {
	case f.Problem != "":
		return errDamaged
	case string(f.Etag) != v.R.PostFormValue("base"):
		return s.againFacts(v, m, http.StatusConflict, "Nothing was changed: the fact "+web.Shorten(f.Name(), 120)+" has changed. Look at it again.")
	}
	set := []facts.Field{{Key: "last_confirmed", Value: facts.Raw(s.today())}}
	if f.Expired {
		set = append(set, facts.Field{Key: "expires"})
	}
	return s.setFact(v, m, f, data, "Confirm the memory fact "+f.Name(), set, func(err error) error {
		return s.againFacts(v, m, web.AsPage(err).Status, fault.PublicOf(err))
	})
}

// forgetFact handles POST /spaces/{id}/memory/forget.
func (s *pages) forgetFact(v *web.Visit) error {
	m, f, _, err := s.writableFact(v, v.R.PostFormValue("fact"))
	if err != nil {
		return err
	}
	if string(f.Etag) != v.R.PostFormValue("base") {
		return s.againFacts(v, m, http.StatusConflict, "Nothing was forgotten: the fact "+web.Shorten(f.Name(), 120)+" has changed. Look at it again.")
	}
	remark, err := s.WriteFiles(v, m.ID, space.ToolWeb, []space.Change{{Path: string(f.Path), Op: space.Delete, Base: f.Etag}}, web.Shorten("Forget the memory fact "+f.Name(), 200))
	if err != nil {
		if web.IsRefusal(err) {
			return s.againFacts(v, m, web.AsPage(err).Status, fault.PublicOf(err))
		}
		return err
	}
	return s.Saved(v, m, remark, s.factsBack(v, m))
}

// showNewFact handles GET /spaces/{id}/memory/new.
func (s *pages) showNewFact(v *web.Visit) error {
	m, err := s.WritableSpace(v)
	if err != nil {
		return err
	}
	return s.factForm(v, http.StatusOK, m, factPage{New: true, Action: "/spaces/" + string(m.ID) + "/memory/new", Type: "preference"}, nil)
}

// saveNewFact handles POST /spaces/{id}/memory/new.
func (s *pages) saveNewFact(v *web.Visit) error {
	m, err := s.WritableSpace(v)
	if err != nil {
		return err
	}
	form := v.R.PostFormValue
	body := factPage{
		New: true, Action: "/spaces/" + string(m.ID) + "/memory/new", Unsaved: true,
		Value: strings.TrimSpace(merge.Plain(form("value"))), Expires: strings.TrimSpace(form("expires")),
	}
	again := func(status int, text, field string) error {
		return s.factForm(v, status, m, body, &web.Problem{Text: text, Field: field})
	}
	var typeFits, keyFits bool
	body.Type, typeFits = facts.Name(form("type"))
	body.Key, keyFits = facts.Name(form("key"))
	for _, n := range []struct {
		fits  bool
		field string
	}{{typeFits, "type"}, {keyFits, "key"}} {
		if !n.fits {
			return again(http.StatusUnprocessableEntity, "Use letters, digits, dots, hyphens and underscores, 80 at most.", n.field)
		}
	}
	p, err := space.ParsePath(facts.Path(body.Type, body.Key))
	if err != nil {
		return again(http.StatusUnprocessableEntity, fault.PublicOf(err), "key")
	}
	if p := s.checkFact(&body, ""); p != nil {
		return again(http.StatusUnprocessableEntity, p.Text, p.Field)
	}
	taken := "A fact with this type and name already exists. Edit it, or choose another name."
	if why, err := web.PathTaken(v, m, p); err != nil {
		return err
	} else if why != "" {
		return again(http.StatusConflict, taken, "key")
	}
	remark, err := s.WriteFiles(v, m.ID, space.ToolWeb, []space.Change{{Path: string(p), Op: space.Write, Content: facts.FromPerson(body.Value, body.Expires, s.Now())}},
		web.Shorten("Remember "+body.Type+"/"+body.Key, 200))
	switch {
	case err == nil:
		return s.Saved(v, m, remark, "/spaces/"+string(m.ID)+"/memory"+memoryQuery{kind: body.Type}.encode())
	case fault.CodeOf(err) == fault.Conflict:
		return again(http.StatusConflict, taken, "key")
	case web.IsRefusal(err):
		return again(web.AsPage(err).Status, fault.PublicOf(err), "value")
	}
	return err
}
