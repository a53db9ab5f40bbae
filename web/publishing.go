package web

import (
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"

	"satchel/auth/store"
	"satchel/internal/bytesize"
	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/tools"
)

// routePublishing adds the pages on which spaces are published as sources, and
// those on which published ones are read.
func (s *Server) routePublishing(add adder) {
	if s.o.Publishing == nil {
		return
	}
	add("GET /spaces/{id}/publish", LimitPage, signedIn, s.showPublish)
	add("POST /spaces/{id}/publish", LimitPage, signedIn, s.publish)
	add("POST /spaces/{id}/publish/{source}/end", LimitPage, signedIn, s.unpublish)
	add("GET /library", LimitPage, signedIn, s.showLibrary)
	add("POST /library/sync/{source}", LimitPage, signedIn, s.syncSource)
	add("GET /library/docs/{source}", LimitPage, signedIn, s.toSource)
	add("GET /library/docs/{source}/{path...}", LimitPage, signedIn, s.showShared)
	add("GET /library/raw/{source}/{path...}", LimitPage, signedIn, s.rawShared)
}

// Bounds of the page on which people publish.
const (
	previewFiles  = 40
	previewShown  = 10 // names of files with secrets
	choiceOfDirs  = 200
	maxReaderText = 8000 // characters
)

// publishPage is what an owner publishes of a space.
type publishPage struct {
	Action    string
	Published []publishedRow
	Dirs      []string
	// Preview is set once a directory is chosen; Form is then filled in.
	Preview *previewBody
	Form    publishForm
	// Changes is the source that the form is about, where it is there already.
	Changes string
}

type publishedRow struct {
	Published
	URL, Change, End string
	Where            string // what of the space
	Readers          string
	Size             string
}

type previewBody struct {
	PublishPreview
	Name        string // of the directory
	Size        string
	Shown       []previewFile
	More        int
	SecretsMore int
}

type previewFile struct{ Name, Size string }

// publishForm is what the owner wrote.
type publishForm struct {
	ID, Label, Description, Dir, Readers string
	Everybody, WithMemory                bool
	// Change tells that it is of a source that is there already.
	Change bool
}

// showPublish is GET /spaces/{id}/publish: what is published, and with ?dir= what
// publishing that would show, or with ?source= the form of one that is there.
func (s *Server) showPublish(v *visit) error {
	m, err := s.owned(v)
	if err != nil {
		return err
	}
	all, err := s.o.Publishing.Published(v.r.Context(), m.ID)
	if err != nil {
		return err
	}
	q := v.r.URL.Query()
	form := publishForm{Dir: q.Get("dir"), Everybody: true}
	if id := q.Get("source"); id != "" {
		i := slices.IndexFunc(all, func(p Published) bool { return p.ID == id })
		if i < 0 {
			return errGone
		}
		p := all[i]
		form = publishForm{ID: p.ID, Label: p.Label, Description: p.Description, Dir: p.Dir, Everybody: p.Everybody, Readers: strings.Join(p.Readers, ", "), WithMemory: true, Change: true}
		return s.publishPage(v, m, all, form, true, id, nil)
	}
	if !q.Has("dir") {
		return s.publishPage(v, m, all, publishForm{Dir: "knowledge", Everybody: true}, false, "", nil)
	}
	form.ID = freeSourceName(form.Dir, m, s.o.Publishing.Taken)
	err = s.publishPage(v, m, all, form, true, "", nil)
	if fault.CodeOf(err) == fault.Invalid {
		return s.publishPage(v, m, all, publishForm{Dir: shorten(form.Dir, 200), Everybody: true}, false, "", err)
	}
	return err
}

// freeSourceName suggests a name for a source that none has: of the directory's last
// part, of all of its parts, or with a number.
func freeSourceName(dir string, m store.Membership, taken func(string) bool) string {
	short := idOf(path.Base(strings.Trim(dir, "/")), m)
	for _, id := range []string{short, idOf(strings.Trim(dir, "/"), m)} {
		if !taken(id) {
			return id
		}
	}
	for n := 2; n < 100; n++ {
		end := "-" + strconv.Itoa(n)
		if id := strings.Trim(short[:min(len(short), maxSourceName-len(end))], "-") + end; !taken(id) {
			return id
		}
	}
	return short // who publishes it is told that it is taken
}

