package library

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strings"

	"satchel/internal/bytesize"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/web"
)

// addPage is the page that adds a source. It first asks for an address, and then shows what
// Satchel found there.
type addPage struct {
	Address field
	Example example    // a source that fills in the form; empty if the page has none
	Uploads uploadForm // a source for uploaded files
	Found   *foundBody // nil before an address is recognized
	Form    *formBody
}

// uploadForm is the form that adds a source for uploaded files.
type uploadForm struct {
	Title, Readers field
	Everybody      bool
}

// foundBody is the preview of a source.
type foundBody struct {
	Address             string
	Kind, Licence, Size string
	Files               int
	More                bool // the preview has not read all files
	Titles              []string
	AllTitles           bool // Titles has all files
	Skipped             []skippedRow
	Kept                string // the preview, which the form sends again
}

func (s *pages) addPageOf(body addPage) web.Page {
	return web.Page{Title: "Add a source", Current: "library", Styles: []string{"files.css", "publishing.css", "sources.css"}, Scripts: []string{"sources.js"}, Body: body}
}

func addressField(value string, wrong bool) field {
	return field{
		ID: "source-address", Name: fieldAddress, Label: "Address", Type: "url", Value: value, Required: true, Max: maxAddress, Wrong: wrong, Example: "https://",
		Hint: "The address of a repository, a documentation site, a feed, an OpenAPI description or a YouTube playlist.",
	}
}

// example is a source that a person can try.
type example struct{ Name, Address string }

func exampleSource() example {
	return example{"Nuxt", "https://github.com/nuxt/nuxt/tree/main/docs"}
}

// showAdd handles GET /library/add. A link can fill in the address.
func (s *pages) showAdd(v *web.Visit) error {
	address := web.Shorten(v.R.URL.Query().Get(fieldAddress), maxAddress)
	return s.Page(v, http.StatusOK, "sourceadd", s.addPageOf(addPage{Address: addressField(address, false), Example: exampleSource(), Uploads: uploadFormOf("", "", false, "")}))
}

// Limits of texts, in characters: an entered address, and the title of a previewed file.
const (
	maxAddress = 2000
	maxTitle   = 120
)

// previewSource handles POST /library/add/preview. The form has the address of an upstream or,
// after the first preview, the kind and the settings that this preview found.
func (s *pages) previewSource(v *web.Visit) error {
	address, kind := strings.TrimSpace(v.R.PostFormValue(fieldAddress)), v.R.PostFormValue("kind")
	return s.Work(v, func(v *web.Visit) error {
		in := service.SyncedSourceInput{}
		in.URL = address
		form := sourceForm{Everybody: true, Every: defaultEvery}
		var info space.SourceKindInfo
		var err error
		if kind != "" {
			if info, err = s.kindOf(v, space.SourceKind(kind)); err != nil {
				return err
			}
			if form, err = readForm(v, info); err != nil {
				return s.foundAgain(v, form, info, err, fault.PublicOf(err))
			}
			in.URL, in.Kind, in.Settings = "", kind, form.Settings
		}
		p, err := s.Service.PreviewSyncedSource(v.R.Context(), v.Actor(), in)
		switch {
		case err == nil:
		case fault.CodeOf(err) == fault.Internal || errors.Is(err, context.Canceled) && v.R.Context().Err() != nil:
			return err
		case kind != "":
			return s.foundAgain(v, form, info, err, previewProblem(err))
		default:
			page := s.addPageOf(addPage{Address: addressField(address, true), Uploads: uploadFormOf("", "", false, "")})
			page.Problem, page.Field = previewProblem(err), "source-address"
			return s.Page(v, statusOf(err), "sourceadd", page)
		}
		if info, err = s.kindOf(v, p.Kind); err != nil {
			return err
		}
		form.Kind, form.Settings = p.Kind, p.Settings
		form.Title = cmp.Or(form.Title, p.Title)
		if kind != "" {
			address = addressIn(form.Settings, address)
		}
		return s.Page(v, http.StatusOK, "sourceadd", s.addPageOf(addPage{Found: foundOf(p, info, address), Form: bodyOf(form, info, false, nil)}))
	})
}

// foundAgain shows the form again, with the preview that it sent, and text about the problem.
func (s *pages) foundAgain(v *web.Visit, form sourceForm, info space.SourceKindInfo, problem error, text string) error {
	var p space.SyncPreview
	if err := json.Unmarshal([]byte(v.R.PostFormValue("found")), &p); err != nil {
		return fault.Wrap(err, fault.Invalid, "The form is not complete. Start again with the address.")
	}
	body := bodyOf(form, info, false, problem)
	page := s.addPageOf(addPage{Found: foundOf(p, info, v.R.PostFormValue(fieldAddress)), Form: body})
	page.Problem, page.Field = text, body.where()
	return s.Page(v, statusOf(problem), "sourceadd", page)
}

// previewProblem says why there is no preview. Satchel does not try again by itself before a
// source exists.
func previewProblem(err error) string {
	text := fault.PublicOf(err)
	if c := fault.CodeOf(err); c == fault.Unavailable || c == fault.Limited {
		text += " You can try again later."
	}
	return text
}

