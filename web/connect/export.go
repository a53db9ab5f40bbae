package connect

import (
	"net/http"
	"slices"

	"satchel/internal/exports"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/web"
)

// maxExport limits an uploaded export, with the rest of its form.
func maxExport() int64 { return exports.Limits{}.WithDefaults().Archive + web.MaxFormBytes }

// exportPage shows what an import of an export did, or would do.
type exportPage struct {
	Action string
	Name   string // of the file
	Done   service.ImportedMemory
	Commit string // the address of the commit
}

// importExport handles POST /spaces/{id}/bring/export. The form has the file and, as act,
// import or preview.
func (s *pages) importExport(v *web.Visit) error {
	m, err := s.WritableSpace(v)
	if err != nil {
		return err
	}
	again := func(status int, text string) error { return s.bring(v, m, status, text, "export") }
	if v.R.MultipartForm == nil || len(v.R.MultipartForm.File["export"]) != 1 {
		return again(http.StatusUnprocessableEntity, "Choose the file to import.")
	}
	sent := v.R.MultipartForm.File["export"][0]
	if sent.Filename == "" {
		return again(http.StatusUnprocessableEntity, "Choose the file to import.")
	}
	act := v.R.PostFormValue("act")
	if !slices.Contains([]string{"preview", "import"}, act) {
		return again(http.StatusUnprocessableEntity, "Press one of the two buttons.")
	}
	f, err := sent.Open()
	if err != nil {
		return err
	}
	defer f.Close()
	done, err := s.Service.ImportMemory(v.R.Context(), v.Actor(), service.ImportMemoryInput{
		Space: service.SpaceRef{ID: m.ID}, Name: sent.Filename, DryRun: act == "preview", Stream: f,
	})
	switch {
	case web.IsRefusal(err), fault.CodeOf(err) == fault.Unavailable:
		return again(web.AsPage(err).Status, fault.PublicOf(err))
	case err != nil:
		return err
	}
	body := exportPage{Action: "/spaces/" + string(m.ID) + "/bring", Name: sent.Filename, Done: done}
	title := "Imported"
	switch {
	case done.DryRun:
		title = "What the import would do"
	case done.Commit != "":
		body.Commit = "/spaces/" + string(m.ID) + "/commits/" + string(done.Commit)
	}
	return s.Page(v, http.StatusOK, "onboardingexport", web.Page{Title: title, Space: &m, Current: "bring", Styles: []string{"connect.css"}, Body: body})
}
