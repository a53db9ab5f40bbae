package upstream

import (
	"archive/zip"
	"context"
	"errors"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"satchel/internal/bytesize"
	"satchel/internal/fault"
	"satchel/internal/space"
)

// Upload is the kind of sources whose files people upload.
const Upload = string(space.SourceUpload)

// upload has no settings, because its files come only from Receive.
type upload struct{}

func uploadKind() Kind {
	return Kind{Name: Upload, Title: "Uploaded files", New: func() Upstream { return &upload{} }}
}

func (*upload) Validate() error { return nil }

// Check returns no state, because there is no upstream to ask.
func (*upload) Check(context.Context, *Env) (State, error) { return "", nil }

// Fetch fails, because there is nothing to fetch.
func (*upload) Fetch(context.Context, *Env, Sink) (State, error) {
	return "", fault.New(fault.Invalid, "The files of this source are uploaded, for example with satchel source upload ID FILE.").In("kind")
}

// The limits of an upload. Its pages have the limits of a source.
const (
	MaxUpload    = 100 << 20
	maxZipFiles  = 10_000
	maxDirectory = 8 << 20 // bytes of an archive's list of files, which needs several times as much memory
)

// Spool stores an upload in a file of env.Scratch, because an archive has the list of its files at
// its end. Spool checks the name and the size.
func Spool(ctx context.Context, env *Env, name string, r io.Reader) (_ *os.File, size int64, err error) {
	if _, err := space.ParsePath(name); err != nil {
		return nil, 0, fault.Wrap(err, fault.Invalid, "%s", fault.PublicOf(err)).In("name")
	}
	f, err := os.CreateTemp(env.Scratch, "upload-")
	if err != nil {
		return nil, 0, err
	}
	limit := int64(MaxUpload)
	if !isZip(name) {
		limit = min(limit, env.limitOf(name))
	}
	size, err = io.Copy(f, io.LimitReader(r, limit+1))
	switch {
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case err != nil:
		err = fault.Wrap(err, fault.Unavailable, "The file did not arrive completely. Send it again.")
	case size > limit:
		err = fault.New(fault.TooLarge, "The file is larger than the %s that such a file may have.", bytesize.Text(limit))
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, size, nil
}

// Receive gives the pages of a spooled file, or of the files in a .zip archive, to a sink. kind is
// the kind of the source, which takes uploads. Receive calls refused for each file that is left
// out. An error means that the whole upload failed.
func Receive(ctx context.Context, env *Env, kind, name string, r io.ReaderAt, size int64, sink Sink, refused func(name string, why *Refusal)) error {
	give := givePage
	if kind == YouTube {
		give = giveTranscript
	}
	if isZip(name) {
		return unzip(ctx, env, r, size, sink, give, refused)
	}
	content, err := io.ReadAll(io.NewSectionReader(r, 0, size))
	if err != nil {
		return err
	}
	sink.Expect(1)
	err = give(ctx, env, File{Path: space.Path(name), URL: name}, content, sink)
	if why, ok := errors.AsType[*Refusal](err); ok {
		refused(name, why)
		return nil
	}
	return err
}

func isZip(name string) bool { return formatOf(name) == ".zip" }

// listReader limits what zip.NewReader reads, which is the list of files.
type listReader struct {
	io.ReaderAt
	left int64
}

var errLongList = errors.New("the list of files is too long")

func (l *listReader) ReadAt(p []byte, off int64) (int, error) {
	if l.left -= int64(len(p)); l.left < 0 {
		return 0, errLongList
	}
	return l.ReaderAt.ReadAt(p, off)
}

// giver gives the page of a file to a sink. The error is a *Refusal if the file must be left out.
type giver = func(ctx context.Context, env *Env, f File, content []byte, sink Sink) error

// unzip gives the pages of an archive's files to the sink.
func unzip(ctx context.Context, env *Env, r io.ReaderAt, size int64, sink Sink, give giver, refused func(string, *Refusal)) error {
	list := &listReader{r, maxDirectory}
	z, err := zip.NewReader(list, size)
	switch {
	case list.left < 0 || err == nil && len(z.File) > maxZipFiles:
		return fault.New(fault.TooLarge, "The archive has more than the %d files that an upload may have. Divide it.", maxZipFiles)
	case err != nil && !errors.Is(err, zip.ErrInsecurePath):
		return fault.Wrap(err, fault.Invalid, "The archive is damaged, or not a zip archive.")
	}
	list.left = 1 << 62 // the content has its own limit
	var files []*zip.File
	for _, f := range z.File {
		if !f.FileInfo().IsDir() && !isHidden(f.Name) {
			files = append(files, f)
		}
	}
	sink.Expect(len(files))
	left := env.MaxBytes
	for _, f := range files {
		content, err := unzipFile(env, f, &left)
		if left < 0 {
			return fault.New(fault.TooLarge, "The archive unpacks to more than the %s that a source may have.", bytesize.Text(env.MaxBytes))
		}
		if err == nil {
			err = give(ctx, env, File{Path: space.Path(f.Name), URL: f.Name}, content, sink)
		}
		if why, ok := errors.AsType[*Refusal](err); ok {
			refused(f.Name, why)
		} else if err != nil {
			return err
		}
	}
	return nil
}

// isHidden reports whether a file or one of its directories is hidden, or added by macOS.
func isHidden(name string) bool {
	return space.HiddenPath(name) || slices.Contains(strings.Split(name, "/"), "__MACOSX")
}

// unzipFile returns the content of a file, and lowers left by the number of unpacked bytes.
func unzipFile(env *Env, f *zip.File, left *int64) ([]byte, error) {
	const encrypted = 1
	switch {
	case strings.Contains(f.Name, `\`) || f.NonUTF8 && !isASCII(f.Name):
		return nil, refuse(BadName, "The name %q in the archive cannot be used.", path.Base(f.Name))
	case !f.Mode().IsRegular():
		return nil, refuse(Unreadable, "%s is a link, which Satchel does not follow.", f.Name)
	case f.Flags&encrypted != 0:
		return nil, refuse(Unreadable, "%s is protected with a password.", f.Name)
	}
	r, err := f.Open()
	if err != nil {
		return nil, refuse(Unreadable, "%s cannot be unpacked.", f.Name)
	}
	defer r.Close()
	limit := env.limitOf(f.Name)
	content, err := io.ReadAll(io.LimitReader(r, min(limit, *left)+1))
	switch *left -= int64(len(content)); {
	case err != nil:
		return nil, refuse(Unreadable, "%s is damaged in the archive.", f.Name)
	case int64(len(content)) > limit:
		return nil, refuse(TooLarge, "%s is larger than the %s that such a file may have.", f.Name, bytesize.Text(limit))
	}
	return content, nil
}

func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r > 127 }) < 0
}
