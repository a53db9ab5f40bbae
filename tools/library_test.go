package tools_test

import (
	"context"
	"strings"
	"testing"

	"satchel/auth"
	"satchel/internal/fault"
	"satchel/internal/space"
	"satchel/tools"
)

// shelves is a Library: which sources a user may read, and their files.
type shelves struct {
	*spaces
	sources map[space.UserID][]space.Source
}

func (l shelves) Sources(_ context.Context, u space.UserID) ([]space.Source, error) {
	return l.sources[u], nil
}

func (l shelves) Head(context.Context, space.SpaceID) (space.CommitID, error) {
	return "", fault.New(fault.Internal, "tools know the commit from the source")
}

// publish makes a source of files, which are a space of their own.
func (l shelves) publish(t testing.TB, s space.Source, files map[string]string) space.Source {
	t.Helper()
	s.Collection = space.NewSpaceID()
	s.Commit = l.create(t, s.Collection, files)
	return s
}

// newShelves has two sources for ann's user (as the bench calls), and one of
// another audience.
func newShelves(t *testing.T) (*bench, *shelves) {
	l := &shelves{spaces: newSpaces(t)}
	b := newBench(t, library(t), func(o *tools.Options) { o.Library = l })
	l.sources = map[space.UserID][]space.Source{
		"u_ann": {
			l.publish(t, space.Source{ID: "team", SourceText: space.SourceText{Title: "Team <b>", Description: "How\nwe work"}, Owner: "bob"}, map[string]string{"how.md": "how\n"}),
			l.publish(t, space.Source{ID: "nuxt", Kind: "web", SourceText: space.SourceText{Title: "Nuxt"}}, map[string]string{
				"guide/start.md": "# Start\n\nInstall it.\n", "web.md": "---\nurl: https://nuxt.example/docs/web\n---\n# Web\n", "guide/deep/x.md": "deep\n", "link.md": "-> guide/start.md", "out.md": "-> outside", "a:1-2": "odd\n",
			}),
			{ID: "later", SourceText: space.SourceText{Title: "Not yet"}, Collection: space.NewSpaceID()},
		},
		"u_other": {l.publish(t, space.Source{ID: "secret", SourceText: space.SourceText{Title: "Secret"}}, map[string]string{"plan.md": "the plan\n"})},
	}
	return b, l
}

func TestReadTheLibrary(t *testing.T) {
	b, l := newShelves(t)
	for _, c := range []struct {
		name, paths string
		isError     bool
		want        []string
	}{
		{"a file", `["/library/docs/nuxt/guide/start.md"]`, false, []string{"1\t# Start", "!==", "!etag"}},
		{"lines of it", `["/library/docs/nuxt/guide/start.md:3-"]`, false, []string{"lines 3-3 of 3", "3\tInstall it."}},
		{"a section of it", `["/library/docs/nuxt/guide/start.md#start"]`, false, []string{"1\t# Start"}},
		{"a link", `["/library/docs/nuxt/link.md"]`, false, []string{"[a symbolic link to /library/docs/nuxt/guide/start.md]", "# Start"}},
		{"a name with a colon", `["/library/docs/nuxt/a:1-2"]`, false, []string{"1\todd"}},
		{"the library", `["/library/"]`, false, []string{"== /library/ (directory: 1 directory, 0 files)\ndocs/"}},
		{"its sources", `["/library/docs"]`, false, []string{"== /library/docs/ (directory: 3 directories, 0 files)", "nuxt/ (Nuxt)", "team/ (Team <b> — How we work (shared by bob))", "!secret", "!Secret"}},
		{"a source", `["/library/docs/nuxt"]`, false, []string{"== /library/docs/nuxt/ (directory: 1 directory, 4 files)", "guide/\n"}},
		{"a directory", `["/library/docs/nuxt/guide/"]`, false, []string{"start.md", "deep/"}},
		{"a glob in a source", `["/library/docs/nuxt/**/*.md"]`, false, []string{"/library/docs/nuxt/guide/start.md\n", "/library/docs/nuxt/guide/deep/x.md", "!how.md"}},
		{"a glob of all sources", `["/library/docs/*/*.md"]`, false, []string{"/library/docs/team/how.md", "/library/docs/nuxt/link.md", "!start.md", "!plan.md"}},
		{"a glob of everything", `["/library/**"]`, false, []string{"/library/docs/team/how.md", "!plan.md"}},
		{"a glob of the space", `["**/*.md"]`, false, []string{"README.md", "!/library/"}},
		{"one that is not ready", `["/library/docs/later/x.md"]`, true, []string{"is not ready yet"}},
		{"missing, a typing error", `["/library/docs/nuxt/guide/strat.md"]`, true, []string{"Did you mean /library/docs/nuxt/guide/start.md?"}},
		{"missing, a source", `["/library/docs/nux/x.md"]`, true, []string{"Did you mean /library/docs/nuxt?"}},
		{"missing, nothing near", `["/library/docs/zzzzzz/x.md"]`, true, []string{"The sources are: later, nuxt, team.", "!secret"}},
		{"attack: a source of others", `["/library/docs/secret/plan.md"]`, true, []string{"!the plan", "!ready", "!Did you mean"}},
		{"attack: a source of others as a directory", `["/library/docs/secret/"]`, true, []string{"!plan.md"}},
		{"attack: a source of others by a glob", `["/library/docs/s*/*"]`, false, []string{"matches 0 files", "!plan.md"}},
		{"attack: another case", `["/library/docs/NUXT/guide/start.md"]`, true, []string{"!# Start"}},
		{"attack: dots", `["/library/docs/nuxt/../secret/plan.md"]`, true, []string{`segment ".."`}},
		{"attack: dots to the space", `["/library/../space/README.md"]`, true, []string{`segment ".."`}},
		{"attack: a link out of the source", `["/library/docs/nuxt/out.md"]`, true, []string{"leaves the space", "!root:"}},
		{"attack: the collection's name", `["/library/docs/` + string(l.sources["u_ann"][1].Collection) + `/guide/start.md"]`, true, []string{"!# Start"}},
		{"attack: a file of the space", `["/library/README.md"]`, true, []string{"!# Readme"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			check(t, b.callAs(t, reader(), "read", `{"paths":`+c.paths+`}`), c.isError, c.want...)
		})
	}
}

