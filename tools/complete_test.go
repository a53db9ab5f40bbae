package tools_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"satchel/internal/fault"
)

func TestCompletePath(t *testing.T) {
	b, _ := newShelves(t)
	for value, want := range map[string][]string{
		"READ":                      {"README.md"},
		"/":                         {"/library/docs/later/", "/library/docs/nuxt/", "/library/docs/team/"},
		"/library/docs/n":           {"/library/docs/nuxt/"},
		"/library/docs/nuxt/guide/": {"/library/docs/nuxt/guide/start.md", "/library/docs/nuxt/guide/deep/x.md"},
		"/library/docs/nuxt/start":  {"/library/docs/nuxt/guide/start.md"},
		"/library/docs/later/":      nil,
		"zzzzz":                     nil,
		"attack: ../":               nil,
	} {
		got, err := b.CompletePath(t.Context(), reader(), strings.TrimPrefix(value, "attack: "))
		if err != nil || !slices.Equal(got.Values, want) || got.Total != len(want) {
			t.Errorf("%q: %q of %d, %v", value, got.Values, got.Total, err)
		}
	}
	// Links are not completed, and neither are sources of others.
	for _, value := range []string{"/library/docs/nuxt/link", "/library/docs/nuxt/out", "/library/docs/secret/plan"} {
		got, err := b.CompletePath(t.Context(), reader(), value)
		if err != nil || slices.ContainsFunc(got.Values, func(s string) bool { return strings.HasPrefix(s, value) }) {
			t.Errorf("%q: %q, %v", value, got.Values, err)
		}
	}
	if _, err := b.CompletePath(t.Context(), annIs(nil), "R"); fault.CodeOf(err) != fault.Forbidden {
		t.Errorf("without a scope: %v", err)
	}
}

// TestCompletionsAreReadable checks that ReadResource reads what CompletePath returns.
func TestCompletionsAreReadable(t *testing.T) {
	files := map[string]string{}
	for i := range 150 {
		files[fmt.Sprintf("knowledge/notes %d#?%%.md", i)] = "note\n"
	}
	b := newBench(t, files, nil)
	got, err := b.CompletePath(t.Context(), reader(), "knowledge/")
	if err != nil || len(got.Values) != 100 || got.Total != 150 {
		t.Fatalf("%d of %d, %v", len(got.Values), got.Total, err)
	}
	for _, p := range got.Values {
		escaped := strings.NewReplacer("%", "%25", " ", "%20", "#", "%23", "?", "%3F").Replace(p)
		if c, _, err := b.ReadResource(t.Context(), reader(), "satchel://"+escaped); err != nil || c[0].Text != "note\n" {
			t.Errorf("%s: %v, %v", p, c, err)
		}
	}
}

func TestResourcesOfTheLibrary(t *testing.T) {
	b, _ := newShelves(t)
	c, typ, err := b.ReadResource(t.Context(), reader(), "satchel:///library/docs/nuxt/guide/start.md")
	if err != nil || typ != "text/markdown" || c[0].Text != "# Start\n\nInstall it.\n" {
		t.Errorf("%v, %s, %v", c, typ, err)
	}
	for _, uri := range []string{
		"satchel:///library/docs/secret/plan.md", "satchel:///library/docs/nuxt/link.md", "satchel:///library/docs/nuxt/out.md",
		"satchel:///library/docs/nuxt", "satchel:///library/docs/nuxt/../secret/plan.md", "skill:///library/docs/nuxt/guide/start.md",
	} {
		if c, _, err := b.ReadResource(t.Context(), reader(), uri); fault.CodeOf(err) != fault.NotFound {
			t.Errorf("attack: %s: %v, %v", uri, c, err)
		}
	}
}
