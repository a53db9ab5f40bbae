package evaluate

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"satchel/internal/fault"
	"satchel/internal/space"
)

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestPairs(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       map[string][]string // pages by query
		err        string
	}{
		{"tabs", "deploy on tuesday\ta.md\n", map[string][]string{"deploy on tuesday": {"a.md"}}, ""},
		{"arrows", "deploy → docs/a.md\na → b → c.md", map[string][]string{"deploy": {"docs/a.md"}, "a → b": {"c.md"}}, ""},
		{"a tab before an arrow", "a → b\tc.md", map[string][]string{"a → b": {"c.md"}}, ""},
		{"several pages", "x\ta.md\ny\tb.md\nx\tc.md\nx\ta.md\n", map[string][]string{"x": {"a.md", "c.md"}, "y": {"b.md"}}, ""},
		{"comments and blank lines", "# what people ask\n\nx\ta.md\r\n#1 question\tb.md\n", map[string][]string{"x": {"a.md"}, "#1 question": {"b.md"}}, ""},
		{"a byte order mark and ./", "\ufeffx\t./a.md", map[string][]string{"x": {"a.md"}}, ""},
		{"no separator", "x\ta.md\ny b.md\n", nil, "Line 2 of pairs.tsv cannot be used: it has neither a tab nor an arrow"},
		{"no path", "x\t\n", nil, "Line 1 of pairs.tsv cannot be used: its query or its path is empty"},
		{"no query", "\ta.md\n", nil, "its query or its path is empty"},
		{"a path that leaves", "x\t../a.md\n", nil, `Line 1 of pairs.tsv cannot be used: The path "../a.md" cannot be used`},
		{"not UTF-8", "x\xff\ta.md\n", nil, "it is not valid UTF-8"},
		{"nothing", "\n# only this\n", nil, "pairs.tsv has no queries."},
	} {
		t.Run(c.name, func(t *testing.T) {
			col, err := ReadPairs(writeFile(t, "pairs.tsv", c.text))
			if c.err != "" {
				if err == nil || !strings.Contains(fault.PublicOf(err), c.err) {
					t.Errorf("%v, want %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := map[string][]string{}
			for _, q := range col.Queries {
				one := Collection{Queries: []Query{q}}
				for _, p := range one.Relevant() {
					got[q.Text] = append(got[q.Text], string(p))
				}
			}
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

func TestPairsInADirectory(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"a.md": "Deploying.", "sub/b.md": "Coffee.", ".git/config": "[core]"} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/hostname", filepath.Join(dir, "link.md")); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "dir")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	col := &Collection{Queries: []Query{{Text: "x", Grades: Grades{"a.md": 1, "gone.md": 1}}}}
	if err := col.AddDirectory(link); err != nil {
		t.Fatal(err)
	}
	var got []space.Path
	for _, d := range col.Documents {
		got = append(got, d.Path)
		if text, err := d.Read(); err != nil || int64(len(text)) != d.Size {
			t.Errorf("%s: %q, %v", d.Path, text, err)
		}
	}
	if want := []space.Path{"a.md", "sub/b.md"}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if len(col.Notes) != 1 || !strings.Contains(col.Notes[0], `1 page is not in the directory dir; it counts as one that is not found: "gone.md"`) {
		t.Errorf("%q", col.Notes)
	}
	for what, err := range map[string]error{
		"no such directory": (&Collection{}).AddDirectory(filepath.Join(dir, "nosuch")),
		"a file":            (&Collection{}).AddDirectory(filepath.Join(dir, "a.md")),
		"an empty one":      (&Collection{}).AddDirectory(t.TempDir()),
		"another tree":      (&Collection{Queries: []Query{{Text: "x", Grades: Grades{"c.md": 1}}}}).AddDirectory(dir),
	} {
		if err == nil || fault.CodeOf(err) == fault.Internal {
			t.Errorf("%s: %v", what, err)
		}
	}
}
