package files

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime/multipart"
	"path"
	"regexp"
	"slices"
	"strings"

	"satchel/internal/bytesize"
	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/web"
)

// Limits on unpacking an archive, in addition to those of uploads.
const (
	// An archive with more than unpackFree bytes of files may hold at most unpackRatio
	// times its own size. Text rarely shrinks to less than a fiftieth.
	unpackRatio = 250
	unpackFree  = 8 << 20
	// entryBytes is the average size in bytes that entries in the archive's own lists may have.
	entryBytes = 2048
)

// archiveKind returns the suffix that names the format of an archive, or "" for another file.
func archiveKind(name string) string {
	name = strings.ToLower(name)
	for _, k := range [...]string{".zip", ".tar", ".tar.gz", ".tgz"} {
		if strings.HasSuffix(name, k) {
			return k
		}
	}
	return ""
}

// unpacked holds what came out of the archives of an upload.
type unpacked struct {
	files   []*sentFile
	refused []uploaded
	mac     int // skipped entries that macOS adds
	git     int // skipped entries of git directories
}

// notUnpacked is the reason why nothing is taken from an archive.
type notUnpacked string

func (n notUnpacked) Error() string { return string(n) }

var (
	errBadArchive = notUnpacked("It is damaged, or its name has the wrong extension. To keep it as it is, upload it without unpacking.")
	errSwells     = notUnpacked("It was not unpacked, because its content is far larger than the archive.")
	errLongList   = notUnpacked("It was not unpacked, because its list of files is too long.")
	errNoFiles    = notUnpacked("It has no files that can be uploaded.")
)

// unpacker unpacks the archives of one upload. It counts what it reads, and does not trust
// the sizes in an archive.
type unpacker struct {
	limits web.EditLimits
	files  int   // number of files that the upload may still have
	bytes  int64 // number of bytes that the upload may still have
	out    unpacked
}

// unpack takes every valid file of an archive. If the files are too many or too large, it
// takes none.
func (u *unpacker) unpack(ctx context.Context, h *multipart.FileHeader) error {
	f, err := h.Open()
	if err != nil {
		return fmt.Errorf("open an upload: %w", err)
	}
	defer func() { _ = f.Close() }()
	a := &archive{unpacker: u, ctx: ctx, name: h.Filename, size: h.Size, seen: map[string]bool{}, dirs: map[string]bool{}}
	if archiveKind(h.Filename) == ".zip" {
		err = a.zip(f)
	} else {
		err = a.tar(f, archiveKind(h.Filename) != ".tar")
	}
	if err == nil && len(a.out.files)+len(a.out.refused) == 0 {
		err = errNoFiles
	}
	var why notUnpacked
	switch {
	case ctx.Err() != nil:
		return fault.Wrap(ctx.Err(), fault.Canceled, "The request was stopped.")
	case errors.As(err, &why):
		u.out.refused = append(u.out.refused, uploaded{Name: h.Filename, Why: string(why)})
		return nil
	case err != nil:
		return fmt.Errorf("read an archive: %w", err)
	}
	u.files, u.bytes = u.files-len(a.out.files), u.bytes-a.total
	u.out.files = append(u.out.files, a.out.files...)
	u.out.refused = append(u.out.refused, a.out.refused...)
	u.out.mac, u.out.git = u.out.mac+a.out.mac, u.out.git+a.out.git
	return nil
}

// maxEntries returns the maximum number of entries in one archive. A Mac writes two entries
// for each file, and directories are entries too.
func (u *unpacker) maxEntries() int { return 4*u.limits.MaxFiles + 100 }

// archive is an archive that is being unpacked.
type archive struct {
	*unpacker
	ctx     context.Context
	name    string
	size    int64
	entries int
	total   int64 // total size of the taken files
	seen    map[string]bool
	dirs    map[string]bool // directories that contain a taken file
	out     unpacked
}

type entry struct {
	name      string
	size      int64 // according to the archive
	mode      fs.FileMode
	link      bool // a hard link
	encrypted bool
	open      func() (io.ReadCloser, error)
}

func (a *archive) zip(f multipart.File) error {
	list := &capped{at: f, left: 1<<20 + int64(a.maxEntries())*entryBytes, err: errLongList}
	z, err := zip.NewReader(list, a.size)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) { // take checks each path itself
		return archiveError(err)
	}
	list.open = true
	for _, e := range z.File {
		// The encryption bit is set for every kind of encryption, and no kind is supported.
		if err := a.take(entry{name: e.Name, size: int64(min(e.UncompressedSize64, 1<<62)), mode: e.Mode(), encrypted: e.Flags&1 != 0, open: e.Open}, false); err != nil { //nolint:gosec // it is bounded
			return err
		}
	}
	return nil
}

func (a *archive) tar(f multipart.File, zipped bool) error {
	var r io.Reader = f
	if zipped {
		z, err := gzip.NewReader(f)
		if err != nil {
			return archiveError(err)
		}
		r = z
	}
	// Skipped entries are decompressed too, so they count against the limit.
	t := tar.NewReader(&capped{r: r, left: 1<<20 + 2*a.limits.MaxChange + int64(a.maxEntries())*entryBytes, err: errSwells})
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil && !errors.Is(err, tar.ErrInsecurePath) {
			return archiveError(err)
		}
		e := entry{name: h.Name, size: h.Size, mode: h.FileInfo().Mode(), link: h.Typeflag == tar.TypeLink, open: func() (io.ReadCloser, error) { return io.NopCloser(t), nil }}
		switch h.Typeflag {
		case tar.TypeXGlobalHeader:
			continue // git writes one such entry, which describes all files
		case tar.TypeReg, tar.TypeLink, tar.TypeSymlink, tar.TypeDir:
		default:
			e.mode |= fs.ModeIrregular
		}
		if err := a.take(e, true); err != nil {
			return err
		}
	}
}

