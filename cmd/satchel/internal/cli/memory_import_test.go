package cli

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// An import of a directory leaves out its symbolic links, names three of them and counts all.
func TestImportOfADirectoryWithLinks(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "note.md"), []byte("# A note\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a.md", "b.md", "c", "d.md"} {
		if err := os.Symlink("/etc/passwd", filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	var links linksLeftOut
	_, stream, err := exported(dir, &links)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	data, err := io.ReadAll(stream)
	if err != nil {
		t.Fatal(err)
	}
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil || len(z.File) != 1 || z.File[0].Name != "note.md" {
		t.Errorf("%v, %v", z.File, err)
	}
	const why = "It is one of 4 symbolic links, which an import does not follow."
	if got := fmt.Sprint(links.notes()); got != fmt.Sprintf("[{a.md %s} {b.md %s} {c %s}]", why, why, why) {
		t.Error(got)
	}
}
