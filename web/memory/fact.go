package memory

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"

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
	Alone        bool // the visitor is the only member of the space
	Fact         knownFact
	Type, Key    string   // of a new fact, as typed
	Types        []string // suggestions for Type
	Value        string
	Confidence   string
	Expires      string
	Text         string // the text after the front matter
	Unsaved      bool
	Now          string // the current value, if it changed meanwhile
}

func (s *pages) factForm(v *web.Visit, status int, m service.View, body factPage, p *web.Problem) error {
	body.List, body.Writes, body.Alone = "/spaces/"+string(m.ID)+"/memory", m.Role != space.Reader, s.alone(v, m)
	title := "Add a fact"
	if body.New {
		body.Types = []string{"preference", "person", "project"}
		if all, err := allFacts(v.R.Context(), m); err == nil {
			body.Types = typesOf(all.Facts, body.Types...)
		}
	} else {
		title = web.Shorten(body.Fact.Value, 80)
		body.Action = body.Fact.Page
	}
	out := web.Page{Title: title, Space: &m, Current: "memory", Styles: []string{"files.css", "editing.css"}, Scripts: []string{"editing.js"}, Body: &body}
	if p != nil {
		out.Problem, out.Field = p.Text, p.Field
	}
	return s.Page(v, status, "fact", out)
}

// typesOf returns the types of the valid facts, and more, without repetitions.
func typesOf(all []service.MemoryFact, more ...string) []string {
	for _, f := range all {
		if f.Problem == "" {
			more = append(more, f.Type)
		}
	}
	slices.Sort(more)
	return slices.Compact(more)
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
	body := factPage{Fact: f, Value: merge.Plain(facts.Whole(data)), Confidence: confidenceOf(f.MemoryFact), Expires: f.Expires, Text: factText(data)}
	if f.Expired {
		body.Expires = ""
	}
	return s.factForm(v, http.StatusOK, m, body, nil)
}

// factText returns the text after the front matter of a fact, shortened for a page.
func factText(data []byte) string {
	body := strings.TrimSpace(string(data[frontmatter.Skip(data):]))
	if r := []rune(body); len(r) > 4000 {
		return string(r[:4000]) + "…"
	}
	return body
}

// correctFact handles POST /spaces/{id}/memory/fact/{type}/{key}.
func (s *pages) correctFact(v *web.Visit) error {
	m, f, data, err := s.writableFact(v, v.R.PathValue("path"))
	if err != nil {
		return err
	}
	if f.Problem != "" {
		return errDamaged
	}
	form := v.R.PostFormValue
	body := factPage{Fact: f, Value: form("value"), Confidence: strings.TrimSpace(form("confidence")), Expires: strings.TrimSpace(form("expires")), Text: factText(data), Unsaved: true}
	row := form("row") != "" // the form is in the list
	st := s.stated(v, f, body.Value)
	st.Expires = cmp.Or(body.Expires, facts.Never)
	again := func(status int, p *web.Problem) error {
		if status == http.StatusConflict {
			if body.Fact, data, err = s.oneFact(v, m, f.Name()); err != nil {
				return err
			}
			body.Now = merge.Plain(facts.Whole(data))
			p = &web.Problem{Text: "Nothing is saved yet: the fact changed since you opened it. Read the new version, and save again if yours is right.", Field: "value"}
		} else if row {
			q := backQuery(v)
			q.edit = f.Name()
			return s.listFacts(v, status, m, q, &editedRow{f.Name(), body.Value, body.Confidence, body.Expires}, p)
		}
		return s.factForm(v, status, m, body, p)
	}
	if st.Confidence, err = parseConfidence(body.Confidence); err != nil {
		return again(http.StatusUnprocessableEntity, &web.Problem{Text: fault.PublicOf(err), Field: "confidence"})
	}
	return s.remember(v, m, st, s.factsBack(v, m), again)
}

// stated returns a person's statement about a fact, based on the version that the form shows.
func (s *pages) stated(v *web.Visit, f knownFact, value string) facts.Statement {
	return facts.Statement{Type: f.Type, Key: f.Key, Value: merge.Plain(value), Explicit: true, Base: cmp.Or(v.R.PostFormValue("base"), facts.NoFact)}
}

