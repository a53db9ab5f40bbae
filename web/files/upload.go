package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
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

// uploadPage is the page that uploads files and reports the result for each.
type uploadPage struct {
	Action, Back string
	Dir          string
	Crumbs       []web.Crumb
	Message      string
	MaxFiles     int
	FileText     string // maximum size of one file
	ChangeText   string // maximum size of all files together
	Unpack       bool
	// The results of an upload.
	Saved   []uploaded
	Refused []uploaded
	Taken   []uploaded // files whose name an existing file has
	// MoreSaved and MoreRefused count the files that the lists omit. Mac and Git count the
	// skipped entries of archives.
	MoreSaved, MoreRefused int
	Mac, Git               int
	Remark                 string // about the saved files
}

// uploadsListed is the maximum length of each list of saved or refused files.
const uploadsListed = 50

// sentFile is a file of a form, or a file of an archive in a form.
type sentFile struct {
	name string // a path for a file of an archive
	size int64
	mode space.Mode // zero if unknown
	form *multipart.FileHeader
	data []byte
	read bool
}

// uploaded is the result for one file of the form.
type uploaded struct {
	Name, URL, Why string
	// Base, Size and Path describe the existing file that has the same name.
	Base space.BlobID
	Size int64
	Path space.Path
}

// showUpload handles GET /spaces/{id}/upload.
func (s *pages) showUpload(v *web.Visit) error {
	m, err := s.WritableSpace(v)
	if err != nil {
		return err
	}
	return s.uploadForm(v, http.StatusOK, m, uploadPage{Dir: dirOf(v.R.URL.Query().Get("dir")), Unpack: true}, nil)
}

func (s *pages) uploadForm(v *web.Visit, status int, m service.View, body uploadPage, p *web.Problem) error {
	dir := dirOf(body.Dir)
	body.Action = "/spaces/" + string(m.ID) + "/upload?" + url.Values{"dir": {dir}}.Encode()
	body.Back, body.Crumbs = dirURL(m.ID, space.Path(dir)), crumbsOf(m, space.Path(dir))
	body.MaxFiles, body.FileText, body.ChangeText = s.Editing.MaxFiles, bytesize.Text(s.Editing.MaxFile), bytesize.Text(s.Editing.MaxChange)
	if n := len(body.Saved) - uploadsListed; n > 0 {
		body.Saved, body.MoreSaved = body.Saved[:uploadsListed], n
	}
	if n := len(body.Refused) - uploadsListed; n > 0 {
		body.Refused, body.MoreRefused = body.Refused[:uploadsListed], n
	}
	out := web.Page{Title: "Upload files", Space: &m, Current: "files", Styles: []string{"editing.css"}, Body: &body}
	if p != nil {
		if out.Problem, out.Field = p.Text, p.Field; p.Field == "replace" {
			out.FieldLink = "Choose what to replace"
		}
	}
	return s.Page(v, status, "upload", out)
}

