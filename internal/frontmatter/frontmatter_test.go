package frontmatter_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"satchel/internal/frontmatter"
)

func TestParse(t *testing.T) {
	tests := []struct {
		name   string
		doc    string
		fields map[string]any
		body   string
		line   int
	}{
		{"no block", "# Title\n", nil, "# Title\n", 1},
		{"empty document", "", nil, "", 1},
		{"title and body", "---\ntitle: A page\n---\n# Title\n", map[string]any{"title": "A page"}, "# Title\n", 4},
		{"ended by dots", "---\na: 1\n...\nx", map[string]any{"a": int64(1)}, "x", 4},
		{"Windows line ends", "---\r\na: b\r\n---\r\nx\r\n", map[string]any{"a": "b"}, "x\r\n", 4},
		{"byte order mark", "\ufeff---\na: b\n---\nx", map[string]any{"a": "b"}, "x", 4},
		{"blanks after the rule", "--- \na: b\n--- \nx", map[string]any{"a": "b"}, "x", 4},
		{"a rule, no block", "---\n\nText that goes on.\n", nil, "---\n\nText that goes on.\n", 1},
		{"an empty block", "---\n---\nx", map[string]any{}, "x", 3},
		{"only comments", "---\n# nothing\n---\nx", map[string]any{}, "x", 4},
		{"nothing after the block", "---\na: b\n---", map[string]any{"a": "b"}, "", 4},
		{"types", "---\nb: true\ni: 7\nf: .5\nn: ~\nd: 2026-01-02\nl: [a, 1]\nm: {k: v}\ninf: .inf\n---\n",
			map[string]any{"b": true, "i": int64(7), "f": .5, "n": nil, "d": "2026-01-02",
				"l": []any{"a", int64(1)}, "m": map[string]any{"k": "v"}, "inf": ".inf"}, "", 11},
		{"a tag chooses no type", "---\na: !!python/object:os.system ls\n---\n", map[string]any{"a": "ls"}, "", 4},
		{"a merge key is a key", "---\n<<: {a: b}\n---\n", map[string]any{"<<": map[string]any{"a": "b"}}, "", 4},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d, err := frontmatter.Parse([]byte(tt.doc))
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(d.Fields, tt.fields) {
				t.Errorf("fields %#v, want %#v", d.Fields, tt.fields)
			}
			if string(d.Body) != tt.body || d.BodyLine != tt.line {
				t.Errorf("body %q from line %d, want %q from line %d", d.Body, d.BodyLine, tt.body, tt.line)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	bomb := "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: [*b,*b,*b,*b,*b,*b,*b,*b,*b]"
	tests := []struct{ name, block, want string }{
		{"billion laughs", bomb, "anchors and aliases"},
		{"not YAML", "a: [", "not valid YAML"},
		{"a colon in plain text", "a: b: c", "not valid YAML"},
		{"a list", "- a", "not a list of"},
		{"duplicate key", "a: 1\na: 2", "occurs twice"},
		{"a mapping as key", "? {a: b}\n: c", "a key must be a word"},
		{"too deep", "a: " + strings.Repeat("[", 40) + strings.Repeat("]", 40), "levels deep"},
		{"too many values", "a: [" + strings.Repeat("1,", frontmatter.MaxValues) + "1]", "more than"},
		{"too long", "a: " + strings.Repeat("x", frontmatter.MaxBytes), "bytes"},
		{"not UTF-8", "a: \xff", "UTF-8"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d, err := frontmatter.Parse([]byte("---\n" + tt.block + "\n---\nbody\n"))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one that contains %q", err, tt.want)
			}
			if d.Fields != nil || string(d.Body) != "body\n" {
				t.Errorf("fields %v, body %q: want none, and the body", d.Fields, d.Body)
			}
		})
	}
}

