package evaluate

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"satchel/internal/fault"
)

// maxPage is the size of the largest page that ReadPages returns, in bytes.
const maxPage = 4 << 20

// ReadPages returns the Markdown and reStructuredText pages of a directory or a .tar.gz archive,
// by path. Unless under is "", it returns only pages below the directory under. It removes the
// first directory from each path in an archive, because GitHub adds one. It does not follow
// links.
func ReadPages(file, under string) (map[string][]byte, error) {
	pages := map[string][]byte{}
	wanted := func(name string) bool {
		if ext := path.Ext(name); ext != ".md" && ext != ".mdx" && ext != ".rst" {
			return false
		}
		return under == "" || strings.HasPrefix(name, strings.TrimSuffix(under, "/")+"/")
	}
	add := func(name string, r io.Reader) error {
		data, err := io.ReadAll(io.LimitReader(r, maxPage+1))
		if err == nil && len(data) <= maxPage {
			pages[name] = data
		}
		return err
	}
	read := readDirectory
	if strings.HasSuffix(file, ".tar.gz") || strings.HasSuffix(file, ".tgz") {
		read = readArchive
	}
	if err := read(file, wanted, add); err != nil {
		return nil, unreadable(file, err)
	}
	if len(pages) == 0 {
		return nil, fault.New(fault.Invalid, "%s has no pages in Markdown or reStructuredText below %q.", file, under)
	}
	return pages, nil
}

type addPage func(name string, r io.Reader) error

func readArchive(file string, wanted func(string) bool, add addPage) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	for tr := tar.NewReader(z); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		_, name, _ := strings.Cut(path.Clean(h.Name), "/")
		if h.Typeflag != tar.TypeReg || !wanted(name) {
			continue
		}
		if err := add(name, tr); err != nil {
			return err
		}
	}
}

func readDirectory(dir string, wanted func(string) bool, add addPage) error {
	return filepath.WalkDir(dir, func(file string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && e.Name() == ".git" {
			return filepath.SkipDir
		}
		rel, err := filepath.Rel(dir, file)
		if err != nil || !e.Type().IsRegular() || !wanted(filepath.ToSlash(rel)) {
			return err
		}
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		defer f.Close()
		return add(filepath.ToSlash(rel), f)
	})
}
