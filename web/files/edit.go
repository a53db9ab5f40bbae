package files

import (
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"satchel/internal/bytesize"
	"satchel/internal/facts"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/web"
	"satchel/web/merge"
	"satchel/web/render"
)

// editPage is the page that edits the text of a file.
type editPage struct {
	Action, Back string
	New          bool
	Path         string // the path of a new file, as the visitor typed it
	Example      string // a path for a file of the chosen kind
	Kinds        []newKind
	Dir          string
	Text         string
	Message      string
	Base         space.BlobID // the blob that the text started from; empty for a new file
	Mode         string
	// Unsaved reports whether the page has text that is not in the file.
	Unsaved bool
	Max     int64 // maximum size of the text in bytes
	// Previewed reports whether the page shows a preview. Preview is the rendered text if
	// the file is Markdown.
	Previewed bool
	Preview   *render.Document
	// Marked is the number of merge marks left in the text.
	Marked   int
	Conflict *conflict
	// Rename and Delete are the addresses of the pages that rename and delete an existing file.
	Rename, Delete string
	Waits          string // address of the page to review the file's change; empty if none waits
	Crumbs         []web.Crumb
	Markdown       bool // the text is Markdown
}

// editorScript replaces the text field with an editor. The command scripts/editor builds it.
const editorScript = "editor.js"

// Forms send modes as these values.
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

// editable returns the text of a file. The error says why a page cannot edit the file.
func (s *pages) editable(v *web.Visit, f found) (string, error) {
	switch {
	case f.Dir:
		return "", fault.New(fault.Invalid, "This is a directory. Open one of its files, or create a new one in it.")
	case f.Mode == space.Symlink:
		return "", fault.New(fault.Invalid, "This is a link to another file. Edit that file.")
	case f.Size > s.Editing.MaxText:
		return "", errLong(s.Editing.MaxText)
	}
	data, err := web.ReadContent(v.R.Context(), f.View, f.Entry)
	if err != nil {
		return "", err
	}
	if int64(len(data)) > s.Editing.MaxText {
		return "", errLong(s.Editing.MaxText)
	}
	if !web.Textual(string(data)) {
		return "", fault.New(fault.Invalid, "This file is not text, so it cannot be edited here. Upload a new version instead.")
	}
	return string(data), nil
}

func errLong(most int64) error {
	return fault.New(fault.TooLarge, "This file is larger than the %s that can be edited in a page. Change it with an AI, or upload a new version.", bytesize.Text(most))
}

// showEdit handles GET /spaces/{id}/edit/{path...}.
func (s *pages) showEdit(v *web.Visit) error {
	f, err := s.target(v)
	if fault.CodeOf(err) == fault.NotFound {
		return web.ErrGone
	}
	if err != nil {
		return err
	}
	text, err := s.editable(v, f)
	if err != nil {
		p := web.AsPage(err)
		return &web.PageError{Status: p.Status, Title: "That cannot be edited here", Text: p.Text}
	}
	return s.form(v, http.StatusOK, f.View, f.path, editPage{Text: merge.Plain(text), Base: f.Blob, Mode: modeName(f.Mode)}, nil)
}

// form shows the page that edits the file at p, or a new file if body.New is set. problem
// describes a problem with the input, or is nil.
func (s *pages) form(v *web.Visit, status int, m service.View, p space.Path, body editPage, problem *web.Problem) error {
	body.Max = s.Editing.MaxText
	title := "New file"
	if body.New {
		body.Crumbs = crumbsOf(m, space.Path(body.Dir))
	} else {
		l := web.Location{Space: m, Path: p}
		body.Crumbs, title = l.Crumbs(), "Edit "+l.Name()
		if c := body.Conflict; c != nil {
			did := "changed"
			if c.MovedTo != "" {
				did = "was moved"
			} else if c.Gone {
				did = "was deleted"
			}
			title = l.Name() + " " + did + " while you edited it"
		}
		body.Action = web.SpaceURL(m.ID, "edit", p)
		if body.Back == "" {
			body.Back = web.SpaceURL(m.ID, "files", p)
		}
		body.Rename, body.Delete = web.SpaceURL(m.ID, "rename", p), web.SpaceURL(m.ID, "delete", p)
		body.Waits = s.waitsAt(v, m, p)
	}
	out := web.Page{Title: title, Space: &m, Current: "files", Wide: true, Styles: []string{"files.css", "editing.css"}, Scripts: []string{"editing.js"}, Body: &body}
	if body.Markdown = body.New || web.IsMarkdown(string(p)); s.HasAsset(editorScript) {
		out.Scripts = append(out.Scripts, editorScript)
	}
	if problem != nil {
		out.Problem, out.Field = problem.Text, problem.Field
		switch c := body.Conflict; {
		case problem.Field != "text":
		case merge.Marked(body.Text) > 0:
			out.FieldLink = "Go to the first mark"
		case c != nil && (c.Gone || c.NoText):
			out.FieldLink = "Go to your text"
		case c != nil:
			out.FieldLink = "Go to the merged text"
		}
	}
	return s.Page(v, status, "edit", out)
}

