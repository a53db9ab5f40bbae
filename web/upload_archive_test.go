package web_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/web"
)

// packed is an entry of a test archive.
type packed struct {
	name, text string
	mode       fs.FileMode
	change     func(*zip.FileHeader)
	kind       byte // of a tar
	link       string
}

func zipOf(t *testing.T, entries ...packed) string {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate}
		h.SetMode(max(e.mode, 0o600))
		if e.mode == 0 {
			h.SetMode(0o644)
		}
		if e.change != nil {
			e.change(h)
		}
		w, err := z.CreateHeader(h)
		must(t, err)
		if !strings.HasSuffix(e.name, "/") {
			_, err = w.Write([]byte(e.text))
			must(t, err)
		}
	}
	must(t, z.Close())
	return b.String()
}

func tarOf(t *testing.T, entries ...packed) string {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Mode: int64(e.mode.Perm()), Typeflag: e.kind, Linkname: e.link, Size: int64(len(e.text))}
		if e.mode == 0 {
			h.Mode = 0o644
		}
		must(t, w.WriteHeader(h))
		_, err := w.Write([]byte(e.text))
		must(t, err)
	}
	must(t, w.Close())
	return b.String()
}

func gz(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write([]byte(text))
	must(t, err)
	must(t, w.Close())
	return b.String()
}

func (h *held) mode(p string) space.Mode {
	h.t.Helper()
	_, m, _, err := h.git.Blob(h.t.Context(), h.space.ID, "", space.Path(p))
	must(h.t, err)
	return m
}

var unpackInto = url.Values{"dir": {"d"}, "unpack": {"1"}}

func (b *browser) unpack(h *held, files ...string) answer {
	b.w.t.Helper()
	f := url.Values{}
	for k, v := range unpackInto {
		f[k] = v
	}
	return b.upload(h, f, files...)
}

func TestUnpack(t *testing.T) {
	entries := []packed{
		{name: "notes/"}, {name: "notes/a.md", text: "# A\n"}, {name: "./notes/run.sh", text: "#!/bin/sh\n", mode: 0o755}, {name: "inner.zip", text: "PK not looked into"}, {name: "notes/deep/er/b.md", text: ""},
	}
	entries[0].mode = fs.ModeDir | 0o755
	inTar := append([]packed{}, entries...)
	inTar[0].kind = tar.TypeDir
	for name, data := range map[string]string{"x.ZIP": zipOf(t, entries...), "x.tar": tarOf(t, inTar...), "x.tar.gz": gz(t, tarOf(t, inTar...)), "x.tgz": gz(t, tarOf(t, inTar...))} {
		t.Run(name, func(t *testing.T) {
			h := newHeld(t)
			b := h.as(h.ada)
			if a := b.get(h.in("upload")); !strings.Contains(a.body, `name="unpack" value="1" checked>`) {
				t.Error("it is not ticked")
			}
			a := b.unpack(h, name, data, "beside.txt", "beside\n")
			want(t, "unpack", a, http.StatusSeeOther)
			h.holds("d/notes/a.md", "# A\n")
			h.holds("d/notes/run.sh", "#!/bin/sh\n")
			h.holds("d/inner.zip", "PK not looked into")
			h.holds("d/notes/deep/er/b.md", "")
			h.holds("d/beside.txt", "beside\n")
			h.lacks("d/" + name)
			if h.mode("d/notes/run.sh") != space.Executable || h.mode("d/notes/a.md") != space.Regular {
				t.Error("a program is none, or a file is one")
			}
			if c := h.last(); len(c.Files) != 5 {
				t.Errorf("it is not one commit: %+v", c.Files)
			}
			head := h.head()
			want(t, "the same again", b.unpack(h, name, data), http.StatusSeeOther)
			if h.head() != head {
				t.Error("files that are there already were changed")
			}
			want(t, "not ticked", b.upload(h, url.Values{"dir": {"kept"}}, name, data), http.StatusSeeOther)
			h.holds("kept/"+name, data)
		})
	}
}

