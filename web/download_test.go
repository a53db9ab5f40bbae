package web_test

import (
	"archive/zip"
	"bytes"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"satchel/internal/space"
	"satchel/internal/testenv"
)

func TestDownloads(t *testing.T) {
	h := newHeld(t, "a/b.md", "text\n", "ä.md", "umlaut")
	_, err := h.git.Commit(t.Context(), h.space.ID, space.ChangeSet{Changes: []space.Change{
		{Path: "run.sh", Content: []byte("#!/bin/sh\n"), Mode: space.Executable},
		{Path: "a/link", Content: []byte("b.md"), Mode: space.Symlink},
	}}, space.Meta{Author: space.Person{Name: "Ada"}, Time: h.now})
	must(t, err)
	b := h.as(h.bob)
	a := b.get(h.in("download/zip"))
	want(t, "a zip", a, http.StatusOK)
	if d := a.Header.Get("Content-Disposition"); !strings.HasPrefix(d, "attachment; filename=") || a.Header.Get("Content-Type") != "application/zip" {
		t.Errorf("%v", a.Header)
	}
	z, err := zip.NewReader(strings.NewReader(a.body), int64(len(a.body)))
	must(t, err)
	got := map[string]string{}
	for _, f := range z.File {
		r, err := f.Open()
		must(t, err)
		data, err := io.ReadAll(r)
		must(t, err)
		_, name, _ := strings.Cut(f.Name, "/")
		got[name] = f.Mode().String() + " " + string(data)
	}
	link := fs.FileMode(0o777 | fs.ModeSymlink).String()
	for name, want := range map[string]string{"a/b.md": "-rw-r--r-- text\n", "ä.md": "-rw-r--r-- umlaut", "run.sh": "-rwxr-xr-x #!/bin/sh\n", "a/link": link + " b.md"} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	head, err := h.git.Head(t.Context(), h.space.ID)
	must(t, err)
	if len(got) != 4 || z.Comment != string(head) {
		t.Errorf("%v, %q", got, z.Comment)
	}

	a = b.get(h.in("download/bundle"))
	want(t, "a bundle", a, http.StatusOK)
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "x.bundle"), []byte(a.body), 0o600))
	out, err := testenv.Git(t, dir, "clone", "-q", "x.bundle", "all").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(dir, "all", "a", "b.md"))
	must(t, err)
	if !bytes.Equal(text, []byte("text\n")) {
		t.Errorf("the clone has %q", text)
	}
	want(t, "what is no download", b.get(h.in("download/tar")), http.StatusNotFound)
	want(t, "a zip of an unknown commit", b.get(h.in("download/zip?at=%s", strings.Repeat("b", 40))), http.StatusNotFound)
	if a := b.request(http.MethodHead, h.in("download/bundle"), ""); a.body != "" || a.StatusCode != http.StatusOK {
		t.Errorf("HEAD: %d with %d bytes", a.StatusCode, len(a.body))
	}
}

// The page says beforehand what a zip leaves out, and which download has everything.
func TestTheExportPageSaysWhatAZipLacks(t *testing.T) {
	h := newHeld(t, "a.md", "text\n")
	b := h.as(h.ada)
	a := b.get(h.in("export"))
	checkPage(t, "export", a)
	if !strings.Contains(a.body, "/download/zip") || !strings.Contains(a.body, "A zip leaves out") || !strings.Contains(a.body, "has everything") {
		t.Error("the page does not say it")
	}
	if files := b.get(h.in("files/")).body; !strings.Contains(files, h.in("download/zip")) || !strings.Contains(files, h.in("export")) {
		t.Error("the menu of Files has no download")
	}
}