// waitsAt returns the address of the page to review an AI's change to a file. It returns ""
// if no change waits.
func (s *pages) waitsAt(v *web.Visit, m service.View, p space.Path) string {
	known, err := m.Reviews(v.R.Context())
	if err != nil || !slices.ContainsFunc(known.Waiting, func(r space.Review) bool { return r.Path == p }) {
		return "" // the visitor can edit the file without this address
	}
	return web.SpacePath(m.ID, "reviews?"+web.URLQuery("path", string(p)))
}

// saveEdit handles POST /spaces/{id}/edit/{path...}. It previews or commits the text.
func (s *pages) saveEdit(v *web.Visit) error {
	f, err := s.target(v)
	there := err == nil
	if err != nil && (f.path == "" || fault.CodeOf(err) != fault.NotFound) {
		return err
	}
	if there && (f.Dir || f.Mode == space.Symlink) {
		return fault.New(fault.Conflict, "Since you opened the editor, something that is not a text file has replaced %s. Nothing was changed.", f.path)
	}
	body := editPage{Text: merge.Plain(v.R.PostFormValue("text")), Message: message(v), Base: space.BlobID(v.R.PostFormValue("base")), Mode: v.R.PostFormValue("mode"), Unsaved: true}
	if body.Base != "" && !body.Base.Valid() {
		return web.BadForm(errNoBase)
	}
	if !there {
		body.Back = dirURL(f.ID, s.nearest(v, f.View, "", f.path))
	}
	if p := s.checkText(v, f.View, string(f.path), &body); p != nil || body.Previewed {
		if body.Conflict, err = s.stillOpen(v, f, there); err != nil {
			return err
		}
		status := http.StatusOK
		if p != nil {
			status = http.StatusUnprocessableEntity
		}
		return s.form(v, status, f.View, f.path, body, p)
	}
	if there && f.Blob != body.Base || !there && body.Base != "" {
		return s.collide(v, f, there, body)
	}
	base, err := s.baseText(v, f.View, body.Base)
	if err != nil {
		return err
	}
	remark, err := s.WriteFiles(v, f.ID, space.ToolWeb, []space.Change{{
		Path: string(f.path), Op: space.Write, Content: []byte(merge.Endings(base, body.Text)),
		Mode: modeOf(body.Mode), Base: body.Base, BaseMode: modeOf(body.Mode),
	}}, body.Message)
	switch {
	case err == nil:
		return s.Saved(v, f.View, remark, web.DoneURL(web.SpaceURL(f.ID, "files", f.path), "saved"))
	case fault.CodeOf(err) == fault.Conflict:
		// Meanwhile the file changed, a directory replaced it, or a file replaced a
		// directory above it.
		now, ok, lerr := f.Find(v.R.Context(), "", f.path)
		if lerr != nil {
			return lerr
		}
		if ok && !now.Dir && now.Mode != space.Symlink && now.Blob != body.Base || !ok && body.Base != "" {
			f.Entry = now
			return s.collide(v, f, ok, body)
		}
		return s.form(v, http.StatusConflict, f.View, f.path, body, &web.Problem{Text: fault.PublicOf(err), Field: "text"})
	case web.IsRefusal(err):
		return s.form(v, web.AsPage(err).Status, f.View, f.path, body, &web.Problem{Text: fault.PublicOf(err), Field: "text"})
	}
	return err
}