// saveUpload handles POST /spaces/{id}/upload. It accepts or refuses each file on its own,
// and saves the accepted files in one commit.
func (s *pages) saveUpload(v *web.Visit) error {
	m, err := s.WritableSpace(v)
	if err != nil {
		return err
	}
	body := uploadPage{Dir: strings.Trim(strings.TrimSpace(v.R.PostFormValue("dir")), "/"), Message: message(v), Unpack: v.R.PostFormValue("unpack") == "1"}
	again := func(status int, text, field string) error {
		return s.uploadForm(v, status, m, body, &web.Problem{Text: text, Field: field})
	}
	if body.Dir != "" {
		if _, err := space.ParsePath(body.Dir); err != nil {
			return again(http.StatusUnprocessableEntity, wrongPath(body.Dir, err), "dir")
		}
	}
	if len(body.Message) > maxMessage {
		return again(http.StatusUnprocessableEntity, "The line is too long. Use fewer words.", "message")
	}
	sent, err := sentFiles(v.R.MultipartForm)
	switch {
	case err != nil:
		return err
	case len(sent) == 0:
		return again(http.StatusUnprocessableEntity, "Choose the files to upload.", "files")
	case len(sent) > s.Editing.MaxFiles:
		return again(http.StatusRequestEntityTooLarge, fmt.Sprintf("Upload no more than %d files at once.", s.Editing.MaxFiles), "files")
	}
	var total int64
	for _, h := range sent {
		total += h.Size
	}
	if total > s.Editing.MaxChange {
		return again(http.StatusRequestEntityTooLarge, "Together, the files have "+bytesize.Text(total)+". At most "+bytesize.Text(s.Editing.MaxChange)+" can be uploaded at once.", "files")
	}
	release, err := s.hold(v.R.Context())
	if err != nil {
		return err
	}
	defer release()
	files, more, err := s.filesOf(v.R.Context(), sent, total, body.Unpack)
	if err != nil {
		return err
	}
	remark, err := s.upload(v, m, files, &body)
	if err != nil {
		if web.IsRefusal(err) {
			return again(web.AsPage(err).Status, fault.PublicOf(err), "files")
		}
		return err
	}
	body.Refused = append(more.refused, body.Refused...)
	body.Mac, body.Git = more.mac, more.git
	if len(body.Refused)+len(body.Taken) == 0 {
		if body.Remark = remark; body.Mac+body.Git > 0 {
			return s.uploadForm(v, http.StatusOK, m, body, nil) // the page reports the skipped entries
		}
		return s.Saved(v, m, remark, web.DoneURL(dirURL(m.ID, space.Path(body.Dir)), "uploaded"))
	}
	text, field := web.Plural(len(body.Refused)+len(body.Taken), "One file was not saved", "%d files were not saved"), "files"
	if len(body.Taken) > 0 {
		field = "replace"
	}
	if len(body.Taken) == 1 && len(body.Refused) == 0 {
		text = web.Shorten(body.Taken[0].Name, 80) + " already exists and was not replaced"
	}
	switch n := len(body.Saved); {
	case n == 1:
		text = web.Shorten(body.Saved[0].Name, 80) + " was saved. " + text
	case n > 1:
		text = fmt.Sprintf("%d files were saved. ", n) + text
	}
	return again(http.StatusUnprocessableEntity, strings.TrimSpace(text+". "+remark), field)
}

// filesOf returns the files of a form. If unpack is set, the files in archives replace the
// archives.
func (s *pages) filesOf(ctx context.Context, sent []*multipart.FileHeader, total int64, unpack bool) ([]*sentFile, unpacked, error) {
	u := unpacker{limits: s.Editing, files: s.Editing.MaxFiles - len(sent), bytes: s.Editing.MaxChange - total}
	var out []*sentFile
	var archives []*multipart.FileHeader
	for _, h := range sent {
		if unpack && archiveKind(h.Filename) != "" {
			archives = append(archives, h)
			u.files, u.bytes = u.files+1, u.bytes+h.Size // the archive itself is not saved
			continue
		}
		out = append(out, &sentFile{name: h.Filename, size: h.Size, form: h})
	}
	for _, h := range archives {
		if err := u.unpack(ctx, h); err != nil {
			return nil, unpacked{}, err
		}
	}
	return append(out, u.out.files...), u.out, nil
}

// hold waits until there is memory for another large change.
func (s *pages) hold(ctx context.Context) (release func(), err error) {
	select {
	case s.uploads <- struct{}{}:
		return func() { <-s.uploads }, nil
	case <-ctx.Done():
		return nil, fault.Wrap(ctx.Err(), fault.Canceled, "The request was stopped.")
	}
}

// sentFiles returns the files of a form. If the visitor chose none, a browser sends an
// empty file without a name.
func sentFiles(f *multipart.Form) ([]*multipart.FileHeader, error) {
	if f == nil {
		return nil, nil
	}
	for name := range f.File {
		if name != "files" {
			return nil, web.BadForm(errors.New("a file in a field that accepts no files"))
		}
	}
	return slices.DeleteFunc(slices.Clone(f.File["files"]), func(h *multipart.FileHeader) bool { return h.Filename == "" && h.Size == 0 }), nil
}

// uploadTries is how often an upload is tried if the space changes meanwhile.
const uploadTries = 4