// addressIn returns the address in the settings of a source, or else the entered address.
func addressIn(settings json.RawMessage, entered string) string {
	var in struct {
		URL  string `json:"url"`
		Host string `json:"host"`
		Repo string `json:"repo"`
	}
	_ = json.Unmarshal(settings, &in) // other kinds have other settings
	switch {
	case in.URL != "":
		return in.URL
	case in.Repo != "":
		return "https://" + cmp.Or(in.Host, "github.com") + "/" + in.Repo
	}
	return entered
}

func foundOf(p space.SyncPreview, info space.SourceKindInfo, address string) *foundBody {
	kept := p
	kept.Settings, kept.Changes, kept.Titles = nil, nil, nil
	for _, t := range p.Titles {
		kept.Titles = append(kept.Titles, web.Shorten(t, maxTitle))
	}
	text, err := json.Marshal(kept)
	if err != nil {
		text = []byte("{}")
	}
	return &foundBody{
		Address: web.Shorten(address, maxAddress), AllTitles: !p.More && len(p.Titles) == p.Files,
		Kind: info.Title, Licence: web.Shorten(p.Licence, 60), Size: bytesize.Text(p.Bytes), Files: p.Files, More: p.More,
		Titles: kept.Titles, Skipped: skippedRows(p.Skipped), Kept: string(text),
	}
}

// addSource handles POST /library/add.
func (s *pages) addSource(v *web.Visit) error {
	info, err := s.kindOf(v, space.SourceKind(v.R.PostFormValue("kind")))
	if err != nil {
		return err
	}
	form, err := readForm(v, info)
	if err == nil {
		in := service.SyncedSourceInput{Source: space.Source{ID: form.ID, SourceText: form.SourceText, Everybody: form.Everybody}, Readers: form.readers()}
		in.Kind, in.Settings, in.Every = string(form.Kind), form.Settings, &form.Every
		var added space.Source
		if added, err = s.Service.AddSyncedSource(v.R.Context(), v.Actor(), in); err == nil {
			return s.See(v, sourceAt(added.ID)+"?done=added")
		}
	}
	if fault.CodeOf(err) == fault.Internal {
		return err
	}
	return s.foundAgain(v, form, info, err, fault.PublicOf(err))
}

// changePage is the page that changes a source.
type changePage struct {
	At   string
	Form *formBody
}

// showChange handles GET /library/sources/{source}/change.
func (s *pages) showChange(v *web.Visit) error {
	managed, st, err := s.managed(v)
	if err != nil {
		return err
	}
	x := managed.Source
	form := sourceForm{SourceText: x.SourceText, ID: x.ID, Everybody: x.Everybody, Readers: strings.Join(x.Readers, ", "), Every: st.Every, Kind: st.Kind, Settings: st.Settings}
	info, err := s.kindOf(v, st.Kind)
	if err != nil {
		return err
	}
	return s.changePage(v, x, form, info, nil)
}

// managed returns the source in the path and its sync, for a visitor who may change the source.
func (s *pages) managed(v *web.Visit) (service.ManagedSource, space.Sync, error) {
	id := v.R.PathValue("source")
	managed, err := s.Service.OpenSyncedSource(v.R.Context(), v.Actor(), id)
	if err != nil {
		return managed, space.Sync{}, web.Gone(err)
	}
	st, err := s.Service.ListSyncRuns(v.R.Context(), v.Actor(), service.ListSyncRunsInput{ID: id})
	return managed, st, err
}

func (s *pages) changePage(v *web.Visit, x space.Source, form sourceForm, info space.SourceKindInfo, problem error) error {
	body := changePage{At: sourceAt(x.ID), Form: bodyOf(form, info, true, problem)}
	p := web.Page{Title: "Change " + web.Shorten(x.Title, 80), Current: "library", Styles: []string{"files.css", "publishing.css", "sources.css"}, Body: body}
	status := http.StatusOK
	if problem != nil {
		status, p.Problem, p.Field = statusOf(problem), fault.PublicOf(problem), body.Form.where()
	}
	return s.Page(v, status, "sourcechange", p)
}

// changeSource handles POST /library/sources/{source}/change.
func (s *pages) changeSource(v *web.Visit) error {
	managed, st, err := s.managed(v)
	if err != nil {
		return err
	}
	info, err := s.kindOf(v, st.Kind)
	if err != nil {
		return err
	}
	form, err := readForm(v, info)
	if err == nil {
		// Settings without a field stay as they are in the source, whatever was sent.
		form.Settings, err = settingsFrom(v.R.PostFormValue, st.Settings, info.Settings)
	}
	if err == nil {
		in := service.ChangeSyncedSourceInput{ID: managed.Source.ID, Title: &form.Title, Description: &form.Description, Aliases: &form.Aliases, Everybody: &form.Everybody}
		if !sameJSON(form.Settings, st.Settings) {
			// Only a change of the settings needs the right to add such a source.
			in.Settings = form.Settings
		}
		if form.Every != st.Every {
			in.Every = &form.Every
		}
		if !form.Everybody {
			readers := form.readers()
			in.Readers = &readers
		}
		if _, err = s.Service.ChangeSyncedSource(v.R.Context(), v.Actor(), in); err == nil {
			return s.See(v, sourceAt(managed.Source.ID)+"?done=changed")
		}
	}
	if fault.CodeOf(err) == fault.Internal {
		return err
	}
	return s.changePage(v, managed.Source, form, info, err)
}

// sameJSON reports whether two texts are the same JSON.
func sameJSON(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}
