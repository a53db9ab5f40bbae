package files

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"satchel/internal/space"
)

// zipped returns the names in an archive of files, in order, and the content of the last file.
func zipped(t *testing.T, files []space.Entry) (names []string, last string) {
	t.Helper()
	texts := map[space.BlobID]string{"text": "x", "in": "a.md", "out": "../../etc/passwd", "abs": "/etc/passwd", "git": ".git/config"}
	var b bytes.Buffer
	err := writeZip(t.Context(), &b, "notes", "c", time.Unix(0, 0), files, func(id space.BlobID) ([]byte, error) { return []byte(texts[id]), nil })
	if err != nil {
		t.Fatal(err)
	}
	z, err := zip.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range z.File {
		names = append(names, strings.TrimPrefix(f.Name, "notes/"))
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		last = string(text)
	}
	return names, last
}

func TestAttackZipThatLeavesItsDirectory(t *testing.T) {
	names, list := zipped(t, []space.Entry{
		{Path: "a.md", Blob: "text"}, {Path: "sub/in", Mode: space.Symlink, Blob: "in"},
		{Path: `..\..\evil.txt`, Blob: "text"}, {Path: `x\..\y`, Blob: "text"}, {Path: "../up", Blob: "text"},
		{Path: "sub/out", Mode: space.Symlink, Blob: "out"}, {Path: "abs", Mode: space.Symlink, Blob: "abs"},
		{Path: "sub/git", Mode: space.Symlink, Blob: "git"}, {Path: "two\nlines: fine", Blob: "text"}, {Path: "\u202etxt.evil\\", Blob: "text"},
	})
	if got := strings.Join(names, " "); got != "a.md sub/in NOT-IN-THIS-ZIP.txt" {
		t.Errorf("the archive has %s", got)
	}
	intro, got, _ := strings.Cut(list, "\n\n")
	if !strings.Contains(intro, "bundle") {
		t.Errorf("it begins with %q", intro)
	}
	const slash = ": its name has a backslash, which leads into a directory on Windows\n"
	want := `..\..\evil.txt` + slash + `x\..\y` + slash +
		"../up: it has the segment \"..\"\nsub/out: its link target leaves the space\nabs: its link target is absolute\nsub/git: its link target belongs to git\n" +
		`"two\nlines: fine": it has a control character (U+000A)` + "\n" + `"\u202etxt.evil\\"` + slash
	if got != want {
		t.Errorf("it lists\n%s\nwant\n%s", got, want)
	}
}

func TestListOfWhatAZipLeavesOut(t *testing.T) {
	out := space.Entry{Path: `a\b`, Blob: "text"}
	for name, tt := range map[string]struct {
		files []string
		want  string
	}{
		"a name of its own":        {[]string{"a.md"}, "NOT-IN-THIS-ZIP.txt"},
		"the space has that":       {[]string{"NOT-IN-THIS-ZIP.txt"}, "NOT-IN-THIS-ZIP-2.txt"},
		"in another case":          {[]string{"not-in-this-zip.TXT", "Not-In-This-Zip-2.txt"}, "NOT-IN-THIS-ZIP-3.txt"},
		"as a directory":           {[]string{"NOT-IN-THIS-ZIP.txt/a.md"}, "NOT-IN-THIS-ZIP-2.txt"},
		"further down, where none": {[]string{"a/NOT-IN-THIS-ZIP.txt"}, "NOT-IN-THIS-ZIP.txt"},
	} {
		t.Run(name, func(t *testing.T) {
			files := []space.Entry{out}
			for _, p := range tt.files {
				files = append(files, space.Entry{Path: space.Path(p), Blob: "text"})
			}
			if names, _ := zipped(t, files); names[len(names)-1] != tt.want {
				t.Errorf("the archive has %q", names)
			}
			if names, _ := zipped(t, files[1:]); len(names) != len(tt.files) {
				t.Errorf("where nothing is left out the archive has %q", names)
			}
		})
	}
	t.Run("very many", func(t *testing.T) {
		var files []space.Entry
		for i := range maxLeftOut + 7 {
			files = append(files, space.Entry{Path: space.Path(fmt.Sprintf(`a\%d`, i)), Blob: "text"})
		}
		_, list := zipped(t, files)
		if n := strings.Count(list, "backslash"); n != maxLeftOut || !strings.HasSuffix(list, "\nand 7 more\n") {
			t.Errorf("%d are listed", n)
		}
	})
}
