package library

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"satchel/internal/bytesize"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/web"
)

// Limits of the page that publishes a source.
const (
	previewFiles  = 40
	previewShown  = 10   // number of names of files with secrets
	maxReaderText = 8000 // in characters
)

// publishPage is the page where an owner publishes parts of a space.
type publishPage struct {
	Action    string
	Published []publishedRow
	Dirs      []dirChoice
	Unlisted  bool // the space has more directories than Dirs
	// Preview is set after the owner has chosen a directory. Form is then complete.
	Preview *previewBody
	Form    publishForm
	// Changes is the id of the source that the form changes. It is empty for a new source.
	Changes string
}

type publishedRow struct {
	space.Source
	URL, Change, End string
	Where            string // the name of the directory for people
	Audience         string
	Size             string
	Named            bool // its ID differs from its title
}

type previewBody struct {
	service.SourcePreview
	Name        string // the name of the directory for people
	Size        string
	Shown       []previewFile
	More        int
	SecretsMore int
}

type previewFile struct{ Name, Size string }

// publishForm is the input of the owner.
type publishForm struct {
	space.SourceText
	ID, Dir, Readers      string
	Everybody, WithMemory bool
	// Change reports whether the form changes an existing source.
	Change bool
}

// showPublish handles GET /spaces/{id}/publish. It lists the published sources. With ?dir=
// it previews the publication of a directory. With ?source= it shows the form of an
// existing source.
func (s *pages) showPublish(v *web.Visit) error {
	m, err := s.OwnedSpace(v)
	if err != nil {
		return err
	}
	all, err := s.Service.ListPublished(v.R.Context(), v.Actor(), service.ListPublishedInput{Space: service.SpaceRef{ID: m.ID}})
	if err != nil {
		return err
	}
	q := v.R.URL.Query()
	form := publishForm{Dir: q.Get("dir"), Everybody: true}
	if id := q.Get("source"); id != "" {
		i := slices.IndexFunc(all, func(p space.Source) bool { return p.ID == id })
		if i < 0 {
			return web.ErrGone
		}
		p := all[i]
		form = publishForm{ID: p.ID, SourceText: p.SourceText, Dir: string(p.Dir), Everybody: p.Everybody, Readers: strings.Join(p.Readers, ", "), WithMemory: true, Change: true}
		return s.publishPage(v, m, all, form, true, id, nil)
	}
	if !q.Has("dir") {
		return s.publishPage(v, m, all, publishForm{Dir: "knowledge", Everybody: true}, false, "", nil)
	}
	form.ID, err = s.Service.SuggestSourceID(v.R.Context(), v.Actor(), service.SuggestSourceIDInput{Space: service.SpaceRef{ID: m.ID}, Dir: form.Dir})
	if err != nil {
		return err
	}
	err = s.publishPage(v, m, all, form, true, "", nil)
	if fault.CodeOf(err) == fault.Invalid {
		return s.publishPage(v, m, all, publishForm{Dir: web.Shorten(form.Dir, 200), Everybody: true}, false, "", err)
	}
	return err
}

// publishPage shows the page. preview reports whether the owner has chosen a directory.
func (s *pages) publishPage(v *web.Visit, m service.View, all []space.Source, form publishForm, preview bool, changes string, problem error) error {
	body := publishPage{Action: "/spaces/" + string(m.ID) + "/publish", Form: form, Changes: changes}
	for _, p := range all {
		row := publishedRow{
			Source: p, URL: p.Mount() + "/", Change: body.Action + "?source=" + url.QueryEscape(p.ID), End: body.Action + "/" + p.ID + "/end",
			Where: dirName(string(p.Dir)), Size: bytesize.Text(p.Bytes), Audience: "everybody on this server", Named: !isNameOf(p.ID, p.Title),
		}
		if !p.Everybody {
			row.Audience = "nobody but you"
			if n := len(p.Readers); n > 0 {
				row.Audience = "you and " + strings.Join(p.Readers[:min(n, 5)], ", ")
				if n > 5 {
					row.Audience += ", …"
				}
			}
		}
		body.Published = append(body.Published, row)
	}
	if preview {
		p, err := s.Service.PreviewSource(v.R.Context(), v.Actor(), service.PreviewSourceInput{Space: service.SpaceRef{ID: m.ID}, Dir: form.Dir, Limit: previewFiles})
		if err != nil {
			return err
		}
		if p.Total == 0 && changes == "" {
			return fault.New(fault.Invalid, "There are no files in %s. Choose another directory.", dirName(string(p.Dir)))
		}
		body.Preview = previewOf(p)
		body.Form.Dir = string(p.Dir)
		if p.Memory && changes == "" && problem == nil {
			body.Form.Everybody = false // memory is private, so the owner must choose everybody explicitly
		}
	} else {
		var err error
		if body.Dirs, body.Unlisted, err = directoriesOf(v, m, form.Dir); err != nil {
			return err
		}
		// After an error, the choice stays as it was.
		if problem != nil && !slices.ContainsFunc(body.Dirs, func(d dirChoice) bool { return d.Selected }) {
			body.Dirs = slices.Insert(body.Dirs, 0, dirChoice{form.Dir, dirName(web.ShownPath(form.Dir, 120)), true})
		}
	}
	title := "Publishing"
	switch {
	case changes != "":
		title = "Change " + web.Shorten(cmp.Or(form.Title, changes), 80)
	case preview:
		title = "Publish " + dirName(body.Form.Dir)
	}
	pg := web.Page{Title: title, Label: m.Name, Current: "space", Space: &m, Styles: []string{"files.css", "publishing.css"}, Body: body}
	status := http.StatusOK
	if problem != nil {
		status, pg.Problem = http.StatusBadRequest, fault.PublicOf(problem)
		if fault.CodeOf(problem) == fault.Conflict {
			status = http.StatusConflict
		}
		pg.Field = "dir"
		if preview {
			pg.Field = sourceField(fault.FieldOf(problem), form)
		}
	}
	return s.Page(v, status, "publish", pg)
}

