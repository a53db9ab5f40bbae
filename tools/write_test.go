package tools_test

import (
	"strings"
	"testing"

	"satchel/tools"
)

// etagOf returns the etag in an answer.
func etagOf(r tools.Result) string {
	etag, _ := r.Meta["etag"].(string)
	return etag
}

// TestWriteAndEdit checks the answers in a conversation about one file.
func TestWriteAndEdit(t *testing.T) {
	b := newBench(t, map[string]string{"knowledge/tea.md": "# Tea\n"}, func(o *tools.Options) { o.Prefix = "x_" })
	say := func(isError bool, tool, args string, wants ...string) tools.Result {
		t.Helper()
		r := b.call(t, "x_"+tool, args)
		check(t, r, isError, wants...)
		return r
	}
	first := say(false, "write", `{"path":"knowledge/deploy.md","content":"# Deploy\n\nWatch the canary for five minutes.\nThen promote.\n"}`, "Created knowledge/deploy.md", "commit", "!@@")
	say(false, "write", `{"path":"/space/knowledge/deploy.md","content":"# Deploy\n\nWatch the canary for five minutes.\nThen promote.\n"}`, "already has this content", etagOf(first), "!commit")
	say(true, "write", `{"path":"knowledge/deploy.md","content":"x"}`, "already exists", "Nothing was changed", etagOf(first))

	second := say(false, "edit", `{"path":"knowledge/deploy.md","edits":[{"old":"five minutes","new":"10 minutes"}]}`,
		"1 line added, 1 removed", "-Watch the canary for five minutes.\n+Watch the canary for 10 minutes.\n Then promote.")
	say(false, "read", `{"paths":["knowledge/deploy.md"]}`, "10 minutes", "etag "+etagOf(second))
	say(true, "edit", `{"path":"knowledge/deploy.md","edits":[{"old":"watch the canary for 5 minutes","new":"x"}]}`,
		"Nothing was changed", "line 3", "Watch the canary for 10 minutes.", etagOf(second))
	say(true, "edit", `{"path":"knowledge/deploy.md","edits":[{"old":"Deploy","new":"x"},{"old":"e","new":"x"}]}`, "edits[1]", "times", "lines")
	say(true, "edit", `{"path":"knowledge/deploy.md","edits":[{"old":"10","new":"11"}],"base_etag":"`+etagOf(first)+`"}`, "has changed", etagOf(second))
	say(true, "write", `{"path":"knowledge/deploy.md","content":"x","base_etag":"`+etagOf(first)+`"}`, "has changed", etagOf(second))
	say(false, "write", `{"path":"knowledge/deploy.md","content":"","base_etag":"\"`+etagOf(second)+`\""}`, "0 lines added, 4 removed")

	say(true, "edit", `{"path":"deploy.md","edits":[{"old":"a","new":"b"}]}`, `There is no "deploy.md"`, "Did you mean knowledge/deploy.md?")
	say(true, "edit", `{"path":"/library/docs/x.md","edits":[{"old":"a","new":"b"}]}`, "read-only")
	say(true, "write", `{"path":"/library/docs/x.md","content":"x"}`, "read-only")
	say(true, "write", `{"path":"knowledge/","content":"x"}`, "directory")
	say(true, "write", `{"path":".github/workflows/x.yml","content":"x"}`, "workflow")
}

// A long diff is cut, and the answer counts the rest.
func TestEditShowsAShortDiff(t *testing.T) {
	b := newBench(t, map[string]string{"a.md": strings.Repeat("old\n", 50)}, nil)
	r := b.call(t, "edit", `{"path":"a.md","edits":[{"old":"old","new":"new","all":true}]}`)
	check(t, r, false, "50 lines added, 50 removed", "[81 lines of the diff not shown]")
	if n := strings.Count(textOf(r), "\n"); n > 25 {
		t.Errorf("%d lines", n)
	}
}

// The answer about a file under memory/ that is not a fact is the same as that of bash.
func TestWriteNamesFilesThatAreNotFacts(t *testing.T) {
	b := newBench(t, nil, nil)
	r := b.call(t, "write", `{"path":"memory/tea.md","content":"I like tea\n"}`)
	check(t, r, false, "Created memory/tea.md", "[NOT REMEMBERED", `"memory/tea.md": `, "---\nvalue: ")
	if list, _ := r.Meta["not_facts"].([]map[string]any); len(list) != 1 || list[0]["path"] != "memory/tea.md" {
		t.Errorf("%v", r.Meta)
	}
	check(t, b.call(t, "write", `{"path":"memory/preference/tea.md","content":"---\nvalue: Likes tea\n---\n"}`), false, "!NOT REMEMBERED")
	check(t, b.call(t, "instructions", ""), false, "tea: Likes tea")
}

func TestWriteAndEditNameAllMistakes(t *testing.T) {
	b := newBench(t, map[string]string{"a.md": "a\n"}, nil)
	for args, wants := range map[string][]string{
		`{}`:                                               {`"path" is missing`, `"content" is missing`},
		`{"path":" ","content":1}`:                         {`"path" is empty`, `"content" must be a string`},
		`{"path":"../a","content":"x"}`:                    {"path"},
		`{"path":"b.md","content":null}`:                   {`"content" is missing`},
		`{"path":"b.md","text":"x"}`:                       {`"text" is unknown`, `"content" is missing`},
		`{"path":"b.md","content":"a\u0000b"}`:             {"not a text file"},
		`{"path":"a.md","content":"x","base_etag":"HEAD"}`: {"not an etag"},
	} {
		check(t, b.call(t, "write", args), true, wants...)
	}
	for args, wants := range map[string][]string{
		`{}`:                          {`"path" is missing`, `"edits" is missing`},
		`{"path":"a.md","edits":{}}`:  {"must be a list"},
		`{"path":"a.md","edits":[]}`:  {"1 to 100"},
		`{"path":"a.md","edits":[1]}`: {"edits[0]", "JSON object"},
		`{"path":"a.md","edits":[{"old":"a"},{"old":"a","new":"b","al":true}]}`: {`edits[0]: The argument "new" is missing`, `Did you mean "all"?`},
		`{"path":"a.md","edits":[{"old":"","new":"b"}]}`:                        {"edits[0]: old is empty"},
		`{"path":"a.md","edits":[{"old":"a","new":"a"}]}`:                       {"the same"},
	} {
		check(t, b.call(t, "edit", args), true, wants...)
	}
	check(t, b.call(t, "read", `{"paths":["a.md"]}`), false, "1\ta")
}
