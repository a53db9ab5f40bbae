package web

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"
	"unicode"

	"satchel/auth/store"
	"satchel/internal/facts"
	"satchel/internal/fault"
	"satchel/internal/frontmatter"
	"satchel/internal/space"
	"satchel/web/merge"
)

// maxFactValue bounds what a person writes as a fact, in bytes.
const maxFactValue = 8 << 10

func (e *editing) routeMemory() {
	e.Handle("GET /spaces/{id}/memory", LimitPage, SignedIn, e.showMemory)
	e.Handle("GET /spaces/{id}/memory/new", LimitPage, SignedIn, e.showNewFact)
	e.Handle("POST /spaces/{id}/memory/new", LimitPage, SignedIn, e.saveNewFact)
	e.Handle("GET /spaces/{id}/memory/fact/{path...}", LimitPage, SignedIn, e.showFact)
	e.Handle("POST /spaces/{id}/memory/fact/{path...}", LimitPage, SignedIn, e.correctFact)
	e.Handle("POST /spaces/{id}/memory/confirm", LimitPage, SignedIn, e.confirmFact)
	e.Handle("POST /spaces/{id}/memory/forget", LimitPage, SignedIn, e.forgetFact)
}

// factPage corrects one fact, or adds one.
type factPage struct {
	Action, Back string
	List         string // the address of all facts
	New          bool
	Writes       bool
	Fact         knownFact
	Type, Key    string // of a new one as they were typed
	Value        string
	Expires      string
	Text         string // under the front matter
	Unsaved      bool
	Over         bool
	Now          string // what it says now, where it changed meanwhile
}

func (e *editing) factForm(v *Visit, status int, m store.Membership, body factPage, p *Problem) error {
	body.List, body.Writes = "/spaces/"+string(m.ID)+"/memory", m.Role != space.Reader
	title := "Add a fact"
	if !body.New {
		title = "The fact " + Shorten(body.Fact.Name, 120)
		body.Action = body.Fact.Page
		body.Over = body.Fact.Over(e.today())
	}
	out := Page{Title: title, Space: &m, Current: "memory", Styles: []string{"editing.css"}, Scripts: []string{"editing.js"}, Body: &body}
	if p != nil {
		out.Problem, out.Field = p.Text, p.Field
	}
	return e.Page(v, status, "fact", out)
}

// oneFact finds the fact that a form or an address names, with its file's bytes.
func (e *editing) oneFact(v *Visit, m store.Membership, name string) (knownFact, []byte, error) {
	kind, key, ok := strings.Cut(name, "/")
	p, err := space.ParsePath(string(factPath(kind, key)))
	if !ok || err != nil || strings.Contains(key, "/") {
		return knownFact{}, nil, ErrGone
	}
	c, ok, err := e.Lookup(v.R.Context(), m.ID, p)
	if err != nil {
		return knownFact{}, nil, Gone(err)
	}
	if !ok || c.Dir || c.Mode == space.Symlink {
		return knownFact{}, nil, ErrGone
	}
	if c.Size > maxFactBytes {
		return knownFact{}, nil, errDamaged
	}
	data, err := e.Workspace.ReadBlob(v.R.Context(), m.ID, c.Blob)
	if err != nil {
		return knownFact{}, nil, err
	}
	f := knownFact{Fact: facts.Read(data), Type: kind, Key: key, Name: name, Base: c.Blob}
	return f.linked(m.ID), data, nil
}

// writableFact is oneFact in the visitor's space, where they may write.
func (e *editing) writableFact(v *Visit, name string) (store.Membership, knownFact, []byte, error) {
	m, err := e.WritableSpace(v)
	if err != nil {
		return store.Membership{}, knownFact{}, nil, err
	}
	f, data, err := e.oneFact(v, m, name)
	return m, f, data, err
}

var errDamaged = &PageError{Status: http.StatusUnprocessableEntity, Title: "This fact’s file is damaged", Text: "Open the file and mend it by hand, or delete it."}

// showFact is GET /spaces/{id}/memory/fact/{type}/{key}.
func (e *editing) showFact(v *Visit) error {
	m, err := e.Space(v)
	if err != nil {
		return err
	}
	f, data, err := e.oneFact(v, m, v.R.PathValue("path"))
	if err != nil {
		return err
	}
	if f.Problem != "" {
		return errDamaged
	}
	return e.factForm(v, http.StatusOK, m, factPage{Fact: f, Value: wholeValue(data), Expires: f.Expires, Text: factText(data)}, nil)
}

// wholeValue is a fact's value with nothing left out.
func wholeValue(data []byte) string {
	d, err := frontmatter.Parse(data)
	if err != nil {
		return ""
	}
	if s, ok := d.Fields["value"].(string); ok {
		return merge.Plain(s)
	}
	return d.String("value")
}