// TestUnpackOver checks that an existing file is only replaced if its box was checked, in
// the version that was shown.
func TestUnpackOver(t *testing.T) {
	h := newHeld(t, "d/a.md", "old\n", "d/sub/x", "x")
	b := h.as(h.ada)
	data := zipOf(t, packed{name: "a.md", text: "new\n", mode: 0o755}, packed{name: "b.md", text: "b\n"}, packed{name: "sub", text: "s"}, packed{name: "sub/x/y", text: "y"})
	a := b.unpack(h, "x.zip", data)
	want(t, "unpack", a, http.StatusUnprocessableEntity)
	for _, w := range []string{"Replace <bdi>a.md", "directory with this name"} {
		if !strings.Contains(a.body, w) {
			t.Errorf("no %q", w)
		}
	}
	h.holds("d/a.md", "old\n")
	h.holds("d/b.md", "b\n")
	h.holds("d/sub/x", "x")
	tick := strings.Split(strings.Split(a.body, `name="replace" value="`)[1], `"`)[0]
	h.commit("Meanwhile", "d/a.md", "newer\n")
	only := zipOf(t, packed{name: "a.md", text: "new\n", mode: 0o755})
	form := url.Values{"dir": {"d"}, "unpack": {"1"}, "replace": {tick}}
	want(t, "ticked for what is gone", b.upload(h, form, "x.zip", only), http.StatusUnprocessableEntity)
	h.holds("d/a.md", "newer\n")
	form["replace"] = []string{string(b0(h, "d/a.md")) + " d/a.md"}
	want(t, "ticked", b.upload(h, form, "x.zip", only), http.StatusSeeOther)
	h.holds("d/a.md", "new\n")
	if h.mode("d/a.md") != space.Executable {
		t.Error("it is no program")
	}
}

func b0(h *held, p string) space.BlobID {
	b, _, _, err := h.git.Blob(h.t.Context(), h.space.ID, "", space.Path(p))
	must(h.t, err)
	return b
}

// TestUnpackLeavesOut checks that files of systems and of git are left out and listed,
// without an error.
func TestUnpackLeavesOut(t *testing.T) {
	h := newHeld(t)
	b := h.as(h.ada)
	a := b.unpack(h, "x.zip", zipOf(t, packed{name: "n/a.md", text: "a"}, packed{name: "__MACOSX/n/._a.md", text: "m"}, packed{name: "n/.DS_Store", text: "m"}, packed{name: "n/.git/config", text: "[core]"}, packed{name: "n/.GIT/hooks/post-commit", text: "x"}, packed{name: "n/m/.git", text: "gitdir: /"}))
	want(t, "unpack", a, http.StatusOK)
	for _, w := range []string{"Left out: 2 entries that macOS", "Left out: 3 entries of git", "The files were uploaded", "n/a.md"} {
		if !strings.Contains(a.body, w) {
			t.Errorf("the page lacks %q", w)
		}
	}
	if c := h.last(); len(c.Files) != 1 || c.Files[0].Path != "d/n/a.md" {
		t.Errorf("it has %+v", c.Files)
	}
}

