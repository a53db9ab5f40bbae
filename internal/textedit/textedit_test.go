package textedit_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"satchel/internal/fault"
	"satchel/internal/textedit"
)

const limit = 1 << 20

func edit(old, repl string) textedit.Edit { return textedit.Edit{Old: old, New: repl} }

func all(old, repl string) textedit.Edit { return textedit.Edit{Old: old, New: repl, All: true} }

func TestApply(t *testing.T) {
	for name, tt := range map[string]struct {
		text  string
		edits []textedit.Edit
		want  string
	}{
		"one place":                        {"a b c\n", []textedit.Edit{edit("b", "x")}, "a x c\n"},
		"removal":                          {"a\nb\nc\n", []textedit.Edit{edit("b\n", "")}, "a\nc\n"},
		"every place":                      {"a b a\n", []textedit.Edit{all("a", "aa")}, "aa b aa\n"},
		"places that overlap":              {"aaaaa", []textedit.Edit{all("aa", "b")}, "bba"},
		"edits in order":                   {"a\n", []textedit.Edit{edit("a", "b c"), edit("c", "d"), edit("b d", "e")}, "e\n"},
		"CRLF":                             {"a\r\nb\r\nc\r\n", []textedit.Edit{edit("a\nb\n", "x\ny\nz\n")}, "x\r\ny\r\nz\r\nc\r\n"},
		"CRLF in a line":                   {"a\r\nb\r\n", []textedit.Edit{edit("b", "x\ny")}, "a\r\nx\r\ny\r\n"},
		"CRLF in the last line":            {"a\r\nb", []textedit.Edit{edit("b", "x\ny")}, "a\r\nx\r\ny"},
		"CRLF in the edit":                 {"a\nb\n", []textedit.Edit{edit("a\r\nb", "x\r\ny")}, "x\ny\n"},
		"CRLF at both ends":                {"a\r\nb\r\nc", []textedit.Edit{edit("\nb\n", "\n")}, "a\r\nc"},
		"mixed endings":                    {"a\r\nb\nc\r\nd\n", []textedit.Edit{edit("b", "x\ny"), edit("c", "p\nq")}, "a\r\nx\ny\np\r\nq\r\nd\n"},
		"every CRLF place":                 {"a\r\nb\r\na\r\n", []textedit.Edit{all("a\n", "x\ny\n")}, "x\r\ny\r\nb\r\nx\r\ny\r\n"},
		"a lone CR":                        {"a\rb\n", []textedit.Edit{edit("b", "c")}, "a\rc\n"},
		"no final newline":                 {"a\nlast", []textedit.Edit{edit("last", "end")}, "a\nend"},
		"no final newline, but in old":     {"a\nlast", []textedit.Edit{edit("last\n", "end\nmore\n")}, "a\nend\nmore"},
		"no final newline, last line gone": {"a\nlast", []textedit.Edit{edit("last\n", "")}, "a\n"},
		"no final newline, every place":    {"b\na b", []textedit.Edit{all("b\n", "x\n")}, "x\na b"},
		"no final newline, one place":      {"b a b", []textedit.Edit{all("b\n", "x\n")}, "b a x"},
		"a final newline is added":         {"a\nlast", []textedit.Edit{edit("last", "last\n")}, "a\nlast\n"},
		"byte order mark":                  {"\ufeffa\nb\n", []textedit.Edit{edit("a", "x")}, "\ufeffx\nb\n"},
		"byte order mark in old":           {"\ufeffa\nb\n", []textedit.Edit{edit("\ufeffa", "x")}, "\ufeffx\nb\n"},
		"blanks are exact":                 {"a  b\na b\n", []textedit.Edit{edit("a b", "x")}, "a  b\nx\n"},
		"letters of many bytes":            {"né à 茶\n", []textedit.Edit{edit("à 茶", "🍵")}, "né 🍵\n"},
	} {
		got, err := textedit.Apply(tt.text, tt.edits, limit)
		if err != nil || got != tt.want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, tt.want)
		}
	}
}

