package upstream_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"

	"satchel/gitstore/sources/upstream"
	"satchel/internal/fault"
)

// zipped returns an archive of names with contents.
func zipped(t *testing.T, pairs ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i < len(pairs); i += 2 {
		w, err := z.CreateHeader(&zip.FileHeader{Name: pairs[i], Method: zip.Deflate})
		if err == nil {
			_, err = io.WriteString(w, pairs[i+1])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// receive returns the pages of an upload, and the reasons of the files that were left out.
func receive(t *testing.T, env *upstream.Env, name string, content []byte) (pages map[string]string, out map[string]upstream.Reason, err error) {
	t.Helper()
	s := &sink{}
	s.next()
	out = map[string]upstream.Reason{}
	f, size, err := upstream.Spool(t.Context(), env, name, bytes.NewReader(content))
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	err = upstream.Receive(t.Context(), env, upstream.Upload, name, f, size, s, func(name string, why *upstream.Refusal) { out[name] = why.Reason })
	return s.content, out, err
}

func TestReceiveAFile(t *testing.T) {
	env := newEnv(t)
	for name, c := range map[string]struct{ content, path, page string }{
		"a.md":        {"# A\r\n", "a.md", "# A\r\n"},
		"code/a.go":   {"package a\n", "code/a.go", "package a\n"},
		"old.txt":     {"caf\xe9", "old.txt", "café"},
		"wide.txt":    {"\xff\xfeh\x00i\x00", "wide.txt", "hi"},
		"talk.vtt":    {captionText, "talk.vtt.md", ""},
		"b.ipynb":     {notebookText, "b.ipynb.md", ""},
		"x/page.html": {`<main><h1>P</h1><p>See <a href="../b%20c.html#d">b</a>, <a href="m.pdf">m</a> and <a href="https://e.example/f.html">e</a>. <img src="g.png" alt="g"></p></main>`, "x/page.html.md", "# P\n\nSee [b](../b%20c.html.md#d), [m](m.pdf.md) and [e](https://e.example/f.html).\n"},
	} {
		pages, out, err := receive(t, env, name, []byte(c.content))
		got, ok := pages[c.path]
		if err != nil || len(out) > 0 || !ok || c.page != "" && got != c.page {
			t.Errorf("%s became %q, left out %v, %v", name, pages, out, err)
		}
	}
	for name, c := range map[string]struct {
		content string
		want    upstream.Reason
	}{
		"a.pdf": {"%PDF-1.4", upstream.NeedsSandbox}, "a.bin": {"\x00\x01", upstream.Unreadable}, "a.go": {"caf\xe9", upstream.Unreadable}, "empty.html": {"", upstream.Unreadable},
	} {
		if pages, out, err := receive(t, env, name, []byte(c.content)); err != nil || out[name] != c.want || len(pages) > 0 {
			t.Errorf("%s: %v, %v, %q", name, out, err, pages)
		}
	}
}

// An archive gives its files. Bad ones are left out, and each has a reason.
func TestReceiveAnArchive(t *testing.T) {
	env := newEnv(t)
	content := zipped(t,
		"guides/a.md", "# A", "guides/a.md", "# Another", "b.md", "B", ".git/config", "x", "__MACOSX/._b.md", "x", "guides/.hidden/c.md", "x",
		"../../up.md", "x", "/abs.md", "x", "a//b.md", "x", `c:\d.md`, "x", "e/./f.md", "x", "large.md", strings.Repeat("x", 2<<20), "inner.zip", string(zipped(t, "g.md", "G")),
		strings.Repeat("d/", 40)+"deep.md", "x")
	pages, out, err := receive(t, env, "all.zip", content)
	if err != nil || !maps.Equal(pages, map[string]string{"guides/a.md": "# A", "b.md": "B"}) {
		t.Errorf("%v, %v", slices.Sorted(maps.Keys(pages)), err)
	}
	if want := (map[string]upstream.Reason{
		"guides/a.md": upstream.Duplicate, "../../up.md": upstream.BadName, "/abs.md": upstream.BadName, "a//b.md": upstream.BadName, `c:\d.md`: upstream.BadName,
		"e/./f.md": upstream.BadName, "large.md": upstream.TooLarge, "inner.zip": upstream.Unreadable, strings.Repeat("d/", 40) + "deep.md": upstream.BadName,
	}); !maps.Equal(out, want) {
		t.Errorf("left out %v", out)
	}
}

func TestAttackArchives(t *testing.T) {
	env := newEnv(t)
	env.MaxBytes = 8 << 20
	refused := func(what string, content []byte, want fault.Code) {
		t.Helper()
		pages, _, err := receive(t, env, "x.zip", content)
		if fault.CodeOf(err) != want {
			t.Errorf("%s: %d pages, %v", what, len(pages), err)
		}
	}
	var many []string
	for i := range 20 {
		many = append(many, fmt.Sprintf("%d.pdf", i), strings.Repeat("\x00", 1<<20))
	}
	refused("a bomb of many files", zipped(t, many...), fault.TooLarge)
	refused("a bomb of one file", zipped(t, "a.pdf", strings.Repeat("\x00", 80<<20)), fault.TooLarge)
	names := make([]string, 0, 200_000)
	for i := range 100_000 {
		names = append(names, fmt.Sprintf("%d.md", i), "")
	}
	refused("100,000 files", zipped(t, names...), fault.TooLarge)
	refused("no archive", []byte("hello"), fault.Invalid)
	whole := zipped(t, "a.md", strings.Repeat("A text that is cut off. ", 100))
	refused("a part of an archive", whole[:len(whole)/2], fault.Invalid)

	var b bytes.Buffer
	z := zip.NewWriter(&b)
	h := &zip.FileHeader{Name: "link.md"}
	h.SetMode(fs.ModeSymlink | 0o777)
	w, err := z.CreateHeader(h)
	if err == nil {
		_, err = io.WriteString(w, "/etc/passwd")
	}
	if err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	if pages, out, err := receive(t, env, "x.zip", b.Bytes()); err != nil || len(pages) > 0 || out["link.md"] != upstream.Unreadable {
		t.Errorf("a link: %q, %v, %v", pages, out, err)
	}
	for _, name := range []string{"", "../a.md", "/a.md", ".git/a.md", "a\x00.md", strings.Repeat("a", 300) + ".md"} {
		if _, _, err := receive(t, env, name, []byte("x")); fault.CodeOf(err) != fault.Invalid {
			t.Errorf("the name %q: %v", name, err)
		}
	}
	if _, _, err := receive(t, env, "a.md", make([]byte, 2<<20)); fault.CodeOf(err) != fault.TooLarge {
		t.Errorf("a large text: %v", err)
	}
}