func TestFetchAndInstructionsKnowTheLibrary(t *testing.T) {
	b, _ := newShelves(t)
	call := func(tool, args string) tools.Result { return b.callAs(t, reader(), tool, args) }
	r := call("fetch", `{"id":"/library/docs/nuxt/guide/start.md#start"}`)
	for _, want := range []string{`"title":"Start"`, `/library/docs/nuxt/guide/start.md"`, `"path":"/library/docs/nuxt/guide/start.md"`} {
		if !strings.Contains(string(r.Structured), want) {
			t.Errorf("fetch lacks %s: %s", want, r.Structured)
		}
	}
	if strings.Contains(string(r.Structured), "/spaces/") {
		t.Errorf("a page of the library has an address of a space: %s", r.Structured)
	}
	// A page that a source has from the web is cited by its address there.
	if r := call("fetch", `{"id":"/library/docs/nuxt/web.md"}`); !strings.Contains(string(r.Structured), `"url":"https://nuxt.example/docs/web"`) {
		t.Errorf("fetch gives another address: %s", r.Structured)
	}
	if r := call("fetch", `{"id":"/library/docs/secret/plan.md"}`); !r.IsError {
		t.Errorf("attack: fetch gives a source of others: %s", r.Structured)
	}
	text := call("instructions", `{}`).Content[0].Text
	if !strings.Contains(text, "- /library/docs/team/: Team <b> — How we work (shared by bob)\n") || strings.Contains(text, "ecret") || strings.Contains(text, "none: nobody has shared") {
		t.Errorf("instructions: %s", text)
	}
	nobody := editor(func(p *auth.Principal) { p.User = "u_nobody" })
	if text := textOf(b.callAs(t, nobody, "instructions", `{}`)); !strings.Contains(text, "none: nobody has shared") || strings.Contains(text, "docs/team") {
		t.Errorf("instructions of somebody without sources: %s", text)
	}
}

// Calls that are parts of one answer keep the snapshots with which the first began,
// while others have what replaced them.
func TestCallsThatShareWhatTheySaw(t *testing.T) {
	b, l := newShelves(t)
	one, seen := reader(), new(tools.Seen)
	one.Seen = seen
	asks := func(c tools.Caller) string {
		t.Helper()
		text := textOf(b.callAs(t, c, "read", `{"paths":["/library/docs/nuxt/guide/start.md"]}`))
		text += string(b.callAs(t, c, "fetch", `{"id":"/library/docs/nuxt/guide/start.md"}`).Structured)
		return text
	}
	before := asks(one)
	l.sources["u_ann"] = []space.Source{l.publish(t, space.Source{ID: "nuxt"}, map[string]string{"guide/start.md": "# Newer\n"})}
	if got := asks(one); got != before || strings.Contains(got, "ewer") {
		t.Errorf("two snapshots in one answer: %s", got)
	}
	if got := asks(reader()); strings.Count(got, "# Newer") != 2 {
		t.Errorf("the next answer: %s", got)
	}
}