// maxSourceName is how long the name of a source may be.
const maxSourceName = 40

// idOf makes a name for a source of a directory's.
func idOf(dir string, m store.Membership) string {
	clean := func(text string) string {
		return strings.Trim(strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
				return r
			}
			return '-'
		}, strings.ToLower(text)), "-")
	}
	id := clean(m.OwnerName)
	if name := clean(dir); name != "" {
		id += "-" + name
	}
	if len(id) > maxSourceName {
		id = strings.Trim(id[:maxSourceName], "-")
	}
	return id
}

// publishPage answers with the page; preview tells that a directory was chosen.
func (s *Server) publishPage(v *visit, m store.Membership, all []Published, form publishForm, preview bool, changes string, problem error) error {
	body := publishPage{Action: "/spaces/" + string(m.ID) + "/publish", Form: form, Changes: changes}
	for _, p := range all {
		row := publishedRow{
			Published: p, URL: p.Mount() + "/", Change: body.Action + "?source=" + queryEscape(p.ID), End: body.Action + "/" + p.ID + "/end",
			Where: dirName(p.Dir), Size: bytesize.Text(p.Bytes), Readers: "everybody on this server",
		}
		if !p.Everybody {
			row.Readers = "nobody but you"
			if n := len(p.Readers); n > 0 {
				row.Readers = "you and " + strings.Join(p.Readers[:min(n, 5)], ", ")
				if n > 5 {
					row.Readers += ", …"
				}
			}
		}
		body.Published = append(body.Published, row)
	}
	if preview {
		p, err := s.o.Publishing.Preview(v.r.Context(), m.ID, form.Dir, previewFiles)
		if err != nil {
			return err
		}
		if p.Total == 0 && changes == "" {
			return fault.New(fault.Invalid, "There are no files in %s.", dirName(p.Dir))
		}
		body.Preview = previewOf(p)
		body.Form.Dir = p.Dir
		if p.Memory && changes == "" && problem == nil {
			body.Form.Everybody = false // what is that private is for everybody by their word alone
		}
	} else {
		dirs, err := s.directories(v, m)
		if err != nil {
			return err
		}
		body.Dirs = dirs
	}
	pg := page{Title: "Publish from " + m.Name, Wide: true, Current: "space", Space: &m, Styles: []string{"files.css", "publishing.css"}, Body: body}
	status := http.StatusOK
	if problem != nil {
		status, pg.Problem = http.StatusBadRequest, fault.PublicOf(problem)
		if fault.CodeOf(problem) == fault.Conflict {
			status = http.StatusConflict
		}
		pg.Field = "dir"
		if preview {
			pg.Field = sourceField(fault.PartOf(problem), form)
		}
	}
	return s.page(v, status, "publish", pg)
}

// sourceField is the field of the form that has a part of the request; "" where
// none has, and for a name that cannot be changed.
func sourceField(part string, form publishForm) string {
	switch part {
	case "name":
		if form.Change {
			return ""
		}
		return "source-id"
	case "title":
		return "source-label"
	case "description":
		return "source-about"
	case "readers":
		return "source-readers"
	case "memory":
		return "source-memory"
	}
	return ""
}

func previewOf(p PublishPreview) *previewBody {
	b := &previewBody{PublishPreview: p, Name: dirName(p.Dir), Size: bytesize.Text(p.Bytes), More: p.Total - len(p.Files)}
	for _, f := range p.Files {
		b.Shown = append(b.Shown, previewFile{shownPath(f.Path, 150), bytesize.Text(f.Size)})
	}
	if n := len(p.Secrets); n > previewShown {
		b.Secrets, b.SecretsMore = p.Secrets[:previewShown], n-previewShown
	}
	return b
}

// dirName is what a directory of a space is called.
func dirName(dir string) string {
	if dir == "" {
		return "the whole space"
	}
	return shorten(dir, 150) + "/"
}

