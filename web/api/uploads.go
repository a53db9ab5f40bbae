package api

import (
	"mime"
	"net/http"
	"reflect"

	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
)

// uploadView is a source after a change of its files.
type uploadView struct {
	Source  sourceView         `json:"source"`
	Files   []uploadedFileView `json:"files"`
	Added   int                `json:"added" doc:"Pages." api:"minimum=0"`
	Changed int                `json:"changed" api:"minimum=0"`
	Deleted int                `json:"deleted" api:"minimum=0"`
}

type uploadedFileView struct {
	Name    string     `json:"name"`
	Path    space.Path `json:"path,omitempty" doc:"The page in the source, if the file became one."`
	Reason  string     `json:"reason,omitempty" doc:"Why the file was left out, such as needs_pandoc."`
	Problem string     `json:"problem,omitempty" doc:"What to do."`
}

func (s *Server) uploadOf(x service.UploadedToSource) uploadView {
	v := uploadView{Source: s.viewOf(x.Source), Files: []uploadedFileView{}, Added: x.Run.Added, Changed: x.Run.Changed, Deleted: x.Run.Deleted}
	for _, f := range x.Files {
		v.Files = append(v.Files, uploadedFileView{f.Name, f.Path, f.Reason, f.Problem})
	}
	return v
}

// uploadMedia is the media type of every uploaded file. The extension of the file's name gives
// the format.
const uploadMedia = "application/octet-stream"

// uploadFile is POST /api/sources/{source}/files.
func (s *Server) uploadFile(c *call) error {
	if t, _, err := mime.ParseMediaType(c.r.Header.Get("Content-Type")); err != nil || t != uploadMedia {
		return fault.Wrap(errMedia, fault.Invalid, "The body is the file itself: send the header Content-Type: "+uploadMedia+".")
	}
	id, err := pathSource(c)
	if err != nil {
		return err
	}
	x, err := s.o.Service.UploadToSource(c.r.Context(), c.actor(), service.UploadToSourceInput{ID: id, Name: c.r.URL.Query().Get("name"), Stream: c.r.Body})
	if err != nil {
		return err
	}
	return c.answer(http.StatusOK, s.uploadOf(x))
}

// removeFile is DELETE /api/sources/{source}/files.
func (s *Server) removeFile(c *call, _ noBody) (uploadView, error) {
	id, err := pathSource(c)
	if err != nil {
		return uploadView{}, err
	}
	x, err := s.o.Service.RemoveFromSource(c.r.Context(), c.actor(), service.RemoveFromSourceInput{ID: id, Names: []string{c.r.URL.Query().Get("path")}})
	return s.uploadOf(x), err
}

// uploadRoutes returns the routes of the files of uploaded sources.
func (s *Server) uploadRoutes() []route {
	const path, write = "/api/sources/{source}/files", space.ScopeWrite
	return []route{
		{
			method: http.MethodPost, path: path, scope: write, handle: s.uploadFile, out: reflect.TypeFor[uploadView](),
			about: about{
				id: "uploadFile", summary: "Add a file to an uploaded source", status: http.StatusOK, media: uploadMedia, notFound: true,
				detail: "Adds the pages of a document or a .zip archive, and replaces the pages of an earlier file with the same name. To create the source, add one of the kind upload.",
				query:  map[string]string{"name": "The name of the file, whose extension is its format, such as guides/start.pdf."},
				answer: "The source, and what became of each file.",
			},
		},
		on(http.MethodDelete, path, write, about{
			id: "removeFile", summary: "Remove a file from an uploaded source", notFound: true, answer: "The source.",
			query: map[string]string{"path": "The path of the page in the source, or the name of the uploaded file."},
		}, s.removeFile),
	}
}
