package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/tools"
)

// TestToolInvariants holds for every tool, in both listings, with a prefix and
// without.
func TestToolInvariants(t *testing.T) {
	form := regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	for _, prefix := range []string{"", "satchel_", strings.Repeat("p", 32)} {
		for _, chat := range []bool{true, false} {
			b := newBench(t, nil, func(o *tools.Options) { o.Prefix = prefix })
			caller := editor()
			caller.ChatGPT = chat
			list := b.List(t.Context(), caller)
			if len(list) < 5 {
				t.Fatalf("only %d tools are listed", len(list))
			}
			seen := map[string]bool{}
			for _, tool := range list {
				t.Run(fmt.Sprintf("%s, ChatGPT %v", tool.Name, chat), func(t *testing.T) {
					if !form.MatchString(tool.Name) || !strings.HasPrefix(tool.Name, prefix) || seen[tool.Name] {
						t.Errorf("the name %q is malformed, lacks the prefix or is there twice", tool.Name)
					}
					seen[tool.Name] = true
					if tool.Title == "" || len(tool.Title) > 64 {
						t.Errorf("title %q", tool.Title)
					}
					if n := len(tool.Description); n < 100 || n >= 2048 {
						t.Errorf("the description has %d bytes", n)
					}
					if strings.ContainsAny(tool.Description, "{}") {
						t.Error("the description holds a name that was not filled in")
					}
					if tool.ReadOnly != (tool.Scope == space.ScopeRead) {
						t.Error("what only reads needs the scope read, and what writes the scope write")
					}
					if tool.ReadOnly && tool.Destructive {
						t.Error("what only reads destroys nothing")
					}
					if tool.OpenWorld {
						t.Error("no tool reaches the open world")
					}
					exact := chat && b.FormOfChatGPT(tool.Name)
					checkSchema(t, tool.InputSchema, !exact)
					if tool.OutputSchema != nil {
						checkSchema(t, tool.OutputSchema, !exact)
					}
					found, ok := b.Find(tool.Name)
					if !ok || found.Name != tool.Name || found.Scope != tool.Scope {
						t.Errorf("Find gives %v, %v", found.Name, ok)
					}
				})
			}
		}
	}
}

// checkSchema walks a schema: valid JSON, closed objects whose required names
// exist, no null type and no reference, a description on every input.
func checkSchema(t *testing.T, raw json.RawMessage, closed bool) {
	t.Helper()
	var root map[string]any
	if err := json.Unmarshal(raw, &root); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	if root["type"] != "object" {
		t.Error("the root must be an object")
	}
	var walk func(at string, m map[string]any)
	walk = func(at string, m map[string]any) {
		typ, ok := m["type"].(string)
		if !ok || typ == "null" {
			t.Errorf("%s: the type must be one word, not %v", at, m["type"])
		}
		for _, k := range []string{"$schema", "$ref", "anyOf", "oneOf", "nullable", "$defs"} {
			if _, has := m[k]; has {
				t.Errorf("%s has %s", at, k)
			}
		}
		if typ == "object" && closed && m["additionalProperties"] != false {
			t.Errorf("%s is open", at)
		}
		props, _ := m["properties"].(map[string]any)
		required, _ := m["required"].([]any)
		for _, r := range required {
			if _, ok := props[r.(string)]; !ok {
				t.Errorf("%s requires %v, which it does not have", at, r)
			}
		}
		for name, p := range props {
			walk(at+"."+name, p.(map[string]any))
		}
		if items, ok := m["items"].(map[string]any); ok {
			walk(at+"[]", items)
		}
	}
	walk("", root)
}

// TestListGolden snapshots what each kind of client is listed, so that no
// change to it goes unseen.
func TestListGolden(t *testing.T) {
	chat := editor()
	chat.ChatGPT = true
	for _, tt := range []struct {
		name string
		c    tools.Caller
	}{{"editor", editor()}, {"reader", reader()}, {"chatgpt", chat}} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, nil, nil)
			first, err := json.MarshalIndent(b.List(t.Context(), tt.c), "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			again, _ := json.MarshalIndent(b.List(t.Context(), tt.c), "", "  ")
			if string(first) != string(again) {
				t.Error("the list changes from call to call")
			}
			golden(t, "list-"+tt.name+".json", string(first)+"\n")
		})
	}
}