// upload saves the acceptable files, and sets the result for each file in body.
func (s *pages) upload(v *web.Visit, m service.View, sent []*sentFile, body *uploadPage) (remark string, err error) {
	confirmed := map[string]bool{}
	for _, r := range v.R.PostForm["replace"] {
		confirmed[r] = true // r is the blob of an existing file, a space and the path
	}
	for try := 1; ; try++ {
		body.Saved, body.Refused, body.Taken = nil, nil, nil
		changes, err := s.uploadChanges(v, m, sent, body, confirmed)
		if err != nil || len(changes) == 0 {
			return "", err
		}
		c, err := s.Service.WriteFiles(v.R.Context(), v.Actor(), service.WriteFilesInput{Space: service.SpaceRef{ID: m.ID}, Changes: changes, Message: body.Message, Partial: true})
		if fault.CodeOf(err) == fault.Conflict && try < uploadTries {
			continue
		}
		if err != nil {
			return "", v.NamedError(err)
		}
		for _, r := range c.Rejected {
			if r.Path == space.CommentPath {
				continue
			}
			body.Saved = slices.DeleteFunc(body.Saved, func(u uploaded) bool { return joined(body.Dir, u.Name) == r.Path })
			body.Refused = append(body.Refused, uploaded{Name: strings.TrimPrefix(r.Path, body.Dir+"/"), Why: v.Named(r.Why)})
		}
		return v.Remark(c), nil
	}
}

func joined(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}

// uploadChanges decides what to do with each file. It compares the files with those at head.
func (s *pages) uploadChanges(v *web.Visit, m service.View, sent []*sentFile, body *uploadPage, confirmed map[string]bool) ([]space.Change, error) {
	at, err := m.Head(v.R.Context())
	if err != nil {
		return nil, err
	}
	var changes []space.Change
	seen := map[string]bool{}
	for _, h := range sent {
		name := h.name
		refuse := func(why string) { body.Refused = append(body.Refused, uploaded{Name: name, Why: why}) }
		p, err := space.ParsePath(joined(body.Dir, name))
		switch {
		case err != nil:
			refuse(fault.PublicOf(err))
			continue
		case seen[string(p)]:
			refuse("The upload has another file with this name.")
			continue
		case h.size > s.Editing.MaxFile:
			refuse("It has " + bytesize.Text(h.size) + ". A file may have at most " + bytesize.Text(s.Editing.MaxFile) + ".")
			continue
		}
		seen[string(p)] = true
		u := uploaded{Name: name, URL: web.SpaceURL(m.ID, "files", p)}
		was, ok, err := m.Find(v.R.Context(), at, p)
		if err != nil {
			return nil, err
		}
		c := space.Change{Path: string(p), Op: space.Write, Mode: h.mode}
		switch {
		case ok && was.Dir:
			refuse("There is a directory with this name. Give the file another name, or upload it elsewhere.")
			continue
		case ok && was.Mode == space.Symlink:
			refuse("There is a link with this name. Delete it first, or give the file another name.")
			continue
		case ok && (h.mode != space.Executable || was.Mode == h.mode) && was.Size == h.size && s.same(v.R.Context(), m, was.Blob, h):
			body.Saved = append(body.Saved, u) // the file already has this content
			continue
		case ok && !confirmed[string(was.Blob)+" "+string(p)]:
			u.Base, u.Size, u.Path = was.Blob, was.Size, p
			body.Taken = append(body.Taken, u)
			continue
		case ok:
			c.Base, c.BaseMode, c.Mode = was.Blob, was.Mode, max(was.Mode, h.mode) // an executable file stays executable
		default:
			blocked, err := web.PathTaken(v, m, p)
			if err != nil {
				return nil, err
			}
			if blocked != "" {
				refuse(blocked)
				continue
			}
		}
		if c.Content, err = h.content(); err != nil {
			return nil, err
		}
		changes = append(changes, c)
		body.Saved = append(body.Saved, u)
	}
	return changes, nil
}

// content reads a sent file once. The caller checks the size first.
func (s *sentFile) content() ([]byte, error) {
	if s.read {
		return s.data, nil
	}
	f, err := s.form.Open()
	if err != nil {
		return nil, fmt.Errorf("open an upload: %w", err)
	}
	defer func() { _ = f.Close() }()
	if s.data, err = io.ReadAll(f); err != nil {
		return nil, fmt.Errorf("read an upload: %w", err)
	}
	s.read = true
	return s.data, nil
}

// same reports whether a sent file equals the existing one. A file that cannot be read
// counts as different, so that the page asks about it.
func (s *pages) same(ctx context.Context, m service.View, was space.BlobID, sent *sentFile) bool {
	now, err := m.ReadBlob(ctx, was)
	if err != nil {
		return false
	}
	data, err := sent.content()
	return err == nil && bytes.Equal(now, data)
}