// checkText checks the text and the message. If the form asks for a preview, checkText creates one.
func (s *pages) checkText(v *web.Visit, m service.View, p string, body *editPage) *web.Problem {
	switch {
	case int64(len(body.Text)) > s.Editing.MaxText:
		return &web.Problem{Text: "The text has " + bytesize.Text(int64(len(body.Text))) + ", and " + bytesize.Text(s.Editing.MaxText) + " can be edited in a page.", Field: "text"}
	case len(body.Message) > maxMessage:
		return &web.Problem{Text: "The line is too long. Use fewer words.", Field: "message"}
	}
	if v.R.PostFormValue("act") == "preview" {
		s.preview(v, m, p, body)
		return nil
	}
	if body.Marked = merge.Marked(body.Text); body.Marked > 0 && v.R.PostFormValue("marks") == "" {
		return &web.Problem{Text: web.Plural((body.Marked+2)/3, "Not saved: one place still has marks. Choose which lines to keep there, then save.", "Not saved: %d places still have marks. Choose which lines to keep at each place, then save."), Field: "text"}
	}
	return nil
}

// baseText returns the content of the blob from which a text started. It returns "" for no
// blob.
func (s *pages) baseText(v *web.Visit, m service.View, b space.BlobID) (string, error) {
	if b == "" {
		return "", nil
	}
	data, err := m.ReadBlob(v.R.Context(), b)
	return string(data), err
}

// newKind is a template for a new file.
type newKind struct {
	Name, Label, Hint, URL string
	Chosen                 bool
}

// kindTexts describes the kinds by their names: what the path and the text of a new file begin as,
// an example of a path, and what completes a path whose last name has no dot.
var kindTexts = map[string]struct{ path, text, example, end string }{
	"":         {"", "", "knowledge/cooking/bread.md", ""},
	"note":     {"knowledge/", "# \n\n", "knowledge/bread.md", ".md"},
	"fact":     {"memory/preference/", "", "memory/preference/seat.md", ".md"},
	"resource": {"resources/", "---\ntitle: \ndescription: What clients find here, in one sentence.\n---\n\n# \n\n", "resources/style-guide.md", ".md"},
	"skill":    {"skills/", "---\nname: \ndescription: When to use this, in one sentence.\n---\n\n# \n\n1. \n", "skills/bake-bread/SKILL.md", "/SKILL.md"},
}

// completed returns the path of a new file of a kind, with the usual ending if the typed path has
// none.
func completed(kind, typed string) string {
	end := kindTexts[kind].end
	if strings.HasSuffix(typed, "/") || strings.HasSuffix(typed, ".") || usualEnding.MatchString(typed) {
		return typed
	}
	return typed + end
}

// usualEnding matches the ending of a file's name, such as .md, and no version such as .2.
var usualEnding = regexp.MustCompile(`\.[A-Za-z][A-Za-z0-9]{0,9}$`)

func kindsOf(id space.SpaceID, chosen, dir string) []newKind {
	out := make([]newKind, 0, 5)
	for _, k := range []newKind{
		{Name: "", Label: "Blank file", Hint: "No text yet"},
		{Name: "note", Label: "Note", Hint: "A decision, an idea"},
		{Name: "fact", Label: "Memory fact", Hint: "For all your AIs"},
		{Name: "skill", Label: "Skill", Hint: "Steps to repeat"},
		{Name: "resource", Label: "Resource", Hint: "A page for clients"},
	} {
		k.Chosen = k.Name == chosen
		k.URL = "/spaces/" + string(id) + "/new?" + url.Values{"dir": {dir}, "kind": {k.Name}}.Encode()
		out = append(out, k)
	}
	return out
}

// dirOf returns the directory in a request, or the root if the name is invalid.
func dirOf(q string) string {
	q = strings.Trim(q, "/")
	if _, err := space.ParsePath(q); err != nil {
		return ""
	}
	return q
}

// showNew handles GET /spaces/{id}/new.
func (s *pages) showNew(v *web.Visit) error {
	m, err := s.WritableSpace(v)
	if err != nil {
		return err
	}
	dir, kind := newQuery(v)
	start := kindTexts[kind]
	body := editPage{Path: start.path, Text: start.text, Mode: modeRegular}
	if kind == "fact" {
		body.Text = string(facts.Template(s.Now()))
	}
	if dir != "" && (kind == "" || kind == "note") {
		body.Path = dir + "/"
	}
	s.newForm(&body, m, kind, dir)
	return s.form(v, http.StatusOK, m, "", body, nil)
}

// newQuery returns the directory and the kind of a new file in an address.
func newQuery(v *web.Visit) (dir, kind string) {
	q := v.R.URL.Query()
	if kind = q.Get("kind"); kindTexts[kind].end == "" {
		kind = ""
	}
	return dirOf(q.Get("dir")), kind
}

