package api

import (
	"net/http"

	"satchel/internal/fault"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/internal/textedit"
)

func (s *Server) fileRoutes() []route {
	return []route{
		on(http.MethodPut, "/api/files", space.ScopeWrite, about{
			id: "writeFile", summary: "Create or replace a text file of your space", detail: "To replace a file, send the etag of the version that you know. If you leave it out, the error contains the current etag.",
			answer: "The new version.", conflict: true, example: `{"path": "knowledge/tea.md", "content": "# Tea\n"}`,
		}, s.writeFile),
		on(http.MethodPatch, "/api/files", space.ScopeWrite, about{
			id: "editFile", summary: "Change parts of a text file of your space", detail: "An LF in an edit stands for the line ending of the file.",
			answer: "The new version.", conflict: true, notFound: true, example: `{"path": "knowledge/tea.md", "edits": [{"old": "Tea", "new": "Green tea"}]}`,
		}, s.editFile),
	}
}

type writeFileRequest struct {
	Path     string       `json:"path" doc:"The path in the space, such as knowledge/deploy.md." api:"required"`
	Content  *string      `json:"content" doc:"The whole text." api:"required"`
	BaseETag space.BlobID `json:"baseEtag" doc:"The version to replace. Leave it out for a new file."`
}

func (r writeFileRequest) check() error {
	if r.Content == nil {
		return fault.New(fault.Invalid, "The content is missing. Send the whole text of the file.")
	}
	return nil
}

type editFileRequest struct {
	Path     string       `json:"path" doc:"The path in the space." api:"required"`
	Edits    []fileEdit   `json:"edits" doc:"Applied in order, all or none." api:"required,minItems=1,maxItems=$edits"`
	BaseETag space.BlobID `json:"baseEtag" doc:"The version to edit. Default: the newest."`
}

type fileEdit struct {
	Old string  `json:"old" doc:"Must occur exactly once, unless all is set." api:"required,minLength=1"`
	New *string `json:"new" doc:"The text to put in its place." api:"required"`
	All bool    `json:"all" doc:"Whether to replace every occurrence."`
}

func (r editFileRequest) check() error {
	for i, e := range r.Edits {
		if e.New == nil {
			return fault.New(fault.Invalid, "edits[%d].new is missing. Send an empty string to remove the text.", i)
		}
	}
	return nil
}

type changedFileView struct {
	Path     space.Path      `json:"path"`
	ETag     space.BlobID    `json:"etag" doc:"The version after the change."`
	Commit   space.CommitID  `json:"commit,omitempty" doc:"Missing if the file already had this content."`
	Created  bool            `json:"created"`
	Added    int             `json:"added" doc:"Lines that an existing file gained."`
	Removed  int             `json:"removed" doc:"Lines that the file lost."`
	Diff     []string        `json:"diff" doc:"The first lines of a unified diff, for an existing file."`
	DiffLeft int             `json:"diffLeft,omitempty" doc:"Lines of the diff that are left out."`
	Warnings []space.Warning `json:"warnings,omitempty"`
	Problem  string          `json:"problem,omitempty" doc:"Why the file, which is under memory/, is not a valid fact."`
}

func changedFile(f service.ChangedFile, err error) (changedFileView, error) {
	out := changedFileView{
		Path: f.Path, ETag: f.Etag, Commit: f.Commit, Created: f.Created, Added: f.Diff.Added, Removed: f.Diff.Removed,
		Diff: append([]string{}, f.Diff.Lines...), DiffLeft: f.Diff.Left, Warnings: f.Warnings,
	}
	for _, n := range f.NotFacts {
		out.Problem = n.Problem
	}
	return out, err
}

// writeFile is PUT /api/files.
func (s *Server) writeFile(c *call, a writeFileRequest) (changedFileView, error) {
	return changedFile(s.o.Service.WriteFile(c.r.Context(), c.actor(), service.WriteFileInput{
		Space: c.actor().Space(), Path: a.Path, Content: *a.Content, Base: a.BaseETag,
	}))
}

// editFile is PATCH /api/files.
func (s *Server) editFile(c *call, a editFileRequest) (changedFileView, error) {
	edits := make([]textedit.Edit, len(a.Edits))
	for i, e := range a.Edits {
		edits[i] = textedit.Edit{Old: e.Old, New: *e.New, All: e.All}
	}
	return changedFile(s.o.Service.EditFile(c.r.Context(), c.actor(), service.EditFileInput{
		Space: c.actor().Space(), Path: a.Path, Edits: edits, Base: a.BaseETag,
	}))
}
