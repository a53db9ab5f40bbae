package web

import (
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"satchel/auth/store"
	"satchel/internal/bytesize"
	"satchel/internal/facts"
	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/web/merge"
	"satchel/web/render"
)

// editPage is a text on its way into a file.
type editPage struct {
	Action, Back string
	New          bool
	Path         string // of a new file as it was typed
	Kinds        []newKind
	Dir          string
	Text         string
	Message      string
	Base         space.BlobID // that the text was made from; empty if no file is there
	Mode         string
	// Unsaved reports that the page holds what no file does.
	Unsaved bool
	Max     int64 // bytes of a text
	// Previewed shows what the text looks like, rendered where it is Markdown.
	Previewed bool
	Preview   *render.Document
	// Marked is how many marks of a merge the text still has.
	Marked   int
	Conflict *conflict
	// Where else to go with a file that is there.
	Rename, Delete string
	Waits          string // the page on which a person decides about it, where it waits
}

// The modes as forms carry them.
const (
	modeRegular    = "regular"
	modeExecutable = "executable"
)

func modeName(m space.Mode) string {
	if m == space.Executable {
		return modeExecutable
	}
	return modeRegular
}

func modeOf(name string) space.Mode {
	if name == modeExecutable {
		return space.Executable
	}
	return space.Regular
}

// editable returns a file as text, or why it is none that a page can edit.
func (e *editing) editable(v *Visit, f found) (string, error) {
	switch {
	case f.Dir:
		return "", fault.New(fault.Invalid, "It is a directory. Open one of its files, or make a new one in it.")
	case f.Mode == space.Symlink:
		return "", fault.New(fault.Invalid, "It is a link to another file. Edit that one.")
	case f.Size > e.limits.MaxText:
		return "", errLong(e.limits.MaxText)
	}
	data, err := ReadContent(v.R.Context(), e.Workspace, f.ID, f.Entry)
	if err != nil {
		return "", err
	}
	if int64(len(data)) > e.limits.MaxText {
		return "", errLong(e.limits.MaxText)
	}
	if !Textual(string(data)) {
		return "", fault.New(fault.Invalid, "It is not text, so it cannot be edited here. Upload a new version of it instead.")
	}
	return string(data), nil
}

func errLong(most int64) error {
	return fault.New(fault.TooLarge, "It is larger than the %s that can be edited in a page. Change it with an AI, or upload a new version.", bytesize.Text(most))
}

// showEdit is GET /spaces/{id}/edit/{path...}.
func (e *editing) showEdit(v *Visit) error {
	f, err := e.target(v)
	if fault.CodeOf(err) == fault.NotFound {
		return ErrGone
	}
	if err != nil {
		return err
	}
	text, err := e.editable(v, f)
	if err != nil {
		p := AsPage(err)
		return &PageError{Status: p.Status, Title: "That cannot be edited here", Text: p.Text}
	}
	return e.form(v, http.StatusOK, f.Membership, f.path, editPage{Text: merge.Plain(text), Base: f.Blob, Mode: modeName(f.Mode)}, nil)
}

// form is the page of a text on its way into the file at p; problem is what was
// wrong with it.
func (e *editing) form(v *Visit, status int, m store.Membership, p space.Path, body editPage, problem *Problem) error {
	body.Max = e.limits.MaxText
	title := "A new file"
	if !body.New {
		title = "Edit " + ShownPath(p, 120)
		body.Action = SpaceURL(m.ID, "edit", p)
		if body.Back == "" {
			body.Back = SpaceURL(m.ID, "files", p)
		}
		body.Rename, body.Delete = SpaceURL(m.ID, "rename", p), SpaceURL(m.ID, "delete", p)
		body.Waits = e.waitsAt(v, m.ID, p)
	}
	if body.Conflict != nil {
		title = ShownPath(p, 120) + " changed while you edited it"
	}
	out := Page{Title: title, Space: &m, Current: "files", Wide: true, Styles: []string{"editing.css"}, Scripts: []string{"editing.js"}, Body: &body}
	if body.Previewed {
		out.Styles = append([]string{"files.css"}, out.Styles...)
	}
	if problem != nil {
		out.Problem, out.Field = problem.Text, problem.Field
	}
	return e.Page(v, status, "edit", out)
}

// waitsAt is the page of what an AI changed in a file, while that waits for a person.
func (e *editing) waitsAt(v *Visit, id space.SpaceID, p space.Path) string {
	if e.Reviews == nil {
		return ""
	}
	list, _, err := e.Reviews.Waiting(v.R.Context(), id)
	if err != nil || !slices.ContainsFunc(list, func(r space.Review) bool { return r.Path == p }) {
		return "" // to edit is possible all the same
	}
	return SpacePath(id, "reviews?"+URLQuery("path", string(p)))
}

