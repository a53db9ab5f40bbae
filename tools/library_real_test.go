package tools_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"satchel/auth"
	"satchel/gitstore"
	"satchel/gitstore/sources"
	"satchel/internal/database/databasetest"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/tools"
)

// published is a Library over real sources of real spaces, of which nothing but
// the list is asked here.
type published struct {
	tools.Workspace
	m *sources.Manager
}

func (p published) Sources(ctx context.Context, u space.UserID) ([]space.Source, error) {
	return p.m.Visible(ctx, u)
}

// What others share must not push a person's own pages down, and what is in both
// is one result.
func TestOwnPagesComeFirst(t *testing.T) {
	git, err := gitstore.Open(gitstore.Options{Dir: t.TempDir()})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(err)
	t.Cleanup(func() { _ = git.Close() })
	x := openIndex(t)
	db := databasetest.Open(t, databasetest.SQLite(t))
	_, err = db.Migrate(t.Context(), sources.Migrations()...)
	must(err)
	ids := map[space.UserID]space.SpaceID{}
	// Ids decide nothing: several tries would show it.
	for user, files := range map[space.UserID]map[string]string{
		"u_ann": {"knowledge/zeppelin.md": "# Zeppelins\n\nHow a zeppelin is moored to its mast, by whom, at which height above the ground, and what to do in a storm.\n", "knowledge/kite.md": "# Kites\n\nAnn, who is always early, never late and seldom in a hurry, flies a kite at noon.\n"},
		"u_bob": {"knowledge/zeppelin.md": "# Zeppelins\n\nHow a zeppelin is moored to its mast, by whom, at which height above the ground, and what to do in a storm.\n", "knowledge/web.md": "---\nurl: https://balloons.example/guide\n---\n# Balloons\n", "knowledge/kite.md": "# Kites\n\nBob and his many cousins from three distant villages, when winds allow it, fly a kite at noon.\n", "private.md": "# Zeppelin of Bob\n\nNobody else may see it.\n"},
	} {
		id := space.NewSpaceID()
		var cs space.ChangeSet
		for p, c := range files {
			cs.Changes = append(cs.Changes, space.Change{Path: p, Content: []byte(c)})
		}
		_, err := git.Create(t.Context(), id, cs, space.Meta{Author: space.Person{Name: "A", Email: "a@example.com"}})
		must(err)
		must(x.Rebuild(t.Context(), id, git))
		ids[user] = id
	}
	m := sources.New(sources.Options{
		DB: db, Store: git, Dir: filepath.Join(t.TempDir(), "library"), LookEvery: time.Hour,
		Owned: func(_ context.Context, u space.UserID) ([]space.SpaceID, error) { return []space.SpaceID{ids[u]}, nil },
	})
	t.Cleanup(m.Close)
	for user, name := range map[space.UserID]string{"u_ann": "anns", "u_bob": "bobs"} {
		s, err := m.Add(t.Context(), space.Source{ID: name, Space: ids[user], Dir: "knowledge", Everybody: true, By: user}, sources.Consent{})
		must(err)
		must(x.Update(t.Context(), s.Collection, m))
	}
	set, err := tools.New(tools.Options{
		Service: searching(x, service.Options{Git: git, Sources: m}), Workspace: git, Library: published{m: m}, PublicURL: func() string { return "https://satchel.example" },
	})
	must(err)
	for _, c := range []struct {
		name, user, query string
		want              string
	}{
		{"the same page in three places is the person's own", "u_ann", "zeppelin mast", "knowledge/zeppelin.md"},
		{"and the other's for the other, whose private page stays theirs", "u_bob", "zeppelin mast", "knowledge/zeppelin.md private.md"},
		{"a page that differs by a word", "u_ann", "kite noon", "knowledge/kite.md /library/docs/bobs/kite.md"},
		{"one source alone", "u_ann", "kite source:bobs", "/library/docs/bobs/kite.md"},
		{"their own source alone", "u_ann", "kite source:anns", "/library/docs/anns/kite.md"},
		{"all but the library", "u_ann", "kite -source:bobs -source:anns", "knowledge/kite.md"},
	} {
		t.Run(c.name, func(t *testing.T) {
			args, _ := json.Marshal(map[string]any{"query": c.query})
			r, err := set.Call(t.Context(), editor(func(p *auth.Principal) { p.User, p.Space = space.UserID(c.user), ids[space.UserID(c.user)] }), "search", args, nil)
			must(err)
			var got []string
			for _, h := range resultsOf(r) {
				got = append(got, h.Path)
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("found %v, want %s: %s", got, c.want, textOf(r))
			}
		})
	}
	// Only a source that Satchel made from the web has pages with an address there. Anybody can write
	// any address into a page of a directory that they publish.
	for _, c := range []struct {
		name, user string
		chat       bool
		want       []string
	}{
		{"a page of a source", "u_ann", false, []string{"/library/docs/bobs/web.md", "!; from"}},
		{"a page of a source, for ChatGPT", "u_ann", true, []string{`"url":"https://satchel.example/library/docs/bobs/web.md"`}},
		{"a page of the space", "u_bob", false, []string{"knowledge/web.md", "!; from"}},
		{"a page of the space, for ChatGPT", "u_bob", true, []string{`"url":"https://satchel.example/spaces/`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			who := editor(func(p *auth.Principal) { p.User, p.Space = space.UserID(c.user), ids[space.UserID(c.user)] })
			who.ChatGPT = c.chat
			r, err := set.Call(t.Context(), who, "search", json.RawMessage(`{"query":"balloons"}`), nil)
			must(err)
			check(t, r, false, c.want...)
		})
	}
}
