package api_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"satchel/gitstore/remotetest"
	"satchel/gitstore/sources/syncs"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/web/api"
)

// savoirCalls are the requests that the SDK of Savoir makes, with the fields that it reads of each
// answer. A name with a dot is a field of an object, and [] stands for each entry of a list that
// must not be empty. An entry with = gives the value.
var savoirCalls = []struct {
	name, method, path, body string
	status                   int
	reads                    []string
}{
	{"searchAndRead", "POST", "/api/sandbox/search-and-read", `{"query": "useAsyncData", "limit": 20, "sessionId": "s-1"}`, 200, []string{
		"sessionId=s-1", "query=useAsyncData", "matches[].path=docs/nuxt/guide.md", "matches[].lineNumber=3", "matches[].content=useAsyncData",
		"files[].path=docs/nuxt/guide.md", "files[].content", "files[].matchCount=1",
	}},
	{"search", "POST", "/api/sandbox/search", `{"query": "useAsyncData", "limit": 20, "sessionId": "s-1"}`, 200, []string{
		"sessionId=s-1", "matches[].path=docs/nuxt/guide.md", "matches[].lineNumber=3", "matches[].content=useAsyncData", "files[]=docs/nuxt/guide.md",
	}},
	{"read", "POST", "/api/sandbox/read", `{"paths": ["docs/nuxt/guide.md"], "sessionId": "s-1"}`, 200, []string{
		"sessionId=s-1", "files[].path=docs/nuxt/guide.md", "files[].content", "files[].totalLines=3",
	}},
	{"bash", "POST", "/api/sandbox/shell", `{"command": "echo one", "sessionId": "s-1"}`, 200, []string{"sessionId=s-1", "stdout=one\n", "stderr=", "exitCode=0"}},
	{"bash that fails", "POST", "/api/sandbox/shell", `{"command": "exit 3", "sessionId": "s-1"}`, 200, []string{"stdout=", "stderr=bad\n", "exitCode=3"}},
	{"bash of a new client", "POST", "/api/sandbox/shell", `{"command": "echo one"}`, 200, []string{"sessionId=default", "stdout=one\n", "exitCode=0"}},
	{"bashBatch", "POST", "/api/sandbox/shell", `{"commands": ["echo one", "echo one"], "sessionId": "s-1"}`, 200, []string{
		"sessionId=s-1", "results[].command=echo one", "results[].stdout=one\n", "results[].stderr=", "results[].exitCode=0",
	}},
	{"getSources", "GET", "/api/sources", "", 200, []string{
		"total=3", "github.count=1", "github.sources[].id=kit", "github.sources[].label=Kit", "github.sources[].type=github", "github.sources[].repo=acme/kit",
		"github.sources[].branch=main", "github.sources[].outputPath=kit/guides", "github.sources[].readmeOnly=false", "youtube.count=0", "youtube.sources",
		"sources[].id", "space.count=2",
	}},
	{"sync", "POST", "/api/sync", `{"reset": false, "push": true, "sessionId": "s-1"}`, 202, []string{"status=started", "message", "options.reset=false", "options.push=true"}},
	{"syncSource", "POST", "/api/sync/nuxt", `{"reset": true, "push": false, "sessionId": "s-1"}`, 202, []string{
		"status=started", "message", "source=nuxt", "options.reset=true", "options.push=false", "options.sourceFilter=nuxt",
	}},
	{"sync with a filter", "POST", "/api/sync", `{"reset": false, "push": true, "sourceFilter": "nuxt", "sessionId": "s-1"}`, 202, []string{"status=started", "options.sourceFilter=nuxt"}},
	{"createSnapshot", "POST", "/api/sandbox/snapshot", `{"sessionId": "s-1"}`, 202, []string{"status=started", "message"}},
}