func TestTheDocsHaveATableOfTheTools(t *testing.T) {
	const file, begin, end = "../docs/mcp.md", "-update; do not edit. -->\n\n", "\n<!-- end -->"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begin)
	table, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has no place for the table", file)
	}
	want := newBench(t, nil, nil).Table()
	if strings.Contains(want, "|  |") {
		t.Error("a tool has no text for the documentation")
	}
	if *update {
		if err := os.WriteFile(file, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if table != want {
		t.Errorf("the table in %s is out of date; run: go test ./tools -update", file)
	}
}

func names(list []tools.Tool) []string {
	var out []string
	for _, t := range list {
		out = append(out, t.Name)
	}
	return out
}

// Every tool is listed for callers with its scope, and answers only those; the golden
// listings show which scope each has.
func TestListAndCallNeedTheScopeOfTheTool(t *testing.T) {
	b := newBench(t, map[string]string{"a.md": "a\n"}, nil)
	for name, args := range b.Examples() {
		tool, _ := b.Find(name)
		for _, scopes := range [][]space.Scope{nil, {space.ScopeRead}, {space.ScopeWrite}, {space.ScopeRead, space.ScopeWrite}} {
			c := annIs(scopes)
			c.ChatGPT = true
			want := slices.Contains(scopes, tool.Scope)
			if got := slices.Contains(names(b.List(t.Context(), c)), name); got != want {
				t.Errorf("%s is listed with %v: %v", name, scopes, got)
			}
			_, err := b.Call(t.Context(), c, name, json.RawMessage(args), nil)
			if want && err != nil || !want && fault.CodeOf(err) != fault.Forbidden {
				t.Errorf("%s with %v: %v", name, scopes, err)
			}
		}
	}
}

// Resources, prompts and skills need the scope to read.
func TestResourcesNeedAScope(t *testing.T) {
	b := newBench(t, map[string]string{"a.md": "a\n"}, nil)
	none := annIs(nil)
	if _, err := b.Resources(t.Context(), none); fault.CodeOf(err) != fault.Forbidden {
		t.Errorf("Resources: %v", err)
	}
	if _, _, err := b.ReadResource(t.Context(), none, "satchel://resources/x.md"); fault.CodeOf(err) != fault.Forbidden {
		t.Errorf("ReadResource: %v", err)
	}
	if _, err := b.Prompts(t.Context(), none); fault.CodeOf(err) != fault.Forbidden {
		t.Errorf("Prompts: %v", err)
	}
	if _, _, err := b.GetPrompt(t.Context(), none, "onboarding", nil); fault.CodeOf(err) != fault.Forbidden {
		t.Errorf("GetPrompt: %v", err)
	}
	if _, err := b.Skills(t.Context(), none); fault.CodeOf(err) != fault.Forbidden {
		t.Errorf("Skills: %v", err)
	}
	if _, err := b.GetSkill(t.Context(), none, "skill://x/SKILL.md"); fault.CodeOf(err) != fault.Forbidden {
		t.Errorf("GetSkill: %v", err)
	}
}

func TestChatGPTForms(t *testing.T) {
	const searchForm = `{"type":"object","properties":{"query":{"type":"string"}},"required":["query"]}`
	const fetchForm = `{"type":"object","properties":{"id":{"type":"string"}},"required":["id"]}`
	for _, chat := range []bool{false, true} {
		t.Run(fmt.Sprintf("ChatGPT %v", chat), func(t *testing.T) {
			set, c := realSet(t, map[string]string{"a.md": "# A\nquokka\n"})
			b := bench{Registry: set}
			c.ChatGPT = chat
			list := b.List(t.Context(), c)
			i := slices.IndexFunc(list, func(t tools.Tool) bool { return t.Name == "search" })
			if got := string(list[i].InputSchema) == searchForm; got != chat {
				t.Errorf("search is listed in ChatGPT's form: %v", got)
			}
			i = slices.IndexFunc(list, func(t tools.Tool) bool { return t.Name == "fetch" })
			if (i >= 0) != chat {
				t.Fatalf("fetch is listed: %v", i >= 0)
			}
			if i >= 0 && string(list[i].InputSchema) != fetchForm {
				t.Error("fetch is not in ChatGPT's form")
			}
			// Either form of call works for anyone.
			r := b.callAs(t, c, "search", `{"query":"quokka","limit":3}`)
			url := `"url":"https://satchel.example/spaces/` + string(c.Space().ID) + `/files/a.md"`
			if !chat {
				url = "!" + url // nobody but ChatGPT has use for it
			}
			if chat {
				check(t, r, false, `"id":"a.md#a"`, url)
			} else {
				check(t, r, false, "\n1. a.md:1-2  A", "# A\nquokka", url)
			}
			if got := r.Structured != nil; got != chat {
				t.Errorf("the answer has structured content: %v", got)
			}
			check(t, b.callAs(t, c, "fetch", `{"id":"a.md"}`), false, `"title":"A"`, `"text":"# A\nquokka\n"`)
		})
	}
}

func TestFaults(t *testing.T) {
	b := newBench(t, nil, func(o *tools.Options) { o.Prefix = "x_" })
	tests := []struct {
		name string
		err  error
		code fault.Code // of the error that Call returns; "" for a Result
		text string
	}{
		{"limited", &fault.Error{Code: fault.Limited, Public: "Too many commands.", RetryAfter: 3 * time.Second}, "", "Too many commands.\nTry again in 3s."},
		{"unavailable", fault.New(fault.Unavailable, "The sandbox is full."), "", "The sandbox is full."},
		{"canceled", context.Canceled, fault.Canceled, ""},
		{"internal", errors.New("open /var/lib/secret: no such file"), fault.Internal, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b.run.err = tt.err
			r, err := b.Call(t.Context(), editor(), "x_bash", json.RawMessage(`{"command":"true"}`), nil)
			if fault.CodeOf(err) != tt.code {
				t.Fatalf("error %v, want %q", err, tt.code)
			}
			if err == nil && (!r.IsError || textOf(r) != tt.text) {
				t.Errorf("IsError %v, text %q", r.IsError, textOf(r))
			}
			if strings.Contains(fault.PublicOf(err), "secret") {
				t.Error("the cause is told to the caller")
			}
		})
	}
	for _, tt := range []struct{ name, want string }{
		{"x_serach", `Did you mean "x_search"?`}, {"bash", `Did you mean "x_bash"?`}, {"qwertz", "The tools are x_instructions"}, {"", "The tools are"}, {"x_bash_readonly ", `Did you mean "x_bash_readonly"?`},
	} {
		_, err := b.Call(t.Context(), editor(), tt.name, nil, nil)
		if fault.CodeOf(err) != fault.NotFound || !strings.Contains(fault.PublicOf(err), tt.want) {
			t.Errorf("%q: %v", tt.name, err)
		}
	}
	gone := editor(in("s_gone"))
	if r, err := b.Call(t.Context(), gone, "x_read", json.RawMessage(`{"paths":["a"]}`), nil); err != nil || !r.IsError {
		t.Errorf("a space that is gone: %v, %v", r, err)
	}
}

