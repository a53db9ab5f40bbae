package config_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"satchel/internal/config"
	"satchel/internal/fault"
)

// checkEntry knows the kind git, which has a url and a branch.
func checkEntry(e config.SyncedSource) ([]string, error) {
	if e.Kind != "git" {
		return nil, fault.New(fault.Invalid, "There is no kind of source %q. The kinds are git.", e.Kind).In("kind")
	}
	var s struct{ URL any }
	if json.Unmarshal(e.Settings, &s) != nil || s.URL == nil {
		return []string{"url", "branch"}, fault.New(fault.Invalid, "A git source needs the URL of a repository.").In("url")
	}
	return []string{"url", "branch"}, nil
}

func loadSources(t *testing.T, text string) ([]config.SyncedSource, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "satchel.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := config.LoadSources(file, checkEntry)
	if err == nil {
		return got, ""
	}
	return got, strings.ReplaceAll(fault.PublicOf(err), file, "F")
}

func TestSources(t *testing.T) {
	got, mistakes := loadSources(t, `
log: {level: debug}
sources:
  - {id: handbook, kind: git, url: "https://git.example/handbook.git"}
  - id: rules
    kind: git
    url: https://git.example/rules.git
    branch: 2026-01-01
    title: Rules
    description: How we work.
    aliases: [policies, "the book"]
    audience: [ann, bob]
    every: 1d
  - {id: old, kind: git, url: x, aliases: ancient, paused: true, every: 1h, audience: []}
`)
	if mistakes != "" || len(got) != 3 {
		t.Fatal(got, mistakes)
	}
	if h := got[0]; h.ID != "handbook" || h.Kind != "git" || !h.Everybody || h.Every != nil || string(h.Settings) != `{"url":"https://git.example/handbook.git"}` {
		t.Errorf("%+v", h)
	}
	if r := got[1]; r.Title != "Rules" || r.Description != "How we work." || r.Aliases != "policies, the book" || r.Everybody || !slices.Equal(r.Readers, []string{"ann", "bob"}) || *r.Every != 24*time.Hour ||
		string(r.Settings) != `{"branch":"2026-01-01","url":"https://git.example/rules.git"}` {
		t.Errorf("%+v", r)
	}
	if o := got[2]; *o.Every != 0 || o.Aliases != "ancient" || o.Everybody || len(o.Readers) != 0 {
		t.Errorf("%+v", o)
	}
	for _, empty := range []string{"", "sources:\n", "sources: []\n"} {
		if got, mistakes := loadSources(t, empty); len(got) != 0 || mistakes != "" {
			t.Errorf("%q: %v, %s", empty, got, mistakes)
		}
	}
}

// Each mistake names its place, and a wrong key the nearest one.
func TestMistakesOfSources(t *testing.T) {
	for _, tt := range []struct{ entry, want string }{
		{"- {id: a, kind: git, url: x, brunch: main}", `F:2:30: there is no key "brunch" in a source of the kind git; did you mean branch?`},
		{"- {id: a, kind: git, url: x, titel: A}", `F:2:30: there is no key "titel" in a source of the kind git; did you mean title?`},
		{"- {id: a, kind: got, url: x}", `F:2:11: sources: a: There is no kind of source "got". The kinds are git`},
		{"- {id: a, url: x}", `F:2:3: sources: a: There is no kind of source "". The kinds are git`},
		{"- {id: a, kind: git}", "F:2:3: sources: a: A git source needs the URL of a repository"},
		{"- {kind: git, url: x}", "F:2:3: sources: the entry needs an id"},
		{"- {id: a, kind: git, url: x}\n- {id: a, kind: git, url: y}", `F:3:3: sources: the id "a" is there already, in line 2`},
		{"- {id: a, kind: git, url: x, url: y}", "F:2:30: sources: url is there already, in line 2"},
		{"- {id: 7, kind: git, url: x}", "F:2:8: sources: id: it must be a text"},
		{"- {id: a, kind: git, url: x, every: soon}", `F:2:37: sources: every: "soon" is not a duration such as 45s, 10m, 1h30m or 90d`},
		{"- {id: a, kind: git, url: x, paused: maybe}", "F:2:38: sources: paused: it must be true or false"},
		{"- {id: a, kind: git, url: x, audience: ann}", "F:2:40: sources: audience: it must be everyone, or a list of user names"},
		{"- {id: a, kind: git, url: }", "F:2:27: sources: url: it has no value; take the line out"},
		{"- {id: a, kind: git, url: !x y}", "F:2:27: sources: url: anchors, aliases and tags are not used in a configuration; write the value"},
		{"- &a {id: a, kind: git, url: x}", `F:2:3: sources: an entry must be keys and values, such as "{id: nuxt, kind: github, repo: nuxt/nuxt}"`},
		{"- nuxt", `F:2:3: sources: an entry must be keys and values, such as "{id: nuxt, kind: github, repo: nuxt/nuxt}"`},
	} {
		if _, got := loadSources(t, "sources:\n"+tt.entry+"\n"); got != tt.want {
			t.Errorf("%s\n got %s\nwant %s", tt.entry, got, tt.want)
		}
	}
	if _, got := loadSources(t, "source:\n  - {id: a}\n"); got != `F:1:1: there is no key "source"; did you mean sources?` {
		t.Error(got)
	}
	if _, got := loadSources(t, "sources: nuxt\n"); !strings.HasPrefix(got, "F:1:10: sources must be a list of entries") {
		t.Error(got)
	}
}
