package library

import (
	"net/http"
	"strings"

	"satchel/internal/bytesize"
	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/web"
)

// maxUploads is the maximum size of a form with files, in bytes. The limit of each file is
// upstream.MaxUpload.
const maxUploads = 128 << 20

// uploadBody is the part of a source's page where people upload and remove files. It is shown if
// At is set.
type uploadBody struct {
	At          string // the address of the source's page
	Transcripts bool   // people may upload only transcripts, because the source follows YouTube
	LeftOut     []space.UploadedFile
	// Files are the first files of a source that has only uploads. More counts the rest.
	Files []heldFile
	More  int
}

// heldFile is a file of a source that has only uploads.
type heldFile struct{ Path, Name, URL, Size string }

// uploadsOf returns the part of the page for a source that takes uploads.
func (s *pages) uploadsOf(p *sourcePage) uploadBody {
	if !p.Sync.Kind.TakesUploads() {
		return uploadBody{}
	}
	return uploadBody{At: p.At, Transcripts: p.Sync.Kind != space.SourceUpload}
}

// Only reports whether the source has only files that people upload.
func (b uploadBody) Only() bool { return b.At != "" && !b.Transcripts }

// namesShown limits the changed files that an update names.
const namesShown = 3

// nameUploads adds the files of a source that has only uploads, and the names of the files that
// each listed update changed.
func (s *pages) nameUploads(v *web.Visit, body *sourcePage) error {
	ctx := v.R.Context()
	managed, err := s.Service.OpenSyncedSource(ctx, v.Actor(), body.Source.ID)
	if err != nil || managed.Source.Commit == "" {
		return err
	}
	all, err := managed.Files(ctx, managed.Source.Commit, "")
	if err != nil {
		return web.Gone(err)
	}
	shown, more := web.FirstOf(all, v.R.URL.Query().Has("all"))
	body.Uploads.More = more
	for _, e := range shown {
		f := heldFile{Path: string(e.Path), Name: web.ShownPath(e.Path, 150), Size: bytesize.Text(e.Size)}
		if body.Reads {
			f.URL = sharedURL(managed.Source, e.Path)
		}
		body.Uploads.Files = append(body.Uploads.Files, f)
	}
	for i, r := range body.Runs {
		if r.Diff == "" {
			continue
		}
		_, from, _ := completeRun(body.Sync.Runs, r.ID)
		files, total, err := managed.Changes(ctx, from, r.Commit, "", namesShown)
		if ctx.Err() != nil {
			return err
		}
		if err != nil { // an old commit that cannot be read
			continue
		}
		for _, f := range files {
			body.Runs[i].Names = append(body.Runs[i].Names, web.ShownPath(f.Path, 80))
		}
		body.Runs[i].More = total - len(files)
	}
	return nil
}

// canManage returns an error if the visitor may not change the source in the path.
func (s *pages) canManage(v *web.Visit) error {
	_, _, err := s.managed(v)
	return err
}

// addUploads handles POST /library/add/upload, which adds a source for uploaded files.
func (s *pages) addUploads(v *web.Visit) error {
	title := strings.TrimSpace(v.R.PostFormValue("title"))
	form := sourceForm{Everybody: v.R.PostFormValue("audience") == "all", Readers: web.Shorten(v.R.PostFormValue(space.SourceReaders), maxReaderText)}
	again := func(status int, problem, field string) error {
		if field != space.SourceReaders {
			field = "title"
		}
		page := s.addPageOf(addPage{Address: addressField("", false), Uploads: uploadFormOf(title, form.Readers, form.Everybody, field)})
		page.Problem, page.Field = problem, "upload-"+field
		return s.Page(v, status, "sourceadd", page)
	}
	if title == "" {
		return again(http.StatusUnprocessableEntity, "Enter a title.", "title")
	}
	in := service.SyncedSourceInput{Source: space.Source{SourceText: space.SourceText{Title: title}, Everybody: form.Everybody}, Readers: form.readers()}
	in.Kind = string(space.SourceUpload)
	added, err := s.Service.AddSyncedSource(v.R.Context(), v.Actor(), in)
	switch {
	case web.IsRefusal(err):
		return again(statusOf(err), fault.PublicOf(err), fault.FieldOf(err))
	case err != nil:
		return err
	}
	return s.See(v, sourceAt(added.ID)+"?done=created")
}

// uploadFormOf returns the form with its values. wrong names the field that has a problem.
func uploadFormOf(title, readers string, everybody bool, wrong string) uploadForm {
	f := uploadForm{
		Title:     field{ID: "upload-title", Name: "title", Label: "Title", Value: title, Required: true, Max: 100, Wrong: wrong == "title", Hint: "Such as “Manuals”."},
		Readers:   readersField("upload-readers", readers),
		Everybody: everybody,
	}
	f.Readers.Wrong = wrong == space.SourceReaders
	return f
}

// upload handles POST /library/sources/{source}/upload. The form has files.
func (s *pages) upload(v *web.Visit) error {
	if v.R.MultipartForm == nil || len(v.R.MultipartForm.File["files"]) == 0 || v.R.MultipartForm.File["files"][0].Filename == "" {
		return s.afterUpload(v, http.StatusUnprocessableEntity, "Choose the files to upload.", nil)
	}
	var leftOut []space.UploadedFile
	problem := ""
	for _, sent := range v.R.MultipartForm.File["files"] {
		f, err := sent.Open()
		if err != nil {
			return err
		}
		done, err := s.Service.UploadToSource(v.R.Context(), v.Actor(), service.UploadToSourceInput{ID: v.R.PathValue("source"), Name: sent.Filename, Stream: f})
		f.Close()
		switch {
		case err == nil:
		case web.IsRefusal(err), fault.CodeOf(err) == fault.Unavailable:
			problem = "Not every file was added."
			leftOut = append(leftOut, space.UploadedFile{Name: sent.Filename, Problem: fault.PublicOf(err)})
			continue
		default:
			return err
		}
		for _, x := range done.Files {
			if x.Path == "" {
				problem = "Not every file was added."
				leftOut = append(leftOut, x)
			}
		}
	}
	if problem != "" {
		return s.afterUpload(v, http.StatusUnprocessableEntity, problem, leftOut)
	}
	return s.See(v, sourceAt(v.R.PathValue("source"))+"?done=uploaded")
}

// afterUpload shows the page of the source with what went wrong.
func (s *pages) afterUpload(v *web.Visit, status int, problem string, leftOut []space.UploadedFile) error {
	body, err := s.sourceOf(v)
	if err != nil {
		return err
	}
	if body.Uploads.At == "" { // for example if the visitor may no longer change the source
		return web.ErrNoPage
	}
	body.Uploads.LeftOut = leftOut
	p := s.pageOf(body)
	p.Problem, p.Field = problem, "upload-files"
	return s.Page(v, status, "source", p)
}

// removeUpload handles POST /library/sources/{source}/files/remove.
func (s *pages) removeUpload(v *web.Visit) error {
	name := strings.TrimSpace(v.R.PostFormValue("name"))
	_, err := s.Service.RemoveFromSource(v.R.Context(), v.Actor(), service.RemoveFromSourceInput{ID: v.R.PathValue("source"), Names: []string{name}})
	switch {
	case err == nil:
		return s.See(v, sourceAt(v.R.PathValue("source"))+"?done=removed")
	case fault.FieldOf(err) != "":
		return s.afterUpload(v, statusOf(err), fault.PublicOf(err), nil)
	}
	return web.Gone(err)
}