// directories lists those at the top of a space.
func (s *Server) directories(v *visit, m store.Membership) ([]string, error) {
	head, err := s.o.Workspace.Head(v.r.Context(), m.ID)
	if err != nil {
		return nil, err
	}
	all, err := s.o.Workspace.Children(v.r.Context(), m.ID, head, "")
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range all {
		if e.Dir && !strings.HasPrefix(string(e.Path), ".") && len(out) < choiceOfDirs {
			out = append(out, string(e.Path))
		}
	}
	return out, nil
}

// publish is POST /spaces/{id}/publish.
func (s *Server) publish(v *visit) error {
	m, err := s.owned(v)
	if err != nil {
		return err
	}
	value := v.r.PostFormValue
	form := publishForm{
		ID: strings.TrimSpace(value("source")), Label: value("label"), Description: value("description"), Dir: value("dir"),
		Readers: shorten(value("readers"), maxReaderText), Everybody: value("audience") != "named", WithMemory: value("memory") == "yes",
		Change: value("change") == "yes",
	}
	r := PublishRequest{
		ID: form.ID, Label: form.Label, Description: form.Description, Space: m.ID, Dir: form.Dir, Everybody: form.Everybody, WithMemory: form.WithMemory,
		New: !form.Change,
	}
	if !form.Everybody { // their names count for the other choice alone
		r.Readers = strings.FieldsFunc(form.Readers, func(c rune) bool { return c == ',' || c == ';' || c == ' ' || c == '\n' || c == '\r' || c == '\t' })
	}
	if err = s.o.Publishing.Publish(v.r.Context(), v.user.ID, r); err == nil {
		return s.see(v, "/spaces/"+string(m.ID)+"/publish#published")
	}
	if c := fault.CodeOf(err); c != fault.Invalid && c != fault.Conflict {
		return err
	}
	all, failed := s.o.Publishing.Published(v.r.Context(), m.ID)
	if failed != nil {
		return failed
	}
	changes := changesOf(all, form)
	form.Change = changes != ""
	if again := s.publishPage(v, m, all, form, true, changes, err); fault.CodeOf(again) != fault.Invalid {
		return again
	}
	return s.publishPage(v, m, all, publishForm{Dir: shorten(form.Dir, 200), Everybody: true}, false, "", err)
}

// changesOf is the id where the form is about a source that is there already.
func changesOf(all []Published, form publishForm) string {
	if form.Change && slices.ContainsFunc(all, func(p Published) bool { return p.ID == form.ID && p.Dir == strings.Trim(form.Dir, "/") }) {
		return form.ID
	}
	return ""
}

// unpublish is POST /spaces/{id}/publish/{source}/end.
func (s *Server) unpublish(v *visit) error {
	m, err := s.owned(v)
	if err != nil {
		return err
	}
	if err := s.o.Publishing.Unpublish(v.r.Context(), v.user.ID, m.ID, v.r.PathValue("source")); err != nil {
		return gone(err)
	}
	return s.see(v, "/spaces/"+string(m.ID)+"/publish#published")
}

// sourceOf returns the source of the path, if the visitor may read it. Any other
// does not exist.
func (s *Server) sourceOf(v *visit) (tools.Source, error) {
	all, err := s.o.Publishing.Sources(v.r.Context(), v.user.ID)
	if err != nil {
		return tools.Source{}, err
	}
	id := v.r.PathValue("source")
	if i := slices.IndexFunc(all, func(x tools.Source) bool { return x.ID == id }); i >= 0 {
		return all[i], nil
	}
	return tools.Source{}, errGone
}

// syncSource is POST /library/sync/{source}.
func (s *Server) syncSource(v *visit) error {
	x, err := s.sourceOf(v)
	if err != nil {
		return err
	}
	if _, err := s.o.Publishing.Sync(v.r.Context(), v.user.ID, x.ID); err != nil {
		return gone(err)
	}
	return s.see(v, "/library#"+x.ID)
}

// sharedPath is the path in a source that an address names; slash tells that it
// ends in one.
func sharedPath(v *visit) (p space.Path, slash bool, err error) {
	if strings.Contains(strings.ToLower(v.r.URL.EscapedPath()), "%2f") {
		return "", false, errGone
	}
	text, slash := strings.CutSuffix(v.r.PathValue("path"), "/")
	if text == "" {
		return "", true, nil
	}
	if p, err = space.ParsePath(text); err != nil {
		return "", false, errGone
	}
	return p, slash, nil
}