func (s *pages) newForm(body *editPage, m service.View, kind, dir string) {
	body.New, body.Dir, body.Example = true, dir, kindTexts[kind].example
	body.Action, body.Back = "/spaces/"+string(m.ID)+"/new?"+url.Values{"dir": {dir}, "kind": {kind}}.Encode(), dirURL(m.ID, space.Path(dir))
	body.Kinds = kindsOf(m.ID, kind, dir)
}

// saveNew handles POST /spaces/{id}/new.
func (s *pages) saveNew(v *web.Visit) error {
	m, err := s.WritableSpace(v)
	if err != nil {
		return err
	}
	dir, kind := newQuery(v)
	body := editPage{Path: strings.TrimSpace(v.R.PostFormValue("path")), Text: merge.Plain(v.R.PostFormValue("text")), Message: message(v), Mode: modeRegular, Unsaved: true}
	s.newForm(&body, m, kind, dir)
	again := func(status int, text, field string) error {
		return s.form(v, status, m, "", body, &web.Problem{Text: text, Field: field})
	}
	if p := s.checkText(v, m, completed(kind, body.Path), &body); p != nil {
		return again(http.StatusUnprocessableEntity, p.Text, p.Field)
	}
	if body.Previewed {
		return s.form(v, http.StatusOK, m, "", body, nil)
	}
	if strings.HasSuffix(body.Path, "/") {
		return again(http.StatusUnprocessableEntity, "The path ends with a slash. Add a name for the file, such as "+body.Example+".", "path")
	}
	p, err := space.ParsePath(completed(kind, body.Path))
	if err != nil {
		return again(http.StatusUnprocessableEntity, wrongPath(body.Path, err), "path")
	}
	if path.Base(string(p)) == ".md" {
		return again(http.StatusUnprocessableEntity, "Give the file a name before its “.md”.", "path")
	}
	taken, err := web.PathTaken(v, m, p)
	if err != nil {
		return err
	}
	if taken != "" {
		return again(http.StatusConflict, taken, "path")
	}
	remark, err := s.WriteFiles(v, m.ID, space.ToolWeb, []space.Change{{Path: string(p), Op: space.Write, Content: []byte(merge.Endings("", body.Text))}}, body.Message)
	switch {
	case err == nil:
		return s.Saved(v, m, remark, web.DoneURL(web.SpaceURL(m.ID, "files", p), "created"))
	case fault.CodeOf(err) == fault.Conflict:
		return again(http.StatusConflict, "Something else is now at that path. Choose another path, or edit what is there.", "path")
	case web.IsRefusal(err):
		return again(web.AsPage(err).Status, fault.PublicOf(err), fieldOf(err, "text"))
	}
	return err
}

// wrongPath says why a typed path cannot be used.
func wrongPath(typed string, err error) string {
	if strings.HasPrefix(typed, "/") {
		return "The path cannot begin with “/”. Start at the top of the space, such as knowledge/bread.md."
	}
	if slices.Contains(strings.Split(typed, "/"), "..") {
		return "The path cannot contain “..”. Start at the top of the space, such as knowledge/bread.md."
	}
	return fault.PublicOf(err)
}

// fieldOf returns the input that an error concerns: "path" or other.
func fieldOf(err error, other string) string {
	if space.RuleOf(err) != "" || fault.CodeOf(err) == fault.Forbidden {
		return "path" // the error concerns a rule about paths or workflow files
	}
	return other
}

// entryText returns the current text of a file. ok is false if the file is not text or is
// too large.
func (s *pages) entryText(v *web.Visit, m service.View, f space.Entry) (string, bool, error) {
	if f.Size > s.Editing.MaxFile {
		return "", false, nil
	}
	data, err := web.ReadContent(v.R.Context(), m, f)
	return string(data), err == nil && utf8.Valid(data) && web.Textual(string(data)), err
}

// preview renders a Markdown text. It does not render other texts, or texts above the
// limits of a page.
func (s *pages) preview(v *web.Visit, m service.View, p string, body *editPage) {
	body.Previewed = true
	if !web.IsMarkdown(p) {
		return
	}
	at := placeOf(listsOf(v, web.Location{Space: m, Path: space.Path(p)}), space.Path(p))
	at.Under = 2 // below the headings of the page and of the preview
	if doc, ok := render.Markdown([]byte(body.Text), at); ok {
		body.Preview = &doc
	}
}