// factText is what a page shows of the text under a fact.
func factText(data []byte) string {
	body := strings.TrimSpace(string(data[frontmatter.Skip(data):]))
	if r := []rune(body); len(r) > 4000 {
		return string(r[:4000]) + "…"
	}
	return body
}

// checkFact looks at what a person wrote as a fact.
func (e *editing) checkFact(body *factPage, was string) *Problem {
	switch {
	case strings.TrimSpace(body.Value) == "":
		return &Problem{"Write what is to be remembered.", "value"}
	case len(body.Value) > maxFactValue:
		return &Problem{"That is too long for a fact. Say it in a sentence, and put the rest into a note.", "value"}
	case strings.ContainsFunc(body.Value, func(r rune) bool { return r != '\n' && r != '\t' && unicode.IsControl(r) }):
		return &Problem{"The text has characters that cannot be shown. Take them out.", "value"}
	case body.Expires == "" || body.Expires == was:
		return nil
	case len(body.Expires) != len(time.DateOnly) || facts.Day(body.Expires) == "":
		return &Problem{"Write the day as year, month and day, such as 2027-01-31.", "expires"}
	case body.Expires < e.today():
		return &Problem{"That day is over, in UTC.", "expires"}
	}
	return nil
}

// correctFact is POST /spaces/{id}/memory/fact/{type}/{key}. What a person says is
// explicit, and sure (DESIGN section 12).
func (e *editing) correctFact(v *Visit) error {
	m, f, data, err := e.writableFact(v, v.R.PathValue("path"))
	if err != nil {
		return err
	}
	if f.Problem != "" {
		return errDamaged
	}
	body := factPage{Fact: f, Value: strings.TrimSpace(merge.Plain(v.R.PostFormValue("value"))), Expires: strings.TrimSpace(v.R.PostFormValue("expires")), Text: factText(data), Unsaved: true}
	if p := e.checkFact(&body, f.Expires); p != nil {
		return e.factForm(v, http.StatusUnprocessableEntity, m, body, p)
	}
	if string(f.Base) != v.R.PostFormValue("base") {
		return e.factMoved(v, m, body, data)
	}
	today := facts.Raw(e.today())
	set := []facts.Field{{Key: "value", Value: body.Value}, {Key: "confidence", Value: facts.Raw("1")}, {Key: "source", Value: facts.Explicit}, {Key: "last_confirmed", Value: today}}
	switch {
	case body.Expires == "":
		set = append(set, facts.Field{Key: "expires"})
	case body.Expires != f.Expires:
		set = append(set, facts.Field{Key: "expires", Value: facts.Raw(body.Expires)})
	}
	return e.setFact(v, m, f, data, "Correct the memory fact "+f.Name, set, func(err error) error {
		if fault.CodeOf(err) == fault.Conflict {
			now, data, nerr := e.oneFact(v, m, f.Name)
			if nerr != nil {
				return nerr
			}
			body.Fact = now
			return e.factMoved(v, m, body, data)
		}
		return e.factForm(v, AsPage(err).Status, m, body, &Problem{fault.PublicOf(err), "value"})
	})
}

// factMoved shows a correction of a fact that says something else by now.
func (e *editing) factMoved(v *Visit, m store.Membership, body factPage, data []byte) error {
	body.Now = wholeValue(data)
	return e.factForm(v, http.StatusConflict, m, body, &Problem{"Nothing is saved yet: the fact changed since you opened it. Look at what it says now, and save again if yours is right.", "value"})
}

// setFact commits changed fields of a fact.
func (e *editing) setFact(v *Visit, m store.Membership, f knownFact, data []byte, note string, set []facts.Field, refused func(error) error) error {
	now, err := facts.Set(data, set...)
	if err != nil {
		return errDamaged
	}
	remark, err := e.WriteFiles(v, m.ID, space.ToolWeb, []space.Change{{Path: string(factPath(f.Type, f.Key)), Op: space.Write, Content: now, Base: f.Base}}, Shorten(note, 200))
	switch {
	case err == nil:
		return e.Saved(v, m, remark, e.factsBack(v, m))
	case IsRefusal(err):
		return refused(err)
	}
	return err
}

// factsBack is the list of facts from which a form was sent.
func (e *editing) factsBack(v *Visit, m store.Membership) string {
	q, err := url.ParseQuery(strings.TrimPrefix(v.R.PostFormValue("back"), "?"))
	if err != nil {
		q = nil
	}
	return "/spaces/" + string(m.ID) + "/memory" + readMemoryQuery(q).encode()
}

// again shows the list of facts with what was wrong.
func (e *editing) againFacts(v *Visit, m store.Membership, status int, text string) error {
	q, err := url.ParseQuery(strings.TrimPrefix(v.R.PostFormValue("back"), "?"))
	if err != nil {
		q = nil
	}
	return e.listFacts(v, status, m, readMemoryQuery(q), &Problem{Text: text})
}