// remember saves a statement and then redirects. where is the address to redirect to. If a person
// must correct the statement first, again shows the form with the problem.
func (s *pages) remember(v *web.Visit, m service.View, st facts.Statement, where string, again func(status int, p *web.Problem) error) error {
	if _, mistakes := st.Check(s.today()); len(mistakes) > 0 {
		return again(http.StatusUnprocessableEntity, &web.Problem{Text: mistakes[0].Text, Field: mistakes[0].Field})
	}
	done, err := s.Service.Remember(v.R.Context(), v.Actor(), service.RememberInput{Space: service.SpaceRef{ID: m.ID}, Facts: []facts.Statement{st}})
	switch {
	case web.IsRefusal(err):
		return again(web.AsPage(err).Status, &web.Problem{Text: fault.PublicOf(err)})
	case err != nil:
		return err
	}
	switch f := done.Facts[0]; f.Outcome {
	case facts.Stale:
		return again(http.StatusConflict, &web.Problem{Text: f.Why, Field: "key"})
	case facts.Refused, facts.Invalid:
		return again(http.StatusUnprocessableEntity, &web.Problem{Text: f.Why, Field: "value"})
	}
	if done.Commit != "" {
		where = didURL(where, "saved", done.Commit)
	}
	return s.Saved(v, m, v.Remark(space.Commit{Warnings: done.Warnings}), where)
}

// factsBack returns the address of the list that a form came from.
func (s *pages) factsBack(v *web.Visit, m service.View) string {
	return "/spaces/" + string(m.ID) + "/memory" + backQuery(v).encode()
}

// backQuery returns the query of the list that a form came from.
func backQuery(v *web.Visit) memoryQuery {
	q, err := url.ParseQuery(strings.TrimPrefix(v.R.PostFormValue("back"), "?"))
	if err != nil {
		q = nil
	}
	return readMemoryQuery(q)
}

// againFacts shows the list of facts with a problem.
func (s *pages) againFacts(v *web.Visit, m service.View, status int, text string) error {
	return s.listFacts(v, status, m, backQuery(v), nil, &web.Problem{Text: text})
}

// confirmFact handles POST /spaces/{id}/memory/confirm: a person says that a fact is still
// true.
func (s *pages) confirmFact(v *web.Visit) error {
	m, f, data, err := s.writableFact(v, v.R.PostFormValue("fact"))
	if err != nil {
		return err
	}
	if f.Problem != "" {
		return errDamaged
	}
	st := s.stated(v, f, facts.Whole(data))
	if f.Expired {
		st.Expires = facts.Never
	}
	return s.remember(v, m, st, s.factsBack(v, m), func(status int, p *web.Problem) error {
		return s.againFacts(v, m, status, "Nothing was changed in "+web.Shorten(f.Name(), 120)+". "+p.Text)
	})
}

// forgetFact handles POST /spaces/{id}/memory/forget.
func (s *pages) forgetFact(v *web.Visit) error {
	m, f, _, err := s.writableFact(v, v.R.PostFormValue("fact"))
	if err != nil {
		return err
	}
	done, err := s.Service.Forget(v.R.Context(), v.Actor(), service.ForgetInput{
		Space: service.SpaceRef{ID: m.ID}, Keys: []string{f.Name()}, Base: space.BlobID(cmp.Or(v.R.PostFormValue("base"), facts.NoFact)),
	})
	switch {
	case web.IsRefusal(err):
		return s.againFacts(v, m, web.AsPage(err).Status, "Nothing was forgotten. "+fault.PublicOf(err))
	case err != nil:
		return err
	}
	where := s.factsBack(v, m)
	if done.Commit != "" {
		where = didURL(where, "forgotten", done.Commit)
	}
	return s.See(v, where)
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
		Type: form("type"), Key: form("key"), Value: form("value"), Expires: strings.TrimSpace(form("expires")),
	}
	st := facts.Statement{Type: body.Type, Key: body.Key, Value: merge.Plain(body.Value), Explicit: true, Expires: body.Expires, Base: facts.NoFact}
	kind, _ := facts.Name(body.Type)
	where := "/spaces/" + string(m.ID) + "/memory" + memoryQuery{kind: kind}.encode()
	return s.remember(v, m, st, where, func(status int, p *web.Problem) error {
		return s.factForm(v, status, m, body, p)
	})
}