// The error names the failed edits. It says where the text occurs, or quotes the nearest line.
func TestApplyRefuses(t *testing.T) {
	const text = "# Deploy\n\nWatch the canary for five minutes.\n\tthen promote\nfoo\nbar\nfoo\n"
	for name, tt := range map[string]struct {
		edits []textedit.Edit
		want  []string
	}{
		"empty":             {[]textedit.Edit{edit("", "x")}, []string{"edits[0]", "empty"}},
		"the same":          {[]textedit.Edit{edit("foo", "foo")}, []string{"the same"}},
		"the same but CR":   {[]textedit.Edit{edit("bar\n", "bar\r\n")}, []string{"the same"}},
		"ambiguous":         {[]textedit.Edit{edit("foo", "x")}, []string{"2 times", "lines 5, 7", "all"}},
		"overlapping":       {[]textedit.Edit{edit("oo", "x"), edit("\nfoo\n", "x"), edit("f", "x")}, []string{"edits[0]", "edits[1]"}},
		"a near line":       {[]textedit.Edit{edit("watch the canary for 5 minutes", "x")}, []string{"line 3", "Watch the canary for five minutes."}},
		"other blanks":      {[]textedit.Edit{edit("    then promote", "x")}, []string{"line 4", `"\tthen promote"`}},
		"a line in several": {[]textedit.Edit{edit("Watch the canary for five minutes.\nthen promote\n", "x")}, []string{"line 4", `"\tthen promote"`, `"then promote"`}},
		"the second foo":    {[]textedit.Edit{edit("bar\nfoo\nbaz\n", "x")}, []string{"occur"}},
		"nothing near":      {[]textedit.Edit{edit("zzzzzz", "x")}, []string{"No line is similar"}},
		"line numbers":      {[]textedit.Edit{edit("5\tfoo\n6\tbar", "x")}, []string{"numbers"}},
		"each mistake":      {[]textedit.Edit{edit("foo", "x"), edit("bar", "ok"), edit("", "")}, []string{"edits[0]", "edits[2]"}},
		"after another":     {[]textedit.Edit{edit("bar", "foo"), edit("foo", "x")}, []string{"edits[1]", "3 times"}},
	} {
		got, err := textedit.Apply(text, tt.edits, limit)
		if fault.CodeOf(err) != fault.Invalid || got != "" {
			t.Errorf("%s: %q, %v", name, got, err)
			continue
		}
		for _, w := range tt.want {
			if !strings.Contains(fault.PublicOf(err), w) {
				t.Errorf("%s: %q lacks %q", name, fault.PublicOf(err), w)
			}
		}
	}
	if _, err := textedit.Apply("aaa", []textedit.Edit{edit("aa", "b")}, limit); fault.CodeOf(err) != fault.Invalid {
		t.Errorf("two places that overlap: %v", err)
	}
}

// Attack: an edit whose result would fill the memory is refused before the result exists.
func TestAttackAnEnormousResult(t *testing.T) {
	text := strings.Repeat("a", 1000)
	_, err := textedit.Apply(text, []textedit.Edit{all("a", strings.Repeat("b", 2000))}, limit)
	if fault.CodeOf(err) != fault.TooLarge {
		t.Error(err)
	}
	// A text that occurs everywhere gets a short answer.
	big := strings.Repeat("ab", 200_000)
	for _, e := range []textedit.Edit{edit(big[:200_000], "x"), edit("ab", "x"), edit(strings.Repeat("ba", 100_000)+"c", "x")} {
		if _, err := textedit.Apply(big, []textedit.Edit{e}, limit); fault.CodeOf(err) != fault.Invalid {
			t.Error(err)
		} else if n := len(fault.PublicOf(err)); n > 5000 {
			t.Errorf("the answer has %d bytes", n)
		}
	}
}

func TestKeep(t *testing.T) {
	for _, tt := range [][3]string{
		{"", "a\nb\n", "a\nb\n"},
		{"x\r\n", "a\nb\n", "a\r\nb\r\n"},
		{"x\r\ny\r\n", "a\r\nb", "a\r\nb"},
		{"x\r\ny\n", "a\nb\n", "a\nb\n"},
		{"x\n", "a\r\nb\r\n", "a\r\nb\r\n"},
		{"\ufeffx\n", "a\n", "\ufeffa\n"},
		{"\ufeffx\n", "\ufeffa\n", "\ufeffa\n"},
		{"x\n", "\ufeffa\n", "\ufeffa\n"},
	} {
		if got := textedit.Keep(tt[0], tt[1]); got != tt[2] {
			t.Errorf("%q over %q: %q", tt[1], tt[0], got)
		}
	}
}

// FuzzApply compares Apply with strings.ReplaceAll on texts without CRs, and checks that line
// endings stay.
func FuzzApply(f *testing.F) {
	f.Add("a\r\nb\nc", "b\n", "x\ny", true)
	f.Add("\ufeffa\r\n\r\nb", "\n", "", true)
	f.Fuzz(func(t *testing.T, text, old, repl string, every bool) {
		got, err := textedit.Apply(text, []textedit.Edit{{Old: old, New: repl, All: every}}, limit)
		if err != nil {
			return
		}
		if !utf8.ValidString(text + "\x00" + old + "\x00" + repl) {
			return // bytes can join to a byte order mark
		}
		lf := func(s string) string { return strings.ReplaceAll(strings.TrimPrefix(s, "\ufeff"), "\r\n", "\n") }
		if strings.Contains(text+old+repl, "\r") && strings.Contains(strings.ReplaceAll(text+"\x00"+old+"\x00"+repl, "\r\n", ""), "\r") || strings.Contains(text+old+repl, "\ufeff") {
			return // lone CRs can join with an LF beside them
		}
		want := strings.ReplaceAll(lf(text), lf(old), lf(repl))
		if !strings.Contains(lf(text), lf(old)) {
			want = strings.TrimSuffix(lf(text), strings.TrimSuffix(lf(old), "\n")) + strings.TrimSuffix(lf(repl), "\n")
		}
		if lf(got) != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
		ends := func(s string) []bool {
			var out []bool
			for l := range strings.Lines(s) {
				out = append(out, strings.HasSuffix(l, "\r\n"))
			}
			return out
		}
		if strings.Count(lf(repl), "\n") == strings.Count(lf(old), "\n") && !slices.Contains(ends(text), false) && slices.Contains(ends(got)[:strings.Count(got, "\n")], false) {
			t.Errorf("%q: %q loses a CR", text, got)
		}
	})
}
