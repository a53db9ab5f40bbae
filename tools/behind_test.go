package tools_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"satchel/gitstore"
	"satchel/gitstore/sources"
	"satchel/internal/database/databasetest"
	"satchel/internal/service"
	"satchel/internal/space"
	"satchel/tools"
	"satchel/tools/index"
)

// imported is how many files an import of these tests has.
const imported = 2577

// importPages imports many pages into a space; the last one alone has the word
// heliotrope, and others have hydrangea.
func importPages(t *testing.T, l *live) {
	t.Helper()
	dir := t.TempDir()
	for i := range imported {
		text := fmt.Sprintf("# Page %d\n\nSome words on a line, and hydrangea.\n", i)
		if i == imported-1 {
			text += "The heliotrope blooms.\n"
		}
		if i%100 == 0 {
			if err := os.MkdirAll(filepath.Join(dir, fmt.Sprint(i/100)), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		writeFile(t, filepath.Join(dir, fmt.Sprint(i/100), fmt.Sprintf("%d.md", i)), text)
	}
	var archive bytes.Buffer
	if err := gitstore.WriteTar(t.Context(), dir, &archive, 0); err != nil {
		t.Fatal(err)
	}
	res, err := l.store.Import(t.Context(), l.id, gitstore.FromTar(&archive), space.Meta{Author: l.c.Author()}, nil)
	if err != nil || res.Files != imported {
		t.Fatal(res.Files, err)
	}
}

// searched is what an answer says of the index.
type searched struct {
	Results            []struct{ Path string }
	Notes, Suggestions []string
	IndexAge           float64 `json:"index_age"`
}

func searchIn(t *testing.T, set *tools.Registry, c tools.Caller, query string) searched {
	t.Helper()
	args, _ := json.Marshal(map[string]string{"query": query})
	r, err := set.Call(t.Context(), c, "search", args, nil)
	if err != nil || r.IsError {
		t.Fatal(r, err)
	}
	var a searched
	encoded, err := json.Marshal(r.Meta)
	if err != nil || json.Unmarshal(encoded, &a) != nil {
		t.Fatal(err)
	}
	if len(a.Notes) > 0 && !strings.HasPrefix(textOf(r), a.Notes[0]) {
		t.Errorf("notes are not first: %.100s", textOf(r))
	}
	return a
}

// check fails unless an answer says by how much the index is behind, and nothing
// else.
func (a searched) check(t *testing.T, behind string) {
	t.Helper()
	if a.IndexAge <= 0 || len(a.Notes) != 1 || !strings.Contains(a.Notes[0], behind) || len(a.Suggestions) > 0 {
		t.Errorf("want one note that has %q: %+v", behind, a)
	}
}

// latch is a gate through which blobs pass until it is shut.
type latch struct {
	*gate
	shut *atomic.Bool
}

func (a latch) ReadBlob(ctx context.Context, id space.SpaceID, b space.BlobID) ([]byte, error) {
	if !a.shut.Load() {
		return a.Store.ReadBlob(ctx, id, b)
	}
	return a.gate.ReadBlob(ctx, id, b)
}

// If indexing an import takes longer than a search may wait, the answer says how many pages
// the index is behind, and claims nothing about the missing pages.
func TestASearchWhileAnImportIsIndexedSaysHowFarTheIndexIs(t *testing.T) {
	g := latch{&gate{reached: make(chan struct{}, 1), opened: make(chan struct{})}, new(atomic.Bool)}
	l := newLive(t, map[string]string{"readme.md": "start here with hydrangeas"}, func(s *gitstore.Store) index.Source {
		g.Store = s
		return g
	}, -1)
	l.settle(t)
	g.shut.Store(true)
	importPages(t, l)
	for _, query := range []string{"heliotrope", "helitrope", "start heliotrope", `"heliotrope blooms"`, "kind:memory"} {
		searchIn(t, l.Registry, l.c, query).check(t, " 2577 pages ")
	}
	close(g.opened)
	l.settle(t)
	if a := searchIn(t, l.Registry, l.c, "heliotrope"); len(a.Results) != 1 || len(a.Notes) > 0 || a.IndexAge != 0 {
		t.Errorf("when it is indexed: %+v", a)
	}
}

// A search of a published source says how far its index is behind the space, before
// there is a new snapshot and while that is indexed, like one of the space itself.
func TestASearchOfASourceSaysHowFarItsIndexIs(t *testing.T) {
	l := newLive(t, map[string]string{"knowledge/a.md": "alpha", "b.md": "beta"}, nil, 0)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	db := databasetest.Open(t, databasetest.SQLite(t))
	_, err := db.Migrate(t.Context(), sources.Migrations()...)
	must(err)
	m := sources.New(sources.Options{
		DB: db, Store: l.store, LookEvery: time.Hour,
		Owned: func(context.Context, space.UserID) ([]space.SpaceID, error) { return []space.SpaceID{l.id}, nil },
	})
	t.Cleanup(m.Close)
	s, err := m.Add(t.Context(), space.Source{ID: "notes", Space: l.id, Dir: "knowledge", Everybody: true, By: l.c.User()}, sources.Consent{})
	must(err)
	f := l.index.Follow(m)
	t.Cleanup(f.Close)
	f.Refresh(s.Collection)
	must(l.index.Wait(t.Context(), s.Collection, s.Commit))
	of := func(wait time.Duration) *tools.Registry {
		set, err := tools.New(tools.Options{
			Service:   searching(l.index, service.Options{Sources: m, Search: service.SearchLimits{Wait: wait}}),
			Workspace: l.store, Library: published{m: m}, PublicURL: func() string { return "https://satchel.example" },
		})
		must(err)
		return set
	}
	l.commit(t, "elsewhere.md", "not published", time.Time{})
	if a := searchIn(t, of(-1), l.c, "alpha source:notes"); len(a.Results) != 1 || len(a.Notes) > 0 || a.IndexAge != 0 {
		t.Errorf("after a commit that changes nothing of it: %+v", a)
	}
	l.commit(t, "knowledge/c.md", "zanzibar", time.Time{})
	searchIn(t, of(-1), l.c, "zanzibar source:notes").check(t, " 1 page ") // there is no snapshot yet
	_, err = m.Sync(t.Context(), l.c.User(), "notes")
	must(err)
	searchIn(t, of(-1), l.c, "zanzibar source:notes").check(t, " 1 page ")
	f.Refresh(s.Collection)
	if a := searchIn(t, of(time.Hour), l.c, "zanzibar source:notes"); len(a.Results) != 1 || len(a.Notes) > 0 || a.IndexAge != 0 {
		t.Errorf("when it is indexed: %+v", a)
	}
}