func (a *archive) tooMany() error {
	return notUnpacked(fmt.Sprintf("It was not unpacked, because it has more than %d entries.", a.maxEntries()))
}

// archiveError returns the reason why an archive cannot be read.
func archiveError(err error) error {
	var why notUnpacked
	if errors.As(err, &why) {
		return why
	}
	return errBadArchive
}

// drive matches the beginning of an absolute path on Windows.
var drive = regexp.MustCompile(`^[A-Za-z]:`)

// take takes an entry, or records the reason for skipping it. whole reports whether one
// unreadable entry makes the rest of the archive unreadable.
func (a *archive) take(e entry, whole bool) error {
	if err := a.ctx.Err(); err != nil {
		return err
	}
	if a.entries++; a.entries > a.maxEntries() {
		return a.tooMany()
	}
	name := strings.TrimPrefix(e.name, "./")
	segs := strings.Split(strings.TrimSuffix(name, "/"), "/")
	isGit := func(s string) bool { return strings.EqualFold(s, ".git") }
	switch {
	case segs[0] == "__MACOSX" || segs[len(segs)-1] == ".DS_Store":
		a.out.mac++
		return nil
	case slices.ContainsFunc(segs, isGit):
		a.out.git++
		return nil
	case e.mode.IsDir():
		return nil // the files of a directory create it
	}
	why := a.why(name, e)
	if why == "" && len(a.out.files) >= a.files {
		return notUnpacked(fmt.Sprintf("It was not unpacked, because it has more files than the %d that can be uploaded at once.", a.limits.MaxFiles))
	}
	var data []byte
	if why == "" {
		var err error
		if data, why, err = a.content(e, whole); err != nil {
			return err
		}
	}
	if why != "" {
		a.out.refused = append(a.out.refused, uploaded{Name: a.name + ": " + name, Why: why})
		return nil
	}
	a.seen[name] = true
	for d := path.Dir(name); d != "."; d = path.Dir(d) {
		a.dirs[d] = true
	}
	s := &sentFile{name: name, size: int64(len(data)), data: data, read: true}
	if e.mode&0o111 != 0 {
		s.mode = space.Executable
	}
	a.out.files = append(a.out.files, s)
	return nil
}

// why returns the reason to refuse an entry, or "" if there is none.
func (a *archive) why(name string, e entry) string {
	if _, err := space.ParsePath(name); err != nil {
		return fault.PublicOf(err)
	}
	under := func() bool {
		for d := path.Dir(name); d != "."; d = path.Dir(d) {
			if a.seen[d] {
				return true
			}
		}
		return false
	}
	switch {
	case strings.Contains(name, `\`) || drive.MatchString(name):
		return "Its name is a path of another operating system."
	case e.link || e.mode&fs.ModeSymlink != 0:
		return "It is a link, and links are not unpacked."
	case !e.mode.IsRegular():
		return "It is neither a file nor a directory."
	case e.encrypted:
		return "It is encrypted. Unpack it yourself and upload its files."
	case e.size > a.limits.MaxFile:
		return a.tooLarge()
	case a.seen[name]:
		return "Another file in the archive has this name and was uploaded."
	case a.dirs[name] || under():
		return "The archive has a file and a directory with this name."
	}
	return ""
}

func (a *archive) tooLarge() string {
	return "It is larger than the " + bytesize.Text(a.limits.MaxFile) + " that a file may have."
}

// content reads an entry. It enforces the limits whatever size the archive states.
func (a *archive) content(e entry, whole bool) (data []byte, why string, err error) {
	room := min(a.bytes-a.total, max(unpackFree, unpackRatio*a.size)-a.total)
	r, err := e.open()
	if err == nil {
		defer func() { _ = r.Close() }()
		data, err = io.ReadAll(io.LimitReader(r, min(a.limits.MaxFile, room)+1))
	}
	n := int64(len(data))
	switch {
	case n > room && a.bytes-a.total <= room:
		return nil, "", notUnpacked("It was not unpacked, because it has more than the " + bytesize.Text(a.limits.MaxChange) + " that can be uploaded at once.")
	case n > room:
		return nil, "", errSwells
	case n > a.limits.MaxFile:
		return nil, a.tooLarge(), nil
	case errors.Is(err, zip.ErrAlgorithm):
		return nil, "Its compression method is not supported.", nil
	case err != nil && whole:
		return nil, "", archiveError(err)
	case err != nil:
		return nil, "It is damaged.", nil
	}
	a.total += n
	return data, "", nil
}

// capped is a reader that fails with err after left bytes. If open is set, ReadAt has no limit.
type capped struct {
	at   io.ReaderAt
	r    io.Reader
	left int64
	err  error
	open bool
}

func (c *capped) Read(p []byte) (int, error) {
	n, err := c.r.Read(p[:min(int64(len(p)), c.left+1)])
	if c.left -= int64(n); c.left < 0 {
		return 0, c.err
	}
	return n, err
}

func (c *capped) ReadAt(p []byte, off int64) (int, error) {
	if !c.open {
		if c.left -= int64(len(p)); c.left < 0 {
			return 0, c.err
		}
	}
	return c.at.ReadAt(p, off)
}
