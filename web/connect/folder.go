package connect

import (
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"

	"satchel/internal/bytesize"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/web"
)

// folderForm is what a person enters about a folder.
type folderForm struct {
	Dir     string
	Replace bool
	// MaxFiles and MaxBytes are the limits of a folder. FileText and FolderText are the maximum
	// sizes of a file and of a folder, for people.
	MaxFiles             int
	MaxBytes             int64
	FileText, FolderText string
}

func (s *pages) folderForm(v *web.Visit) folderForm {
	return folderForm{
		Dir: web.Shorten(v.R.FormValue("dir"), space.MaxPathBytes), Replace: v.R.PostFormValue("replace") == "1",
		MaxFiles: s.Editing.MaxFiles, MaxBytes: s.Editing.MaxChange, FileText: bytesize.Text(s.Editing.MaxFile), FolderText: bytesize.Text(s.Editing.MaxChange),
	}
}

// maxFolder limits the form of a folder. Its files have names of up to a kilobyte.
func (s *pages) maxFolder() int64 {
	return s.Editing.MaxChange + int64(s.Editing.MaxFiles)*(space.MaxPathBytes+512) + web.MaxFormBytes
}

// importFolder handles POST /spaces/{id}/bring/folder. The form has the files of a folder with
// their paths, and its field act is import or preview.
func (s *pages) importFolder(v *web.Visit) error {
	m, err := s.WritableSpace(v)
	if err != nil {
		return err
	}
	again := func(status int, text, field string) error { return s.bring(v, m, status, text, field) }
	var sent []*multipart.FileHeader
	if v.R.MultipartForm != nil {
		sent = v.R.MultipartForm.File["folder"]
	}
	var total int64
	for _, h := range sent {
		total += h.Size
	}
	switch {
	case len(sent) == 0:
		return again(http.StatusUnprocessableEntity, "Choose the folder to import.", "folder")
	case len(sent) > s.Editing.MaxFiles:
		return again(http.StatusRequestEntityTooLarge, fmt.Sprintf("The folder has %d files, and %d can be imported at once. Nothing was imported. Import its subfolders one by one.", len(sent), s.Editing.MaxFiles), "folder")
	case total > s.Editing.MaxChange:
		return again(http.StatusRequestEntityTooLarge, "The folder has "+bytesize.Text(total)+", and "+bytesize.Text(s.Editing.MaxChange)+" can be imported at once. Nothing was imported. Import its subfolders one by one.", "folder")
	}
	act := v.R.PostFormValue("act")
	if !slices.Contains([]string{"preview", "import"}, act) {
		return again(http.StatusUnprocessableEntity, "Press one of the two buttons.", "folder")
	}
	form := s.folderForm(v)
	in := service.ImportFolderInput{Space: service.SpaceRef{ID: m.ID}, Dir: strings.Trim(strings.TrimSpace(v.R.PostFormValue("dir")), "/"), Replace: form.Replace, MaxFile: s.Editing.MaxFile, DryRun: act == "preview"}
	for _, h := range sent {
		p, err := web.SentPath(h)
		if err != nil {
			return err
		}
		in.Files = append(in.Files, service.FolderFile{Path: p, Size: h.Size, Open: func() (io.ReadCloser, error) { return h.Open() }})
	}
	// The script does not send hidden files. It sends their number.
	if n, err := strconv.Atoi(v.R.PostFormValue("hidden")); err == nil && n > 0 {
		in.Hidden = n
	}
	done, err := s.Service.ImportFolder(v.R.Context(), v.Actor(), in)
	switch {
	case fault.FieldOf(err) == "dir" && slices.Contains(strings.Split(in.Dir, "/"), ".."):
		return again(http.StatusBadRequest, "The directory must be inside the space. Remove “..” from the path.", "dir")
	case web.IsRefusal(err):
		return again(web.AsPage(err).Status, fault.PublicOf(v.NamedError(err)), fault.FieldOf(err))
	case err != nil:
		return err
	}
	body := exportPage{Name: "the files", Folder: true, Done: done, Paths: done.Paths}
	if len(body.Paths) > shownPaths {
		body.Paths, body.More = body.Paths[:shownPaths], body.Paths[shownPaths:]
	}
	to := space.Path(in.Dir)
	if names, n := in.Folders(); n > 0 {
		body.Name = names
		if n == 1 {
			to = space.Path(path.Join(in.Dir, names))
		}
	}
	if done.Commit != "" {
		body.Files = web.PageURL(m.ID, "files", to, "")
		body.Undo = web.SpacePath(m.ID, "revert?"+web.URLQuery("path", in.Dir))
	}
	return s.imported(v, m, body)
}

// shownPaths is the number of files that the page shows before a person asks for the others.
const shownPaths = 10