// saveEdit is POST /spaces/{id}/edit/{path...}: a preview, or a commit.
func (e *editing) saveEdit(v *Visit) error {
	f, err := e.target(v)
	there := err == nil
	if err != nil && (f.path == "" || fault.CodeOf(err) != fault.NotFound) {
		return err
	}
	if there && (f.Dir || f.Mode == space.Symlink) {
		return fault.New(fault.Conflict, "Since you began, another kind of file has taken the place of %s. Nothing was changed.", f.path)
	}
	body := editPage{Text: merge.Plain(v.R.PostFormValue("text")), Message: message(v), Base: space.BlobID(v.R.PostFormValue("base")), Mode: v.R.PostFormValue("mode"), Unsaved: true}
	if body.Base != "" && !body.Base.Valid() {
		return BadForm(errNoBase)
	}
	if !there {
		body.Back = dirURL(f.ID, e.nearest(v, f))
	}
	if p := e.checkText(v, f.ID, string(f.path), &body); p != nil || body.Previewed {
		if body.Conflict, err = e.stillOpen(v, f, there); err != nil {
			return err
		}
		status := http.StatusOK
		if p != nil {
			status = http.StatusUnprocessableEntity
		}
		return e.form(v, status, f.Membership, f.path, body, p)
	}
	if there && f.Blob != body.Base || !there && body.Base != "" {
		return e.collide(v, f, there, body)
	}
	base, err := e.baseText(v, f.ID, body.Base)
	if err != nil {
		return err
	}
	remark, err := e.WriteFiles(v, f.ID, space.ToolWeb, []space.Change{{
		Path: string(f.path), Op: space.Write, Content: []byte(merge.Endings(base, body.Text)),
		Mode: modeOf(body.Mode), Base: body.Base, BaseMode: modeOf(body.Mode),
	}}, body.Message)
	switch {
	case err == nil:
		return e.Saved(v, f.Membership, remark, DoneURL(SpaceURL(f.ID, "files", f.path), "saved"))
	case fault.CodeOf(err) == fault.Conflict:
		// It changed right now, or a directory took its place, or a file that of a directory.
		now, ok, lerr := e.Lookup(v.R.Context(), f.ID, f.path)
		if lerr != nil {
			return lerr
		}
		if ok && !now.Dir && now.Mode != space.Symlink && now.Blob != body.Base || !ok && body.Base != "" {
			f.Entry = now
			return e.collide(v, f, ok, body)
		}
		return e.form(v, http.StatusConflict, f.Membership, f.path, body, &Problem{Text: fault.PublicOf(err), Field: "text"})
	case IsRefusal(err):
		return e.form(v, AsPage(err).Status, f.Membership, f.path, body, &Problem{Text: fault.PublicOf(err), Field: "text"})
	}
	return err
}

// checkText looks at what was sent before anything is done with it, and makes the
// preview where one is asked for.
func (e *editing) checkText(v *Visit, id space.SpaceID, p string, body *editPage) *Problem {
	switch {
	case int64(len(body.Text)) > e.limits.MaxText:
		return &Problem{Text: "The text has " + bytesize.Text(int64(len(body.Text))) + ", and " + bytesize.Text(e.limits.MaxText) + " can be edited in a page.", Field: "text"}
	case len(body.Message) > maxMessage:
		return &Problem{Text: "The note is too long. Say it in fewer words.", Field: "message"}
	}
	if v.R.PostFormValue("act") == "preview" {
		e.preview(id, p, body)
		return nil
	}
	if body.Marked = merge.Marked(body.Text); body.Marked > 0 && v.R.PostFormValue("marks") == "" {
		return &Problem{Text: "The text still has marks of places that both changed. Decide for each, and take the marks out.", Field: "text"}
	}
	return nil
}

// baseText is the content of a blob that a text was made from; "" for none.
func (e *editing) baseText(v *Visit, id space.SpaceID, b space.BlobID) (string, error) {
	if b == "" {
		return "", nil
	}
	data, err := e.Workspace.ReadBlob(v.R.Context(), id, b)
	return string(data), err
}

// newKind is something that a new file can begin as.
type newKind struct {
	Name, Label, URL string
	Chosen           bool
}

var kindTexts = map[string]struct{ path, text string }{
	"":      {"", ""},
	"note":  {"knowledge/.md", "# \n\n"},
	"fact":  {"memory/preference/.md", ""},
	"skill": {"skills//SKILL.md", "---\nname: \ndescription: When to use this, in one sentence.\n---\n\n# \n\n1. \n"},
}

