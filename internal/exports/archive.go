package exports

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode"

	"satchel/internal/bytesize"
	"satchel/internal/fault"
)

// archive is an open zip archive with its nested archives.
type archive struct {
	files []*zip.File
	left  int64 // bytes that may still be unpacked
	all   int64 // bytes that may be unpacked in total
	held  int64 // bytes of nested archives that memory may still hold
	limit int64 // bytes of nested archives that memory may hold in total
	max   int   // maximum number of files
}

func damaged(err error) error {
	return fault.Wrap(err, fault.Invalid, "The archive is damaged or incomplete. Download it again. Nothing was imported.")
}

const (
	// maxNested limits the bytes of a nested archive, which memory holds.
	maxNested = 256 << 20
	// maxDirectory limits the bytes of an archive's directory, of which memory holds several
	// times as much. A directory of 50,000 files with long names has 12 MB.
	maxDirectory = 16 << 20
)

// zip reads an archive.
func (b *builder) zip(r io.ReaderAt, size int64) error {
	a := &archive{left: b.limits.Unpacked, all: b.limits.Unpacked, held: b.limits.Archive, limit: b.limits.Archive, max: b.limits.Files}
	if err := a.open(r, size, true); err != nil {
		return err
	}
	slices.SortStableFunc(a.files, func(x, y *zip.File) int { return strings.Compare(x.Name, y.Name) })
	if b.Format == "" {
		format, err := a.format()
		if err != nil {
			return err
		}
		b.Format = format
	}
	switch b.Format {
	case ChatGPT, Claude:
		return b.assistant(a)
	case Notion:
		return b.notion(a)
	case Mem0:
		return b.openMemory(a)
	case BasicMemory, Obsidian:
		return b.notes(a)
	}
	for _, f := range a.files {
		name := f.Name
		in, err := a.read(f, b.limits.Page)
		if err == nil {
			err = b.file(name, bytes.NewReader(in), int64(len(in)))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// open adds the files of an archive. If nested is set and the archive consists of archives,
// open adds the files in those archives instead.
func (a *archive) open(r io.ReaderAt, size int64, nested bool) error {
	directory := &directoryReader{ReaderAt: r}
	z, err := zip.NewReader(directory, size)
	switch {
	case directory.read > maxDirectory:
		return a.tooManyFiles()
	case err != nil && !errors.Is(err, zip.ErrInsecurePath):
		return damaged(err)
	}
	directory.open = true
	nested = nested && onlyArchives(z.File)
	for _, f := range z.File {
		if f.FileInfo().IsDir() {
			continue
		}
		f.Name = strings.TrimPrefix(f.Name, "./")
		if why := unsafeName(f); why != "" {
			return fault.New(fault.Invalid, "The archive is refused, because %q %s. Nothing was imported.", f.Name, why)
		}
		if nested && isArchive(f.Name) {
			data, err := a.read(f, maxNested)
			if a.held -= int64(len(data)); a.held < 0 {
				// An archive hardly shrinks inside another, unless it is made for an attack.
				err = fault.New(fault.TooLarge, "The archives in the archive have more than the %s that an import may have. Import them one by one.", bytesize.Text(a.limit))
			}
			if err == nil {
				err = a.open(bytes.NewReader(data), int64(len(data)), false)
			}
			if err != nil {
				return err
			}
			continue
		}
		if a.files = append(a.files, f); len(a.files) > a.max {
			return a.tooManyFiles()
		}
	}
	return nil
}

// onlyArchives reports whether an archive consists of archives, as the exports of Notion and
// Claude do. Hidden files and manifests do not count. In any other archive, a nested archive is
// an attachment.
func onlyArchives(files []*zip.File) bool {
	for _, f := range files {
		if !f.FileInfo().IsDir() && !hidden(f.Name) && !isManifest(base(f.Name)) && !isArchive(f.Name) {
			return false
		}
	}
	return true
}

func isArchive(name string) bool { return strings.EqualFold(path.Ext(name), ".zip") }

func (a *archive) tooManyFiles() error {
	return fault.New(fault.TooLarge, "The archive has more than the %d files that an import may have.", a.max)
}

// directoryReader limits what zip.NewReader reads, which is the directory of the archive.
type directoryReader struct {
	io.ReaderAt
	read int64
	open bool // NewReader has returned
}

func (d *directoryReader) ReadAt(p []byte, off int64) (int, error) {
	if !d.open {
		if d.read += int64(len(p)); d.read > maxDirectory {
			return 0, errors.New("the directory of the archive is too large")
		}
	}
	return d.ReaderAt.ReadAt(p, off)
}

// unsafeName says what is wrong with the name or the kind of a file.
func unsafeName(f *zip.File) string {
	switch {
	case !fs.ValidPath(f.Name) || strings.Contains(f.Name, `\`) || strings.Contains(f.Name, ":/"):
		return "is not a path inside the archive"
	case strings.ContainsFunc(f.Name, unicode.IsControl):
		return "has control characters in its name"
	case !f.Mode().IsRegular():
		return "is not a regular file"
	}
	return ""
}

// read unpacks a file of at most max bytes.
func (a *archive) read(f *zip.File, max int) ([]byte, error) {
	r, err := a.reader(f)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, int64(max)+1))
	switch {
	case fault.CodeOf(err) == fault.TooLarge:
		return nil, err
	case err != nil:
		return nil, damaged(err)
	case len(data) > max:
		return nil, fault.New(fault.TooLarge, "The file %q in the archive is larger than the %s that it may have.", f.Name, bytesize.Text(int64(max)))
	}
	return data, nil
}

// reader unpacks a file as it is read. All files of the archive share one limit.
func (a *archive) reader(f *zip.File) (io.ReadCloser, error) {
	r, err := f.Open()
	if err != nil {
		return nil, damaged(err)
	}
	return &limited{r, a}, nil
}

type limited struct {
	io.ReadCloser
	a *archive
}

func (l *limited) Read(p []byte) (int, error) {
	n, err := l.ReadCloser.Read(p)
	if l.a.left -= int64(n); l.a.left < 0 {
		return n, fault.New(fault.TooLarge, "The archive unpacks to more than the %s that an import may have.", bytesize.Text(l.a.all))
	}
	return n, err
}

// format detects the format of an archive.
func (a *archive) format() (string, error) {
	for _, f := range a.files {
		if !isConversations(base(f.Name)) && !isClaudeFile(f.Name) {
			continue
		}
		r, err := a.reader(f)
		if err != nil {
			return "", err
		}
		format, err := itemsFormat(r)
		r.Close()
		if format != "" || err != nil {
			return format, err
		}
		if base(f.Name) == openMemoryFile {
			return Mem0, nil
		}
	}
	notes, notion := false, false
	for _, f := range a.files {
		if strings.Contains("/"+f.Name, "/.obsidian/") {
			return Obsidian, nil
		}
		md := isMarkdown(f.Name)
		notes = notes || md
		notion = notion || md && notionID.MatchString(stem(base(f.Name)))
	}
	switch {
	case notion:
		return Notion, nil
	case notes:
		return a.notesFormat()
	}
	return "", unknown()
}

// notesFormat tells pages of Basic Memory from other Markdown pages, which count as Obsidian's.
func (a *archive) notesFormat() (string, error) {
	for _, f := range a.files {
		if isMarkdown(f.Name) && f.UncompressedSize64 < 1<<20 {
			page, err := a.read(f, 1<<20)
			if err != nil {
				return "", err
			}
			if isBasicMemory(page) {
				return BasicMemory, nil
			}
		}
	}
	return Obsidian, nil
}

func unknown() error {
	return fault.New(fault.Invalid, "The format of the file is not known. An import can be one of: %s.", strings.Join(Formats(), ", "))
}
