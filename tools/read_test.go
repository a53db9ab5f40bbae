package tools_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"satchel/tools"
)

const tinyPNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="

func numbered(n int) string {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	return b.String()
}

func library(t testing.TB) map[string]string {
	png, err := base64.StdEncoding.DecodeString(tinyPNG)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{
		"README.md":              "# Readme\n",
		"knowledge/notes.md":     "# Notes\n\nintro\n\n## Deploy\n\nstep one\nstep two\n\n### Roll back\n\nundo\n\n## People\n\nAnn\n",
		"knowledge/long.md":      numbered(412),
		"knowledge/a:3.md":       "colon\n",
		"knowledge/a":            numbered(5),
		"knowledge/a:2":          "the file with the colon\n",
		"knowledge/c#sharp.md":   "# C#\n\nhash\n",
		"knowledge/empty.md":     "",
		"knowledge/deep/x/y.md":  "y\n",
		"knowledge/fenced.md":    "# A\n```\n# not a heading\n```\n# B\nb\n# B\nsecond b\n",
		"knowledge/marked.md":    "intro\n\nUnder lined\n-----------\n\n# Data &amp; more {#own}\n\n## The [`useAsyncData`](x.md) composable\n\ntext\n",
		"knowledge/wide.txt":     strings.Repeat("x", 50_000) + "\nnext\n",
		"knowledge/crlf.md":      "one\r\ntwo\r\n",
		"knowledge/latin1.txt":   "caf\xe9\n",
		"knowledge/link.md":      "-> notes.md",
		"knowledge/dirlink":      "-> ../knowledge/deep",
		"knowledge/out.md":       "-> outside",
		"knowledge/loop.md":      "-> loop.md",
		"media/dot.png":          string(png),
		"media/fake.png":         "not an image\n",
		"media/bad.png":          "\x89PNG\r\n\x1a\n",
		"media/bad.webp":         "RIFF\x10\x00\x00\x00WEBPVP8 \x00\x00\x00\x00",
		"media/data.bin":         "\x00\x01\x02",
		"knowledge/[draft] x.md": "brackets\n",
	}
}