func TestFields(t *testing.T) {
	d, err := frontmatter.Parse([]byte("---\ntitle: |\n  two\n  lines\ntags: a, b\nlist: [x, 2]\nyes: true\nnum: 3\n---\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got := d.String("title"); got != "two lines" {
		t.Errorf("String = %q", got)
	}
	if got := d.String("num"); got != "3" {
		t.Errorf("String = %q", got)
	}
	if got := d.String("list"); got != "" {
		t.Errorf("String of a list = %q", got)
	}
	if got := d.Strings("tags"); !reflect.DeepEqual(got, []string{"a", "b"}) {
		t.Errorf("Strings = %q", got)
	}
	if got := d.Strings("list"); !reflect.DeepEqual(got, []string{"x", "2"}) {
		t.Errorf("Strings = %q", got)
	}
	if !d.Bool("yes") || d.Bool("title") {
		t.Error("Bool is wrong")
	}
	if f, ok := d.Number("num"); !ok || f != 3 {
		t.Errorf("Number = %v, %v", f, ok)
	}
}

func TestWritten(t *testing.T) {
	tests := []struct {
		name, block, key string
		want             []string
	}{
		{"a text", "a: some  text", "a", []string{"some  text"}},
		{"a number as it was written", "version: 5.10", "version", []string{"5.10"}},
		{"a date", "a: 2026-01-31", "a", []string{"2026-01-31"}},
		{"a list's scalars", "a: [x, 1.0, {b: c}, [d], true]", "a", []string{"x", "1.0", "true"}},
		{"nothing", "a: ~", "a", nil},
		{"a mapping", "a: {b: c}", "a", nil},
		{"another case", "Title: T\ntitle: U", "TITLE", []string{"T"}},
		{"loosely: a colon in plain text", "title: a: b: c", "title", []string{"a: b: c"}},
		{"loosely: broken YAML", "title: [broken\nb: \"c\"", "b", []string{"c"}},
		{"loosely: the first of two", "a: 1\na: 2", "a", []string{"1"}},
		{"loosely: what is nested is no key", "a: b: c\n  d: e", "d", nil},
		{"loosely: beside an attack of aliases", "a: &a [x,x]\nb: &b [*a,*a]\ntitle: T", "title", []string{"T"}},
		{"loosely: too long", "title: T\na: " + strings.Repeat("x", frontmatter.MaxBytes), "title", nil},
		{"loosely: not UTF-8", "title: caf\xe9", "title", []string{"caf"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			doc := []byte("---\n" + tt.block + "\n---\nbody\n")
			d := frontmatter.ParseLoosely(doc)
			if got := d.Written(tt.key); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("%q, want %q", got, tt.want)
			}
			if string(d.Body) != "body\n" || string(doc[frontmatter.Skip(doc):]) != "body\n" {
				t.Errorf("body %q, at %d", d.Body, frontmatter.Skip(doc))
			}
		})
	}
}

// FuzzParse checks for any bytes that the body is a suffix of the document, that the fields are
// plain data, and that the line number is right.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"", "---\n", "---\na: b\n---\nx", "---\r\na: [1, {b: c}]\r\n...\r\n", "---\n&a a: *a\n---\n", "---\n!!int x: .nan\n---\n", "---\n? ? a\n---\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		d, err := frontmatter.Parse(doc)
		if err != nil && d.Fields != nil {
			t.Fatal("fields beside an error")
		}
		if !strings.HasSuffix(string(doc), string(d.Body)) {
			t.Fatal("the body is no suffix")
		}
		head := string(doc[:len(doc)-len(d.Body)])
		if n := strings.Count(head, "\n") + 1; d.BodyLine != n && !(len(d.Body) == 0 && d.BodyLine == n+1) {
			t.Fatalf("the body begins on line %d, not %d", n, d.BodyLine)
		}
		if _, err := json.Marshal(d.Fields); err != nil {
			t.Fatal(err)
		}
		if loose := frontmatter.ParseLoosely(doc); string(loose.Body) != string(d.Body) || err == nil && !reflect.DeepEqual(loose, d) {
			t.Fatal("read loosely, it is another document")
		}
		if frontmatter.Skip(doc) != len(doc)-len(d.Body) {
			t.Fatal("Skip finds another body")
		}
	})
}
