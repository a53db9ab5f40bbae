package facts_test

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"satchel/internal/facts"
	"satchel/internal/frontmatter"
)

func TestRead(t *testing.T) {
	tests := []struct {
		name, doc string
		want      facts.Fact
	}{
		{"whole", "---\nvalue: Uses Helix\nconfidence: 0.8\nsource: inferred\nclient: Claude\nfirst_seen: 2026-01-05T10:00:00Z\nlast_confirmed: 2026-11-02\nexpires: 2027-01-01\n---\nSaid so.\n",
			facts.Fact{Value: "Uses Helix", Sure: .8, HasSure: true, Source: "inferred", Client: "Claude", FirstSeen: "2026-01-05", Confirmed: "2026-11-02", Expires: "2027-01-01", More: true}},
		{"a value alone", "---\nvalue: 42\n---\n", facts.Fact{Value: "42"}},
		{"first seen is when it was confirmed last", "---\nvalue: v\nfirst_seen: 2026-01-05\n---\n", facts.Fact{Value: "v", FirstSeen: "2026-01-05", Confirmed: "2026-01-05"}},
		{"a day that is none", "---\nvalue: v\nexpires: soon, I hope\n---\n", facts.Fact{Value: "v"}},
		{"no front matter", "Uses Helix\n", facts.Fact{Problem: "It has no front matter, the lines between two lines “---” at the top."}},
		{"no value", "---\nsource: inferred\n---\n", facts.Fact{Problem: "Its front matter has no value."}},
		{"no YAML", "---\nvalue: [\n---\n", facts.Fact{Problem: "It cannot be read: the front matter is not valid YAML (line 1: did not find expected node content)."}},
		{"no text", "\xff\xfe", facts.Fact{Problem: "It is not text."}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := facts.Read([]byte(tt.doc)); got != tt.want {
				t.Errorf("%+v, want %+v", got, tt.want)
			}
		})
	}
	if f := facts.Read([]byte("---\nvalue: " + strings.Repeat("é", 5000) + "\n---\n")); !f.Cut || len(f.Value) > 2000 {
		t.Errorf("%d bytes of a long value, cut %v", len(f.Value), f.Cut)
	}
}

// TestSet is the specification of what a correction leaves as it was.
func TestSet(t *testing.T) {
	set := []facts.Field{{Key: "value", Value: "Tea, green"}, {Key: "confidence", Value: facts.Raw("1")}, {Key: "expires"}}
	tests := []struct{ name, doc, want string }{
		{"in place, with what else is there", "---\n# about drinks\nvalue: Coffee\nmood:   'good' # today\nconfidence: 0.4\nexpires: 2026-01-01\n---\nFree *text*.\n",
			"---\n# about drinks\nvalue: Tea, green\nmood:   'good' # today\nconfidence: 1\n---\nFree *text*.\n"},
		{"added at the end", "---\nvalue: x\n---\n", "---\nvalue: Tea, green\nconfidence: 1\n---\n"},
		{"Windows line ends", "---\r\nvalue: x\r\nconfidence: 1\r\n---\r\nt\r\n", "---\r\nvalue: Tea, green\r\nconfidence: 1\r\n---\r\nt\r\n"},
		{"a block value", "---\nvalue: |\n  two\n\n  lines\nkeep: [a,   b]\n---\n", "---\nvalue: Tea, green\nkeep: [a,   b]\nconfidence: 1\n---\n"},
		{"a list at the margin", "---\nexpires:\n- 1\n- 2\nvalue: x\n---\n", "---\nvalue: Tea, green\nconfidence: 1\n---\n"},
		{"no line end at the end", "---\nvalue: x\n---", "---\nvalue: Tea, green\nconfidence: 1\n---"},
		{"ended by dots", "---\nvalue: x\n...\nt", "---\nvalue: Tea, green\nconfidence: 1\n...\nt"},
		{"in braces: written anew", "---\n{value: x, keep: y}\n---\nt\n", "---\nconfidence: 1\nkeep: \"y\"\nvalue: Tea, green\n---\nt\n"},
		{"a quoted key: written anew", "---\n\"value\": x\n---\n", "---\nconfidence: 1\nvalue: Tea, green\n---\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := facts.Set([]byte(tt.doc), set...)
			if err != nil || string(got) != tt.want {
				t.Errorf("%v:\n%s\nwant\n%s", err, got, tt.want)
			}
		})
	}
	for _, doc := range []string{"no front matter", "---\nvalue: [\n---\n"} {
		if got, err := facts.Set([]byte(doc), set...); err == nil {
			t.Errorf("%q became %q", doc, got)
		}
	}
}

// Attack: a value that would be more than a value.
func TestValuesStayValues(t *testing.T) {
	for _, v := range []string{"a\n---\n# text", "x\nsource: imported", "'", "\"", "&a", "*a", "!!int 3", "yes", "NULL", "- a", "a: b", "a # b", "{a}", "[", "\u2028", "\u0085", "\ufeff", "</script>", " ", "1", "2026-01-01", "%", "@", "`", "\t", "\\n"} {
		doc := facts.New(facts.Field{Key: "value", Value: v}, facts.Field{Key: "source", Value: facts.Explicit})
		d, err := frontmatter.Parse(doc)
		if want := map[string]any{"value": v, "source": facts.Explicit}; err != nil || !reflect.DeepEqual(d.Fields, want) || len(d.Body) > 0 {
			t.Errorf("%q: %v, %v", v, d.Fields, err)
		}
	}
}

// FuzzSet: whatever the file, a correction does just that, or refuses.
func FuzzSet(f *testing.F) {
	f.Add([]byte("---\nvalue: a\n---\ntext"), "b")
	f.Add([]byte("---\r\n\"value\" : |-\r\n  a\r\n\r\nx: [1,\n2]\r\n...\r\n"), "---")
	f.Add([]byte("---\n{value: 1}\n---"), "a: b")
	f.Fuzz(func(t *testing.T, doc []byte, value string) {
		facts.Read(doc)
		out, err := facts.Set(doc, facts.Field{Key: "value", Value: value}, facts.Field{Key: "expires", Value: nil})
		if err != nil {
			return
		}
		before, _ := frontmatter.Parse(doc)
		after, err := frontmatter.Parse(out)
		if err != nil || after.Fields["value"] != value || !bytes.Equal(before.Body, after.Body) {
			t.Fatalf("%q became %q: %v", doc, out, err)
		}
		for k, v := range before.Fields {
			if k != "value" && k != "expires" && !reflect.DeepEqual(after.Fields[k], v) {
				t.Fatalf("%q became %q: %s is %v", doc, out, k, after.Fields[k])
			}
		}
	})
}
