package connect

import (
	"net/http"
	"net/url"
	"path"
	"strings"

	"satchel/internal/facts"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/web"
)

// bringPage offers ways to bring existing content into a space.
type bringPage struct {
	Space     service.View
	Action    string
	Way       string // the way to import that is open: folder, import, export or questions
	URL       string
	Folder    folderForm
	Questions []answered
	Import    *service.ImportState
}

// question is a question whose answer becomes the memory fact memory/<Type>/<Key>.md.
type question struct {
	Type, Key   string
	Label, Hint string
}

// answered is a question with its answer.
type answered struct {
	question
	Value string
}

// maxAnswer limits an answer, in characters: a fact is a sentence or two.
const maxAnswer = 400

func questions() []question {
	return []question{
		{"person", "name", "What should your AIs call you?", "A name, and how you want to be addressed."},
		{"person", "work", "What do you do, and what are you working on?", "A sentence or two: your field, your project, the people in it."},
		{"preference", "answers", "How should answers be written?", "Such as: short, in British English, with sources, code in Go."},
	}
}

// showBring handles GET /spaces/{id}/bring.
func (s *pages) showBring(v *web.Visit) error {
	m, err := s.WritableSpace(v)
	if err != nil {
		return err
	}
	return s.bring(v, m, http.StatusOK, "", "")
}

func (s *pages) bring(v *web.Visit, m service.View, status int, problem, field string) error {
	return s.bringFrom(v, m, v.R.PostFormValue("url"), status, problem, field)
}

// bringFrom shows the page with the address of a repository in its form.
func (s *pages) bringFrom(v *web.Visit, m service.View, address string, status int, problem, field string) error {
	body := bringPage{Space: m, Action: "/spaces/" + string(m.ID) + "/bring", Way: path.Base(v.R.URL.Path), URL: web.Shorten(address, 300), Folder: s.folderForm(v)}
	if body.Way == "bring" {
		body.Way = "folder"
	}
	for _, q := range questions() {
		body.Questions = append(body.Questions, answered{q, v.R.PostFormValue(q.Key)})
	}
	var err error
	if body.Import, err = s.importOf(v, m.ID); err != nil {
		return err
	}
	return s.Page(v, status, "onboardingbring", web.Page{
		Title: "Import", Space: &m, Current: "bring", Scripts: []string{"import.js"}, Styles: []string{"connect.css", "editing.css", "import.css"}, Body: body, Problem: problem, Field: field,
	})
}

// answerQuestions handles POST /spaces/{id}/bring/questions.
func (s *pages) answerQuestions(v *web.Visit) error {
	m, err := s.WritableSpace(v)
	if err != nil {
		return err
	}
	var said []facts.Statement
	for _, q := range questions() {
		value := strings.Join(strings.Fields(v.R.PostFormValue(q.Key)), " ")
		if value == "" {
			continue
		}
		if n := len([]rune(value)); n > maxAnswer {
			return s.bring(v, m, http.StatusBadRequest, "Keep each answer to 400 characters. Put longer texts on a page.", q.Key)
		}
		said = append(said, facts.Statement{Type: q.Type, Key: q.Key, Value: value, Explicit: true})
	}
	if len(said) == 0 {
		return s.bring(v, m, http.StatusBadRequest, "Answer at least one of the three questions.", questions()[0].Key)
	}
	done, err := s.Service.Remember(v.R.Context(), v.Actor(), service.RememberInput{Space: service.SpaceRef{ID: m.ID}, Facts: said})
	switch {
	case web.IsRefusal(err):
		return s.bring(v, m, web.AsPage(err).Status, fault.PublicOf(err), "")
	case err != nil:
		return err
	}
	for _, f := range done.Facts {
		if f.Outcome == facts.Refused || f.Outcome == facts.Invalid {
			return s.bring(v, m, http.StatusBadRequest, "Not everything was saved: "+web.Shorten(f.Why, 300), f.Key)
		}
	}
	return s.Saved(v, m, v.Remark(space.Commit{Warnings: done.Warnings}), "/?kept")
}

// importPage shows the progress of an import.
type importPage struct {
	Space  service.View
	Import service.ImportState
	Action string
	// Every is the number of seconds until the page reloads; 0 if the import is done.
	Every int
}

// importEvery is the number of seconds until the page of a running import reloads.
const importEvery = 2

// showImport handles GET /spaces/{id}/bring/import. After a failure, the person can correct the
// address.
func (s *pages) showImport(v *web.Visit) error {
	m, err := s.WritableSpace(v)
	if err != nil {
		return err
	}
	i, err := s.importOf(v, m.ID)
	if err != nil {
		return err
	}
	if i == nil {
		return s.See(v, "/spaces/"+string(m.ID)+"/bring")
	}
	if i.Problem != "" {
		return s.bringFrom(v, m, i.From, http.StatusOK, i.Problem+" Nothing was imported.", "url")
	}
	i.Warning.Why = v.Named(i.Warning.Why)
	body := importPage{Space: m, Import: *i, Action: "/spaces/" + string(m.ID) + "/bring"}
	title := "Imported"
	if i.Running {
		title, body.Every = "Importing", importEvery
	}
	return s.Page(v, http.StatusOK, "onboardingimport", web.Page{Title: title, Space: &m, Current: "bring", Styles: []string{"connect.css"}, Body: body})
}

// importOf returns the last import into a space; nil if none is known.
func (s *pages) importOf(v *web.Visit, id space.SpaceID) (*service.ImportState, error) {
	return s.Service.GetImport(v.R.Context(), v.Actor(), service.GetImportInput{Space: service.SpaceRef{ID: id}})
}

// beginImport handles POST /spaces/{id}/bring/import.
func (s *pages) beginImport(v *web.Visit) error {
	m, err := s.WritableSpace(v)
	if err != nil {
		return err
	}
	from := strings.TrimSpace(v.R.PostFormValue("url"))
	u, err := url.Parse(from)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil {
		return s.bring(v, m, http.StatusBadRequest, "Enter the address of a public git repository that begins with https:// and has no password in it.", "url")
	}
	_, err = s.Service.StartImport(v.R.Context(), v.Actor(), service.StartImportInput{Space: service.SpaceRef{ID: m.ID}, URL: from})
	switch fault.CodeOf(err) {
	case "":
		return s.See(v, "/spaces/"+string(m.ID)+"/bring/import")
	case fault.Internal:
		return err
	}
	return s.bring(v, m, web.AsPage(err).Status, fault.PublicOf(err), "url")
}