func TestRead(t *testing.T) {
	tests := []struct {
		name    string
		paths   string // JSON
		isError bool
		want    []string // "!" before what must not be there
	}{
		{"a file", `["knowledge/notes.md"]`, false, []string{"[etag ", "]\n1\t# Notes\n2\t\n3\tintro", "!=="}},
		{"the same in other writings", `["/space/knowledge/notes.md","./knowledge/notes.md"," knowledge/notes.md"]`, false, []string{"== knowledge/notes.md (etag ", "!/space/"}},
		{"lines", `["knowledge/long.md:100-102"]`, false, []string{"lines 100-102 of 412", "100\tline 100\n101\tline 101\n102\tline 102", "!line 103", "!line 99\n"}},
		{"from a line on", `["knowledge/long.md:411-"]`, false, []string{"411\tline 411\n412\tline 412", "lines 411-412 of 412"}},
		{"a line as grep names it", `["knowledge/long.md:100"]`, false, []string{"lines 100-139 of 412", "100\tline 100", "139\tline 139", "!line 140", "!line 99\n"}},
		{"the last line as grep names it", `["knowledge/long.md:412"]`, false, []string{"412\tline 412"}},
		{"lines past the end", `["knowledge/long.md:410-9999"]`, false, []string{"410\tline 410", "412\tline 412"}},
		{"no such line", `["knowledge/long.md:500-"]`, true, []string{"412 lines; there is no line 500"}},
		{"lines backwards", `["knowledge/long.md:20-10"]`, true, []string{"counted from 1"}},
		{"line zero", `["knowledge/long.md:0-3"]`, true, []string{"counted from 1"}},
		{"an invalid number", `["knowledge/long.md:99999999999999999999"]`, true, []string{"There is no"}},
		{"a file with a colon wins", `["knowledge/a:2"]`, false, []string{"the file with the colon", "!line 2"}},
		{"lines of a file where no such file is", `["knowledge/a:4"]`, false, []string{"4\tline 4"}},
		{"lines of a file with a colon", `["knowledge/a:3.md:1-1"]`, false, []string{"colon"}},
		{"a section", `["knowledge/notes.md#deploy"]`, false, []string{"5\t## Deploy", "### Roll back", "!People"}},
		{"a section in words", `["knowledge/notes.md#Roll back"]`, false, []string{"### Roll back", "undo", "!step one"}},
		{"a file with a hash wins", `["knowledge/c#sharp.md"]`, false, []string{"hash"}},
		{"a section of a file with a hash", `["knowledge/c#sharp.md#c"]`, false, []string{"1\t# C#"}},
		{"no such section", `["knowledge/notes.md#depoly"]`, true, []string{`no heading "depoly"`, "Did you mean knowledge/notes.md#deploy?", "deploy, roll-back, people", "!intro"}},
		{"a heading in a code fence is none", `["knowledge/fenced.md#not-a-heading"]`, true, []string{"no heading", "a, b, b-1", "!mean"}},
		{"the second of equal headings", `["knowledge/fenced.md#b-1"]`, false, []string{"second b", "!6\tb"}},
		{"an underlined heading", `["knowledge/marked.md#under-lined"]`, false, []string{"3\tUnder lined", "!# Data"}},
		{"a heading with marks", `["knowledge/marked.md#the-useasyncdata-composable"]`, false, []string{"8\t## The [`useAsyncData`]", "!Under"}},
		{"a heading with an id of its own", `["knowledge/marked.md#data--more"]`, false, []string{"6\t# Data &amp; more", "!Under"}},
		{"a slug made otherwise", `["knowledge/marked.md#data-more"]`, false, []string{"6\t# Data"}},
		{"an empty file", `["knowledge/empty.md"]`, false, []string{"[empty]", "[empty]"}},
		{"Windows line ends", `["knowledge/crlf.md"]`, false, []string{"1\tone\n2\ttwo", "!\r"}},
		{"not UTF-8", `["knowledge/latin1.txt"]`, false, []string{"caf\ufffd", "not valid UTF-8"}},
		{"a long line among others", `["knowledge/wide.txt"]`, false, []string{"[line cut, 50.0 kB in all]", "2\tnext"}},
		{"a binary file", `["media/data.bin"]`, false, []string{"a binary file (application/octet-stream, 3 bytes)"}},
		{"an image", `["media/dot.png"]`, false, []string{"== media/dot.png (image/png, 70 bytes", "<image image/png, 70 bytes>"}},
		{"no section at all", `["knowledge/long.md#x"]`, true, []string{"has no headings", "!line 1"}},
		{"attack: an image that breaks a client", `["media/bad.png","media/bad.webp"]`, false, []string{"media/bad.png is not a valid PNG (8 bytes); it is not shown.", "media/bad.webp is not a valid WebP", "!<image"}},
		{"an image by its name alone", `["media/fake.png"]`, false, []string{"1\tnot an image"}},
		{"a directory", `["knowledge/deep/"]`, false, []string{"== knowledge/deep/ (directory: 1 directory, 0 files)\nx/"}},
		{"a directory without its slash", `["knowledge/deep/x"]`, false, []string{"== knowledge/deep/x/ (directory: 0 directories, 1 file)\ny.md (2 bytes)"}},
		{"the root", `["/space"]`, false, []string{"== /space/ (directory: 2 directories, 1 file)", "knowledge/\n", "README.md"}},
		{"the root in other writings", `["/","."," ","./"]`, false, []string{"== /space/ (directory"}},
		{"a glob", `["knowledge/**/*.md"]`, false, []string{"knowledge/deep/x/y.md\n", "knowledge/notes.md", "!README", "!long.txt"}},
		{"a glob of one level", `["*.md"]`, false, []string{"(matches 1 file)\nREADME.md"}},
		{"a glob that matches nothing", `["knowledge/*.rs"]`, false, []string{"(matches 0 files)", "[** matches any"}},
		{"an invalid glob", `["knowledge/["]`, true, []string{"a [ needs its ]"}},
		{"a file with brackets wins over a glob", `["knowledge/[draft] x.md"]`, false, []string{"1\tbrackets"}},
		{"the library", `["/library/"]`, false, []string{"== /library/ (directory, empty)", "nobody has shared anything with this user"}},
		{"something in the library", `["/library/docs/nuxt/x.md"]`, true, []string{"the library is empty"}},
		{"a link", `["knowledge/link.md"]`, false, []string{"[a symbolic link to knowledge/notes.md]", "# Notes"}},
		{"a link to a directory", `["knowledge/dirlink"]`, false, []string{"x/"}},
		{"attack: a link out of the space", `["knowledge/out.md"]`, true, []string{"leaves the space", "!root:"}},
		{"attack: a link to itself", `["knowledge/loop.md"]`, true, []string{"leads through too many other links"}},
		{"attack: dots", `["../secret.md"]`, true, []string{`segment ".."`}},
		{"attack: dots behind /space", `["/space/../etc/passwd"]`, true, []string{`segment ".."`}},
		{"attack: the host", `["/etc/passwd"]`, true, []string{"outside of the space"}},
		{"attack: git", `[".git/config"]`, true, []string{"belongs to git"}},
		{"attack: NUL", `["a\u0000b"]`, true, []string{"control character"}},
		{"attack: another space's file", `["secret.md"]`, true, []string{"There is no"}},
		{"missing, a typing error", `["knowledge/notse.md"]`, true, []string{"Did you mean knowledge/notes.md?"}},
		{"missing, in another directory", `["notes.md"]`, true, []string{"Did you mean knowledge/notes.md"}},
		{"missing, with lines", `["notes.md:3-4"]`, true, []string{"Did you mean knowledge/notes.md"}},
		{"missing, another case", `["Knowledge/Notes.md"]`, true, []string{"Did you mean knowledge/notes.md"}},
		{"missing, nothing near", `["zzzzzz/qqqqqqqq"]`, true, []string{`There is no "zzzzzz/qqqqqqqq" in the space.`, "!mean"}},
		{"missing, and a name of one letter is near nothing", `["nope/q.md"]`, true, []string{"!mean"}},
		{"a file as a directory", `["knowledge/notes.md/"]`, true, []string{"There is no"}},
		{"some are missing", `["nope.md","README.md"]`, false, []string{"== nope.md\nThere is no", "1\t# Readme"}},
	}
	b := newBench(t, library(t), nil)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			check(t, b.call(t, "read", `{"paths":`+tt.paths+`}`), tt.isError, tt.want...)
		})
	}
}