// TestUnpackAttacks has entries outside of the directory or other than files. The other
// entries of the archive are saved.
func TestUnpackAttacks(t *testing.T) {
	long := strings.Repeat("x", 1001)
	for _, tt := range []struct {
		name string
		data string
		tar  bool
		says string
	}{
		{name: "zip slip", data: zipOf(t, packed{name: "../evil", text: "x"}), says: "has the segment"},
		{name: "zip slip in the middle", data: zipOf(t, packed{name: "a/../../evil", text: "x"}), says: "has the segment"},
		{name: "zip slip by backslashes", data: zipOf(t, packed{name: `..\..\evil`, text: "x"}), says: "path of another operating system"},
		{name: "an absolute path", data: zipOf(t, packed{name: "/evil", text: "x"}), says: "relative to the space"},
		{name: "an absolute path of Windows", data: zipOf(t, packed{name: "C:/evil", text: "x"}), says: "path of another operating system"},
		{name: "git's directory by its short name", data: zipOf(t, packed{name: "GIT~1/config", text: "x"}), says: "belongs to git"},
		{name: "git's directory as a Mac reads it", data: zipOf(t, packed{name: ".g\u200cit/config", text: "x"}), says: "belongs to git"},
		{name: "a control character", data: zipOf(t, packed{name: "good", text: "g"}, packed{name: "a\nb", text: "x"}), says: "control character"},
		{name: "a name with HTML", data: zipOf(t, packed{name: "../<script>alert(1)</script>", text: "x"}), says: "&lt;script&gt;"},
		{name: "a link out", data: zipOf(t, packed{name: "link", text: "/etc/passwd", mode: fs.ModeSymlink | 0o777}), says: "It is a link"},
		{name: "a file through a link", data: tarOf(t, packed{name: "l", kind: tar.TypeSymlink, link: "../../"}, packed{name: "l2", kind: tar.TypeLink, link: "/etc/passwd"}), tar: true, says: "It is a link"},
		{name: "a device", data: tarOf(t, packed{name: "dev", kind: tar.TypeBlock}), tar: true, says: "neither a file nor"},
		{name: "a pipe", data: tarOf(t, packed{name: "p", kind: tar.TypeFifo}), tar: true, says: "neither a file nor"},
		{name: "a tar that climbs", data: tarOf(t, packed{name: "../../evil", text: "x"}), tar: true, says: "has the segment"},
		{name: "encrypted", data: zipOf(t, packed{name: "s", text: "x", change: func(h *zip.FileHeader) { h.Flags |= 1 }}), says: "encrypted"},
		{name: "too large a file", data: zipOf(t, packed{name: "big", text: long}), says: "larger than the 1000 bytes"},
		{name: "too large a file in a tar", data: tarOf(t, packed{name: "big", text: long}), tar: true, says: "larger than the 1000 bytes"},
		{name: "duplicate names", data: zipOf(t, packed{name: "a", text: "first"}, packed{name: "a", text: "second"}), says: "Another file in the archive"},
		{name: "a file and a directory", data: zipOf(t, packed{name: "a", text: "first"}, packed{name: "a/b", text: "x"}), says: "a file and a directory"},
		{name: "a directory and a file", data: zipOf(t, packed{name: "a/b", text: "x"}, packed{name: "a", text: "x"}), says: "a file and a directory"},
		{name: "no archive", data: "PK no zip at all", says: "It is damaged"},
		{name: "no tar", data: long, tar: true, says: "It is damaged"},
		{name: "half of a zip", data: zipOf(t, packed{name: "a", text: "x"})[:60], says: "It is damaged"},
		{name: "half of a tar", data: tarOf(t, packed{name: "a", text: long[:900]})[:700], tar: true, says: "It is damaged"},
		{name: "nothing in it", data: zipOf(t), says: "no files that can be"},
		{name: "only directories", data: zipOf(t, packed{name: "d/", mode: fs.ModeDir | 0o755}), says: "no files that can be uploaded"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHeld(t)
			h.serve(func(o *web.Options) { o.Editing = web.EditLimits{MaxFile: 1000, MaxChange: 9000, MaxFiles: 5} })
			name := "x.zip"
			if tt.tar {
				name = "x.tar"
			}
			a := h.as(h.ada).unpack(h, name, tt.data, "beside.txt", "b")
			want(t, "unpack", a, http.StatusUnprocessableEntity)
			if !strings.Contains(a.body, tt.says) || strings.Contains(a.body, "<script>alert") {
				t.Errorf("it does not say %q: %s", tt.says, a.body)
			}
			h.holds("d/beside.txt", "b")
			for _, f := range h.last().Files {
				if !strings.HasPrefix(string(f.Path), "d/") || f.NewMode != space.Regular {
					t.Errorf("it has %+v", f)
				}
			}
			if got, ok := h.read("d/a"); ok && got != "first" {
				t.Errorf("another entry took the place of the first: %q", got)
			}
		})
	}
}