// confirmFact is POST /spaces/{id}/memory/confirm: it is still true.
func (e *editing) confirmFact(v *Visit) error {
	m, f, data, err := e.writableFact(v, v.R.PostFormValue("fact"))
	if err != nil {
		return err
	}
	switch {
	case f.Problem != "":
		return errDamaged
	case string(f.Base) != v.R.PostFormValue("base"):
		return e.againFacts(v, m, http.StatusConflict, "Nothing was changed: the fact "+Shorten(f.Name, 120)+" says something else by now. Look at it again.")
	}
	set := []facts.Field{{Key: "last_confirmed", Value: facts.Raw(e.today())}}
	if f.Over(e.today()) {
		set = append(set, facts.Field{Key: "expires"})
	}
	return e.setFact(v, m, f, data, "Confirm the memory fact "+f.Name, set, func(err error) error {
		return e.againFacts(v, m, AsPage(err).Status, fault.PublicOf(err))
	})
}

// forgetFact is POST /spaces/{id}/memory/forget.
func (e *editing) forgetFact(v *Visit) error {
	m, f, _, err := e.writableFact(v, v.R.PostFormValue("fact"))
	if err != nil {
		return err
	}
	if string(f.Base) != v.R.PostFormValue("base") {
		return e.againFacts(v, m, http.StatusConflict, "Nothing was forgotten: the fact "+Shorten(f.Name, 120)+" says something else by now. Look at it again.")
	}
	remark, err := e.WriteFiles(v, m.ID, space.ToolWeb, []space.Change{{Path: string(factPath(f.Type, f.Key)), Op: space.Delete, Base: f.Base}}, Shorten("Forget the memory fact "+f.Name, 200))
	if err != nil {
		if IsRefusal(err) {
			return e.againFacts(v, m, AsPage(err).Status, fault.PublicOf(err))
		}
		return err
	}
	return e.Saved(v, m, remark, e.factsBack(v, m))
}

// showNewFact is GET /spaces/{id}/memory/new.
func (e *editing) showNewFact(v *Visit) error {
	m, err := e.WritableSpace(v)
	if err != nil {
		return err
	}
	return e.factForm(v, http.StatusOK, m, factPage{New: true, Action: "/spaces/" + string(m.ID) + "/memory/new", Type: "preference"}, nil)
}

// factName is what a person may call a type or a key.
var factName = regexp.MustCompile(`^[\p{L}\p{N}][\p{L}\p{N}._-]*$`)

// asName makes a name of a few words.
func asName(s string) string {
	return strings.Join(strings.Fields(strings.ToLower(s)), "-")
}

// saveNewFact is POST /spaces/{id}/memory/new.
func (e *editing) saveNewFact(v *Visit) error {
	m, err := e.WritableSpace(v)
	if err != nil {
		return err
	}
	form := v.R.PostFormValue
	body := factPage{
		New: true, Action: "/spaces/" + string(m.ID) + "/memory/new", Unsaved: true,
		Type: asName(form("type")), Key: asName(form("key")), Value: strings.TrimSpace(merge.Plain(form("value"))), Expires: strings.TrimSpace(form("expires")),
	}
	again := func(status int, text, field string) error {
		return e.factForm(v, status, m, body, &Problem{text, field})
	}
	for _, n := range []struct{ name, field string }{{body.Type, "type"}, {body.Key, "key"}} {
		if len(n.name) > 80 || !factName.MatchString(n.name) {
			return again(http.StatusUnprocessableEntity, "Use letters, digits, dots, hyphens and underscores, 80 at most.", n.field)
		}
	}
	p, err := space.ParsePath(string(factPath(body.Type, body.Key)))
	if err != nil {
		return again(http.StatusUnprocessableEntity, fault.PublicOf(err), "key")
	}
	if p := e.checkFact(&body, ""); p != nil {
		return again(http.StatusUnprocessableEntity, p.Text, p.Field)
	}
	taken := "There is a fact of this type and name already. Correct that one, or choose another name."
	if why, err := e.PathTaken(v, m.ID, p); err != nil {
		return err
	} else if why != "" {
		return again(http.StatusConflict, taken, "key")
	}
	remark, err := e.WriteFiles(v, m.ID, space.ToolWeb, []space.Change{{Path: string(p), Op: space.Write, Content: []byte(NewFact(body.Value, body.Expires, e.Now()))}},
		Shorten("Remember "+body.Type+"/"+body.Key, 200))
	switch {
	case err == nil:
		return e.Saved(v, m, remark, "/spaces/"+string(m.ID)+"/memory"+memoryQuery{kind: body.Type}.encode())
	case fault.CodeOf(err) == fault.Conflict:
		return again(http.StatusConflict, taken, "key")
	case IsRefusal(err):
		return again(AsPage(err).Status, fault.PublicOf(err), "value")
	}
	return err
}
