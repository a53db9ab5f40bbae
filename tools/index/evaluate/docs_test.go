package evaluate

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestSplitIdentifier(t *testing.T) {
	for id, want := range map[string]string{
		"useAsyncData": "use async data", "UseAsyncData": "use async data", "use-async-data": "use async data",
		"parseURLPath": "parse url path", "xslURL": "xsl url", "node_modules": "node modules", "a": "a", "": "", "v2Layout": "v2 layout",
	} {
		if got := SplitIdentifier(id); got != want {
			t.Errorf("%q: %q, want %q", id, got, want)
		}
	}
}

func TestIdentifiers(t *testing.T) {
	for s, want := range map[string]bool{
		"useFetch": true, "NuxtLink": true, "define-page-meta": true, "xslURL": true, "a-b": true,
		"Built-in": false, "fetch": false, "Fetch": false, "URL": false, "use fetch": false, "": false, "tsconfig.json": false, "NUXT_E1001": false,
	} {
		if got := isIdentifier(s); got != want {
			t.Errorf("%q: %v", s, got)
		}
	}
}

func TestWithoutDescription(t *testing.T) {
	for name, c := range map[string]struct{ page, want string }{
		"one line":           {"---\ntitle: A\ndescription: What it is.\ntags: b\n---\nBody\n", "---\ntitle: A\ntags: b\n---\nBody\n"},
		"folded":             {"---\ndescription: >\n  What\n\n  it is.\ntitle: A\n---\nBody\n", "---\ntitle: A\n---\nBody\n"},
		"on further lines":   {"---\ndescription:\n  What it\n  is.\ntitle: A\n---\n", "---\ntitle: A\n---\n"},
		"the last key":       {"---\ntitle: A\ndescription: What it is.\n---\nBody\n", "---\ntitle: A\n---\nBody\n"},
		"Windows":            {"---\r\ntitle: A\r\ndescription: What it is.\r\n---\r\nBody\r\n", "---\r\ntitle: A\r\n---\r\nBody\r\n"},
		"of something in it": {"---\nseo:\n  description: Another\n---\ndescription: not this\n", "---\nseo:\n  description: Another\n---\ndescription: not this\n"},
		"no front matter":    {"# A\n\ndescription: not this\n", "# A\n\ndescription: not this\n"},
	} {
		if got := string(WithoutDescription([]byte(c.page))); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestFromDocs(t *testing.T) {
	pages := map[string][]byte{
		"api/use-fetch.md": []byte("---\ntitle: useFetch\ndescription: \"Get data from an endpoint.\"\n---\n\n## `useFetch()`\n\n#### `watch-sources`\n\nText.\n\n```md\n# notAHeading\n```\n"),
		"guide.md":         []byte("---\ntitle: Guide\ndescription: Too short\n---\n# Fetching\n\n## useFetch\n\n## `<NuxtLink>`\n"),
	}
	d, err := FromDocs(pages, 6)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what string
		got  []Query
		want map[string]Grades
	}{
		{"descriptions", d.Descriptions, map[string]Grades{"Get data from an endpoint.": {"api/use-fetch.md": 1}}},
		{"words", d.Words, map[string]Grades{"use fetch": {"api/use-fetch.md": 1, "guide.md": 1}, "watch sources": {"api/use-fetch.md": 1}, "nuxt link": {"guide.md": 1}}},
		{"identifiers", d.Identifiers, map[string]Grades{"useFetch": {"api/use-fetch.md": 1, "guide.md": 1}, "watch-sources": {"api/use-fetch.md": 1}, "NuxtLink": {"guide.md": 1}}},
	} {
		got := map[string]Grades{}
		for _, q := range c.got {
			got[q.Text] = q.Grades
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
	for _, doc := range d.Documents {
		if text, err := doc.Read(); err != nil || bytes.Contains(text, []byte("description")) {
			t.Errorf("%s: %q, %v", doc.ID, text, err)
		}
	}
	if d, err = FromDocs(pages, 3); err != nil || len(d.Words) != 2 {
		t.Errorf("to level 3: %v, %v", d.Words, err)
	}
	if _, err := FromDocs(map[string][]byte{"a.md": []byte("# A\n")}, 6); err == nil {
		t.Error("a tree that gives no queries must be an error")
	}
}

func TestReadPages(t *testing.T) {
	dir := t.TempDir()
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	w := tar.NewWriter(z)
	for name, text := range map[string]string{"docs/a.md": "A", "docs/b.mdx": "B", "docs/c.png": "C", "README.md": "R"} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "top/" + name, Size: int64(len(text)), Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	archive := writeFile(t, "docs.tar.gz", buf.String())
	want := map[string][]byte{"docs/a.md": []byte("A"), "docs/b.mdx": []byte("B")}
	for _, from := range []string{dir, archive} {
		if got, err := ReadPages(from, "docs"); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q, %v", from, got, err)
		}
		if _, err := ReadPages(from, "nosuch"); err == nil || !strings.Contains(err.Error(), "no pages in Markdown") {
			t.Errorf("%s: %v", from, err)
		}
	}
	if _, err := ReadPages(writeFile(t, "x.tar.gz", "not an archive"), ""); err == nil {
		t.Error("what is no archive was read")
	}
}

// ReadPairs must return what Write writes.
func TestDocsAreWritten(t *testing.T) {
	d, err := FromDocs(map[string][]byte{
		"api/a.md": []byte("---\ntitle: useFetch\ndescription: Get data\tfrom → an endpoint.\n---\nText.\n"),
		"b.md":     []byte("## useFetch\n"),
	}, 6)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := d.Write(dir); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]Query{"descriptions": d.Descriptions, "words": d.Words, "identifiers": d.Identifiers} {
		col, err := ReadPairs(filepath.Join(dir, name+".tsv"))
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(col.Queries, want) {
			t.Errorf("%s: %+v, want %+v", name, col.Queries, want)
		}
		if err := col.AddDirectory(filepath.Join(dir, "pages")); err != nil || len(col.Documents) != 2 || len(col.Notes) > 0 {
			t.Errorf("%s: %d pages, %v, %q", name, len(col.Documents), err, col.Notes)
		}
	}
}
