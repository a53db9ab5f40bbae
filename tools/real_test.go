package tools_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"satchel/gitstore"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/tools"
)

// realSet is a Set over a real repository and a real index of a new space with
// some more files.
func realSet(t testing.TB, files map[string]string) (*tools.Registry, tools.Caller) {
	t.Helper()
	store, err := gitstore.Open(gitstore.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	cs := gitstore.StartingTree()
	for p, c := range files {
		cs.Changes = append(cs.Changes, space.Change{Path: p, Content: []byte(c)})
	}
	id := space.NewSpaceID()
	if _, err := store.Create(t.Context(), id, cs, space.Meta{Author: space.Person{Name: "Ann", Email: "ann@example.com"}}); err != nil {
		t.Fatal(err)
	}
	x := openIndex(t)
	if err := x.Rebuild(t.Context(), id, store); err != nil {
		t.Fatal(err)
	}
	set, err := tools.New(tools.Options{Service: searching(x, service.Options{Git: store}), Workspace: store, PublicURL: func() string { return "https://satchel.example" }})
	if err != nil {
		t.Fatal(err)
	}
	c := editor(in(id))
	return set, c
}

// TestOverRealParts goes the way of a model: instructions, search, read what
// was found, with real git and the real index.
func TestOverRealParts(t *testing.T) {
	set, c := realSet(t, map[string]string{
		// Sections long enough to be found one by one.
		"knowledge/nuxt/data.md": "---\ntitle: Data fetching\n---\n\n# Data fetching\n\n" + strings.Repeat("An introduction to it.\n", 150) +
			"\n## useAsyncData\n\n" + strings.Repeat("Call useAsyncData to load data once.\n", 100) + "\n## Others\n\n" + strings.Repeat("Something else.\n", 200),
		"knowledge/tea.md": "# Tea\n\nGreen.\n",
	})
	call := func(name, args string) tools.Result {
		t.Helper()
		r, err := set.Call(t.Context(), c, name, json.RawMessage(args), nil)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	check(t, call("instructions", `{}`), false, "How to work here", "skills/tidy-notes/SKILL.md", "- knowledge/nuxt/", "- knowledge/tea.md: ", "!problem:")

	r := call("search", `{"query":"use async data"}`)
	found := resultsOf(r)
	if len(found) == 0 || r.Meta["index_age"] != 0.0 {
		t.Fatalf("found %v: %s", r.Meta, textOf(r))
	}
	first := found[0]
	if first.Path != "knowledge/nuxt/data.md" || first.ID != "knowledge/nuxt/data.md#useasyncdata" {
		t.Errorf("found %+v", first)
	}
	check(t, call("read", fmt.Sprintf(`{"paths":[%q]}`, first.ID)), false, "etag "+first.ETag, "\t## useAsyncData", "!Others")
	check(t, call("fetch", fmt.Sprintf(`{"id":%q}`, first.ID)), false, `"title":"Data fetching"`, "https://satchel.example/spaces/", "## Others")
	check(t, call("read", `{"paths":["knowledge/","**/*.md","knowledge/nuxt"]}`), false, "nuxt/\n", "knowledge/tea.md\n", "data.md (")
	check(t, call("read", `{"paths":["nuxt/daat.md"]}`), true, "Did you mean knowledge/nuxt/data.md")

	if prompts, err := set.Prompts(t.Context(), c); err != nil || len(prompts) != 4 || prompts[3].Name != "tidy-notes" {
		t.Errorf("a new space shows the prompts %+v, %v", prompts, err)
	}
	skills, err := set.Skills(t.Context(), c)
	if err != nil || len(skills) == 0 || !strings.HasPrefix(skills[0].Resources[0].Digest, "sha256:") {
		t.Errorf("skills %v, %v", skills, err)
	}
}

func BenchmarkRead(b *testing.B) {
	files := map[string]string{}
	for i := range 1000 {
		files[fmt.Sprintf("knowledge/d%d/page-%d.md", i%20, i)] = strings.Repeat("some words on a line of text\n", 300)
	}
	set, c := realSet(b, files)
	for _, bb := range []struct{ name, tool, args string }{
		{"file", "read", `{"paths":["knowledge/d7/page-7.md"]}`},
		{"missing", "read", `{"paths":["knowledge/page-7.md"]}`},
		{"glob", "read", `{"paths":["knowledge/**/page-7*.md"]}`},
		{"instructions", "instructions", `{}`},
	} {
		b.Run(bb.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := set.Call(b.Context(), c, bb.tool, json.RawMessage(bb.args), nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