// The SDK of Savoir works with this server. Every answer is also checked against the document.
func TestCallsOfSavoirsSDK(t *testing.T) {
	w := newWorld(t)
	_, err := w.library.AddSyncedSource(t.Context(), service.Operator(), service.SyncedSourceInput{
		Source:  space.Source{ID: "kit", SourceText: space.SourceText{Title: "Kit"}, Everybody: true},
		Setting: syncs.Setting{Kind: "github", Settings: json.RawMessage(`{"host": "github.test", "repo": "acme/kit", "branch": "main", "output_path": "guides"}`)},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range savoirCalls {
		t.Run(c.name, func(t *testing.T) {
			var body any
			if c.body != "" {
				body = c.body
			}
			a := w.ask(c.method, c.path, "ann", body)
			if a.StatusCode != c.status {
				t.Fatalf("%d: %s", a.StatusCode, a.body)
			}
			var v any
			a.into(t, &v)
			for _, field := range c.reads {
				path, want, given := strings.Cut(field, "=")
				values := at(v, strings.Split(path, "."))
				if len(values) == 0 || slices.Contains(values, nil) {
					t.Errorf("no %s in %s", path, a.body)
				}
				for _, got := range values {
					if given && fmt.Sprint(got) != want {
						t.Errorf("%s is %v, want %s", path, got, want)
					}
				}
			}
		})
	}
}

// at returns the values of a field in a JSON value. A missing value is nil.
func at(v any, path []string) []any {
	if len(path) == 0 {
		return []any{v}
	}
	name, each := strings.CutSuffix(path[0], "[]")
	object, ok := v.(map[string]any)
	if !ok {
		return []any{nil}
	}
	if !each {
		return at(object[name], path[1:])
	}
	list, _ := object[name].([]any)
	var out []any
	for _, x := range list {
		out = append(out, at(x, path[1:])...)
	}
	return out
}

// Readers learn where a source comes from, and nothing else of its settings.
func TestSourcesOfEachKind(t *testing.T) {
	w := newWorld(t)
	server := remotetest.New(t, remotetest.Options{})
	server.Create("docs")
	_, err := w.library.AddSyncedSource(t.Context(), service.Operator(), service.SyncedSourceInput{
		Source: space.Source{ID: "handbook", Everybody: true}, Setting: syncs.Setting{URL: server.URL("docs")},
	})
	if err != nil {
		t.Fatal(err)
	}
	a := w.ask("GET", "/api/sources", "bob", nil)
	var v struct {
		Git, Space, GitHub struct {
			Count   int
			Sources []struct{ ID string }
		}
	}
	a.into(t, &v)
	if v.Git.Count != 1 || v.Git.Sources[0].ID != "handbook" || v.Space.Count != 2 || v.GitHub.Count != 0 || strings.Contains(string(a.body), server.URL("docs")) {
		t.Errorf("%s", a.body)
	}
}

func TestSnapshot(t *testing.T) {
	w := newWorld(t)
	want(t, "a key that only reads", w.ask("POST", "/api/sandbox/snapshot", "ann-reads", nil), 403, "forbidden")
	want(t, "without a body", w.ask("POST", "/api/sandbox/snapshot", "ann", nil), 202, "")
	for _, src := range w.library.Sources.All() {
		if again := src.Synced.Equal(w.clock()); again != (src.ID == "nuxt") { // vue is too large
			t.Errorf("%s was made at %s, and it is %s", src.ID, src.Synced, w.clock())
		}
	}
}

// A match is a line of the file, with its number.
func TestMatches(t *testing.T) {
	for _, c := range []struct {
		name, query, lines, snippet string
		want                        string
	}{
		{"the line with most words", "deploy the app", "4-6", "The app.\nDeploy the app.\nThe end.", "5 Deploy the app."},
		{"a qualifier and an excluded word", "path:the/** -end app", "1-2", "The end\nan App", "2 an App"},
		{"no word", "zebra", "7-8", "\nSecond", "8 Second"},
		{"no text", "zebra", "", "", "1 "},
		{"a snippet that leaves lines out", "deploy", "3-50", "…\nDeploy.", "3 Deploy."},
		{"many", "a", "1-4", "a\na\na\na", "1 a|2 a|3 a"},
		{"a long line", "x", "1-1", strings.Repeat("x", 300), "1 " + strings.Repeat("x", 199) + "…"},
	} {
		if got := api.MatchesOf(c.query, c.lines, c.snippet); strings.Join(got, "|") != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