func TestNewRefuses(t *testing.T) {
	good := tools.Options{Workspace: newSpaces(t), PublicURL: func() string { return "" }}
	good.Service = withoutCommands(&good)
	for name, change := range map[string]func(*tools.Options){
		"no workspace":     func(o *tools.Options) { o.Workspace = nil },
		"no service":       func(o *tools.Options) { o.Service = nil },
		"no public URL":    func(o *tools.Options) { o.PublicURL = nil },
		"prefix with dot":  func(o *tools.Options) { o.Prefix = "my.tools" },
		"prefix too long":  func(o *tools.Options) { o.Prefix = strings.Repeat("x", 33) },
		"prefix not ASCII": func(o *tools.Options) { o.Prefix = "é_" },
	} {
		o := good
		change(&o)
		if _, err := tools.New(o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := tools.New(good); err != nil {
		t.Error(err)
	}
}

func TestServerInstructions(t *testing.T) {
	b := newBench(t, nil, func(o *tools.Options) { o.Prefix = "kb_" })
	s := b.ServerInstructions()
	if len(s) >= 2048 {
		t.Errorf("%d bytes", len(s))
	}
	if !strings.Contains(s, "kb_instructions") || strings.ContainsAny(s, "{}") {
		t.Errorf("names are not filled in: %s", s)
	}
	golden(t, "server-instructions.txt", newBench(t, nil, nil).ServerInstructions()+"\n")
}

// TestArgumentsAreThoseOfTheSchema: what a tool takes and what it is listed to
// take are the same.
func TestArgumentsAreThoseOfTheSchema(t *testing.T) {
	b := newBench(t, nil, nil)
	for name := range b.Examples() {
		tool, ok := b.Find(name)
		if !ok {
			t.Fatal(name)
		}
		var schema struct{ Properties map[string]any }
		if err := json.Unmarshal(tool.InputSchema, &schema); err != nil {
			t.Fatal(err)
		}
		text := textOf(b.call(t, name, `{"zzzzzzzzzzzzzzzz":1}`))
		_, takes, _ := strings.Cut(text, "This tool takes ")
		takes, _, _ = strings.Cut(takes, ".")
		var want []string
		if takes != "" {
			want = strings.Split(takes, ", ")
		}
		if len(want) != len(schema.Properties) {
			t.Errorf("%s takes %q, and its schema has %v", name, want, schema.Properties)
		}
		for _, p := range want {
			if _, ok := schema.Properties[p]; !ok {
				t.Errorf("%s takes %q, which its schema lacks", name, p)
			}
		}
	}
}

// TestManyCallersAtOnce is for the race detector, with a cache that is far too
// small for what is read.
func TestManyCallersAtOnce(t *testing.T) {
	b := newBench(t, fullSpace(), func(o *tools.Options) { o.Limits.CacheEntries = 4 })
	want := textOf(b.call(t, "instructions", ""))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 5 {
				r, err := b.Call(t.Context(), editor(), "instructions", nil, nil)
				if err != nil || textOf(r) != want {
					t.Errorf("another answer: %v", err)
				}
			}
		})
	}
	wg.Wait()
}
