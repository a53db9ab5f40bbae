package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"satchel/cmd/satchel/internal/pathlist"
	"satchel/internal/fault"
	"satchel/internal/service"
	apiclient "satchel/web/client"
)

func TestMarker(t *testing.T) {
	on := func(query string, environ ...string) marker {
		return newMarker(&call{Env: Env{Terminal: true, Environ: environ}}, query)
	}
	for _, c := range []struct{ query, text, want string }{
		{"deploy", "Deploy it.", "[Deploy] it."},
		{"deploy", "deploying, deployed, deployment; employ", "[deploying], [deployed], [deployment]; employ"},
		{"cache", "caching a cat", "[caching] a cat"},
		{"use async data", "`useAsyncData` and useFetch", "`[useAsyncData]` and useFetch"},
		{"path:docs/** kind:memory -draft word", "docs memory draft word", "docs memory draft [word]"},
		{`"exact phrase"`, "an exact phrase", "an [exact] [phrase]"},
		{"データ取得", "データ取得の方法", "[データ取得の方法]"},
		{"a", "a b", "[a] b"},
		{"", "anything", "anything"},
	} {
		got := strings.NewReplacer("\x1b[1;33m", "[", "\x1b[0m", "]").Replace(on(c.query).mark(c.text))
		if got != c.want {
			t.Errorf("%q in %q: %q, want %q", c.query, c.text, got, c.want)
		}
	}
	for name, m := range map[string]marker{
		"no terminal": newMarker(&call{}, "deploy"), "NO_COLOR": on("deploy", "NO_COLOR=1"), "dumb": on("deploy", "TERM=xterm", "TERM=dumb"),
	} {
		if got := m.mark("deploy") + m.strong("x"); got != "deployx" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestSourcesArePrinted(t *testing.T) {
	var out bytes.Buffer
	printSources(&call{Env: Env{Stdout: &out}}, []apiclient.Source{{ID: "one", State: "ready", Files: 1}, {ID: "two", State: "ready", Files: 2}})
	if got := strings.Fields(out.String()); !strings.Contains(strings.Join(got, " "), "ready 1 file, ") || !strings.Contains(strings.Join(got, " "), "ready 2 files, ") {
		t.Errorf("%s", &out)
	}
}

func TestSearchAnswerIsPrinted(t *testing.T) {
	for _, c := range []struct{ name, answer, want string }{
		{"a result", `{"results":[{"title":"Deploying","path":"a.md","lines":"3-4","heading":"Rolling back","snippet":"Stay calm.\nRoll back.\n"}],"total":1,"scope":"space (2 documents)"}`,
			"a.md:4  Deploying › Rolling back\n    Roll back.\n\n1 page in space (2 documents).\n"},
		{"an explanation", `{"results":[{"title":"A","path":"a.md","snippet":"","why":{"terms":[{"term":"roll","weight":1,"rarity":2,"passages":1,"fields":[{"field":"text","count":2,"words":9,"score":1.5}],"score":3}],"steps":[{"what":"the terms","score":3},{"what":"the title","score":4.5}]}}],"total":1,"scope":"space"}`,
			"a.md  A\n       3.000  the terms\n         3.000  roll: weight 1.00 × rarity 2.00 (in 1 passage) × (2 in the text of 9 words: 1.50)\n       4.500  the title\n\n1 page in space.\n"},
		{"more than are shown", `{"results":[{"title":"A","path":"a.md","snippet":""}],"total":7,"scope":"space (9 documents)","notes":["A note."]}`,
			"a.md  A\n\nA note.\nThe best 1 of 7 pages in space (9 documents).\n"},
		{"a snippet that leaves lines out, and copies", `{"results":[{"title":"A","path":"a.md","lines":"3-50","snippet":"…\nRoll back.","also":["b.md","c.md"]}],"total":1,"scope":"space"}`,
			"a.md:3-50  A\n    Roll back.\n    also: b.md, c.md\n\n1 page in space.\n"},
		{"nothing", `{"results":[],"total":0,"scope":"space (9 documents)","suggestions":["roll","role"]}`,
			"Did you mean: roll, role\nNothing was found in space (9 documents).\n"},
		{"an index that is behind", `{"results":[{"title":"A","path":"a.md","snippet":""}],"total":1,"scope":"space (9 documents)","notes":["It is behind.","A note."],"index_age":12.3}`,
			"It is behind.\n\na.md  A\n\nA note.\n1 page in space (9 documents).\n"},
		{"escapes", `{"results":[{"title":"\u001b[31mA","path":"a\u0007.md","lines":"1-1","snippet":"roll\u001b]0;x\u0007\ttab\u202e"}],"total":1,"scope":"space\u001b[2J"}`,
			"\"a\\a.md\":1  [31mA\n    roll]0;x tab\n\n1 page in space[2J.\n"},
	} {
		var a service.SearchResults
		if err := json.Unmarshal([]byte(c.answer), &a); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		printFound(&out, a, newMarker(&call{}, "roll"))
		if out.String() != c.want {
			t.Errorf("%s:\n%q, want\n%q", c.name, out.String(), c.want)
		}
	}
}

// The answer's heading is that of the index's best lines, which need not be those
// that a person is shown of a longer text.
func TestHeadingIsTheExcerpts(t *testing.T) {
	const page = "---\ntitle: A\n---\n# Top\n\nIntro.\n\n## Rolling\n\nRoll back.\n\n```sh\n# roll\n```\n\n## Other\n\nText.\n"
	for _, c := range []struct {
		name, path, lines, heading, snippet, query, want string
	}{
		{"under another heading", "a.md", "1-18", "Other", page, "back", "Rolling"},
		{"a comment in code is no heading", "a.md", "1-18", "Other", page, "text", "Other"},
		{"above all headings", "a.md", "1-9", "Rolling", "Intro.\n\nMore.\n\n## Rolling\n\nRoll.\n\n", "intro", ""},
		{"the heading is before the text", "a.md", "40-42", "Rolling", "Intro.\n\nMore.", "intro", "Rolling"},
		{"a rule above it is no front matter", "a.md", "40-46", "Rolling", "---\n\n## Next\n\nWord.\n\n---", "word", "Next"},
		{"lines are left out", "a.md", "1-300", "Other", page, "back", "Rolling"},
		{"another form of text", "a.html", "1-90", "Rolling", "Other.\nRoll.", "roll", "Rolling"},
		{"subtitles", "a.vtt", "1-8", "0:01", "WEBVTT\n\n00:01.000 --> 00:02.000\nNo.\n\n01:02:03.500 --> 01:02:05.000\nRoll.", "roll", "01:02:03"},
	} {
		a := service.SearchResults{Results: []service.SearchResult{{Path: c.path, Lines: c.lines, Heading: c.heading, Snippet: c.snippet}}}
		var out bytes.Buffer
		printFound(&out, a, newMarker(&call{}, c.query))
		line, _, _ := strings.Cut(out.String(), "\n")
		if _, heading, _ := strings.Cut(line, "  "); heading != c.want {
			t.Errorf("%s: %q, want %q in\n%s", c.name, heading, c.want, out.String())
		}
	}
}

// A result may be a whole page; a person sees the few lines that match best.
func TestExcerpt(t *testing.T) {
	m := newMarker(&call{}, "rollback checklist")
	page := strings.Repeat("Something else.\n", 50) + "A rollback.\n" + strings.Repeat("More.\n", 20) + "The rollback checklist.\nStep one.\n" + strings.Repeat("End.\n", 20)
	lines := m.excerpt(page, 1)
	if len(lines) != excerptLines || lines[0] != (shownLine{72, "The rollback checklist."}) {
		t.Errorf("%+v", lines)
	}
	if lines := m.excerpt(strings.Repeat("x", 5000), 1); len(lines) != 1 || len([]rune(lines[0].text)) != excerptRunes+1 {
		t.Errorf("%+v", lines)
	}
	if lines := m.excerpt("", 0); len(lines) != 0 {
		t.Errorf("%+v", lines)
	}
}

func TestSplitPaths(t *testing.T) {
	for _, c := range []struct {
		name, list string
		want       []string
	}{
		{"lines", "a.md\nb c.md\n", []string{"a.md", "b c.md"}},
		{"Windows' line ends and a byte order mark", "\ufeffa.md\r\n\r\nb.md", []string{"a.md", "b.md"}},
		{"NULs", "a.md\x00b\nc.md\x00", []string{"a.md", "b\nc.md"}},
		{"NULs and a line end", "a.md\x00\n", []string{"a.md"}},
		{"git's quotes", `"gr\303\266\303\237e.md"` + "\n" + `"a\"b\\c\td.md"` + "\n", []string{"größe.md", "a\"b\\c\td.md"}},
		{"quotes that are none", `"a" and b.md` + "\n" + `"\377"` + "\n", []string{`"a" and b.md`, `"\377"`}},
		{"no quotes among NULs", "\"a\"\x00", []string{`"a"`}},
		{"nothing", "", []string{}},
	} {
		if got := pathlist.Split([]byte(c.list)); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestChangedPaths(t *testing.T) {
	file := filepath.Join(t.TempDir(), "list")
	if err := os.WriteFile(file, []byte("a.md\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := changedPaths(file, nil); err != nil || len(got) != 1 {
		t.Errorf("%q, %v", got, err)
	}
	for list, want := range map[string]string{
		"a.md\n../b.md\n": `The path "../b.md" cannot be used: it has the segment "..". Nothing was indexed.`,
		"/etc/passwd":     "Nothing was indexed",
		"a\x1b[2J.md":     "Nothing was indexed",
		strings.Repeat("a.md\n", maxChanged/5+1000): "run satchel reindex without --changed",
	} {
		_, err := changedPaths("-", strings.NewReader(list))
		if err == nil || !strings.Contains(fault.PublicOf(err), want) || strings.Contains(fault.PublicOf(err), "\x1b") {
			t.Errorf("%.20q: %v, want %q", list, err, want)
		}
	}
	if got, err := changedPaths("-", strings.NewReader("")); err != nil || got == nil {
		t.Errorf("an empty list must stay a list: %#v, %v", got, err)
	}
}