// TestUnpackBombs has small archives with huge content. None of it is saved.
func TestUnpackBombs(t *testing.T) {
	many := func(n int, name string) []packed {
		var out []packed
		for i := range n {
			out = append(out, packed{name: fmt.Sprintf(name, i), text: "x"})
		}
		return out
	}
	zeros := strings.Repeat("\x00", 9<<20)
	small := web.EditLimits{MaxFile: 1000, MaxChange: 3000, MaxFiles: 5}
	for name, tt := range map[string]struct {
		file, data string
		limits     web.EditLimits
		says       string
	}{
		"more files than may be":               {"x.zip", zipOf(t, many(6, "%d")...), small, "more files than the"},
		"more bytes than may be":               {"x.zip", zipOf(t, packed{name: "1", text: zeros[:1000]}, packed{name: "2", text: zeros[:1000]}, packed{name: "3", text: zeros[:1000]}, packed{name: "4", text: zeros[:1000]}), small, "more than the 3 kB"},
		"more entries than are read":           {"x.zip", zipOf(t, many(121, "__MACOSX/%d")...), web.EditLimits{MaxFiles: 5}, "more than 120 entries"},
		"a list that fills the memory":         {"x.zip", zipOf(t, many(60_000, "%d")...), web.EditLimits{MaxFiles: 5}, "list of files is too long"},
		"more entries in a tar":                {"x.tgz", gz(t, tarOf(t, many(121, "__MACOSX/%d")...)), web.EditLimits{MaxFiles: 5}, "more than 120 entries"},
		"a ratio that no text has":             {"x.zip", zipOf(t, packed{name: "z", text: zeros}), web.EditLimits{}, "far larger than the archive"},
		"a ratio in a tar":                     {"x.tgz", gz(t, tarOf(t, packed{name: "z", text: zeros})), web.EditLimits{}, "far larger than the archive"},
		"what is passed over in a tar":         {"x.tgz", gz(t, tarOf(t, packed{name: "__MACOSX/z", text: zeros}, packed{name: "a", text: "a"})), web.EditLimits{MaxFiles: 5, MaxChange: 20_000}, "far larger than the archive"},
		"a size that is not what is so":        {"x.zip", lying(t), small, "It is damaged"},
		"a file that is larger than it may be": {"x.zip", zipOf(t, packed{name: "z", text: zeros[:100]}, packed{name: "y", text: zeros[:1001]}), small, "larger than the 1000 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHeld(t)
			h.serve(func(o *web.Options) { o.Editing = tt.limits })
			head := h.head()
			a := h.as(h.ada).unpack(h, tt.file, tt.data)
			want(t, "unpack", a, http.StatusUnprocessableEntity)
			if !strings.Contains(a.body, tt.says) {
				t.Errorf("it does not say %q: %s", tt.says, problemOf(a.body))
			}
			if strings.Contains(name, "more") && h.head() != head {
				t.Error("something of it was saved")
			}
		})
	}
}

// lying is a zip whose entry claims to be small.
func lying(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.CreateRaw(&zip.FileHeader{Name: "z", Method: zip.Store, CompressedSize64: 2000, UncompressedSize64: 10})
	must(t, err)
	_, err = w.Write(make([]byte, 2000))
	must(t, err)
	must(t, z.Close())
	return b.String()
}

// TestUnpackBounds checks that the lists of skipped entries are limited.
func TestUnpackBounds(t *testing.T) {
	h := newHeld(t)
	var entries []packed
	for i := range 80 {
		entries = append(entries, packed{name: fmt.Sprintf("../%d", i)}, packed{name: fmt.Sprintf("ok/%d", i)})
	}
	a := h.as(h.ada).unpack(h, "x.zip", zipOf(t, entries...))
	want(t, "unpack", a, http.StatusUnprocessableEntity)
	if n := strings.Count(a.body, "and 30 more</p>"); n != 2 || !strings.Contains(a.body, "80 files were not saved") {
		t.Errorf("%d lists end, and %q", n, problemOf(a.body))
	}
}

// TestUnpackScreened checks that files of archives are scanned for secrets like others.
func TestUnpackScreened(t *testing.T) {
	h := newHeld(t)
	h.screen = screening
	a := h.as(h.ada).unpack(h, "x.zip", zipOf(t, packed{name: "k", text: "token=abc"}))
	want(t, "unpack", a, http.StatusUnprocessableEntity)
	if !strings.Contains(a.body, "what looks like a key") {
		t.Error("it does not say so")
	}
}

// TestNamedRefusals checks that the command in an error has the person's name.
func TestNamedRefusals(t *testing.T) {
	h := newHeld(t, "a.md", "one\n")
	b := h.as(h.ada)
	form := b.edit(h, "a.md")
	h.screen = func(space.Path, []byte) error {
		return fault.New(fault.Forbidden, "It looks like a key. Where it is none: satchel space allow --user NAME 0123abcd")
	}
	const says = "satchel space allow --user ada 0123abcd"
	if a := b.save(h, "a.md", form, "token=abc\n"); !strings.Contains(problemOf(a.body), says) {
		t.Errorf("an edit says %q", problemOf(a.body))
	}
	if a := b.upload(h, url.Values{}, "k.txt", "token=abc"); !strings.Contains(a.body, says) {
		t.Error("an upload says otherwise")
	}
}
