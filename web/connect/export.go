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

// exportPage shows what an import of an export or a folder did, or would do.
type exportPage struct {
	Action string
	Name   string // of the file or folder
	Folder bool
	Done   service.ImportedMemory
	Commit string // the address of the commit
	// Files is the address of the imported folder, and Undo that of the form that undoes the
	// commit. Both are empty if nothing changed, or for an export.
	Files, Undo string
	// Paths are the first files of a folder that the import creates or replaces, and More the others.
	Paths, More []string
}

// PageCount returns the number of pages that the import created or replaced.
func (p exportPage) PageCount() int { return p.Done.Pages.Added + p.Done.Pages.Replaced }

// importExport handles POST /spaces/{id}/bring/export. The form has the file, and its
// field act is import or preview.
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
	return s.imported(v, m, exportPage{Name: sent.Filename, Done: done})
}

// imported shows the result of an import.
func (s *pages) imported(v *web.Visit, m service.View, body exportPage) error {
	body.Action = "/spaces/" + string(m.ID) + "/bring"
	title := "Imported"
	switch {
	case body.Done.DryRun:
		title = "Preview of the import"
	case body.Done.Commit != "":
		body.Commit = web.SpacePath(m.ID, "commits/"+string(body.Done.Commit))
	}
	for i := range body.Done.Warning {
		body.Done.Warning[i].Why = v.Named(body.Done.Warning[i].Why)
	}
	return s.Page(v, http.StatusOK, "onboardingexport", web.Page{Title: title, Space: &m, Current: "bring", Scripts: []string{"import.js"}, Styles: []string{"connect.css", "editing.css", "import.css"}, Body: body})
}