// TestReadGoesOn reads a long file by following what each answer names next,
// and gets every line once.
func TestReadGoesOn(t *testing.T) {
	b := newBench(t, library(t), nil)
	var got strings.Builder
	next := "knowledge/long.md"
	for calls := 0; next != ""; calls++ {
		if calls > 50 {
			t.Fatal("it never ends")
		}
		r := b.call(t, "read", fmt.Sprintf(`{"paths":[%q],"max_tokens":200}`, next))
		for l := range strings.Lines(textOf(r)) {
			if _, text, ok := strings.Cut(l, "\t"); ok {
				got.WriteString(strings.TrimSuffix(text, "\n") + "\n")
			}
		}
		file := r.Meta["files"].([]map[string]any)[0]
		next, _ = file["next"].(string)
		if (next != "") != file["truncated"].(bool) {
			t.Error("truncated and next do not agree")
		}
		if next != "" {
			check(t, r, false, fmt.Sprintf("read %q with read to continue", next))
		}
	}
	if got.String() != numbered(412) {
		t.Errorf("the parts do not make the whole:\n%s", got.String())
	}
}

func TestReadKeepsToItsBudget(t *testing.T) {
	files := map[string]string{"small.md": "small\n"}
	for i := range 6 {
		files[fmt.Sprintf("big%d.md", i)] = strings.Repeat("some words on a line of text\n", 20_000)
	}
	files["one-line.json"] = strings.Repeat(`{"a":1},`, 200_000)
	b := newBench(t, files, nil)
	tests := []struct {
		name   string
		args   string
		tokens int
		want   []string
	}{
		{"default", `{"paths":["big0.md"]}`, 10_000, []string{"to keep to the token budget"}},
		{"asked for less", `{"paths":["big0.md"],"max_tokens":500}`, 500, nil},
		{"asked for too much", `{"paths":["big0.md"],"max_tokens":1000000}`, 20_000, []string{"max_tokens was lowered to 20000"}},
		{"several share it, the small one whole", `{"paths":["big0.md","big1.md","big2.md","big3.md","big4.md","big5.md","small.md"]}`, 10_000, []string{"1\tsmall"}},
		{"one line", `{"paths":["one-line.json:1-1"],"max_tokens":1000}`, 1000, []string{"[line cut, 1.6 MB in all]"}},
		{"one token", `{"paths":["big0.md"],"max_tokens":1}`, 1, []string{"1\tsome words", `"big0.md:2-"`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := b.call(t, "read", tt.args)
			check(t, r, false, tt.want...)
			// Headers and the line that is always given come on top.
			if n := tools.Tokens(textOf(r)); n > tt.tokens+100*7 {
				t.Errorf("%d tokens, want about %d", n, tt.tokens)
			}
		})
	}
}