func kindsOf(id space.SpaceID, chosen, dir string) []newKind {
	out := make([]newKind, 0, 4)
	for _, k := range []newKind{{Name: "", Label: "Empty file"}, {Name: "note", Label: "Note"}, {Name: "fact", Label: "Memory fact"}, {Name: "skill", Label: "Skill"}} {
		k.Chosen = k.Name == chosen
		k.URL = "/spaces/" + string(id) + "/new?" + url.Values{"dir": {dir}, "kind": {k.Name}}.Encode()
		out = append(out, k)
	}
	return out
}

// dirOf is the directory that a page is asked to begin in; one that cannot be is
// the root.
func dirOf(q string) string {
	q = strings.Trim(q, "/")
	if _, err := space.ParsePath(q); err != nil {
		return ""
	}
	return q
}

// showNew is GET /spaces/{id}/new.
func (e *editing) showNew(v *Visit) error {
	m, err := e.WritableSpace(v)
	if err != nil {
		return err
	}
	q := v.R.URL.Query()
	dir, kind := dirOf(q.Get("dir")), q.Get("kind")
	start, ok := kindTexts[kind]
	if !ok {
		kind, start = "", kindTexts[""]
	}
	body := editPage{Path: start.path, Text: start.text, Mode: modeRegular}
	if kind == "fact" {
		body.Text = string(facts.FromPerson("", "", e.Now()))
	}
	if dir != "" && (kind == "" || kind == "note") {
		body.Path = dir + "/"
	}
	e.newForm(&body, m, kind, dir)
	return e.form(v, http.StatusOK, m, "", body, nil)
}

func (e *editing) newForm(body *editPage, m store.Membership, kind, dir string) {
	body.New, body.Dir = true, dir
	body.Action, body.Back = "/spaces/"+string(m.ID)+"/new?"+url.Values{"dir": {dir}, "kind": {kind}}.Encode(), dirURL(m.ID, space.Path(dir))
	body.Kinds = kindsOf(m.ID, kind, dir)
}

// saveNew is POST /spaces/{id}/new.
func (e *editing) saveNew(v *Visit) error {
	m, err := e.WritableSpace(v)
	if err != nil {
		return err
	}
	q := v.R.URL.Query()
	body := editPage{Path: strings.TrimSpace(v.R.PostFormValue("path")), Text: merge.Plain(v.R.PostFormValue("text")), Message: message(v), Mode: modeRegular, Unsaved: true}
	e.newForm(&body, m, q.Get("kind"), dirOf(q.Get("dir")))
	again := func(status int, text, field string) error {
		return e.form(v, status, m, "", body, &Problem{Text: text, Field: field})
	}
	if p := e.checkText(v, m.ID, body.Path, &body); p != nil {
		return again(http.StatusUnprocessableEntity, p.Text, p.Field)
	}
	if body.Previewed {
		return e.form(v, http.StatusOK, m, "", body, nil)
	}
	p, err := space.ParsePath(body.Path)
	if err != nil {
		return again(http.StatusUnprocessableEntity, fault.PublicOf(err), "path")
	}
	if path.Base(string(p)) == ".md" {
		return again(http.StatusUnprocessableEntity, "Give the file a name before its “.md”.", "path")
	}
	taken, err := e.PathTaken(v, m.ID, p)
	if err != nil {
		return err
	}
	if taken != "" {
		return again(http.StatusConflict, taken, "path")
	}
	remark, err := e.WriteFiles(v, m.ID, space.ToolWeb, []space.Change{{Path: string(p), Op: space.Write, Content: []byte(merge.Endings("", body.Text))}}, body.Message)
	switch {
	case err == nil:
		return e.Saved(v, m, remark, DoneURL(SpaceURL(m.ID, "files", p), "created"))
	case fault.CodeOf(err) == fault.Conflict:
		return again(http.StatusConflict, "Something else is at that path by now. Choose another one, or edit what is there.", "path")
	case IsRefusal(err):
		return again(AsPage(err).Status, fault.PublicOf(err), fieldOf(err, "text"))
	}
	return err
}

// fieldOf is the input that a refusal is about: the path's, or another one.
func fieldOf(err error, other string) string {
	if space.RuleOf(err) != "" || fault.CodeOf(err) == fault.Forbidden {
		return "path" // a rule of paths, or workflow files
	}
	return other
}

// entryText is the text of a file that is edited meanwhile elsewhere; ok is false
// where it is no text.
func (e *editing) entryText(v *Visit, id space.SpaceID, f space.Entry) (string, bool, error) {
	if f.Size > e.limits.MaxFile {
		return "", false, nil
	}
	data, err := ReadContent(v.R.Context(), e.Workspace, id, f)
	return string(data), err == nil && utf8.Valid(data) && Textual(string(data)), err
}