// sourceField returns the id of the input for a field of a source. It returns "" if the
// form has no such input, or if the name cannot be changed.
func sourceField(field string, form publishForm) string {
	if field == "" || field == space.SourceDir || field == space.SourceName && form.Change {
		return ""
	}
	return "source-" + field
}

func previewOf(p service.SourcePreview) *previewBody {
	b := &previewBody{SourcePreview: p, Name: dirName(string(p.Dir)), Size: bytesize.Text(p.Bytes), More: p.Total - len(p.Files)}
	for _, f := range p.Files {
		b.Shown = append(b.Shown, previewFile{web.ShownPath(f.Path, 150), bytesize.Text(f.Size)})
	}
	if n := len(p.Secrets); n > previewShown {
		b.Secrets, b.SecretsMore = p.Secrets[:previewShown], n-previewShown
	}
	return b
}

// dirName returns the name of a directory for people.
func dirName(dir string) string {
	if dir == "" {
		return "the whole space"
	}
	return web.Shorten(dir, 150) + "/"
}

// publish handles POST /spaces/{id}/publish.
func (s *pages) publish(v *web.Visit) error {
	m, err := s.OwnedSpace(v)
	if err != nil {
		return err
	}
	value := v.R.PostFormValue
	form := publishForm{
		ID: strings.TrimSpace(value("source")), Dir: value("dir"),
		Readers: web.Shorten(value("readers"), maxReaderText), Everybody: value("audience") != "named", WithMemory: value("memory") == "yes",
		Change: value("change") == "yes",
	}
	for _, f := range form.Fields() {
		*f.Text = value(f.Name)
	}
	r := service.PublishSourceInput{
		Space:  service.SpaceRef{ID: m.ID},
		Source: space.Source{ID: form.ID, SourceText: form.SourceText, Dir: space.Path(form.Dir), Everybody: form.Everybody},
	}
	r.WithMemory, r.New = form.WithMemory, !form.Change
	if !form.Everybody { // the names count only if not everybody may read
		r.Readers = strings.FieldsFunc(form.Readers, func(c rune) bool { return c == ',' || c == ';' || c == ' ' || c == '\n' || c == '\r' || c == '\t' })
	}
	if _, err = s.Service.PublishSource(v.R.Context(), v.Actor(), r); err == nil {
		return s.See(v, "/spaces/"+string(m.ID)+"/publish#published")
	}
	if c := fault.CodeOf(err); c != fault.Invalid && c != fault.Conflict {
		return err
	}
	all, failed := s.Service.ListPublished(v.R.Context(), v.Actor(), service.ListPublishedInput{Space: r.Space})
	if failed != nil {
		return failed
	}
	changes := changesOf(all, form)
	form.Change = changes != ""
	if again := s.publishPage(v, m, all, form, true, changes, err); fault.CodeOf(again) != fault.Invalid {
		return again
	}
	return s.publishPage(v, m, all, publishForm{Dir: web.Shorten(form.Dir, 200), Everybody: true}, false, "", err)
}

// changesOf returns the id of the existing source that a form changes, or "" if there is
// none.
func changesOf(all []space.Source, form publishForm) string {
	if form.Change && slices.ContainsFunc(all, func(p space.Source) bool { return p.ID == form.ID && string(p.Dir) == strings.Trim(form.Dir, "/") }) {
		return form.ID
	}
	return ""
}

// unpublish handles POST /spaces/{id}/publish/{source}/end.
func (s *pages) unpublish(v *web.Visit) error {
	if _, err := s.Service.UnpublishSource(v.R.Context(), v.Actor(), service.UnpublishSourceInput{ID: v.R.PathValue("source")}); err != nil {
		return web.Gone(err)
	}
	return s.See(v, "/spaces/"+v.R.PathValue("id")+"/publish#published")
}

// snapshot opens the source in the path if the visitor may read it.
func (s *pages) snapshot(v *web.Visit) (service.Snapshot, error) {
	x, err := s.Service.OpenSource(v.R.Context(), v.Actor(), v.R.PathValue("source"))
	if err != nil {
		return x, web.Gone(err)
	}
	return x, nil
}

// syncSource handles POST /library/sync/{source}.
func (s *pages) syncSource(v *web.Visit) error {
	if _, err := s.Service.SyncSource(v.R.Context(), v.Actor(), service.SyncSourceInput{ID: v.R.PathValue("source"), Background: true}); err != nil {
		return web.Gone(err)
	}
	return s.See(v, "/library?done=started#"+v.R.PathValue("source"))
}

// sharedPath returns the path inside a source. slash reports whether the address ends in a
// slash.
func sharedPath(v *web.Visit) (p space.Path, slash bool, err error) {
	if strings.Contains(strings.ToLower(v.R.URL.EscapedPath()), "%2f") {
		return "", false, web.ErrGone
	}
	text, slash := strings.CutSuffix(v.R.PathValue("path"), "/")
	if text == "" {
		return "", true, nil
	}
	if p, err = space.ParsePath(text); err != nil {
		return "", false, web.ErrGone
	}
	return p, slash, nil
}