func TestReadBoundsImages(t *testing.T) {
	files := library(t)
	b := newBench(t, files, func(o *tools.Options) { o.Limits.ImageBytes = 100; o.Limits.FileBytes = 1000 })
	r := b.call(t, "read", `{"paths":["media/dot.png","media/dot.png","README.md"]}`)
	check(t, r, false, "<image image/png", "too large to show here", "# Readme")
	check(t, b.call(t, "read", `{"paths":["knowledge/wide.txt"]}`), true, "too much to read at once")
}

func TestReadListsAreBounded(t *testing.T) {
	files := map[string]string{}
	for i := range 700 {
		files[fmt.Sprintf("many/file-%03d.md", i)] = "x\n"
	}
	b := newBench(t, files, nil)
	for _, p := range []string{"many/", "many/*.md"} {
		check(t, b.call(t, "read", fmt.Sprintf(`{"paths":[%q]}`, p)), false, "file-499", "!file-500", "[200 more;")
	}
}

func TestReadMeta(t *testing.T) {
	b := newBench(t, library(t), nil)
	r := b.call(t, "read", `{"paths":["knowledge/notes.md:1-2","nope","media/dot.png","knowledge/deep"]}`)
	got, err := json.MarshalIndent(r.Meta, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "read-meta.json", string(got)+"\n")
}

func TestFetch(t *testing.T) {
	files := library(t)
	files["knowledge/titled.md"] = "---\ntitle: The title\n---\n# Other\n"
	files["knowledge/huge.md"] = "# Huge\n\n" + strings.Repeat("some words on a line of text\n", 4000) + "## Late\n\nlate text\n"
	b := newBench(t, files, nil)
	type doc struct {
		ID, Title, Text, URL string
		Metadata             map[string]string
	}
	fetch := func(t *testing.T, id string) doc {
		r := b.call(t, "fetch", fmt.Sprintf(`{"id":%q}`, id))
		if r.IsError {
			t.Fatal(textOf(r))
		}
		if len(r.Content) != 1 || r.Content[0].Text != string(r.Structured) {
			t.Error("the text is not the same JSON")
		}
		var d doc
		if err := json.Unmarshal(r.Structured, &d); err != nil {
			t.Fatal(err)
		}
		return d
	}
	t.Run("whole", func(t *testing.T) {
		d := fetch(t, "knowledge/titled.md")
		if d.Title != "The title" || d.Text != files["knowledge/titled.md"] || d.URL != "https://satchel.example/spaces/"+string(ann)+"/files/knowledge/titled.md" || len(d.Metadata["etag"]) != 40 {
			t.Errorf("%+v", d)
		}
	})
	t.Run("an id with a heading is the whole document too", func(t *testing.T) {
		if d := fetch(t, "knowledge/notes.md#deploy"); d.Text != files["knowledge/notes.md"] || d.ID != "knowledge/notes.md#deploy" || d.Title != "Notes" {
			t.Errorf("%+v", d)
		}
	})
	t.Run("in parts", func(t *testing.T) {
		var text strings.Builder
		id := "knowledge/huge.md"
		for id != "" {
			d := fetch(t, id)
			if tools.Tokens(d.Text) > 20_100 {
				t.Errorf("%d tokens", tools.Tokens(d.Text))
			}
			part, _, _ := strings.Cut(d.Text, "\n[cut after")
			text.WriteString(part)
			id = d.Metadata["next"]
		}
		if text.String() != files["knowledge/huge.md"] {
			t.Error("the parts do not make the whole")
		}
	})
	t.Run("what was found comes first where the whole does not fit", func(t *testing.T) {
		if d := fetch(t, "knowledge/huge.md#late"); !strings.HasPrefix(d.Text, "## Late") {
			t.Errorf("%.80s", d.Text)
		}
	})
	t.Run("odd names are escaped in the url", func(t *testing.T) {
		if d := fetch(t, "knowledge/c#sharp.md"); d.URL != "https://satchel.example/spaces/"+string(ann)+"/files/knowledge/c%23sharp.md" {
			t.Error(d.URL)
		}
	})
	for id, want := range map[string]string{"nope.md": "There is no", "knowledge": "is a directory", "": "is empty", "../x": "segment"} {
		check(t, b.call(t, "fetch", fmt.Sprintf(`{"id":%q}`, id)), true, want)
	}
	check(t, b.call(t, "fetch", `{"id":"media/data.bin"}`), false, "A binary file")
}
